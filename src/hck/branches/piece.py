"""What goes into a branch, and what comes out of it."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from hck.hierarchy.extend import TreePredictor


@dataclass
class Share:
    """The rows of the training data that fall into a branch.

    Attributes
    ----------
    x : ndarray of shape (rows, d)
        Features as they came.
    y : ndarray of shape (rows,) or (rows, columns)
        Targets as they came, or right-hand sides: see `Plan.coding`.
    number : ndarray of shape (rows,)
        Where the rows are among all.
    """

    x: np.ndarray
    y: np.ndarray
    number: np.ndarray

    @property
    def nbytes(self) -> int:
        return self.x.nbytes + self.y.nbytes + self.number.nbytes


@dataclass
class Piece:
    """A branch that predicts.

    Attributes
    ----------
    extension : TreePredictor
    left_out, observed : Tensor of shape (probes, columns), or None
        Right-hand sides predicted from all others, and what they are.
    rows : Tensor of shape (points,), or None
        Where the points of the branch are among all.
    targets : Tensor of shape (points, columns), or None
        The right-hand sides b, of a Gaussian process.
    above : Tensor of shape (r, r), or None
        What is not known of the node that it hangs from, of a Gaussian process.
    gram : Tensor of shape (columns, columns), or None
        bᵀ (K_h + noise)⁻¹ b, the branch's part, of a Gaussian process.
    seconds : float
        That a core took for it, where that was measured.
    """

    extension: TreePredictor
    left_out: Tensor | None = None
    observed: Tensor | None = None
    rows: Tensor | None = None
    targets: Tensor | None = None
    above: Tensor | None = None
    gram: Tensor | None = None
    seconds: float = 0.0

    @property
    def nbytes(self) -> int:
        own = self.extension
        more = own.tree.order, own.landmarks.blocks.index, self.rows, self.targets, self.above
        return own.nbytes + own.points.nbytes + sum(each.nbytes for each in more if each is not None)

    def probes(self, every: int) -> "Probes":
        """What was predicted from all others, where that was done for every so-many-th row."""
        assert self.rows is not None
        assert self.observed is not None
        assert self.left_out is not None
        number = self.rows.cpu().numpy()
        return Probes(number[probed(number, every)], self.observed.cpu().numpy(), self.left_out.cpu().numpy())


@dataclass
class Probes:
    """Some rows, each predicted from all others.

    Attributes
    ----------
    number : ndarray of shape (rows,)
        Where they are among all.
    observed, predicted : ndarray of shape (rows, columns)
        Right-hand sides, and predictions of them.
    """

    number: np.ndarray
    observed: np.ndarray
    predicted: np.ndarray

    @classmethod
    def in_order(cls, trees: Iterable[list["Probes"]]) -> "Probes":
        """Those of the branches of all trees: the mean over trees, in the order of rows."""
        every = []
        for branches in trees:
            found = zip(*((each.number, each.observed, each.predicted) for each in branches), strict=True)
            number, observed, predicted = map(np.concatenate, found)
            order = np.argsort(number)
            every.append(predicted[order])
        return cls(number[order], observed[order], np.mean(every, 0))


def probed(number: np.ndarray, every: int) -> np.ndarray:
    """Which of some rows are predicted from all others, if every so-many-th is."""
    return (number % every == 0).nonzero()[0]
