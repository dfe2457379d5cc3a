"""Features on a common scale, as a part of the estimator."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hck.backend.checks import check_floats, require
from hck.points import DensePoints, Points, SparsePoints
from hck.preparation.ties import Ties

_LEAST = 1e-145  # the width of a feature that is not constant: of smaller ones squares underflow


@dataclass(frozen=True)
class Scaling:
    """x ↦ (x − centre) · factor, feature by feature, in float64: of float32 digits would be lost before.

    Sparse points are not centred, so that they stay sparse. Both are of shape (d,), or None for points that
    stay as they are.
    """

    centre: Tensor | None = None
    factor: Tensor | None = None

    def validate(self) -> None:
        require((self.centre is None) == (self.factor is None), "centre and factor must both be there")
        if self.centre is not None and self.factor is not None:
            check_floats("centre", self.centre, None)
            check_floats("factor", self.factor, len(self.centre))
            shift = (self.centre * self.factor).abs()  # at most 10¹² by `by`
            require(bool((shift < 1e100).all()), "centre must not be so large that points overflow")
            require(bool((self.factor.abs() < 1e150).all()), "factor must not be so large")

    def check(self, d: int) -> None:
        """Raise ValueError unless it takes d features."""
        require(self.factor is None or len(self.factor) == d, f"the scaling must be of {d} features")

    @classmethod
    def of(cls, kind: str | None, points: Points, ties: Ties | None = None) -> "Scaling":
        """What brings points to mean 0 and variance 1 ("standard"), or to [0, 1] ("minmax").

        Features that are tied are scaled alike, so that their variances are 1 in all.
        """
        if kind is None or not isinstance(points, DensePoints | SparsePoints):
            return cls()
        if isinstance(points, SparsePoints):
            absolute = abs(points.x)
            mean = np.asarray(absolute.multiply(absolute).mean(0)).ravel()
            width = np.sqrt(mean) if kind == "standard" else absolute.max(0).toarray().ravel()
            width = np.where(width < _LEAST, absolute.max(0).toarray().ravel(), width)  # squares underflow
            found = torch.from_numpy(width).to(points.device)
            return cls.by(torch.zeros_like(found), found)
        x = points.x
        if kind == "standard":
            centre = x.mean(0, dtype=torch.float64)
            width = torch.zeros_like(centre)
            for part in x.split(2**16):
                width += (part.double() - centre).square().sum(0)
            width = (width / len(x)).sqrt()
            small = (width < _LEAST).nonzero().squeeze(1)  # perhaps squares underflow
            width[small] = (x[:, small].amax(0) - x[:, small].amin(0)).double()
            width = width if ties is None else ties.widths(width)
        else:
            low, high = x.amin(0).double(), x.amax(0).double()
            centre, width = low, high - low
        return cls.by(centre, width)

    @classmethod
    def by(cls, centre: Tensor, width: Tensor) -> "Scaling":
        """By the widths of features; constant ones are only centred."""
        flat = width <= 1e-12 * centre.abs()
        refuse_small(width.masked_fill(flat, 0.0).cpu().numpy(), _LEAST)
        return cls(centre, 1 / width.masked_fill(flat, 1.0))

    def __call__(self, points: Points, dtype: torch.dtype) -> Points:
        """Scaled points, as numbers of type `dtype`."""
        if isinstance(points, DensePoints):
            if self.factor is None or self.centre is None:
                return DensePoints(points.x.to(dtype))
            centre, factor = (each.to(points.device) for each in (self.centre, self.factor))
            return DensePoints(((points.x - centre) * factor).to(dtype))
        if self.factor is not None and isinstance(points, SparsePoints):
            return points.scaled(self.factor)
        return points

    def back(self, slopes: Tensor) -> Tensor:
        """Gradients (points, d, …) by features as they came, given those by scaled ones."""
        if self.factor is None:
            return slopes
        factor = self.factor.to(slopes).reshape(-1, *(1,) * (slopes.ndim - 2))
        return slopes * factor


def refuse_small(width: np.ndarray, least: float) -> None:
    """Raise ValueError for features whose widths (d,) are so small that squares are lost, but not 0."""
    small = (width > 0) & (width < least)
    if small.any():
        some = int(small.argmax())
        raise ValueError(
            f"X has values that are too close: feature {some} varies by {width[some]:.2g}, and squares of "
            f"less than {least:.0e} are lost. Scale the features"
        )


def other_units(scaling: Scaling, points: Points) -> dict[str, Tensor | None]:
    """Other units for features in which they can be compared, given points and their scaling to variance 1.

    For what each is called, the units (d,); None for the features as they are now.
    """
    units: dict[str, Tensor | None] = {"": None}
    if scaling.factor is None:
        return units
    ranges = Scaling.of("minmax", points).factor
    assert ranges is not None
    for called, unit in (
        (" for features scaled to [0, 1]", scaling.factor / ranges),
        (" for features as they came", scaling.factor),
    ):
        known = [each for each in units.values() if each is not None]
        alike = [unit / unit.mean(), *((unit / each) / (unit / each).mean() for each in known)]
        if all((ratio - 1).abs().max() > 0.01 for ratio in alike):
            units[called] = unit
    return units
