"""Sets of points: dense, sparse, or objects of any kind, behind one small interface.

The rest of the package never asks what a point is. It asks for kernel values between blocks of points
(`cross`), and, to cut a domain by hyperplanes, for projections on directions.
"""

from hck.kernels.sparse_input import check_sparse
from hck.points.base import Points, PointsLike, VectorPoints, check_reach, check_same_kind
from hck.points.cross import (
    KernelBlocks,
    are_alike,
    check_alike,
    check_kernel,
    check_weights,
    cross,
    features_of,
    self_values,
)
from hck.points.dense import DensePoints
from hck.points.make import as_points, as_points_like, as_tensor
from hck.points.objects import ObjectPoints
from hck.points.ownership import own
from hck.points.sparse import SparsePoints

__all__ = [
    "DensePoints",
    "KernelBlocks",
    "ObjectPoints",
    "Points",
    "PointsLike",
    "SparsePoints",
    "VectorPoints",
    "are_alike",
    "as_points",
    "as_points_like",
    "as_tensor",
    "check_alike",
    "check_kernel",
    "check_reach",
    "check_same_kind",
    "check_sparse",
    "check_weights",
    "cross",
    "features_of",
    "own",
    "self_values",
]
