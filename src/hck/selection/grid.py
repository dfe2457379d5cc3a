"""Search for a kernel and a ridge by closed-form scores, with the same trees for all of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from torch import Tensor

from hck.approximations.hierarchical import make_blueprint
from hck.backend.progress import track
from hck.hierarchy.blueprint import Blueprint
from hck.kernels import Kernel, make_kernel
from hck.kernels.inputs import looks_like_objects, real_array
from hck.points import PointsLike, as_points, as_tensor
from hck.selection.left_out import left_out_each
from hck.selection.tuning import stretched
from hck.settings import Option, Settings

SCORES = ("left_out", "gcv")


@dataclass(frozen=True)
class Trial:
    """A kernel and a ridge, and how well they do.

    `left_out` is the mean squared error of observations predicted from all others, and `gcv` generalised
    cross-validation, n ‖(I − A) y‖² / tr(I − A)² for the matrix A that takes y to the fitted values, which is
    leave-one-out with all leverages made equal; both relative to the variance of y.

    Examples
    --------
    >>> from hck.kernels import Gaussian
    >>> from hck.selection import Trial
    >>> Trial(Gaussian(0.5), alpha=0.1, left_out=0.02, gcv=0.021).left_out
    0.02
    """

    kernel: Kernel
    alpha: float
    left_out: float
    gcv: float


@dataclass(frozen=True)
class Search:
    """All that was tried, in its order.

    Examples
    --------
    >>> from hck.kernels import Gaussian
    >>> from hck.selection import Search, Trial
    >>> trials = [Trial(Gaussian(s), 0.1, left_out, left_out) for s, left_out in ((0.5, 0.02), (2.0, 0.3))]
    >>> print(Search(trials, "left_out"))
      left out        GCV      alpha  kernel
       0.02000    0.02000        0.1  Gaussian(lengthscale=0.5)
       0.30000    0.30000        0.1  Gaussian(lengthscale=2)
    """

    trials: list[Trial]
    score: str

    @property
    def best(self) -> Trial:
        """The trial of the least score."""
        return min(self.trials, key=lambda trial: getattr(trial, self.score))

    def __str__(self) -> str:
        lines = [f"{'left out':>10} {'GCV':>10} {'alpha':>10}  kernel"]
        for t in sorted(self.trials, key=lambda trial: getattr(trial, self.score)):
            lines.append(f"{t.left_out:10.5f} {t.gcv:10.5f} {t.alpha:10.3g}  {t.kernel}")
        return "\n".join(lines)


def search(
    X: PointsLike,
    y: ArrayLike | Tensor,
    kernels: Sequence[Kernel],
    alphas: Sequence[float],
    *,
    score: str = "left_out",
    refine: int = 0,
    n_trees: int = 1,
    device: torch.device | str | None = None,
    random_state: int = 0,
    verbose: bool = False,
    **options: Option,
) -> Search:
    """Try kernels with ridges, and perhaps go on from the best.

    Trees and landmarks are made once, for the first kernel, and serve all others; the blocks of a kernel
    serve all ridges.

    Parameters
    ----------
    X : array-like, sparse matrix or Tensor of shape (n, d)
    y : array-like of shape (n,) or (n, columns)
        Its mean is taken away.
    kernels : sequence of Kernel, or of what `hck.kernels.make_kernel` takes
    alphas : sequence of float
        Ridges, larger than 0.
    score : {"left_out", "gcv"}
        What to minimise.
    refine : int
        How many more to try by the simplex method of Nelder and Mead, that multiplies all lengthscales, and
        alpha, by any numbers.
    n_trees, device, random_state, verbose : as for `HCKRegressor`
    **options
        The `rank`, 128 by default, and more of `hck.settings.Settings`, as for `HCKRegressor`: `leaf_size`,
        `partition`, `landmarks`, `jitter`, `memory_budget`, and the `approximation`, if a tree makes it.

    Examples
    --------
    >>> import numpy as np
    >>> from hck.kernels import Matern
    >>> from hck.selection import search
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(500, 2))
    >>> y = np.sin(6 * X[:, 0]) + 0.1 * rng.standard_normal(500)
    >>> found = search(X, y, [Matern(s) for s in (0.02, 0.5, 20.0)], [1e-4, 1e-1], rank=32)
    >>> found.best.kernel, found.best.alpha
    (Matern(lengthscale=0.5, nu=1.5), 0.1)
    """
    if score not in SCORES:
        raise ValueError(f"score must be one of {', '.join(SCORES)}, got {score!r}")
    if not len(kernels) or not len(alphas):
        raise ValueError("at least one kernel and one alpha are needed")
    if not all(alpha > 0 for alpha in alphas):
        raise ValueError(f"alphas must be larger than 0, got {list(alphas)}")
    kernels = [make_kernel(kernel) for kernel in kernels]
    points = as_points(X, device=device, objects=kernels[0].takes_objects and looks_like_objects(X))
    target = as_tensor(real_array(y)).to(points.device, points.dtype)
    if not torch.isfinite(target).all():
        raise ValueError("y contains NaN or infinity")
    if len(target) != len(points):
        raise ValueError(f"X has {len(points)} points but y has {len(target)} values")
    target = target[:, None] if target.ndim == 1 else target
    target = target - target.mean(0)
    seeds = np.random.RandomState(random_state).randint(2**31 - 1, size=n_trees).tolist()
    settings = Settings(**{"rank": 128, **options})
    first = kernels[0].to(points.device, points.dtype)
    trees = [make_blueprint(first, points, settings, seed) for seed in seeds]

    def attempt(kernel: Kernel, ridges: Sequence[float]) -> list[Trial]:
        here = kernel.to(points.device, points.dtype)
        return _scores(kernel, [tree.with_kernel(here, settings.jitter) for tree in trees], target, ridges)

    trials: list[Trial] = []
    for kernel in track(list(kernels), "Search", verbose):
        trials += attempt(kernel, alphas)
    if refine:
        _refine(attempt, trials, score, refine)
    return Search(trials, score)


@torch.no_grad()
def _scores(kernel: Kernel, trees: list[Blueprint], y: Tensor, alphas: Sequence[float]) -> list[Trial]:
    """Scores of the mean over trees, for each alpha; infinite where the matrix is not positive definite."""
    variance = y.square().mean(0)
    variance = variance.where(variance > 0, 1.0)
    found = [list(left_out_each(tree, y, alphas)) for tree in trees]
    trials = []
    for alpha, of_trees in zip(alphas, zip(*found, strict=True), strict=True):
        known = [each for each in of_trees if each is not None]
        if len(known) < len(trees):
            trials.append(Trial(kernel, float(alpha), np.inf, np.inf))
            continue
        error = sum(y - each.mean for each in known) / len(trees)
        # I − A = alpha (K̃ + alpha)⁻¹, whose diagonal is alpha / variance
        rest = sum(alpha * (y - each.mean) / each.variance[:, None] for each in known) / len(trees)
        trace = sum(float((alpha / each.variance).sum()) for each in known) / len(trees)
        lost = float((error.square().mean(0) / variance).mean())
        gcv = float((len(y) * rest.square().sum(0) / trace**2 / variance).mean())
        trials.append(Trial(kernel, float(alpha), lost, gcv if np.isfinite([lost, gcv]).all() else np.inf))
    return trials


def _refine(attempt: Callable[..., list[Trial]], trials: list[Trial], score: str, evaluations: int) -> None:
    """Add trials around the best."""
    best = Search(trials, score).best

    def value(step: np.ndarray) -> float:
        factor, ridge = np.exp(step)
        trials.extend(attempt(stretched(best.kernel, factor), [best.alpha * ridge]))
        return getattr(trials[-1], score)

    simplex = np.array([[0.0, 0.0], [0.35, 0.0], [0.0, 0.7]])
    minimize(
        value, simplex[0], method="Nelder-Mead", options={"maxfev": evaluations, "initial_simplex": simplex}
    )
