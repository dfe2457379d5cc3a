"""Whose memory points are in: a model keeps none that its caller can change, or take away."""

from copy import deepcopy
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp
from torch import Tensor

from hck.backend.kinds import kind_of
from hck.points.base import Points, PointsLike
from hck.points.dense import DensePoints
from hck.points.objects import ObjectPoints
from hck.points.sparse import SparsePoints

Memory: TypeAlias = np.ndarray | Tensor

# Objects that can be changed in place. Those of other classes are kept as they are: some have no copy, and
# some are told apart by what they are, not by what they hold.
_CONTAINERS = np.ndarray | list | tuple | dict | set | bytearray


def own(points: Points, given: PointsLike) -> Points:
    """Points that share no memory with what the caller gave: what they share is copied.

    Parameters
    ----------
    points : Points
    given : array-like, Tensor, sparse matrix, table or sequence
        What the points were made of.

    Examples
    --------
    >>> import torch
    >>> from hck.points import as_points, own
    >>> x = torch.zeros(2, 1)
    >>> points = own(as_points(x), x)
    >>> x[0] = 7
    >>> points.x.ravel().tolist()
    [0.0, 0.0]
    """
    if isinstance(points, ObjectPoints):
        return ObjectPoints(_own_objects(points.x), points.dtype, points.device)
    theirs = _parts(given)
    if isinstance(points, DensePoints):
        return points.holding(points.x.clone()) if _is_in(points.x, theirs) else points
    if isinstance(points, SparsePoints):
        held = points.x.data, points.x.indices, points.x.indptr
        mine = [each.copy() if _is_in(each, theirs) else each for each in held]
        return points.holding(sp.csr_matrix(tuple(mine), shape=points.x.shape))
    return points


def _own_objects(x: np.ndarray) -> np.ndarray:
    out = x.copy()
    for i, each in enumerate(x if x.dtype == object else ()):
        if isinstance(each, Tensor):
            out[i] = each.detach().clone()
        elif isinstance(each, _CONTAINERS):
            out[i] = deepcopy(each)
    return out


def _parts(given: PointsLike) -> list[Memory]:
    """The memory of what users have points in; lists have none that arrays could share."""
    if isinstance(given, np.ndarray | Tensor):
        return [given]
    if sp.issparse(given):
        return [each for each in vars(given).values() if isinstance(each, np.ndarray)]
    if hasattr(given, "combine_chunks"):  # of pyarrow, which nobody can change
        return []
    if hasattr(given, "columns"):  # a table, in one piece or several, of which columns are views
        table = given.iloc if hasattr(given, "iloc") else given
        return [np.asarray(table[:, i]) for i in range(given.shape[1])]
    return [np.asarray(given)] if hasattr(given, "__array__") else []


def _is_in(block: Memory, others: list[Memory]) -> bool:
    return any(_shared(block, other) for other in others)


def _shared(a: Memory, b: Memory) -> bool:
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
    if not all(kind_of(each.device).is_host for each in (a, b) if isinstance(each, Tensor)):
        return False
    one, other = (each.detach().numpy() if isinstance(each, Tensor) else each for each in (a, b))
    return np.may_share_memory(one, other)
