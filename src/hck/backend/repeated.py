"""One step, many times: a device that waits for commands may record them."""

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from hck.backend.kinds import kind_of

# What it changes are tensors that exist before, in place; it looks at none of their values.
Step: TypeAlias = Callable[[], None]


def repeat(step: Step, times: int, device: torch.device) -> None:
    """Take a step that works on tensors of a device."""
    kind_of(device).machine().repeat(step, times, device)


def window(x: Tensor, first: Tensor, count: int) -> Tensor:
    """Some rows of a tensor from one on, whose number (1,) only the device knows: for recorded steps."""
    return kind_of(x.device).machine().window(x, first, count)
