"""Sparse matrices as users have them, checked before compiled code follows their indices."""

import numpy as np
import scipy.sparse as sp

from hck.kernels.inputs import Data


def check_sparse(x: Data, called: str = "X") -> sp.csr_matrix:
    """A sparse matrix of any format as CSR of real numbers, its columns in order, and each there once.

    scipy builds matrices without looking at all indices, and its compiled code reads and writes wherever they
    point. Entries that are given twice are summed, as everywhere in scipy. NaN is left to those who also look
    for it in arrays.

    Parameters
    ----------
    x : scipy.sparse matrix or array of shape (n, d)
    called : str
        What it is called if something is wrong with it.

    Raises
    ------
    ValueError
        If shape, index pointers, indices and data do not belong together, or data are no real numbers.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from hck.points import check_sparse
    >>> damaged = sp.csr_matrix([[0.0, 1.0]])
    >>> damaged.indices[0] = 5
    >>> try:
    ...     check_sparse(damaged)
    ... except ValueError as error:
    ...     print(str(error).partition(".")[0])
    X is a malformed sparse matrix: indices go from 5 to 5, outside of 0 to 1
    """
    if len(x.shape) != 2:
        raise ValueError(f"{called} must have two dimensions, got a sparse array of shape {x.shape}")
    if x.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {called} is a sparse matrix of {x.dtype}")
    if x.dtype.kind not in "biuf":
        raise ValueError(f"{called} must be numbers, got a sparse matrix of dtype {x.dtype}")
    if x.format in ("csr", "csc", "bsr"):
        _check_compressed(x, called)
    elif x.format == "coo":
        _check_triplets(x, called)
    elif x.format == "lil" and [len(row) for row in x.rows] != [len(row) for row in x.data]:
        raise _malformed(called, "rows of indices and of data have different lengths")
    csr = x.tocsr()
    if x.format not in ("csr", "csc", "bsr", "coo"):
        _check_compressed(csr, called)
    # made anew, since what a matrix says of its own order may be of a time before it was changed
    csr = sp.csr_matrix((csr.data, csr.indices, csr.indptr), shape=x.shape)
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    return csr


def _check_compressed(x: Data, called: str) -> None:
    """Of CSR, CSC and BSR."""
    high, wide = (1, 1) if x.format != "bsr" else x.data.shape[1:] if x.data.ndim == 3 else (0, 0)
    if not high * wide or x.shape[0] % high or x.shape[1] % wide:
        raise _malformed(called, f"blocks of shape {x.data.shape[1:]} do not fill a shape {x.shape}")
    rows, columns = x.shape[0] // high, x.shape[1] // wide
    groups, most = (columns, rows) if x.format == "csc" else (rows, columns)
    start, indices = np.asarray(x.indptr), np.asarray(x.indices)
    if start.dtype.kind not in "iu" or indices.dtype.kind not in "iu":
        raise _malformed(called, f"indptr and indices are of {start.dtype} and {indices.dtype}, not integers")
    if start.shape != (groups + 1,):
        raise _malformed(called, f"indptr has the shape {start.shape}, not ({groups + 1},)")
    if start[0] != 0 or (start[1:] < start[:-1]).any():
        raise _malformed(called, "indptr must begin with 0 and never fall")
    values = x.data.shape if x.format != "bsr" else x.data.shape[:1]
    if indices.ndim != 1 or values != indices.shape or start[-1] > len(indices):
        raise _malformed(
            called, f"indptr ends at {start[-1]}, with {indices.shape} indices and {values} values"
        )
    _check_range(indices, most, called)


def _check_triplets(x: Data, called: str) -> None:
    if not x.row.shape == x.col.shape == x.data.shape or x.row.ndim != 1:
        raise _malformed(called, f"{x.row.shape} rows, {x.col.shape} columns and {x.data.shape} values")
    if x.row.dtype.kind not in "iu" or x.col.dtype.kind not in "iu":
        raise _malformed(called, f"rows and columns are of {x.row.dtype} and {x.col.dtype}, not integers")
    _check_range(x.row, x.shape[0], called)
    _check_range(x.col, x.shape[1], called)


def _check_range(indices: np.ndarray, most: int, called: str) -> None:
    if len(indices) and not (indices.min() >= 0 and indices.max() < most):
        raise _malformed(
            called, f"indices go from {indices.min()} to {indices.max()}, outside of 0 to {most - 1}"
        )


def _malformed(called: str, what: str) -> ValueError:
    return ValueError(
        f"{called} is a malformed sparse matrix: {what}. Build it anew, for example from its entries"
    )
