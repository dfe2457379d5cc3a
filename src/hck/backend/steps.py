"""What the steps of the sweeps over a tree take, and the steps that some devices do in one go.

A step works on a stack of leaves or of inner nodes; `hck.hierarchy.steps` says what it computes. Done in one
go, all that a leaf or a node needs stays in the cache, and kernel values are computed on the way. Shapes: n
is the leaves' size, r the rank, k the number of right-hand sides.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from hck.backend import linalg
from hck.backend.kernels import DenseCross
from hck.backend.kinds import kind_of
from hck.backend.records import Record
from hck.backend.reuse import room

# What is factored, for warnings and errors.
LEAF = "the leaf matrix D + alpha I"
NODE = "the information matrix I + Ξ of an inner node"
ROOT = "the matrix I − X of an inner node"


class LazyValues(Protocol):
    """Kernel values between blocks of points, computed when they are needed: `hck.points.KernelBlocks`."""

    def tensor(self) -> Tensor: ...
    def compilable(self) -> DenseCross | None: ...


@dataclass
class LeafInput:
    """D and V of leaves, or what they are computed from."""

    own: LazyValues | Tensor  # K(X, X), or D: (leaves, n, n)
    far: LazyValues | Tensor  # K(Z, X) (leaves, r, n), or V (leaves, n, r)
    landmark: Tensor | None  # C (nodes, r, r); None if D and V are given
    which: Tensor  # (leaves,): the leaves' parents, counted within their level; C is in the same order

    def blocks(self) -> tuple[Tensor, Tensor]:
        """D (its upper triangle) and V; what is given may be overwritten."""
        if self.landmark is None:
            return as_tensor(self.own), as_tensor(self.far)
        v = linalg.whiten_(self.landmark, as_tensor(self.far), self.which)  # Vᵀ
        return linalg.subtract_gram_(v, as_tensor(self.own)), v.mT


@dataclass
class NodeInput:
    """W of inner nodes, or what it is computed from."""

    far: LazyValues | Tensor  # K(Z_p, Z_i), or W: (nodes, r, r)
    own: Tensor | None  # C of the nodes (nodes, r, r); None if W is given
    above: Tensor | None  # C of their parents (parents, r, r)
    which: Tensor  # (nodes,): the nodes' parents, counted within their level

    def transfer(self) -> Tensor:
        """W; what it is computed from may be overwritten, W itself may not."""
        if self.own is None or self.above is None:
            return as_tensor(self.far)
        half = linalg.whiten_(self.above, as_tensor(self.far), self.which)  # C_p⁻¹ K(Z_p, Z_i)
        return linalg.whiten_(self.own, half.mT)


@dataclass
class Inbox:
    """What the nodes of a level hear from their children, with the sign changed."""

    information: Tensor  # −ΣΘ (nodes, r, r); only the upper triangle counts
    mean: Tensor  # −Σt (nodes, r, k), for k right-hand sides, perhaps none

    @classmethod
    def empty(cls, nodes: int, rank: int, b: Tensor) -> "Inbox":
        """For that many nodes, and the right-hand sides b (·, columns)."""
        information = room((nodes, rank, rank), b.dtype, b.device).zero_()
        return cls(information, b.new_zeros(nodes, rank, b.shape[1]))

    def add(self, where: Tensor, theta: Tensor, t: Tensor) -> None:
        """Receive Θ (children, r, r) and t (children, r, k)."""
        self.information.index_add_(0, where, theta, alpha=-1)
        self.mean.index_add_(0, where, t, alpha=-1)

    def subtract_identity(self, where: Tensor) -> None:
        """Receive −I from children."""
        diagonal = self.information.diagonal(dim1=-2, dim2=-1)
        diagonal.index_add_(0, where, diagonal.new_ones(len(where), diagonal.shape[1]))

    def pour(self, where: Tensor, other: "Inbox") -> None:
        """Receive what another inbox has received, row by row."""
        self.information.index_add_(0, where, other.information)
        self.mean.index_add_(0, where, other.mean)


@dataclass
class Growth:
    """What some leaves get: as many points as the largest share, `most`, the rest of each is padding.

    The values are those of the kernel between a leaf's points, its new ones and the landmarks of its parent,
    in that order and padded to `wide`, and the new ones. They may be overwritten.
    """

    values: Tensor  # (leaves, wide, most)
    noise: Tensor  # (leaves, most)
    b: Tensor  # (leaves, most, k)
    least: float  # the share of a new point's variance that the others must leave


class Steps(Protocol):
    """The functions of `hck.hierarchy.steps`, and those of `hck.online.steps` on records."""

    def leaf_up(
        self, given: LeafInput, noise: Tensor, b: Tensor, parents: Inbox, where: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]: ...
    def node_up(
        self, inbox: Inbox, given: NodeInput, parents: Inbox
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]: ...
    def node_down(
        self, factors: tuple[Tensor, Tensor, Tensor], nu: Tensor, q: Tensor, above: Tensor
    ) -> Tensor: ...
    def leaf_down(self, factor: Tensor, y: Tensor, a: Tensor, above: Tensor) -> tuple[Tensor, Tensor]: ...
    def records_up(
        self, made: Sequence[Record], transfers: Sequence[Tensor], children: Sequence[Sequence[Record]]
    ) -> None: ...
    def records_append(
        self, old: Sequence[Record], made: Sequence[Record], landmarks: Sequence[Tensor], growth: Growth
    ) -> list[bool]: ...
    def records_down(
        self, nodes: Sequence[Record], transfers: Sequence[Tensor], above: Sequence[Tensor | None], z: Tensor
    ) -> None: ...
    def records_leaf_down(
        self, leaves: Sequence[Record], landmarks: Sequence[Tensor], above: Sequence[Tensor]
    ) -> list[Tensor]: ...


def whole_steps(like: Tensor) -> Steps | None:
    """The steps on the device of a tensor and with its type of numbers, if there are such."""
    return kind_of(like.device).machine().steps(like.dtype)


def as_tensor(values: LazyValues | Tensor) -> Tensor:
    """Values that are there, or are computed now."""
    return values if isinstance(values, Tensor) else values.tensor()


def as_cross(values: LazyValues | Tensor) -> DenseCross | None:
    """Values to be computed on the way; None if they are there, or have to be computed beforehand."""
    return None if isinstance(values, Tensor) else values.compilable()
