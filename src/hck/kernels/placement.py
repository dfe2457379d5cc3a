"""Where points are put so that a kernel depends on their distances alone.

Each kernel has its metric. Points are put into it once (`hck.points` remembers them), and what evaluates
kernels knows isotropic ones only.
"""

import math
from abc import ABC, abstractmethod
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from hck.backend.kernels import wants_gradient
from hck.backend.memory import require_bytes

_HOST = torch.device("cpu")
Block: TypeAlias = Any  # of points: a Tensor (*batch, n, d), a csr_matrix (n, d) or an array of objects (n,)


class Placement(ABC):
    """A map from points to points, perhaps with another number of features.

    Kernels that share one share the points that were placed with it: it is known by its identity.
    """

    @abstractmethod
    def __call__(self, x: Block) -> Block:
        """Points where they are placed; with gradients, if those of `tensors` are recorded."""

    @abstractmethod
    def tensors(self) -> list[Tensor]:
        """What it is computed from."""

    @abstractmethod
    def back(self, x: Tensor, slope: Tensor) -> Tensor:
        """Gradients by points x (…, d), as (…, d, columns), given those by places (…, k, columns)."""

    @abstractmethod
    def squared_speed(self, x: Tensor) -> Tensor:
        """How fast points (…, d) move where they are placed, as each feature grows, squared: (…, d)."""

    def state(self) -> tuple[int, ...]:
        """Numbers that change when one of `tensors` is written to."""
        return tuple(0 if tensor.is_inference() else tensor._version for tensor in self.tensors())


class PerFeature(Placement):
    """Features divided by lengthscales (d,)."""

    def __init__(self, lengthscale: Tensor) -> None:
        self.lengthscale = lengthscale
        self._inverse: tuple[Any, Tensor] | None = None

    def __call__(self, x: Block) -> Block:
        check_lengthscales(self.lengthscale, x.shape[-1])
        if not isinstance(x, Tensor) or wants_gradient(self.lengthscale):
            return divide(x, self.lengthscale)
        key, known = (self.state(), x.dtype, x.device), self._inverse  # a single point takes longer to divide
        if known is None or known[0] != key:
            known = self._inverse = key, 1 / self.lengthscale.detach().to(x)
        return x * known[1]

    def back(self, x: Tensor, slope: Tensor) -> Tensor:
        return slope / self.lengthscale.detach().to(slope)[:, None]

    def squared_speed(self, x: Tensor) -> Tensor:
        return self.lengthscale.detach().to(x).square().reciprocal().expand_as(x)

    def tensors(self) -> list[Tensor]:
        return [self.lengthscale]


class Linear(Placement):
    """Points multiplied by a matrix (d, k), and the columns of that divided by lengthscales (k,), if any.

    Sparse points become dense.
    """

    def __init__(self, matrix: Tensor, lengthscale: Tensor | None = None) -> None:
        self.matrix, self.lengthscale = matrix, lengthscale
        self._known: tuple[Any, Tensor] | None = None

    def __call__(self, x: Block) -> Block:
        check_metric(self.matrix, x.shape[-1])
        if isinstance(x, Tensor):
            return x @ self._factor(x.dtype, x.device)
        matrix = self._factor(torch.float64, _HOST).detach().numpy()
        matrix = matrix.astype(x.dtype, copy=False) if x.dtype.kind == "f" else matrix
        what = (
            f"{x.shape[0]:,} sparse points in a metric of {matrix.shape[1]:,} columns, where they are dense"
        )
        require_bytes(x.shape[0] * matrix.shape[1] * matrix.itemsize, _HOST, what, "give it fewer columns")
        with np.errstate(over="ignore", invalid="ignore"):  # whoever computes distances says so
            return torch.from_numpy(x @ matrix)

    def back(self, x: Tensor, slope: Tensor) -> Tensor:
        return self._factor(slope.dtype, slope.device).detach() @ slope

    def squared_speed(self, x: Tensor) -> Tensor:
        return self._factor(x.dtype, x.device).detach().square().sum(1).expand_as(x)

    def _factor(self, dtype: torch.dtype, device: torch.device) -> Tensor:
        """What points are multiplied by; remembered, since a single point would have to wait for it."""
        if wants_gradient(*self.tensors()):
            return self._divided().to(device, dtype)
        key, known = (self.state(), dtype, device), self._known
        if known is None or known[0] != key:
            known = self._known = key, self._divided().detach().to(device, dtype)
        return known[1]

    def _divided(self) -> Tensor:
        return self.matrix if self.lengthscale is None else self.matrix / self.lengthscale.to(self.matrix)

    def tensors(self) -> list[Tensor]:
        return [self.matrix] if self.lengthscale is None else [self.matrix, self.lengthscale]


