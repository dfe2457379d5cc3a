"""Where the blocks of K_h come from when they are factored."""

from typing import Protocol

from hck.backend.steps import LeafInput, NodeInput
from hck.hierarchy.layout import Layout
from hck.hierarchy.matrix import HierarchicalMatrix


class Source(Protocol):
    """Where the blocks of K_h come from: a `Blueprint`, or a matrix that is there (`Stored`)."""

    @property
    def layout(self) -> Layout: ...
    @property
    def rank(self) -> int: ...
    def prepare_leaves(self) -> None: ...
    def leaf(self, k: int) -> LeafInput: ...
    def prepare(self, level: int) -> None: ...
    def node(self, level: int, part: slice) -> NodeInput: ...
    def release(self, level: int) -> None: ...


class Stored:
    """The blocks of a matrix that is there. D and V are copied, or taken out of it; W stays as it is."""

    def __init__(self, matrix: HierarchicalMatrix, overwrite: bool) -> None:
        self.matrix, self.overwrite = matrix, overwrite
        self.layout, self.rank = matrix.layout, matrix.transfer.shape[-1]

    def leaf(self, k: int) -> LeafInput:
        residual, basis = self.matrix.residual[k], self.matrix.basis[k]
        if self.overwrite:
            self.matrix.residual[k] = self.matrix.basis[k] = residual.new_empty(0)
        else:
            residual, basis = residual.clone(), basis.clone()
        if not self.layout.leaves[k].full:  # padding has 1 on the diagonal, which comes with the noise
            residual.diagonal(dim1=-2, dim2=-1).sub_((~self.layout.leaves[k].mask).to(residual.dtype))
        return LeafInput(residual, basis, None, self.layout.within_level(k))

    def node(self, level: int, part: slice) -> NodeInput:
        which = self.layout.parent_within_level(level, part)
        return NodeInput(self.matrix.transfer[part], None, None, which)

    def prepare_leaves(self) -> None: ...
    def prepare(self, level: int) -> None: ...
    def release(self, level: int) -> None: ...
