"""Search for a kernel and a ridge by closed-form scores, with the same trees for all of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from hck.backend.progress import track
from hck.hierarchy.blueprint import Blueprint, default_jitter
from hck.kernels import Kernel, make_kernel
from hck.kernels.objects import looks_like_objects
from hck.points import as_points
from hck.selection.isotropic import stretched
from hck.selection.left_out import left_out_each
from hck.settings import Settings

SCORES = ("left_out", "gcv")


@dataclass(frozen=True)
class Trial:
    """A kernel and a ridge, and how well they do.

    Attributes
    ----------
    kernel : Kernel
    alpha : float
    left_out : float
        The mean squared error of observations predicted from all others, relative to their variance.
    gcv : float
        Generalised cross-validation, relative to the variance: n ‖(I − A) y‖² / tr(I − A)² for the matrix A
        that takes y to the fitted values. It is leave-one-out with all leverages made equal.
    """

    kernel: Kernel
    alpha: float
    left_out: float
    gcv: float


@dataclass(frozen=True)
class Search:
    """All that was tried, in its order."""

    trials: list[Trial]
    score: str

    @property
    def best(self) -> Trial:
        return min(self.trials, key=lambda trial: getattr(trial, self.score))

    def __str__(self) -> str:
        lines = [f"{'left out':>10} {'GCV':>10} {'alpha':>10}  kernel"]
        for t in sorted(self.trials, key=lambda trial: getattr(trial, self.score)):
            lines.append(f"{t.left_out:10.5f} {t.gcv:10.5f} {t.alpha:10.3g}  {t.kernel}")
        return "\n".join(lines)


def search(
    X: Any,
    y: Any,
    kernels: Sequence[Kernel],
    alphas: Sequence[float],
    *,
    score: str = "left_out",
    refine: int = 0,
    rank: int = 128,
    leaf_size: int | None = None,
    n_trees: int = 1,
    partition: Any = "random_projection",
    landmarks: Any = "uniform",
    jitter: float | None = None,
    device: Any = None,
    memory_budget: Any = None,
    random_state: int = 0,
    verbose: bool = False,
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
    rank, leaf_size, n_trees, partition, landmarks, jitter, device, memory_budget : as for `HCKRegressor`
    random_state : int

    Examples
    --------
    >>> import numpy as np
    >>> from hck.kernels import Matern
    >>> from hck.selection import search
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(500, 2))
    >>> y = np.sin(6 * X[:, 0]) + 0.1 * rng.standard_normal(500)
    >>> found = search(X, y, [Matern(s) for s in (0.1, 0.5, 2.0)], [1e-3, 1e-2, 1e-1], rank=32)
    >>> found.best.kernel, found.best.alpha
    (Matern(lengthscale=2, nu=1.5), 0.001)
    """
    if score not in SCORES:
        raise ValueError(f"score must be one of {', '.join(SCORES)}, got {score!r}")
    if not len(kernels) or not len(alphas):
        raise ValueError("at least one kernel and one alpha are needed")
    if not all(alpha > 0 for alpha in alphas):
        raise ValueError(f"alphas must be larger than 0, got {list(alphas)}")
    kernels = [make_kernel(kernel) for kernel in kernels]
    points = as_points(X, device=device, objects=kernels[0].takes_objects and looks_like_objects(X))
    target = torch.as_tensor(y if isinstance(y, Tensor) else np.asarray(y, dtype=float))
    target = target.to(points.device, points.dtype)
    if not torch.isfinite(target).all():
        raise ValueError("y contains NaN or infinity")
    if len(target) != len(points):
        raise ValueError(f"X has {len(points)} points but y has {len(target)} values")
    target = target[:, None] if target.ndim == 1 else target
    target = target - target.mean(0)
    seeds = np.random.RandomState(random_state).randint(2**31 - 1, size=n_trees).tolist()
    settings = Settings(rank, leaf_size, partition, landmarks, jitter, memory_budget)
    first = kernels[0].to(points.device, points.dtype)
    plans = [
        Blueprint.of(first, points, settings, torch.Generator(points.device).manual_seed(seed))
        for seed in seeds
    ]

    def attempt(kernel: Kernel, ridges: Sequence[float]) -> list[Trial]:
        here = kernel.to(points.device, points.dtype)
        own = default_jitter(here, points) if jitter is None else jitter
        return _scores(kernel, [plan.with_kernel(here, own) for plan in plans], target, ridges)

    trials: list[Trial] = []
    for kernel in track(list(kernels), "Search", verbose):
        trials += attempt(kernel, alphas)
    if refine:
        _refine(attempt, trials, score, refine)
    return Search(trials, score)


@torch.no_grad()
def _scores(
    kernel: Kernel, plans: list[Blueprint], y: Tensor, alphas: Sequence[float]
) -> list[Trial]:  # fmt: skip
    """Scores of the mean over trees, for each alpha; infinite where the matrix is not positive definite."""
    n, spread = len(y), y.square().mean(0).where(y.square().mean(0) > 0, 1.0)
    error = [torch.zeros_like(y) for _ in alphas]
    rest = [torch.zeros_like(y) for _ in alphas]
    trace = [0.0 for _ in alphas]
    for plan in plans:
        for k, (alpha, left_out) in enumerate(zip(alphas, left_out_each(plan, y, alphas), strict=True)):
            if left_out is None:
                error[k] += torch.inf
                continue
            residual = y - left_out.mean
            error[k] += residual / len(plans)
            rest[k] += alpha * residual / left_out.variance[:, None] / len(plans)
            trace[k] += float((alpha / left_out.variance).sum()) / len(plans)
    trials = []
    for alpha, each, remaining, total in zip(alphas, error, rest, trace, strict=True):
        lost = float((each.square().mean(0) / spread).mean())
        gcv = float((remaining.square().sum(0) * n / total**2 / spread).mean()) if total else np.inf
        trials.append(Trial(kernel, float(alpha), lost, gcv if np.isfinite(lost) else np.inf))
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
