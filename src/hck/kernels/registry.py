"""The kernels that have names: what `make_kernel`, the command line, saved models and tests go by."""

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from numpy.typing import ArrayLike
from torch import Tensor

from hck.kernels.base import Kernel
from hck.kernels.function import CallableKernel, Function
from hck.kernels.inputs import Positive

# The names of each class, and what is given to it with them.
_CLASSES: dict[type[Kernel], dict[str, dict[str, float]]] = {}

K = TypeVar("K", bound=type[Kernel])
KernelLike: TypeAlias = Kernel | str | Function  # what `make_kernel` takes


def named(name: str, **given: float) -> Callable[[K], K]:
    """Register a kernel: ``make_kernel(name, lengthscale)`` is ``cls(lengthscale, **given)``.

    Parameters
    ----------
    name : str
    **given : float
        More arguments of the class that go with the name.

    Examples
    --------
    >>> from hck.kernels import make_kernel
    >>> make_kernel("matern52", 0.5)  # since Matern is decorated with @named("matern52", nu=2.5)
    Matern(lengthscale=0.5, nu=2.5)
    """

    def register(cls: K) -> K:
        _CLASSES[cls] = {name: given, **_CLASSES.get(cls, {})}  # of several decorators the last comes first
        return cls

    return register


def kernel_names() -> tuple[str, ...]:
    """The names that `make_kernel` knows.

    Examples
    --------
    >>> from hck.kernels import kernel_names
    >>> kernel_names()[:3]
    ('gaussian', 'laplace', 'inverse_multiquadric')
    """
    return tuple(name for names in _CLASSES.values() for name in names)


def kernel_classes() -> tuple[type[Kernel], ...]:
    """The classes of these kernels.

    Examples
    --------
    >>> from hck.kernels import Matern, kernel_classes
    >>> Matern in kernel_classes()
    True
    """
    return tuple(_CLASSES)


def make_kernel(
    kernel: KernelLike, lengthscale: Positive | None = None, metric: ArrayLike | Tensor | None = None
) -> Kernel:  # fmt: skip
    """A Kernel from a name and a lengthscale, from a function, or from a Kernel.

    Parameters
    ----------
    kernel : str, Kernel or callable
        A name, one of ``hck.kernels.kernel_names()``; a kernel; or a function k(A, B) (see `CallableKernel`).
    lengthscale : float, array-like of shape (n_features,) or None
        For named kernels; None means 1. Other kernels carry their own.
    metric : array-like of shape (n_features, k), default=None
        L, for named kernels of ‖Lᵀ(x − x')‖.

    Examples
    --------
    >>> make_kernel("matern52", 0.5)
    Matern(lengthscale=0.5, nu=2.5)
    """
    if isinstance(kernel, str):
        for cls, names in _CLASSES.items():
            if kernel in names:
                made: Any = cls
                given = names[kernel] if metric is None else {**names[kernel], "metric": metric}
                return made(1.0 if lengthscale is None else lengthscale, **given)
        raise ValueError(f"unknown kernel {kernel!r}; known kernels: {', '.join(kernel_names())}")
    if not (isinstance(kernel, Kernel) or callable(kernel)):
        raise TypeError(f"kernel must be a name, a Kernel or a function k(A, B), got {kernel!r}")
    if lengthscale is not None or metric is not None:
        raise ValueError(
            "lengthscale is for kernels given by name; a Kernel or a function carries its own, "
            "so leave lengthscale=None"
        )
    return kernel if isinstance(kernel, Kernel) else CallableKernel(kernel)
