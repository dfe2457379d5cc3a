"""What a base kernel is, and kernels made of kernels."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from hck.backend.checks import require
from hck.backend.kernels import Profile, requiring_gradient, wants_gradient
from hck.kernels.inputs import Data, comparable, float_tensor, looks_like_objects, object_array
from hck.kernels.placement import Block, Placement
from hck.kernels.sparse_input import check_sparse
from hck.kernels.theta import HasTheta

MOST_TERMS = 200  # of a kernel that is loaded
Number: TypeAlias = float | Tensor  # of shape ()
Parameter: TypeAlias = float | Tensor  # of shape () or, one for each feature, (d,)


class Pairs(Protocol):
    """Pairs of points, as a kernel's gradient sees them: `hck.points.KernelBlocks`."""

    def of(self, kernel: "Kernel") -> Tensor:
        """A kernel's values, 0 where either side is padding."""

    def weighted_squares(self, weight: Tensor) -> Tensor:
        """Σ weight · (x − x')² for each feature, (d,)."""

    def weighted_products(self, weight: Tensor, placement: Placement) -> Tensor:
        """Σ weight · (x − x') (p − p')ᵀ, (d, k), where p and p' are x and x' as they are placed."""

    def recorded(self, kernel: "Kernel") -> Tensor:
        """A kernel's values, so that they can be differentiated by its parameters."""

    def coordinates(self, placement: Placement | None) -> tuple[Tensor, Tensor]:
        """Both sides' points (blocks, width, k), as they are placed."""

    def masked(self, values: Tensor) -> Tensor:
        """Values (blocks, rows' width, …, columns' width) with 0 for padding."""


class Kernel(HasTheta, ABC):
    """A symmetric positive definite function k(x, x'), evaluated on blocks of points.

    Calling a kernel takes NumPy arrays, torch tensors or scipy sparse matrices and returns the matrix of
    its values: an array for arrays and sparse matrices, a tensor for tensors. Kernels can be added and
    multiplied with each other and scaled by positive numbers.

    Attributes
    ----------
    arguments : tuple of str
        What it is made of: attributes, and arguments of the same names. Saved kernels consist of them.

    Examples
    --------
    >>> import numpy as np
    >>> from hck.kernels import Gaussian, Laplace
    >>> kernel = 2.0 * Gaussian(lengthscale=0.5) + Laplace(lengthscale=[1.0, 3.0])
    >>> kernel(np.zeros((3, 2)), np.ones((4, 2))).shape
    (3, 4)
    """

    arguments: ClassVar[tuple[str, ...]] = ()
    # How points are put where the kernel is isotropic; None: they are left where they are.
    placement: Placement | None = None
    terms: int = 1  # kernels that it consists of, counted as often as they are evaluated

    def validate(self) -> None:
        """Raise ValueError if it has so many terms, as only kernels from files have, that it never ends."""
        require(self.terms <= MOST_TERMS, f"it has more than {MOST_TERMS} kernels inside each other")

    @abstractmethod
    def evaluate(self, a: Block, b: Block) -> Tensor:
        """Values between tensors (*batch, n, d) and (*batch, m, d), or between two CSR matrices."""

    @abstractmethod
    def diagonal(self, a: Block) -> Tensor:
        """k(x, x) for each row of `a`: shape (*batch, n)."""

    @property
    def label(self) -> str:
        """What it is called in reports, without lengthscales."""
        return type(self).__name__

    @property
    def takes_objects(self) -> bool:
        """Whether points need not be vectors."""
        return False

    def place(self, x: Block) -> Block:
        """Points, a tensor (*batch, n, d) or a CSR matrix, where the kernel is the isotropic `profile`."""
        return x if self.placement is None else self.placement(x)

    def profile(self) -> Profile | None:
        """The kernel of points that are placed, if it is an isotropic one and no gradient is asked for."""
        return None

    def to(self, device: torch.device, dtype: torch.dtype) -> "Kernel":
        """The same kernel with its parameters on `device`."""
        return self

    def stretch(self) -> Tensor | None:
        """What points are multiplied by where distances are measured: a number for each feature (d,), or a
        matrix (d, k); None if they are left as they are.

        Trees are cut and landmarks are chosen there.
        """
        return None

    def importances(self) -> Tensor | None:
        """How much of a squared distance is due to each feature: the diagonal of L Lᵀ (d,), for points that
        are multiplied by L; None if they are left as they are.

        Examples
        --------
        >>> from hck.kernels import Gaussian
        >>> Gaussian([1.0, 2.0]).importances().tolist()
        [1.0, 0.25]
        """
        stretch = self.stretch()
        if stretch is None:
            return None
        return stretch.square() if stretch.ndim == 1 else stretch.square().sum(1)

    def parameters(self) -> dict[str, Parameter]:
        """The positive numbers that the kernel is made of, by name; a tensor (d,) for one per feature.

        Names of kernels inside others are put together with dots.

        Examples
        --------
        >>> from hck.kernels import Gaussian, Laplace
        >>> (2.0 * Gaussian(0.5) + Laplace(3.0)).parameters()
        {'left.lengthscale': 0.5, 'left.scale': 2.0, 'right.lengthscale': 3.0}
        """
        return {}

    def with_parameters(self, values: Mapping[str, Parameter]) -> "Kernel":
        """The same kernel with other values for some of its `parameters`."""
        unknown = set(values) - set(self.parameters())
        if unknown:
            known = ", ".join(self.parameters()) or "none"
            raise ValueError(f"the kernel has no parameter {sorted(unknown)[0]!r}; it has: {known}")
        return self._with_parameters(values)

    def _with_parameters(self, values: Mapping[str, Parameter]) -> "Kernel":
        return self

    def tensors(self) -> list[Tensor]:
        """The parameters that require a gradient."""
        return []

    def gradient_of_sum(self, pairs: Pairs, weight: Tensor) -> list[Tensor]:
        """The gradient of Σ weight · k(x, x') over pairs of points, with respect to each of `tensors`."""
        if not self.tensors():
            return []
        with torch.enable_grad():
            total = (pairs.recorded(self) * weight).sum()
        return list(torch.autograd.grad(total, self.tensors(), materialize_grads=True))

    def gradient_of_metric(self, pairs: Pairs, weight: Tensor) -> Tensor:
        """The gradient of Σ weight · k(x, x') over pairs of points, with respect to the metric L: (d, k)."""
        raise ValueError(f"{self} has no metric of its own: give it to one of the kernels with names")

    def __call__(self, a: Data, b: Data = None) -> Any:
        b = a if b is None else b
        if self.takes_objects and looks_like_objects(a):
            return self.evaluate(object_array(a), object_array(b)).numpy()
        if sp.issparse(a) != sp.issparse(b):
            raise TypeError("both arguments must be sparse, or both dense")
        if isinstance(a, Tensor) or isinstance(b, Tensor):
            return self.evaluate(*comparable(float_tensor(a), float_tensor(b)))
        if sp.issparse(a):
            return self.evaluate(check_sparse(a), check_sparse(b)).detach().numpy()
        return self.evaluate(*comparable(float_tensor(a), float_tensor(b))).detach().numpy()

    def __add__(self, other: "Kernel") -> "Kernel":
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: "Kernel | float") -> "Kernel":
        if isinstance(other, Kernel):
            return Product(self, other)
        return Scaled(self, other) if np.ndim(other) == 0 else NotImplemented

    __rmul__ = __mul__
    __array_ufunc__ = None  # NumPy scalars leave the product to us, and arrays fail


