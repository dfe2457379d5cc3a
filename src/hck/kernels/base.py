"""What a base kernel is."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from hck.backend.kernels import Profile
from hck.kernels.objects import looks_like_objects, object_array


class Pairs(Protocol):
    """Pairs of points, as kernels see them: `hck.points.Values`."""

    def of(self, kernel: "Kernel") -> Tensor:
        """A kernel's values, 0 where either side is padding."""

    def weighted_squares(self, weight: Tensor) -> Tensor | None:
        """Σ weight · (x − x')² for each feature, (d,); None if points are no vectors."""

    def recorded(self, kernel: "Kernel") -> Tensor:
        """A kernel's values, so that they can be differentiated by its parameters."""


class Kernel(ABC):
    """A symmetric positive definite function k(x, x'), evaluated on blocks of points.

    Calling a kernel takes NumPy arrays, torch tensors or scipy sparse matrices and returns the matrix of
    its values: an array for arrays and sparse matrices, a tensor for tensors. Kernels can be added and
    multiplied with each other and scaled by positive numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from hck.kernels import Gaussian, Laplace
    >>> kernel = 2.0 * Gaussian(lengthscale=0.5) + Laplace(lengthscale=[1.0, 3.0])
    >>> kernel(np.zeros((3, 2)), np.ones((4, 2))).shape
    (3, 4)
    """

    @abstractmethod
    def evaluate(self, a: Any, b: Any) -> Tensor:
        """Values between tensors (*batch, n, d) and (*batch, m, d), or between two CSR matrices."""

    @abstractmethod
    def diagonal(self, a: Any) -> Tensor:
        """k(x, x) for each row of `a`: shape (*batch, n)."""

    @property
    def takes_objects(self) -> bool:
        """Whether points need not be vectors."""
        return False

    def profile(self) -> Profile | None:
        """The kernel as a known function of the scaled difference, if it is one without gradients."""
        return None

    def to(self, device: torch.device, dtype: torch.dtype) -> "Kernel":
        """The same kernel with its parameters on `device`."""
        return self

    def metric(self) -> Tensor | None:
        """Lengthscales (d,) by which to divide features where distances are measured, if they differ."""
        return None

    def parameters(self) -> dict[str, float | Tensor]:
        """The positive numbers that the kernel is made of, by name; a tensor (d,) for one per feature.

        Names of kernels inside others are put together with dots.

        Examples
        --------
        >>> from hck.kernels import Gaussian, Laplace
        >>> (2.0 * Gaussian(0.5) + Laplace(3.0)).parameters()
        {'left.lengthscale': 0.5, 'left.scale': 2.0, 'right.lengthscale': 3.0}
        """
        return {}

    def with_parameters(self, values: Mapping[str, Any]) -> "Kernel":
        """The same kernel with other values for some of its `parameters`."""
        unknown = set(values) - set(self.parameters())
        if unknown:
            known = ", ".join(self.parameters()) or "none"
            raise ValueError(f"the kernel has no parameter {sorted(unknown)[0]!r}; it has: {known}")
        return self._with_parameters(values)

    def _with_parameters(self, values: Mapping[str, Any]) -> "Kernel":
        return self

    def tensors(self) -> list[Tensor]:
        """The parameters that require a gradient."""
        return []

    def pull(self, pairs: Pairs, weight: Tensor) -> list[Tensor]:
        """The gradient of Σ weight · k(x, x') over pairs of points, with respect to each of `tensors`."""
        if not self.tensors():
            return []
        with torch.enable_grad():
            total = (pairs.recorded(self) * weight).sum()
        return list(torch.autograd.grad(total, self.tensors(), materialize_grads=True))

    def __call__(self, a: Any, b: Any = None) -> Any:
        b = a if b is None else b
        if self.takes_objects and looks_like_objects(a):
            return self.evaluate(object_array(a), object_array(b)).numpy()
        if sp.issparse(a) != sp.issparse(b):
            raise TypeError("both arguments must be sparse, or both dense")
        if isinstance(a, Tensor) or isinstance(b, Tensor):
            return self.evaluate(*_comparable(torch.as_tensor(a), torch.as_tensor(b)))
        if sp.issparse(a):
            return self.evaluate(sp.csr_matrix(a), sp.csr_matrix(b)).detach().numpy()
        return self.evaluate(*_comparable(_float_tensor(a), _float_tensor(b))).detach().numpy()

    def __add__(self, other: "Kernel") -> "Kernel":
        from hck.kernels.algebra import Sum

        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: "Kernel | float") -> "Kernel":
        from hck.kernels.algebra import Product, Scaled

        if isinstance(other, Kernel):
            return Product(self, other)
        return Scaled(self, other) if np.ndim(other) == 0 else NotImplemented

    __rmul__ = __mul__
    __array_ufunc__ = None  # NumPy scalars leave the product to us, and arrays fail


def _float_tensor(x: Any) -> Tensor:
    array = np.asarray(x)
    return torch.from_numpy(
        np.require(array, array.dtype if array.dtype.kind == "f" else np.float64, ["C", "W"])
    )


def _comparable(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    for x in (a, b):
        if x.ndim < 2:
            raise ValueError(f"expected blocks of shape (*batch, n_points, n_features), got {tuple(x.shape)}")
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(f"points have {a.shape[-1]} features on one side and {b.shape[-1]} on the other")
    if 0 in (a.shape[-2], b.shape[-2]):
        raise ValueError("a kernel needs at least one point on each side")
    dtype = torch.promote_types(a.dtype, b.dtype)
    if not dtype.is_floating_point:
        dtype = torch.float64
    return a.to(dtype), b.to(dtype)
