"""What goes into a branch, what it says and hears, and what comes out of it."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from hck.backend.checks import check_floats, check_indices, require
from hck.hierarchy.predictor import TreePredictor


@dataclass
class Share:
    """The rows of the training data that fall into a branch.

    Examples
    --------
    >>> import numpy as np
    >>> from hck.branches import Share
    >>> share = Share(np.zeros((3, 2)), np.zeros(3), np.array([4, 7, 8]))
    >>> share.nbytes
    96
    """

    x: np.ndarray  # (rows, d): features as they came
    y: np.ndarray  # (rows,) or (rows, columns): targets as they came, or right-hand sides; see `Plan.coding`
    number: np.ndarray  # (rows,): where they are among all

    @property
    def nbytes(self) -> int:
        return self.x.nbytes + self.y.nbytes + self.number.nbytes


@dataclass
class Message:
    """What a branch sends up.

    Examples
    --------
    >>> import torch
    >>> from hck.branches import Message
    >>> Message(torch.zeros(8, 8), torch.zeros(8, 1), 0.0).nbytes  # however large the branch is
    296
    """

    information: Tensor  # −Θ (r, r); only the upper triangle counts
    mean: Tensor  # −t (r, columns), for the right-hand sides
    log_determinant: float  # the branch's part of that of K_h + noise

    def validate(self) -> None:
        """Raise ValueError unless information and mean are of the same landmarks."""
        check_floats("information", self.information, len(self.information), len(self.information))
        check_floats("mean", self.mean, len(self.information), None)

    @property
    def nbytes(self) -> int:
        return self.information.nbytes + self.mean.nbytes + 8


@dataclass
class Reply:
    """What a branch hears of the node that it hangs from.

    Examples
    --------
    >>> import torch
    >>> from hck.branches import Reply
    >>> Reply(torch.zeros(8, 1)).nbytes
    32
    """

    state: Tensor  # ẑ (r, columns)
    covariance: Tensor | None = None  # P (r, r), which only variances need

    @property
    def nbytes(self) -> int:
        return self.state.nbytes + (0 if self.covariance is None else self.covariance.nbytes)


@dataclass
class Piece:
    """A branch that predicts. Of a Gaussian process it has the right-hand sides b and what follows them.

    Examples
    --------
    >>> import torch
    >>> from hck.approximations import make_approximation
    >>> from hck.branches import Piece
    >>> x = torch.linspace(0, 1, 50, dtype=torch.float64)[:, None]
    >>> predictor, _ = make_approximation("hierarchical", "gaussian", x, rank=8).ridge(0.1, x)
    >>> Piece(predictor, rows=torch.arange(50)).predictor.columns
    1
    """

    predictor: TreePredictor
    rows: Tensor  # (points,): where the points of the branch are among all
    left_out: Tensor | None = None  # (probes, columns): some of b predicted from all others
    observed: Tensor | None = None  # (probes, columns): what these are
    targets: Tensor | None = None  # b (points, columns)
    above: Tensor | None = None  # P (r, r) of the node that it hangs from
    gram: Tensor | None = None  # bᵀ (K_h + noise)⁻¹ b (columns, columns), the branch's part
    extremes: Tensor | None = None  # (2, columns): of values at training points, and of b
    seconds: float = 0.0  # that a core took for it, where that was measured

    def validate(self) -> None:
        """Raise ValueError unless all parts are of the predictor's points and columns."""
        n, columns = self.predictor.tree.n_points, self.predictor.columns
        check_indices("rows", self.rows, 2**62, n)
        for name, rows in (("left_out", None), ("observed", None), ("targets", n)):
            if (found := getattr(self, name)) is not None:
                check_floats(name, found, rows, columns)
        require(
            (self.left_out is None) == (self.observed is None), "left_out and observed must both be there"
        )
        if self.left_out is not None and self.observed is not None:
            require(len(self.left_out) == len(self.observed), "left_out and observed must be as long")
        if self.extremes is not None:
            check_floats("extremes", self.extremes, 2, columns)
        for name in ("above", "gram"):
            if (found := getattr(self, name)) is not None:
                check_floats(name, found, len(found), len(found))

    @property
    def nbytes(self) -> int:
        own = self.predictor
        more = own.tree.order, own.landmarks.blocks.index, self.rows, self.targets, self.above
        return own.nbytes + own.points.nbytes + sum(each.nbytes for each in more if each is not None)

    def probes(self, every: int) -> "Probes":
        """What was predicted from all others, where that was done for every so-many-th row."""
        if self.observed is None or self.left_out is None:
            raise ValueError("nothing of this branch was predicted from all others")
        number = self.rows.cpu().numpy()
        return Probes(number[probed(number, every)], self.observed.cpu().numpy(), self.left_out.cpu().numpy())


@dataclass
class Probes:
    """Some right-hand sides, each predicted from all others.

    Examples
    --------
    >>> import numpy as np
    >>> from hck.branches import Probes
    >>> one, other = (Probes(np.array([2, 0]), np.ones((2, 1)), np.full((2, 1), v)) for v in (0.8, 1.0))
    >>> both = Probes.in_order([[one], [other]])  # of two trees
    >>> both.number, both.predicted.ravel()
    (array([0, 2]), array([0.9, 0.9]))
    """

    number: np.ndarray  # (rows,): where they are among all
    observed: np.ndarray  # (rows, columns)
    predicted: np.ndarray  # (rows, columns)

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
