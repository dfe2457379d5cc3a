"""Targets in units of their own, so that several can share a kernel and a noise."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hck.backend.checks import check_floats, require


@dataclass(frozen=True)
class Units:
    """Targets less `centre`, divided by `scale`: each (targets,), or () for one target."""

    centre: np.ndarray
    scale: np.ndarray

    def validate(self) -> None:
        require(self.centre.shape == self.scale.shape, "centre and scale must have one shape")
        for name in ("centre", "scale"):
            array = np.atleast_1d(getattr(self, name))
            check_floats(name, torch.from_numpy(array), None)
            require(array.dtype == np.float64, f"{name} must be float64")
        require(
            bool(((self.scale > 1e-150) & (self.scale < 1e150)).all()), "scale must be positive, not huge"
        )
        require(bool((np.abs(self.centre) < 1e200).all()), "centre must not be so large")

    @classmethod
    def of(cls, y: np.ndarray, centred: bool) -> "Units":
        """The standard deviations of y, (n,) or (n, targets), 1 where it is constant; and perhaps means."""
        with np.errstate(over="ignore", invalid="ignore"):  # of which we tell
            mean, scale = np.asarray(y.mean(0)), np.where(varies(y), y.std(0), 1.0)
        if not (np.isfinite(mean).all() and np.isfinite(scale).all()):
            raise ValueError("y is too large: squares of its values overflow. Scale y")
        return cls(mean if centred else np.zeros_like(mean), scale)

    def __call__(self, y: np.ndarray) -> np.ndarray:
        """Targets, shape (n,) or (n, targets), in these units."""
        return (y - self.centre) / self.scale

    def restore(self, values: Tensor, axis: int = -1) -> Tensor:
        """Values in these units as they were; targets are along this axis."""
        centre, scale = (self._along(part, values, axis) for part in (self.centre, self.scale))
        return (values.double() * scale + centre).to(values.dtype)

    def stretch(self, values: Tensor, power: float = 1, axis: int = -1) -> Tensor:
        """Differences (power 1) or variances (power 2) in these units as they were."""
        return (values.double() * self._along(self.scale, values, axis) ** power).to(values.dtype)

    @staticmethod
    def _along(part: np.ndarray, values: Tensor, axis: int) -> Tensor:
        found = torch.from_numpy(np.asarray(part)).to(values.device)
        return found if axis == -1 or not found.ndim else found.view(-1, *[1] * (-1 - axis))


def varies(y: np.ndarray) -> np.ndarray:
    """Whether each target of y (n,) or (n, targets) is more than one number, but for rounding."""
    with np.errstate(over="ignore"):
        return np.ptp(y, 0) > 1e-12 * np.abs(y).max(0)
