"""Steps of the sweeps over a tree that some devices do in one go, on a stack of leaves or of inner nodes.

All that a leaf or a node needs then stays in the cache while it is worked on, and kernel values are computed
on the way. Elsewhere `hck.hierarchy.steps` puts a step together from `hck.backend.linalg`; it says what the
steps are. Shapes: n is the leaves' size, r the rank, k the number of right-hand sides.
"""

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from hck.backend.kernels import Profile
from hck.backend.kinds import kind_of

# What is factored, for warnings and errors.
LEAF = "the leaf matrix D + alpha I"
NODE = "the information matrix I + Ξ of an inner node"
ROOT = "the matrix I − X of an inner node"


@dataclass(frozen=True)
class Wanted:
    """Kernel values between blocks of points, to be computed on the way.

    Attributes
    ----------
    profile : Profile
        The kernel.
    left, right : Tensor of shape (points, d)
    rows : Tensor of shape (members, width)
        Positions in `left`, -1 for padding.
    columns : Tensor of shape (members, width)
        Positions in `right`.
    """

    profile: Profile
    left: Tensor
    rows: Tensor
    right: Tensor
    columns: Tensor


@dataclass(frozen=True)
class Leaves:
    """What the up-sweep makes a stack of leaves of.

    Attributes
    ----------
    values : Wanted, or (Tensor of shape (leaves, n, n), Tensor)
        That of K(Z, X), from which K(X, X) follows; or K(X, X) and K(Z, X) (leaves, r, n); or, if `landmark`
        is None, D and V (leaves, n, r). They may be overwritten.
    landmark : Tensor of shape (nodes, r, r) or None
        C.
    which : Tensor of shape (leaves,)
        The C of each leaf.
    noise : Tensor of shape (leaves, n)
    b : Tensor of shape (leaves, n, k)
        It may be overwritten.
    """

    values: Wanted | tuple[Tensor, Tensor]
    landmark: Tensor | None
    which: Tensor
    noise: Tensor
    b: Tensor


@dataclass(frozen=True)
class Nodes:
    """What the up-sweep makes a stack of inner nodes of.

    Attributes
    ----------
    values : Wanted or Tensor of shape (nodes, r, r)
        K(Z_p, Z_i), or W if `own` is None.
    own : Tensor of shape (nodes, r, r) or None
        C of the nodes.
    above : Tensor of shape (parents, r, r) or None
        C of their parents, of which each node takes that of number `which`.
    information : Tensor of shape (nodes, r, r)
        −Ξ; it may be overwritten.
    mean : Tensor of shape (nodes, r, k)
        −τ.
    """

    values: Wanted | Tensor
    own: Tensor | None
    above: Tensor | None
    which: Tensor
    information: Tensor
    mean: Tensor


@dataclass(frozen=True)
class Parents:
    """Where messages go: −Θ is added to information[where[i]], −t to mean[where[i]]."""

    information: Tensor  # (parents, r, r)
    mean: Tensor  # (parents, r, k)
    where: Tensor  # (members,)


class Steps(Protocol):
    """See `hck.hierarchy.steps` for what is returned."""

    def leaf_up(self, leaves: Leaves, parents: Parents) -> tuple[Tensor, Tensor, Tensor, Tensor]: ...
    def node_up(
        self, nodes: Nodes, parents: Parents
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]: ...
    def node_down(
        self, factors: tuple[Tensor, Tensor, Tensor], nu: Tensor, q: Tensor, z: Tensor
    ) -> Tensor: ...
    def leaf_down(self, factor: Tensor, y: Tensor, a: Tensor, z: Tensor) -> tuple[Tensor, Tensor]: ...


def whole_steps(like: Tensor) -> Steps | None:
    """The steps on the device of a tensor and with its type of numbers, if there are such."""
    return kind_of(like.device).machine().steps(like.dtype)
