"""Preconditioned conjugate gradients, for several right-hand sides at once."""

from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Integral, Real

import torch
from torch import Tensor

from hck.backend.progress import Counter

Map = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Stopping:
    """When iterations stop, and whether they are shown.

    They also stop, unconverged, if A turns out not to be positive definite.
    """

    tolerance: float = 1e-6  # of the residual, relative to ‖b‖
    max_iter: int = 1000
    verbose: bool = False

    def __post_init__(self) -> None:
        if not (isinstance(self.tolerance, Real) and self.tolerance > 0):
            raise ValueError(f"tolerance must be a positive number, got {self.tolerance!r}")
        if not (isinstance(self.max_iter, Integral) and self.max_iter >= 1):
            raise ValueError(f"max_iter must be a whole number, at least 1, got {self.max_iter!r}")


@dataclass
class Iterations:
    """A solution of A x = b (n, columns), and what iterations left of ‖b − A x‖ / ‖b‖, of the worst column.

    The last of the residuals is computed afresh.
    """

    x: Tensor
    residuals: list[float] = field(default_factory=list)
    converged: bool = False


_USUAL = Stopping()


@torch.no_grad()
def conjugate_gradients(
    product: Map, b: Tensor, precondition: Map | None = None, stopping: Stopping = _USUAL
) -> Iterations:
    """Solve A x = b for a positive definite A that is known by its products.

    Every column has an iteration of its own; all share their products. Columns that are solved stay as they
    are. Sums are in float64, whatever the type of b; products and preconditioner get numbers of that type.
    The residual is updated from step to step, which rounding falsifies: when it seems small enough it is
    computed from x, and if it is not, iterations start again from there, as long as that halves it.
    `precondition` is r ↦ P⁻¹ r for a P that resembles A.
    """
    tolerance, max_iter = stopping.tolerance, stopping.max_iter
    if not b.isfinite().all():
        raise ValueError("the right-hand sides contain NaN or infinity")
    kind, b = b.dtype, b.double()
    multiply = _in_type(product, kind)
    approach = _in_type(precondition or (lambda rest: rest), kind)
    size = b.norm(dim=0).clamp_min(torch.finfo(b.dtype).tiny)
    x, rest, found = torch.zeros_like(b), b.clone(), Iterations(b)
    left, before = rest.norm(dim=0) / size, torch.inf
    active, p, slope = left > tolerance, torch.zeros_like(b), torch.zeros_like(size)
    found.converged, computed = not bool(active.any()), True
    with Counter("Conjugate gradients", max_iter, stopping.verbose) as counter:
        while not found.converged and len(found.residuals) < max_iter:
            z = approach(rest)
            new = (rest * z).sum(0)
            p = torch.addcmul(z, _divide(new, slope, active & (slope > 0)), p)
            q, slope = multiply(p), new
            curvature = (p * q).sum(0)
            if not ((curvature > 0) & curvature.isfinite())[active].all():
                break
            step = _divide(slope, curvature, active)
            x.addcmul_(step, p)
            rest.addcmul_(-step, q)
            left = rest.norm(dim=0) / size
            computed = bool((left <= tolerance).all())
            if computed:
                rest = b - multiply(x)
                left, slope = rest.norm(dim=0) / size, torch.zeros_like(slope)  # from here anew
                found.converged = bool((left <= tolerance).all())
            active = left > tolerance
            found.residuals.append(float(left.max()))
            counter.step(found.residuals[-1])
            if computed and not found.converged:
                if not found.residuals[-1] < before / 2:
                    break
                before = found.residuals[-1]
        counter.jump(max_iter)
    if not computed and found.residuals:
        found.residuals[-1] = float(((b - multiply(x)).norm(dim=0) / size).max())
    found.x = x.to(kind)
    return found


def _in_type(function: Map, kind: torch.dtype) -> Map:
    """A function for numbers of another type."""
    return lambda v: function(v.to(kind)).double()


def _divide(a: Tensor, b: Tensor, where: Tensor) -> Tensor:
    """a / b, and 0 for other columns."""
    return torch.where(where, a / torch.where(where, b, 1), 0)
