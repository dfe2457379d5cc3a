"""Features on a common scale, as a part of the estimator."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hck.backend.checks import check_floats, require
from hck.points import DensePoints, Points, SparsePoints
from hck.preparation.ties import Ties

_LEAST = 1e-145  # the width of a feature that is not constant: of smaller ones squares underflow
_ROWS = 2**14  # at least, and below twice as many, where tails are looked at
_MOST = 256  # features: more are pixels, words, or parts of a signal
_HEAVY = 13.0  # fourth moments over squared second ones: 3 of normal values, 9 of exponential ones
_QUARTILES = 1.349  # between quartiles of normal values, in standard deviations
_NARROW = 1e-3  # of the standard deviation: where the middle half is narrower, most values are the same


@dataclass(frozen=True)
class Scaling:
    """z = (x − centre) · factor, feature by feature, in float64: of float32 digits would be lost before.

    Sparse points are not centred, so that they stay sparse. Both are of shape (d,), or None for points that
    stay as they are. Features with a `bend` b > 0, (d,), become asinh(b z) / b: z close to the centre,
    and a logarithm far from it.
    """

    centre: Tensor | None = None
    factor: Tensor | None = None
    bend: Tensor | None = None

    def validate(self) -> None:
        require((self.centre is None) == (self.factor is None), "centre and factor must both be there")
        if self.centre is not None and self.factor is not None:
            check_floats("centre", self.centre, None)
            check_floats("factor", self.factor, len(self.centre))
            shift = (self.centre * self.factor).abs()  # at most 10¹² by `by`
            require(bool((shift < 1e100).all()), "centre must not be so large that points overflow")
            require(bool((self.factor.abs() < 1e150).all()), "factor must not be so large")
        if self.bend is not None:
            require(self.factor is not None, "bend must have a centre and a factor")
            check_floats("bend", self.bend, len(self.bend))
            require(bool((self.bend >= 0).all()), "bend must not be negative")
            require(bool((self.bend < 1e100).all()), "bend must not be so large")
            self.check(len(self.bend))

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
            return DensePoints(self._bent((points.x - centre) * factor).to(dtype))
        if self.factor is not None and isinstance(points, SparsePoints):
            return points.scaled(self.factor)
        return points

    def back(self, slopes: Tensor, at: Tensor) -> Tensor:
        """Gradients (points, d, …) by features as they came, given those by scaled ones, at (points, d)."""
        if self.factor is None:
            return slopes
        return slopes * self._stretch(at).to(slopes).reshape(*at.shape, *(1,) * (slopes.ndim - 2))

    def forth(self, slopes: Tensor, at: Tensor) -> Tensor:
        """Gradients (d, …) by features as they came as those by scaled ones, at (points, d).

        Shape (points, d, …); as they are if nothing is scaled.
        """
        if self.factor is None:
            return slopes
        return slopes / self._stretch(at).to(slopes).reshape(*at.shape, *(1,) * (slopes.ndim - 1))

    def _stretch(self, at: Tensor) -> Tensor:
        """How much scaled features change with those that came, at scaled points (points, d)."""
        assert self.factor is not None
        factor = self.factor.to(at.device).expand(at.shape)
        return factor if self.bend is None else factor / (self.bend.to(factor) * at.to(factor)).cosh()

    def _bent(self, z: Tensor) -> Tensor:
        if self.bend is None:
            return z
        bend = self.bend.to(z)
        return torch.where(bend > 0, (z * bend).asinh() / bend.where(bend > 0, 1.0), z)

    def bent(self, points: Points, ties: Ties | None = None) -> "Scaling | None":
        """The same, but heavy tails are drawn in; None if there are none.

        A tail is heavy where fourth moments are far above those of normal values. Then the middle half of the
        values says where the centre is, and how wide.
        """
        if self.factor is None or self.centre is None or len(self.factor) > _MOST:
            return None
        if not isinstance(points, DensePoints):
            return None
        x = _some_rows(points.x).double().cpu()
        heavy = _heavy(x) if ties is None else _heavy(x) & torch.from_numpy(ties.alone)
        which = [j for j in heavy.nonzero().squeeze(1).tolist() if len(x[:, j].unique()) > 2]
        if not which:
            return None
        centre, factor, bend = (
            each.cpu().clone() for each in (self.centre, self.factor, torch.zeros_like(self.factor))
        )
        for j in which:
            centre[j], width = _middle(x[:, j])
            spread = ((x[:, j] - centre[j]) / width).asinh().std()
            factor[j], bend[j] = 1 / (width * spread), spread
        return Scaling(*(each.to(self.factor.device) for each in (centre, factor, bend)))


def _some_rows(x: Tensor) -> Tensor:
    """Not too many, spread over all."""
    return x[:: max(1, len(x) // _ROWS)]


def _heavy(x: Tensor) -> Tensor:
    """Which features (d,) have heavy tails."""
    rest = x - x.mean(0)
    square = rest.square()
    return square.square().mean(0) > _HEAVY * square.mean(0).square()


def _middle(x: Tensor) -> tuple[Tensor, Tensor]:
    """The median of values (rows,), and their width as the middle half has it, or else all of them."""
    low, centre, high = x.quantile(x.new_tensor([0.25, 0.5, 0.75]))
    width = (high - low) / _QUARTILES
    return centre, width if width > _NARROW * x.std() else (x - centre).abs().mean()


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
    if scaling.factor is None or scaling.bend is not None:
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