class _Pair(Kernel):
    arguments = ("left", "right")

    def __init__(self, left: Kernel, right: Kernel) -> None:
        self.left, self.right = left, right
        self.terms = 1 + left.terms + right.terms

    @property
    def takes_objects(self) -> bool:
        return self.left.takes_objects and self.right.takes_objects

    def stretch(self) -> Tensor | None:
        left, right = self.left.stretch(), self.right.stretch()
        if left is None or right is None:
            return left if right is None else right
        if left.ndim == right.ndim == 1:
            return (left.square() + right.square()).sqrt()
        # side by side, so that squared distances are added
        return torch.cat([each if each.ndim == 2 else each.diag() for each in (left, right)], 1)

    def parameters(self) -> dict[str, Parameter]:
        sides = (("left", self.left), ("right", self.right))
        return {f"{side}.{name}": value for side, k in sides for name, value in k.parameters().items()}

    def _with_parameters(self, values: Mapping[str, Parameter]) -> "_Pair":
        def of(side: str) -> dict[str, Parameter]:
            return {name.partition(".")[2]: v for name, v in values.items() if name.partition(".")[0] == side}

        return type(self)(self.left.with_parameters(of("left")), self.right.with_parameters(of("right")))

    def tensors(self) -> list[Tensor]:
        return self.left.tensors() + self.right.tensors()

    def to(self, device: torch.device, dtype: torch.dtype) -> "_Pair":
        return type(self)(self.left.to(device, dtype), self.right.to(device, dtype))


class Sum(_Pair):
    """k₁(x, x') + k₂(x, x').

    Examples
    --------
    >>> from hck.kernels import Gaussian, Laplace, Sum
    >>> kernel = Gaussian(1.0) + Laplace(2.0)
    >>> isinstance(kernel, Sum), kernel([[0.0]], [[0.0], [1.0]]).round(3)
    (True, array([[2.   , 1.213]]))
    """

    def evaluate(self, a: Block, b: Block) -> Tensor:
        return self.left.evaluate(a, b) + self.right.evaluate(a, b)

    def diagonal(self, a: Block) -> Tensor:
        return self.left.diagonal(a) + self.right.diagonal(a)

    def gradient_of_sum(self, pairs: Pairs, weight: Tensor) -> list[Tensor]:
        return self.left.gradient_of_sum(pairs, weight) + self.right.gradient_of_sum(pairs, weight)

    def __repr__(self) -> str:
        return f"{self.left} + {self.right}"


