"""Training with losses beyond least squares: which problems there are, and the trees that solve them."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from hck.approximations import Approximation
from hck.backend.text import in_bytes
from hck.estimators.training import Solved, Trees, check_size
from hck.hierarchy import TreePredictor, share_points
from hck.hierarchy.extremes import extremes, warn_of_rounding
from hck.kernels.inputs import real_array
from hck.losses import (
    OF_CLASSES,
    OF_NUMBERS,
    Certificate,
    Effort,
    Logistic,
    Loss,
    Problem,
    Quantile,
    Squared,
    SquaredHinge,
    minimise,
)
from hck.points import Points

Problems = tuple[Problem, ...]

_OF_A_FOREST = Effort(tolerance=1e-5)  # of smooth losses: its trees differ by far more

# The largest value that y may have at least and at most: powers and exponentials are taken of it.
_SIZES = {torch.float64: (1e-100, 1e100), torch.float32: (1e-30, 1e30)}


def loss_of_numbers(loss: str | Loss, quantile: float | Sequence[float]) -> list[Loss]:
    """The loss of a regressor, by its name or as it is; several for several quantiles."""
    if isinstance(loss, Loss):
        if loss.name not in OF_NUMBERS:
            raise ValueError(f"{loss!r} is a loss of classes; for numbers: {', '.join(OF_NUMBERS)}")
        return [loss]
    if loss not in OF_NUMBERS:
        raise ValueError(f"unknown loss {loss!r} for numbers; known: {', '.join(OF_NUMBERS)}")
    if loss != "quantile":
        return [OF_NUMBERS[loss]()]
    try:
        levels = np.atleast_1d(real_array(quantile)).tolist()
    except (TypeError, ValueError):
        raise ValueError(f"quantile must be a number, or a sequence of them, got {quantile!r}") from None
    if np.ndim(levels) > 1:
        raise ValueError(f"quantiles must be in one dimension, got {quantile!r}")
    if not levels or any(later <= one for one, later in pairwise(levels)):
        raise ValueError(f"quantiles must ascend, and be at least one, got {quantile!r}")
    return [Quantile(level) for level in levels]


def is_squared(losses: list[Loss]) -> bool:
    """Whether least squares are all that is asked for."""
    return isinstance(losses[0], Squared)


def check_loss_of_classes(loss: object) -> None:
    """Raise ValueError for a loss that is none of classes."""
    known = ("auto", *OF_CLASSES)
    if not isinstance(loss, str) or loss not in known:
        raise ValueError(f"unknown loss {loss!r} for classes; known: {', '.join(known)}")


def refuse_zero(alpha: float | str) -> None:
    """Raise ValueError for a ridge of 0, with which losses other than the squared one have no minimum."""
    if alpha == 0:
        raise ValueError("alpha=0 is for loss='squared' alone: others need an alpha above 0")


def stand_in(losses: list[Loss], y: np.ndarray, dtype: torch.dtype) -> np.ndarray:
    """What least squares choose a kernel by, for y (n, targets); ValueError for a y that cannot be."""
    check_size(y, *_SIZES[dtype])
    if len(losses) > 1 and y.shape[1] > 1:
        raise ValueError(f"several quantiles need a single target, but y has {y.shape[1]} columns")
    columns = torch.tensor(y, dtype=torch.float64, device="cpu").T
    for column in columns:
        losses[0].check(column)
    return torch.stack([losses[0].stand_in(column) for column in columns], 1).numpy()


def problems_of_numbers(
    losses: list[Loss], y: np.ndarray, rows: np.ndarray, weight: Tensor | None
) -> Problems:
    """One problem for each loss and each column of y (n, targets), of some rows with their weights."""
    columns = torch.tensor(y[rows], dtype=torch.float64, device="cpu").T
    return tuple(Problem.of(loss, column, weight) for loss in losses for column in columns)


def problems_of_classes(
    loss: str, count: int, code: np.ndarray, rows: np.ndarray, weight: Tensor | None
) -> Problems:
    """A problem of all classes together, or one against all others for each; of some rows."""
    y = torch.tensor(code[rows], dtype=torch.int64, device="cpu")
    if len(np.unique(code[rows])) < count:
        raise ValueError(
            f"a class has no points, or all of weight 0: loss={loss!r} needs points of each class; "
            "loss='squared' does not"
        )
    if loss == "logistic":
        return (Problem.of(Logistic(count), y, weight),)
    which = range(1, 2) if count == 2 else range(count)
    return tuple(Problem.of(SquaredHinge(), (y == each).long(), weight) for each in which)


@dataclass(frozen=True)
class Penalties:
    """Σ ℓ + ½ α ‖f‖² for each of some problems, for any K̃ that stands in for the kernel matrix.

    With `left_out`, each point is predicted from all others, too.
    """

    points: Points
    problems: Problems
    left_out: bool
    start: Tensor | None = None  # (n, columns): f of another tree

    @property
    def losses(self) -> list[Loss]:
        """One for each problem."""
        return [problem.loss for problem in self.problems]

    @property
    def intercept(self) -> Tensor:
        """Of all columns: shape (columns,)."""
        return torch.cat([problem.intercept for problem in self.problems])

    def train(self, trees: Trees, alpha: float, seeds: list[int]) -> list[Solved]:
        """For each tree; all but the first begin where the first has ended."""
        effort = _OF_A_FOREST if seeds[1:] and self.points.dtype == torch.float64 else None
        found = trees(partial(self._solve, alpha=alpha, effort=effort), seeds[:1])
        if seeds[1:]:
            later = replace(self, start=found[0].fitted)
            found += trees(partial(later._solve, alpha=alpha, effort=effort), seeds[1:])
        return found

    def _solve(self, approximation: Approximation, alpha: float, effort: Effort | None) -> Solved:
        sizes = [problem.loss.columns for problem in self.problems]
        needed = approximation.factor_bytes(sum(sizes))
        if needed and not approximation.can_leave_out(sum(sizes)):
            raise MemoryError(
                f"losses other than the squared one keep a factorization, which takes {in_bytes(needed)}, "
                "more than memory_budget: lower rank or leaf_size, use dtype='float32', or raise the budget"
            )
        device = approximation.device
        starts = [None] * len(sizes) if self.start is None else self.start.to(device).split(sizes, 1)
        weights, fitted, others, certificates = [], [], [], []
        for problem, start in zip(self.problems, starts, strict=True):
            enough = effort if problem.loss.smooth else None
            last = minimise(approximation, problem.to(device), alpha, start, enough)
            weights.append(last.weights)
            fitted.append(last.fitted)
            certificates.append(last.certificate)
            if self.left_out:
                others.append(last.left_out())
        # one factorization, here the last, makes predictors of any weights
        joined = replace(last, weights=torch.cat(weights, 1), fitted=torch.cat(fitted, 1))
        predictor = joined.predictor()
        if isinstance(predictor, TreePredictor):
            predictor = share_points(predictor, self.points)
        warn_of_rounding([extremes(predictor, self.points, joined.fitted)])
        left_out = torch.cat(others, 1).cpu() if others else None
        return Solved(predictor, left_out, certificates, joined.fitted.cpu())


def warn_unless_converged(certificates: list[Certificate]) -> None:
    """Warn if a minimum was not reached."""
    failed = [each for each in certificates if not each.converged]
    if failed:
        worst = max(failed, key=lambda each: each.gradient)
        warnings.warn(
            f"the loss is not at its minimum after {worst.n_iter} steps: its gradient, or duality gap, is "
            f"{worst.gradient:.1e} of where it began. Use a larger alpha, or dtype='float64'",
            ConvergenceWarning,
            stacklevel=3,
        )
