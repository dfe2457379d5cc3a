"""The log-likelihood of observations, and its gradient, with any approximation of a kernel."""

from collections.abc import Sequence

import torch
from torch import Tensor

from hck.approximations import Approximation, Solution
from hck.approximations.factorization import needs_factorization
from hck.backend.moments import moments_of
from hck.hierarchy.likelihood import Likelihood, evidence_from_gram


@torch.no_grad()
def log_likelihood(
    source: Approximation,
    noise: float | Tensor,
    y: Tensor,
    parameters: Sequence[Tensor] = (),
    trend: Tensor | None = None,
) -> Likelihood:
    """log N(y; H β, K̃ + noise) at the best β, and its gradient.

    Parameters are what to differentiate by: among the kernel's `tensors`, or `noise` itself, which has shape
    () or (n,). The trend is H (n, trends) of a mean function; β is estimated along with it.

    Parameters
    ----------
    source : Approximation
        The kernel, on the training points.
    noise : float or Tensor of shape () or (n,)
        Variances.
    y : Tensor of shape (n,) or (n, columns)
        Observations.
    parameters : sequence of Tensor
        What to differentiate by.
    trend : Tensor of shape (n, trends), optional
        H.

    Examples
    --------
    >>> import torch
    >>> from hck.approximations import make_approximation
    >>> from hck.process import log_likelihood
    >>> x = torch.linspace(0, 1, 50, dtype=torch.float64)[:, None]
    >>> made = make_approximation("exact", "matern52", x, rank=50)
    >>> noise = torch.tensor(0.1, dtype=torch.float64)
    >>> found = log_likelihood(made, noise, torch.sin(6 * x[:, 0]), parameters=[noise])
    >>> found.gradient[0] < 0  # less noise would be likelier
    tensor(True)
    """
    tensors = source.kernel.tensors()
    if any(all(parameter is not other for other in (*tensors, noise)) for parameter in parameters):
        raise ValueError(
            "parameters must be the noise, or tensors of the kernel that require a gradient and have the "
            "dtype and device of the points"
        )
    y = source.columns(y)
    both = y if trend is None else torch.cat([y, source.columns(trend)], 1)
    solution = source.solve(noise, both)
    if not solution.factorization.has_likelihood:
        raise needs_factorization("likelihoods")
    found = evidence(solution, y.shape[1])
    if parameters:
        rest = solution.combine(subtracting(found.coefficients))
        slopes = rest.kernel_gradient()
        for parameter in parameters:
            total = torch.zeros_like(parameter)
            for tensor, slope in zip(tensors, slopes, strict=True):
                if tensor is parameter:
                    total += slope
            if parameter is noise:
                each = rest.noise_gradient()
                total += each if parameter.ndim else each.sum()
            found.gradient.append(total)
    return found


def evidence(solution: Solution, columns: int = 1) -> Likelihood:
    """The log-likelihood without gradient, for (y, H) on the right-hand side; the first `columns` are y."""
    determinant = solution.factorization.log_determinant  # first: then solutions can use what it made
    moments = moments_of(solution.b[:, columns:])
    return evidence_from_gram(solution.gram(), determinant, len(solution.b), columns, moments)


def subtracting(beta: Tensor) -> Tensor:
    """What takes (y, H) to y − H β, for β of shape (trends, columns)."""
    return torch.cat([torch.eye(beta.shape[1], dtype=beta.dtype, device=beta.device), -beta])
