"""Tensors as compiled code takes them."""

import numpy as np
from torch import Tensor


def flat(tensor: Tensor) -> np.ndarray:
    """The numbers of a tensor, one after another; its own memory if it is contiguous."""
    return tensor.detach().contiguous().view(-1).numpy()
