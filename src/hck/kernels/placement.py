"""Where points are put so that a kernel depends on their distances alone.

Each kernel has its metric. Points are put into it once (`hck.points` remembers them), and what evaluates
kernels knows isotropic ones only.
"""

from abc import ABC, abstractmethod
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from torch import Tensor

from hck.backend.gradients import wants_gradient

Block: TypeAlias = Any  # a Tensor (*batch, n, d) or a csr_matrix (n, d)


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

    def tensors(self) -> list[Tensor]:
        return [self.lengthscale]


def divide(x: Block, lengthscale: float | Tensor) -> Block:
    """Divide all features by a number, or each by its own."""
    if isinstance(x, Tensor):
        return x * (1 / lengthscale.to(x) if isinstance(lengthscale, Tensor) else 1 / lengthscale)
    divisor = np.asarray(lengthscale.detach().cpu() if isinstance(lengthscale, Tensor) else lengthscale)
    each = divisor[x.indices] if divisor.ndim else divisor
    return sp.csr_matrix((x.data / each, x.indices, x.indptr), shape=x.shape)


def check_lengthscales(scale: Tensor, n_features: int) -> None:
    """Raise ValueError unless there is one lengthscale, or one per feature."""
    if scale.ndim and scale.shape[0] != n_features:
        raise ValueError(
            f"the kernel has {scale.shape[0]} lengthscales but the points have {n_features} features: give "
            "one lengthscale, or one per feature"
        )
