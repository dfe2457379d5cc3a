"""NVIDIA GPUs: torch, and kernels of our own where Triton is there. They are imported when first used."""

import os
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from shutil import which

import torch
from torch import Tensor

from hck.backend.kernels import DenseCross
from hck.backend.machine import Algebra, Machine
from hck.backend.repeated import Step
from hck.backend.torch import TorchAlgebra

_MOST_FEATURES = 256  # beyond, distances are a matrix product's work


class CUDA(Machine):
    """A GPU with memory of its own."""

    def count(self) -> int:
        return torch.cuda.device_count() if torch.cuda.is_available() else 0

    def check_usable(self) -> None:
        if torch.cuda._is_in_bad_fork():
            raise RuntimeError(
                "CUDA was used before this process was forked, and cannot be used in it: start processes by "
                "multiprocessing.get_context('spawn'), or fork before the GPU is first used"
            )

    def free_bytes(self, device: torch.device) -> int:
        # what torch holds but does not use is free for us
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + unused

    def synchronize(self) -> None:
        torch.cuda.synchronize()

    def reset_peak(self) -> None:
        torch.cuda.reset_peak_memory_stats()

    def peak_bytes(self) -> int:
        return torch.cuda.max_memory_allocated()

    def send(self, tensor: Tensor, device: torch.device) -> Tensor:
        return tensor.pin_memory().to(device, non_blocking=True)

    def algebra(self, dtype: torch.dtype) -> Algebra:
        return _algebra()

    def fuses(self, features: int, width: int) -> bool:
        return has_triton() and features <= _MOST_FEATURES

    def evaluate(self, cross: DenseCross, upper: bool, out: Tensor) -> None:
        from hck.backend.cuda import kernels

        kernels.evaluate(cross, upper, out)

    def repeat(self, step: Step, times: int, device: torch.device) -> None:
        from hck.backend.cuda.replay import repeat

        repeat(step, times, device)

    def project(self, x: Tensor, rows: Tensor, directions: Tensor, which: Tensor) -> Tensor:
        if not has_triton():
            return super().project(x, rows, directions, which)
        from hck.backend.cuda import cuts

        return cuts.project(x, rows, directions, which)


@cache
def has_triton() -> bool:
    """Whether kernels can be compiled for a GPU.

    On Linux Triton comes with torch. It multiplies float64 matrices since version 3.5; it needs a C compiler.
    """
    if find_spec("triton") is None or not any(map(which, (os.environ.get("CC", "cc"), "gcc", "clang"))):
        return False
    numbers = version("triton").split(".")
    return (int(numbers[0]), int(numbers[1])) >= (3, 5)


@cache
def _algebra() -> Algebra:
    if not has_triton():
        return TorchAlgebra()
    from hck.backend.cuda.dense import CudaAlgebra

    return CudaAlgebra()
