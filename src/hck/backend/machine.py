"""What a device can do, as far as torch alone goes. A kind of device with code of its own does better."""

import os
import sys
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from hck.backend.blocks import Segments, consecutive
from hck.backend.torch import TorchAlgebra

if TYPE_CHECKING:
    from hck.backend.cuts import Directions, Halvings
    from hck.backend.kernels import DenseCross
    from hck.backend.left_out import Gradient
    from hck.backend.repeated import Step
    from hck.backend.steps import Steps


class Algebra(Protocol):
    """Dense linear algebra on stacks of matrices; what the functions do is said in `hck.backend.linalg`."""

    def factor_(self, matrix: Tensor, first: float, last: float) -> tuple[Tensor, Tensor | None]: ...
    def factor_noting_(self, matrix: Tensor, failed: Tensor) -> Tensor: ...
    def whiten_(self, factor: Tensor, x: Tensor, which: Tensor | None) -> Tensor: ...
    def unwhiten_(self, factor: Tensor, x: Tensor, which: Tensor | None) -> Tensor: ...
    def color(self, factor: Tensor, x: Tensor) -> Tensor: ...
    def subtract_gram_(self, y: Tensor, matrix: Tensor) -> Tensor: ...
    def inverse(self, factor: Tensor) -> Tensor: ...
    def inverse_diagonal(self, factor: Tensor) -> Tensor: ...
    def half_log_determinant(self, factor: Tensor) -> Tensor: ...
    def pack_(self, symmetric: Tensor, factor: Tensor) -> tuple[Tensor, Tensor]: ...
    def unpack(self, packed: Tensor, diagonal: Tensor) -> tuple[Tensor, Tensor]: ...
    def multiply_packed(self, packed: Tensor, diagonal: Tensor, x: Tensor) -> Tensor: ...
    def unwhiten_packed(self, packed: Tensor, diagonal: Tensor, x: Tensor) -> Tensor: ...


class Machine:
    """A device of any kind that torch knows."""

    def count(self) -> int:
        """How many devices of this kind there are, as far as known."""
        return 1

    def check_usable(self) -> None:
        """Raise RuntimeError where this process cannot use the device, though it is there."""

    def free_bytes(self, device: torch.device) -> int:
        """Memory that is free: by default, that of the machine."""
        if sys.platform == "linux":
            try:
                with open("/proc/meminfo") as lines:
                    return 1024 * next(int(x.split()[1]) for x in lines if x.startswith("MemAvailable:"))
            except OSError:  # all that there is
                return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        import psutil  # needed on other systems only

        return int(psutil.virtual_memory().available)

    def synchronize(self) -> None:
        """Wait until all that was asked for is done."""

    def reset_peak(self) -> None:
        """Forget the most memory that was in use."""

    def peak_bytes(self) -> int:
        """The most memory that was in use since `reset_peak`; 0 if nobody knows."""
        return 0

    def send(self, tensor: Tensor, device: torch.device) -> Tensor:
        """A tensor in the CPU's memory on a device of this kind."""
        return tensor.to(device)

    def algebra(self, dtype: torch.dtype) -> Algebra:
        """Linear algebra with numbers of a type."""
        return TorchAlgebra()

    def steps(self, dtype: torch.dtype) -> "Steps | None":
        """The steps of the sweeps, each as one function, if there are such."""
        return None

    def fuses(self, features: int, width: int) -> bool:
        """Whether it has code of its own for kernel values that beats torch on blocks of this width."""
        return False

    def evaluate(self, cross: "DenseCross", upper: bool, out: Tensor) -> None:
        """See `hck.backend.kernels.fused_cross`; where `fuses` says so."""
        raise TypeError(f"there is no code for kernel values on {out.device}: this is an error of hck")

    def left_out_gradient(self) -> "Gradient":
        """See `hck.backend.left_out.left_out_gradient`."""
        from hck.backend.left_out import gradient_by_torch

        return gradient_by_torch

    def repeat(self, step: "Step", times: int, device: torch.device) -> None:
        """See `hck.backend.repeated.repeat`."""
        for _ in range(times):
            step()

    def window(self, x: Tensor, first: Tensor, count: int) -> Tensor:
        """See `hck.backend.repeated.window`."""
        return x[first + torch.arange(count, device=x.device)]

    def project(self, x: Tensor, rows: Tensor, directions: Tensor, which: Tensor) -> Tensor:
        """See `hck.backend.cuts.project`."""
        return (x[rows] * directions[which]).sum(1)

    def separate(self, nodes: Segments, value: Tensor) -> tuple[Tensor, Tensor]:
        """See `hck.backend.cuts.separate`; by sorting."""
        (start, size), order = nodes.sent, nodes.order
        width = int(nodes.size.max())
        full = bool((nodes.size == width).all())
        if full and nodes.is_whole:
            table, by_value = value.reshape(-1, width).sort(1)
            order.copy_(order.reshape(-1, width).gather(1, by_value).reshape(-1))
        else:  # where a node is padded, -1 leads to a spare row
            place = consecutive(start, size, width, full).index
            listed = place if nodes.is_whole else consecutive(size.cumsum(0) - size, size, width, full).index
            table, by_value = torch.cat([value, value.new_full((1,), torch.inf)])[listed].sort(1)
            padded = torch.cat([order, order[:1]])
            padded[place] = padded[place].gather(1, by_value)
            order.copy_(padded[:-1])
        half = (size[:, None] + 1) // 2
        return table.gather(1, half - 1)[:, 0], table.gather(1, half)[:, 0]

    def halve_all(
        self, x: Tensor, order: Tensor, nodes: "Halvings", directions: "Directions"
    ) -> tuple[Tensor, Tensor] | None:
        """See `hck.backend.cuts.halve_all`."""
        return None