class Product(_Pair):
    """k₁(x, x') · k₂(x, x').

    Examples
    --------
    >>> from hck.kernels import Gaussian, Laplace, Product
    >>> kernel = Gaussian(1.0) * Laplace(2.0)
    >>> isinstance(kernel, Product), kernel([[0.0]], [[0.0], [1.0]]).round(3)
    (True, array([[1.   , 0.368]]))
    """

    def evaluate(self, a: Block, b: Block) -> Tensor:
        return self.left.evaluate(a, b) * self.right.evaluate(a, b)

    def diagonal(self, a: Block) -> Tensor:
        return self.left.diagonal(a) * self.right.diagonal(a)

    def gradient_of_sum(self, pairs: Pairs, weight: Tensor) -> list[Tensor]:
        found = []
        for kernel, other in ((self.left, self.right), (self.right, self.left)):
            if kernel.tensors():
                found += kernel.gradient_of_sum(pairs, pairs.of(other).mul_(weight))
        return found

    def __repr__(self) -> str:
        return f"{_as_factor(self.left)} * {_as_factor(self.right)}"


class Scaled(Kernel):
    """c · k(x, x') with c > 0 (a variance); a tensor that requires a gradient keeps it.

    Examples
    --------
    >>> from hck.kernels import Gaussian, Scaled
    >>> kernel = 4.0 * Gaussian(1.0)
    >>> isinstance(kernel, Scaled), kernel.parameters()
    (True, {'lengthscale': 1.0, 'scale': 4.0})
    """

    arguments = ("kernel", "scale")

    def __init__(self, kernel: Kernel, scale: Number) -> None:
        value = scale.detach() if isinstance(scale, Tensor) else scale
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"a kernel can only be scaled by a positive, finite number, got {scale!r}")
        self.kernel, self.terms = kernel, 1 + kernel.terms
        self.scale = scale if isinstance(scale, Tensor) else float(scale)

    @property
    def placement(self) -> Placement | None:  # type: ignore[override]
        return self.kernel.placement

    def evaluate(self, a: Block, b: Block) -> Tensor:
        return self._times_scale(self.kernel.evaluate(a, b))

    def diagonal(self, a: Block) -> Tensor:
        return self._times_scale(self.kernel.diagonal(a))

    def _times_scale(self, values: Tensor) -> Tensor:
        scale = self.scale
        return values * (scale.to(values.device) if isinstance(scale, Tensor) else scale)

    def profile(self) -> Profile | None:
        inner = self.kernel.profile()
        if inner is None or wants_gradient(self.scale):
            return None
        return replace(inner, amplitude=inner.amplitude * self.scale)

    def stretch(self) -> Tensor | None:
        return self.kernel.stretch()

    def parameters(self) -> dict[str, Parameter]:
        return {**self._inside(), "scale": self.scale}

    def _with_parameters(self, values: Mapping[str, Parameter]) -> "Scaled":
        inside = {old: values[new] for old, new in self._names().items() if new in values}
        return Scaled(self.kernel.with_parameters(inside), values.get("scale", self.scale))

    def _names(self) -> dict[str, str]:
        """The names of the inner kernel's parameters, and what they are called here."""
        nested = ("scale", "inner.")
        return {n: f"inner.{n}" if n.startswith(nested) else n for n in self.kernel.parameters()}

    def _inside(self) -> dict[str, Parameter]:
        return {self._names()[name]: value for name, value in self.kernel.parameters().items()}

    def tensors(self) -> list[Tensor]:
        return self.kernel.tensors() + requiring_gradient(self.scale)

    def gradient_of_sum(self, pairs: Pairs, weight: Tensor) -> list[Tensor]:
        found = [part * self.scale for part in self.kernel.gradient_of_sum(pairs, weight)]
        if requiring_gradient(self.scale):
            found.append(torch.vdot(weight.flatten(), pairs.of(self.kernel).flatten()))
        return found

    def gradient_of_metric(self, pairs: Pairs, weight: Tensor) -> Tensor:
        return self.kernel.gradient_of_metric(pairs, weight) * self.scale

    @property
    def takes_objects(self) -> bool:
        return self.kernel.takes_objects

    def to(self, device: torch.device, dtype: torch.dtype) -> "Scaled":
        scale = self.scale.to(device, dtype) if isinstance(self.scale, Tensor) else self.scale
        return Scaled(self.kernel.to(device, dtype), scale)

    def __repr__(self) -> str:
        scale = self.scale.detach() if isinstance(self.scale, Tensor) else self.scale
        return f"{float(scale):.6g} * {_as_factor(self.kernel)}"


def _as_factor(kernel: Kernel) -> str:
    """A kernel as text that can be multiplied: a sum is in brackets."""
    return f"({kernel})" if isinstance(kernel, Sum) else str(kernel)


def shares(kernels: Sequence[tuple[Kernel, float]], squares: np.ndarray) -> np.ndarray:
    """The features' parts (d,) of squared distances, the mean of some kernels' by weight.

    Squares (d,) are those of a typical difference in each feature. A kernel that leaves points as they are
    has the parts of these.
    """
    whole = np.zeros(len(squares))
    for kernel, weight in kernels:
        found = kernel.importances()
        each = squares if found is None else squares * found.detach().double().cpu().numpy()
        whole += weight * each / (each.sum() or 1.0)
    return whole
