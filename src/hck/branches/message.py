"""What travels between a trunk and its branches."""

from dataclasses import dataclass

from torch import Tensor


@dataclass
class Message:
    """What a branch sends up.

    Attributes
    ----------
    information : Tensor of shape (r, r)
        −Θ; only the upper triangle counts.
    mean : Tensor of shape (r, columns)
        −t, for the right-hand sides.
    log_determinant : float
        The branch's part of that of K_h + noise.
    """

    information: Tensor
    mean: Tensor
    log_determinant: float

    @property
    def nbytes(self) -> int:
        return self.information.nbytes + self.mean.nbytes + 8


@dataclass
class Reply:
    """What a branch hears.

    Attributes
    ----------
    state : Tensor of shape (r, columns)
        ẑ of the node that it hangs from.
    covariance : Tensor of shape (r, r), or None
        P of that node, which only variances need.
    """

    state: Tensor
    covariance: Tensor | None = None

    @property
    def nbytes(self) -> int:
        return self.state.nbytes + (0 if self.covariance is None else self.covariance.nbytes)
