"""How wide predictions of several trees are, by what they would have said of the observations themselves."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from hck.backend.checks import require
from hck.hierarchy.leave_one_out import LeftOut

_FEWEST, _FEW = 10, 100  # observations: fewer say too little, and too little of the tails
_COVERED, _WIDTH = (0.94, 0.96), 1.959963984540054  # by intervals of this half width, of level 0.95
_RATIO = 3.0  # how far parts of a variance may be from their common factor
_LARGEST = 1e3  # common factor, and its inverse


@dataclass(frozen=True)
class Spread:
    """Factors of the parts that the variance of a forest's prediction has.

    These are the mean of the trees' variances of the function, the variance of the noise, and the variance
    between the trees' means. With 1 for each, they are those of a mixture in which one of the trees is right.

    Examples
    --------
    >>> from hck.process import Spread
    >>> Spread(between=0.5)  # trees disagree more than their mean is wrong
    Spread(function=1.0, noise=1.0, between=0.5)
    """

    function: float = 1.0
    noise: float = 1.0
    between: float = 1.0

    def validate(self) -> None:
        """Raise ValueError unless all numbers are finite and not negative."""
        for each in fields(self):
            value = getattr(self, each.name)
            require(0 <= value < 1e100, f"{each.name} must be finite and not negative, got {value}")


@torch.no_grad()
def calibrate(
    y: Tensor, left_out: Sequence[LeftOut], noise: Tensor, rows: np.ndarray | None = None, known: bool = False
) -> Spread:
    """The factors with which left-out observations are most probable.

    With the error e of the mean of trees that have not seen an observation, log N(e; 0, a l + b noise + c d)
    is largest on average, where l is the mean of the trees' variances of the function there, and d the
    variance between their means. First all have the factor mean(e² / (l + noise)), which is best if they have
    only one; then each is at most thrice as large or as small, so that what the function is not known by and
    what the noise is stay apart, and c is 0 or more. In the end all are multiplied so that 94 to 96 % of the
    left-out observations lie within 95 % intervals, which heavy tails would not do by themselves.

    Parameters
    ----------
    y : Tensor of shape (n,) or (n, outputs)
        Outputs that are constant say nothing.
    left_out : sequence of LeftOut
        By each tree; variances are those of observations.
    noise : Tensor of shape (n,) or (n, 1)
    rows : array of shape (m,), optional
        Which observations to go by; all if not given.
    known : bool
        Whether the noise is known, so that its factor is 1.
    """
    means = torch.stack([each.mean for each in left_out]).double()
    noise = noise.to(means).expand_as(means[0])
    every = [
        (y.to(means) - means.mean(0)).square(),
        torch.stack([each.variance for each in left_out]).double().mean(0) - noise,
        noise,
        means.var(0, correction=0),
    ]
    if y.ndim == 2:
        varies = y.double().var(0, correction=0)
        every = [each[:, varies > 1e-12 * varies.max()] for each in every]
    table = torch.stack(every).cpu().numpy()
    table = (table if rows is None else table[:, rows]).reshape(len(every), -1)
    table = table[:, np.isfinite(table).all(0)]
    if table.shape[1] < _FEWEST:
        return Spread(between=0.0)
    square, parts = table[0], table[1:].clip(0)
    common = float(np.clip(np.mean(square / (parts[0] + parts[1])), 1 / _LARGEST, _LARGEST))
    common = 1.0 if known else common
    few = _RATIO * _FEWEST / table.shape[1]  # how much is known beforehand: that factors are alike

    def negative(factors: np.ndarray) -> tuple[float, np.ndarray]:
        variance = common * (factors @ parts)
        change = common * (1 - square / variance) / variance
        away = np.log(factors[:2])
        slope = parts @ change / len(square) + 2 * few * np.append(away / factors[:2], 0.0)
        return float(np.mean(np.log(variance) + square / variance) + few * away @ away), slope

    allowed = (1 / _RATIO, _RATIO)
    bounds = [allowed, (1.0, 1.0) if known else allowed, (0.0, _RATIO if len(left_out) > 1 else 0.0)]
    found = minimize(negative, np.array([1.0, 1.0, 0.5]), jac=True, bounds=bounds, method="L-BFGS-B")
    factors = common * found.x
    if len(square) >= _FEW and not known:
        factors *= np.clip(1.0, *np.quantile(square / (factors @ parts), _COVERED) / _WIDTH**2)
    factors[:2] = factors[:2].clip(common / _LARGEST)  # where there are no errors at all
    return Spread(*factors.tolist())
