"""Solutions of (K̃ + noise) w = y that overflow or rounding has spoilt, told by what they predict of y.

With other losses than the squared one, what was fitted stands in the place of y.
"""

import warnings
from collections.abc import Callable

import torch
from torch import Tensor

from hck.errors import NumericalWarning
from hck.points import Points

_FEW, _TOO_LARGE = 32, 10.0  # training points that are looked at, and times y that no solution reaches


def extremes(
    found: Callable[[Points], Tensor], points: Points, y: Tensor, trend: Tensor | None = None
) -> Tensor:
    """The largest values at a few training points, and the largest y, of each column: shape (2, columns).

    The first of the points are those of y, in any order. A `trend` (n, columns) is added to the values, if
    there is one. ValueError if a value is not finite.
    """
    rows = torch.arange(0, len(y), -(-len(y) // _FEW), device=points.device)
    values = found(points.take(rows))
    values = values if trend is None else values + trend[rows]
    refuse_overflow(values, y)
    return torch.stack([each.abs().amax(0).double().cpu() for each in (values, y)])


def refuse_overflow(values: Tensor, y: Tensor) -> None:
    """Raise ValueError unless values that follow from y are finite."""
    if not torch.isfinite(values).all():
        raise ValueError(
            f"the solution overflows: y has values up to {y.abs().max():.2g} from its mean, too large for "
            f"{str(values.dtype).removeprefix('torch.')} with this alpha. Scale y, or use dtype='float64' or "
            "a larger alpha"
        )


def warn_of_rounding(found: list[Tensor]) -> None:
    """Warn if solutions, of which all `extremes` are given, are much larger than any y at training points."""
    if not found:
        return
    largest, most = torch.stack(found).amax(0)
    if (largest > _TOO_LARGE * most).any():
        worst = int((largest / most).nan_to_num(0.0).argmax())
        warnings.warn(
            f"the solution is wrong by rounding: up to {largest[worst]:.2g} from its mean at training points "
            f"where it should be about {most[worst]:.2g} at most. The kernel's matrix is singular: use a "
            "larger alpha or noise, or a smaller lengthscale",
            NumericalWarning,
            stacklevel=3,
        )
