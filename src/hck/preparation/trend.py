"""Mean functions that are linear in some features."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from hck.backend.checks import check_floats, require
from hck.backend.moments import moments_of, untangling
from hck.errors import NoGradientError
from hck.kernels.inputs import real_array
from hck.preparation.arrays import PointsLike, count, to_host

# "zero", "mean", "constant", "linear", or a function that makes features of points: shape (points, trends).
TrendLike: TypeAlias = str | Callable[[PointsLike], ArrayLike | Tensor]

_FLAT = ("zero", "mean", "constant")  # without slopes
_MOST = 1e150  # of a trend's features
_FARTHEST = 1e8  # in units of those that it was made of: further away, all digits of the rest are lost


@dataclass(frozen=True)
class Trend:
    """Features of points in which the mean is linear, each centred and scaled on the training points.

    `centre` and `width`, (features,), are without the constant. `rough`, (trends,) or (trends, targets), are
    coefficients by ordinary least squares: what they explain is taken away before anything else is computed,
    since a large mean costs digits. Of the kind "mean" that is all, (1,) or (1, targets), and nothing is left
    to estimate: there are no features. Those that are nearly alike cost digits, too: in their place there are
    the combinations in the columns of `basis`, (trends, trends), if it is given.
    """

    kind: TrendLike
    centre: np.ndarray
    width: np.ndarray
    rough: np.ndarray
    basis: np.ndarray | None = None

    def validate(self) -> None:
        kinds = ("zero", "mean", "constant", "linear")
        require(isinstance(self.kind, str) and self.kind in kinds, f"kind must be one of {kinds}")
        features = len(self.centre) if self.kind == "linear" else 0
        trends = features + (self.kind != "zero")
        rough = (trends, None) if self.rough.ndim == 2 else (trends,)  # one of a mean, too
        shapes: dict[str, tuple[int | None, ...]] = {"centre": (features,), "width": (features,)}
        shapes["rough"] = rough
        if self.basis is not None:
            require(self.kind != "mean", "a mean has no basis")
            shapes["basis"] = trends, trends
            require(bool((np.abs(self.basis) < 1e100).all()), "basis must not be so large")
        for name, shape in shapes.items():
            check_floats(name, torch.from_numpy(getattr(self, name)), *shape)
            require(getattr(self, name).dtype == np.float64, f"{name} must be float64")
        require(bool((self.width > 1e-150).all()), "width must be positive, and not so small")
        require(bool((np.abs(self.centre) / self.width < 1e100).all()), "centre must not be so large")
        require(bool((np.abs(self.rough) < 1e200).all()), "rough must not be so large")

    def check(self, d: int, trends: int, targets: int = 1) -> None:
        """Raise ValueError unless it is of d features, and has so many trends, of so many targets."""
        require(self.kind != "linear" or len(self.centre) == d, f"the trend must be of {d} features")
        known = 0 if self.kind == "mean" else len(self.rough)
        require(known == trends, f"there are {known} trends in place of {trends}")
        wanted = () if targets == 1 else (targets,)
        found = self.rough.shape[1:]
        require(found == wanted, f"rough must be {(trends, *wanted)}, got {self.rough.shape}")

    @classmethod
    def of(cls, kind: TrendLike, X: PointsLike, y: np.ndarray) -> tuple["Trend", Tensor]:
        """For training points X and observations y; and the features of X."""
        trend = cls(kind, np.zeros(0), np.ones(0), np.zeros(0))
        raw = trend._features(X)
        if raw is not None:
            centre, width = raw.mean(0), raw.std(0)
            varies = width > 1e-12 * np.abs(raw).max(0)
            centre = np.zeros_like(width) if callable(kind) else np.where(varies, centre, raw[0])
            trend = replace(trend, centre=centre, width=np.where(varies, width, 1.0))
        features = torch.from_numpy(trend._standardise(raw, count(X)))
        if isinstance(kind, str) and kind == "mean":
            return replace(trend, rough=y.mean(0, keepdims=True)), features
        basis = untangling(moments_of(features) / len(features))
        if basis is not None:
            trend, features = replace(trend, basis=basis.numpy()), features @ basis
        rough = np.linalg.lstsq(features.numpy(), y, rcond=None)[0]
        return replace(trend, rough=rough), features

    def rebased(self, change: np.ndarray) -> "Trend":
        """In another basis, (trends, trends) in terms of this one."""
        basis = change if self.basis is None else self.basis @ change
        return replace(self, basis=basis, rough=np.linalg.solve(change, self.rough))

    def plus(self, more: np.ndarray) -> "Trend":
        """With more of the coefficients, (trends,)."""
        return replace(self, rough=self.rough + more)

    def __call__(self, X: PointsLike) -> Tensor:
        """Shape (points, trends), in the CPU's memory."""
        return torch.from_numpy(self._standardise(self._features(X), count(X)))

    def slope(self, d: int) -> Tensor:
        """How features change with each of d columns of X: shape (d, trends), in the CPU's memory."""
        if callable(self.kind):
            raise NoGradientError(
                "a trend that is a function is not differentiated: use trend='linear', 'constant' or 'zero'"
            )
        constant = torch.zeros(d, self._constants, dtype=torch.float64, device="cpu")
        if self.kind != "linear":
            return constant
        slopes = torch.cat([constant, torch.from_numpy(1 / self.width).diag()], 1)
        return slopes if self.basis is None else slopes @ torch.from_numpy(self.basis)

    def _standardise(self, raw: np.ndarray | None, n: int) -> np.ndarray:
        """Features as they came, centred and scaled, with the constant if there is one; in the basis."""
        if raw is None:
            return np.ones((n, self._constants))
        features = (raw - self.centre) / self.width
        every = features if callable(self.kind) else np.hstack([np.ones((n, 1)), features])
        return every if self.basis is None else every @ self.basis

    def right_sides(self, X: PointsLike, y: np.ndarray) -> np.ndarray:
        """Observations less what rough coefficients explain, and features: shape (points, 1 + trends)."""
        features = self(X).numpy()
        return np.hstack([(y - self.explained(torch.from_numpy(features)).numpy())[:, None], features])

    def explained(self, features: Tensor) -> Tensor:
        """What rough coefficients say of points with these features: (points,) or (points, targets)."""
        rough = torch.from_numpy(self.rough)
        if self.kind == "mean":
            return rough.expand(len(features), *rough.shape[1:])
        return features.to(rough) @ rough

    def check_near(self, features: np.ndarray) -> None:
        """Raise ValueError for features (points, trends) that it cannot stand beside those it was made of."""
        farthest = np.abs(features).max(initial=0)
        if farthest > _FARTHEST:
            raise ValueError(
                f"X has points where the trend is {farthest:.1e} times what it was in `fit`, which takes all "
                "digits of the others: use `fit` with all observations"
            )

    def restore(self, features: Tensor, values: Tensor) -> Tensor:
        """Values (points,) or (points, targets), perhaps with an axis of draws, with what was taken away."""
        rough = self.explained(features).to(values.device)
        return (values.double() + (rough if values.ndim == rough.ndim else rough[..., None])).to(values.dtype)

    def restore_slope(self, trend: Tensor, slopes: Tensor) -> Tensor:
        """Gradients (points, d) with those of what was taken away, given `slope`."""
        if self.kind == "mean":
            return slopes
        return slopes + (trend @ torch.from_numpy(self.rough)).to(slopes)

    def raw(self, coefficients: np.ndarray) -> np.ndarray:
        """Coefficients of the features as they were given, in place of those of what was left."""
        coefficients = self.rough if self.kind == "mean" else coefficients + self.rough
        if self.basis is not None:
            coefficients = self.basis @ coefficients
        if self.kind in _FLAT:
            return coefficients
        if callable(self.kind):
            return (coefficients.T / self.width).T
        slopes = (coefficients[1:].T / self.width).T
        return np.concatenate([[coefficients[0] - self.centre @ slopes], slopes])

    @property
    def _constants(self) -> int:
        """How many features are the constant, of those that say anything of points by themselves."""
        return 1 if self.kind in ("constant", "linear") else 0

    def _features(self, X: PointsLike) -> np.ndarray | None:
        """As they came, without the constant: shape (points, features)."""
        if self.kind in _FLAT:
            return None
        if callable(self.kind):
            array, n = real_array(self.kind(X)), count(X)
            if array.ndim != 2 or len(array) != n:
                raise ValueError(
                    f"the trend function must return an array of shape ({n}, n_trends), got {array.shape}"
                )
            if not np.isfinite(array).all():
                raise ValueError("the trend function returned NaN or infinity")
            if array.size and np.abs(array).max() > _MOST:
                raise ValueError(
                    f"the trend function returned values above {_MOST:g}, whose squares overflow"
                )
            return array
        if sp.issparse(X) or not hasattr(X, "shape") or len(X.shape) != 2:
            raise ValueError(
                "trend='linear' needs dense vectors; use trend='constant', or a function that makes features"
            )
        return np.asarray(to_host(X), dtype=float)
