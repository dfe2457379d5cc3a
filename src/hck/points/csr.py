"""Sparse tensors."""

import warnings

import torch
from torch import Tensor


def csr_tensor(start: Tensor, column: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """A sparse matrix by its rows: where each starts, the columns of its nonzeros, and these.

    torch says each time that this is new, or that nothing is checked.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse (CSR tensor support is in beta|invariant checks)")
        return torch.sparse_csr_tensor(start, column, values, shape, check_invariants=False)