class OnCircles(Placement):
    """Each feature on a circle: (cos − 1)/σ of the angle 2πx/p in the first d features, sin/σ in the others.

    The circles touch the origin, so that zeros stay zeros and sparse points sparse.

    Parameters
    ----------
    period : float, or Tensor of shape () or (d,)
        p.
    lengthscale : float, or Tensor of shape () or (d,)
        σ if there is one for each feature; else points are not divided by it.
    """

    def __init__(self, period: float | Tensor, lengthscale: float | Tensor) -> None:
        self.period = period
        self.lengthscale = lengthscale if isinstance(lengthscale, Tensor) and lengthscale.ndim else 1.0

    def __call__(self, x: Block) -> Block:
        for name, value in (("lengthscale", self.lengthscale), ("period", self.period)):
            if isinstance(value, Tensor):
                check_lengthscales(value, x.shape[-1], name)
        turns = divide(x, self.period)
        if isinstance(turns, Tensor):
            return torch.cat([divide(part, self.lengthscale) for part in _circle(turns)], -1)
        parts = [
            sp.csr_matrix((part.numpy(), turns.indices, turns.indptr), shape=turns.shape)
            for part in _circle(torch.from_numpy(turns.data))
        ]
        return sp.hstack([divide(part, self.lengthscale) for part in parts], format="csr")

    def back(self, x: Tensor, slope: Tensor) -> Tensor:
        along, across = slope.split(x.shape[-1], -2)  # by the cosines less 1, and by the sines
        less, sine = _circle(divide(x, self._plain(self.period, x)))
        return ((less[..., None] + 1) * across - sine[..., None] * along) * self._speed(x)[..., None]

    def squared_speed(self, x: Tensor) -> Tensor:
        return self._speed(x).square()

    def _speed(self, x: Tensor) -> Tensor:
        radius, period = (self._plain(each, x) for each in (self.lengthscale, self.period))
        return torch.full_like(x, 2 * math.pi) / (radius * period)

    @staticmethod
    def _plain(value: float | Tensor, x: Tensor) -> float | Tensor:
        return value.detach().to(x) if isinstance(value, Tensor) else value

    def tensors(self) -> list[Tensor]:
        return [value for value in (self.period, self.lengthscale) if isinstance(value, Tensor)]


def _circle(turns: Tensor) -> tuple[Tensor, Tensor]:
    angle = (turns - turns.detach().round()) * (2 * math.pi)  # whole turns would cost digits
    return angle.cos() - 1, angle.sin()


def divide(x: Block, lengthscale: float | Tensor) -> Block:
    """Divide all features by a number, or each by its own."""
    if isinstance(x, Tensor):
        return x * (1 / lengthscale.to(x) if isinstance(lengthscale, Tensor) else 1 / lengthscale)
    divisor = np.asarray(lengthscale.detach().cpu() if isinstance(lengthscale, Tensor) else lengthscale)
    each = divisor[x.indices] if divisor.ndim else divisor
    with np.errstate(over="ignore"):  # whoever computes distances says so
        return sp.csr_matrix((x.data / each, x.indices, x.indptr), shape=x.shape)


def check_lengthscales(scale: Tensor, n_features: int, name: str = "lengthscale") -> None:
    """Raise ValueError unless there is one lengthscale, or one per feature; `name` is another parameter's."""
    if scale.ndim and scale.shape[0] != n_features:
        raise ValueError(
            f"the kernel has {scale.shape[0]} {name}s but the points have {n_features} features: give "
            f"one {name}, or one per feature"
        )


def check_factor(factor: Tensor, n_features: int) -> None:
    """The same for what points are multiplied by: a number for each feature (d,), or a matrix (d, k)."""
    (check_metric if factor.ndim == 2 else check_lengthscales)(factor, n_features)


def check_metric(matrix: Tensor, n_features: int) -> None:
    """Raise ValueError unless a metric (d, k) has a row for each feature."""
    if matrix.shape[0] != n_features:
        raise ValueError(
            f"the kernel's metric has the shape {tuple(matrix.shape)} but the points have {n_features} "
            f"features: give a matrix of shape ({n_features}, k), with a row for each feature"
        )
