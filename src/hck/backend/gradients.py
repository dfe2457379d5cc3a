"""Whether gradients are asked for: compiled code and kernels for GPUs have none."""

from typing import Any

import torch
from torch import Tensor


def wants_gradient(*values: Any) -> bool:
    """Whether torch would record what is done with these; what is no tensor does not count."""
    return torch.is_grad_enabled() and any(isinstance(v, Tensor) and v.requires_grad for v in values)


def requiring_gradient(*values: Any) -> list[Tensor]:
    """Those that are tensors and require a gradient."""
    return [value for value in values if isinstance(value, Tensor) and value.requires_grad]
