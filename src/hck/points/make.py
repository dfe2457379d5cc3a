"""Data as points."""

import warnings

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from hck.backend.memory import free_bytes, require_bytes
from hck.backend.text import in_bytes
from hck.kernels.inputs import object_array, on_host, refuse_complex
from hck.kernels.sparse_input import check_sparse
from hck.points.base import Points, PointsLike, VectorPoints, check_reach, check_same_kind
from hck.points.dense import DensePoints
from hck.points.objects import ObjectPoints
from hck.points.sparse import SparsePoints


def as_points(
    x: PointsLike,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
    objects: bool = False,
) -> Points:
    """Wrap data as Points: a 2-D array or tensor, a scipy sparse matrix, or, with `objects`, any sequence.

    By default tensors of floating-point numbers keep their dtype and stay where they are; all else is
    float64 on the CPU.

    Parameters
    ----------
    x : array-like or Tensor of shape (n, d), sparse matrix, sequence, or Points
    dtype : torch.dtype, optional
        Of the numbers.
    device : torch.device or str, optional
        Where they are to be.
    objects : bool, default=False
        Whether points are things of any kind.

    Examples
    --------
    >>> import numpy as np
    >>> from hck.points import as_points
    >>> points = as_points(np.eye(2, dtype="float32"))
    >>> type(points).__name__, points.dtype
    ('DensePoints', torch.float64)
    """
    if isinstance(x, Points):
        return x
    if isinstance(x, Tensor):
        dtype = x.dtype if dtype is None and x.dtype.is_floating_point else dtype
        device = x.device if device is None else device
    dtype = torch.float64 if dtype is None else dtype
    device = torch.device("cpu" if device is None else device)
    if objects:
        return ObjectPoints(object_array(x), dtype, device)
    if sp.issparse(x):
        _refuse_wide(x.shape[1])
        number = np.float64 if dtype == torch.float64 else np.float32
        made: Points = SparsePoints(check_sparse(x).astype(number, copy=False), dtype, device)
        check_reach(made, torch.float64)
        return made
    tensor = x if isinstance(x, Tensor) else as_tensor(_numeric(np.asarray(x, order="C")))
    refuse_complex(tensor)
    if tensor.ndim != 2:
        raise ValueError(
            f"points must form a 2-D array (n_points, n_features), got shape {tuple(tensor.shape)}"
        )
    made = DensePoints(tensor.to(device=device, dtype=dtype))
    check_reach(made, torch.float64)  # as others, they may be scaled first
    return made


def _refuse_wide(columns: int) -> None:
    """Sparse points are projected on dense vectors, several at a time, which must fit into memory."""
    needed = 8 * 4 * columns
    if needed > 2**28 and needed > (free := free_bytes(torch.device("cpu"))):
        raise MemoryError(
            f"X has {columns:,} columns: dense vectors of so many take {in_bytes(needed)}, but "
            f"{in_bytes(free)} are free. An index that large is often a mistake; else hash or select columns"
        )


def as_tensor(array: np.ndarray) -> Tensor:
    """The same memory as a tensor, which nothing writes to.

    Parameters
    ----------
    array : ndarray

    Examples
    --------
    >>> import numpy as np
    >>> from hck.points import as_tensor
    >>> array = np.zeros(2)
    >>> tensor = as_tensor(array)
    >>> array[0] = 7
    >>> tensor.tolist()
    [7.0, 0.0]
    """
    if array.flags.writeable:
        return torch.from_numpy(array)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)


def _numeric(x: np.ndarray) -> np.ndarray:
    if x.dtype.kind not in "biufc":
        raise ValueError(f"points must be numbers, got {'things' if x.dtype.kind == 'O' else x.dtype}")
    return x


def as_points_like(x: PointsLike, points: Points) -> Points:
    """Wrap data as Points of the same kind as others: dense data become sparse, or sparse dense.

    Parameters
    ----------
    x : array-like, Tensor, sparse matrix, sequence, or Points
    points : Points
        Those to be like, in kind, dtype and device.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from hck.points import as_points, as_points_like
    >>> dense = as_points([[0.0, 1.0]])
    >>> as_points_like(sp.csr_matrix([[2.0, 0.0]]), dense).x.tolist()
    [[2.0, 0.0]]
    """
    if isinstance(points, SparsePoints) and not (sp.issparse(x) or isinstance(x, Points)):
        x = sp.csr_matrix(on_host(x) if isinstance(x, Tensor) else np.asarray(x))
    if isinstance(points, DensePoints) and sp.issparse(x):
        instead = "give fewer points at once, or train on sparse data"
        require_bytes(8.0 * x.shape[0] * x.shape[1], torch.device("cpu"), "a dense copy of sparse X", instead)
        x = check_sparse(x).toarray()
    if isinstance(points, DensePoints) and isinstance(x, DensePoints):
        x = x.x  # perhaps of another dtype, or elsewhere
    made = as_points(x, points.dtype, points.device, objects=isinstance(points, ObjectPoints))
    check_same_kind(points, made)
    check_reach(made)
    expected = getattr(points, "n_features", None)
    if isinstance(made, VectorPoints) and made.n_features != expected:
        raise ValueError(f"these points have {made.n_features} features where {expected} are expected")
    return made
