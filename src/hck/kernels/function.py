"""Any function as a kernel."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from hck.kernels.base import Kernel
from hck.kernels.inputs import real_array, refuse_complex
from hck.kernels.placement import Block

# Two blocks of points to the matrix of their values, as an array or a tensor.
Function: TypeAlias = Callable[[Block, Block], Any]


class CallableKernel(Kernel):
    """A kernel given by a function k(A, B) that returns the matrix of values.

    Parameters
    ----------
    function : callable
        Symmetric and positive definite.
    batched : bool, default=False
        If False, the function gets two 2-D NumPy arrays (or CSR matrices for sparse data, or 1-D arrays
        of objects) and returns an array of shape (len(A), len(B)). If True, it gets tensors
        (\\*batch, n, d) and (\\*batch, m, d) on the computation's device and returns a tensor
        (\\*batch, n, m): faster, differentiable, and the only way to use a GPU.

    Examples
    --------
    >>> import numpy as np
    >>> from hck.kernels import CallableKernel
    >>> def shared_letters(a, b):
    ...     return np.array([[len(set(s) & set(t)) for t in b] for s in a], dtype=float)
    >>> kernel = CallableKernel(shared_letters)
    >>> kernel.evaluate(np.array(["tree", "leaf"]), np.array(["root"])).tolist()
    [[2.0], [0.0]]
    """

    def __init__(self, function: Function, batched: bool = False) -> None:
        if not callable(function):
            raise TypeError(f"expected a function k(A, B), got {function!r}")
        self.function, self.batched = function, batched

    @property
    def label(self) -> str:
        return "a function"

    @property
    def takes_objects(self) -> bool:
        return not self.batched

    def evaluate(self, a: Block, b: Block) -> Tensor:
        if not isinstance(a, Tensor):
            return self._check(self.function(a, b), (a.shape[0], b.shape[0]))
        if self.batched:
            return self._check(self.function(a, b), (*a.shape[:-1], b.shape[-2])).to(a)
        batch = a.shape[:-2]
        pairs = zip(a.reshape(-1, *a.shape[-2:]), b.reshape(-1, *b.shape[-2:]), strict=True)
        shape = (a.shape[-2], b.shape[-2])
        values = [self._check(self.function(_numpy(x), _numpy(y)), shape) for x, y in pairs]
        return torch.stack(values).reshape(*batch, *shape).to(a)

    def diagonal(self, a: Block) -> Tensor:
        if isinstance(a, Tensor):
            single = a.unsqueeze(-2)  # (*batch, n, 1, d)
            return self.evaluate(single, single)[..., 0, 0]
        return torch.cat([self.evaluate(a[i : i + 1], a[i : i + 1])[0] for i in range(a.shape[0])])

    def _check(self, values: ArrayLike | Tensor, shape: tuple[int, ...]) -> Tensor:
        if isinstance(values, Tensor):
            refuse_complex(values)
            tensor = values
        else:
            tensor = torch.from_numpy(np.require(real_array(values), requirements=["C", "W"]))
        if tuple(tensor.shape) != shape:
            raise ValueError(
                f"the kernel function {_name(self.function)} returned shape {tuple(tensor.shape)} where "
                f"{shape} was expected: it must return one value for each pair of points"
            )
        if not torch.isfinite(tensor).all():
            raise ValueError(f"the kernel function {_name(self.function)} returned NaN or infinity")
        return tensor

    def __repr__(self) -> str:
        return f"CallableKernel({_name(self.function)})"


def _numpy(x: Tensor) -> np.ndarray:
    return x.detach().cpu().numpy()


def _name(function: Function) -> str:
    return getattr(function, "__name__", repr(function))
