"""A tree in pieces: a trunk and its branches, each of which is worked on by itself.

A tree cut at some depth is a *trunk*, the nodes above, and *branches*, the nodes from there on with their
points. A branch needs its own points and the landmarks of the node that it hangs from. It sends up one
message, hears one vector (and one matrix, for variances), and then predicts whatever falls into it. So
branches can be worked on one after another where memory is short (`ridge`), be on disk (`hck.outofcore`), or
on many machines (`hck.dask`): `drive` is the loop of all three.

`Trunk.of` cuts by a sample of the points; `Branch.grow` makes a branch of all that fall into it;
`assemble` puts all of them together into the tree that they are.
"""

from hck.branches.assemble import assemble, assemble_forest
from hck.branches.branch import Branch
from hck.branches.drive import Clock, Store, drive
from hck.branches.piece import Message, Piece, Probes, Reply, Share
from hck.branches.plan import Plan
from hck.branches.ridge import ridge
from hck.branches.trunk import Trunk, branches_for

__all__ = [
    "Branch",
    "Clock",
    "Message",
    "Piece",
    "Plan",
    "Probes",
    "Reply",
    "Share",
    "Store",
    "Trunk",
    "assemble",
    "assemble_forest",
    "branches_for",
    "drive",
    "ridge",
]
