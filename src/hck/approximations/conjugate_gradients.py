"""Preconditioned conjugate gradients, for several right-hand sides at once."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from hck.progress import Counter


@dataclass
class Solution:
    """An approximate solution of A x = b.

    Attributes
    ----------
    x : Tensor of shape (n, columns)
    residuals : list of float
        ‖b − A x‖ / ‖b‖ after each iteration, of the worst column.
    converged : bool
        Whether it is small enough.
    """

    x: Tensor
    residuals: list[float] = field(default_factory=list)
    converged: bool = False


def conjugate_gradients(
    product: Callable[[Tensor], Tensor],
    b: Tensor,
    precondition: Callable[[Tensor], Tensor] | None = None,
    tolerance: float = 1e-6,
    max_iter: int = 1000,
    verbose: bool = False,
) -> Solution:
    """Solve A x = b for a positive definite A that is known by its products.

    Every column has an iteration of its own; all share their products. Columns that are solved stay as they
    are.

    Parameters
    ----------
    product : callable
        p ↦ A p, for p of shape (n, columns).
    b : Tensor of shape (n, columns)
    precondition : callable, optional
        r ↦ P⁻¹ r for a P that resembles A.
    tolerance : float, default=1e-6
        Of the residual, relative to ‖b‖.
    max_iter : int, default=1000
        After so many iterations, what was reached is returned.
    verbose : bool, default=False
        Show progress.
    """
    size = b.norm(dim=0)
    found, rest = Solution(torch.zeros_like(b)), b.clone()
    active = size > 0
    if not active.any():
        found.converged = True
        return found
    z = rest if precondition is None else precondition(rest)
    p, slope = z.clone(), (rest * z).sum(0)
    with Counter("Conjugate gradients", max_iter, verbose) as counter:
        for _ in range(max_iter):
            q = product(p)
            step = _divide(slope, (p * q).sum(0), active)
            found.x.addcmul_(step, p)
            rest.addcmul_(-step, q)
            left = rest.norm(dim=0) / size.clamp_min(torch.finfo(b.dtype).tiny)
            found.residuals.append(float(left.max()))
            counter.step(found.residuals[-1])
            active = left > tolerance
            if not active.any():
                counter.jump(max_iter)
                found.converged = True
                return found
            z = rest if precondition is None else precondition(rest)
            before, slope = slope, (rest * z).sum(0)
            p = torch.addcmul(z, _divide(slope, before, active), p)
    return found


def _divide(a: Tensor, b: Tensor, where: Tensor) -> Tensor:
    """a / b, and 0 for columns that are done."""
    return torch.where(where, a / torch.where(where, b, 1), 0)
