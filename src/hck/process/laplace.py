"""Classes of a Gaussian process, by Laplace's approximation: the likelihood, its gradient, and the posterior.

The posterior of f, given labels with p(y = 1) = σ(f), is taken to be normal around its mode, where f = K̃ w
and w = ∇ log p(y | f): the one that observations z = f + w/W with noise 1/W would give, W = −∇² log p(y | f).
Rasmussen and Williams (2006), Gaussian Processes for Machine Learning, sections 3.4 and 5.5.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from hck.approximations import Approximation, Solution
from hck.losses import Effort, Logistic, Problem, minimise
from hck.process.process import Process

_LEAST = 1e-10  # of W, below which points say nothing
# of float64, and of float32, whose rounding hides what is less
_EFFORTS = {torch.float64: Effort(100, 1e-9), torch.float32: Effort(100, 1e-6)}
# σ(f) ≈ ½ Σ a (1 + erf(b f)): Williams and Barber (1998), Bayesian classification with Gaussian processes.
_A = (-1854.8214151, 3516.89893646, 221.29346712, 128.12323805, -2010.49422654)
_B = (0.41, 0.4, 0.37, 0.44, 0.39)


@dataclass
class Laplace:
    """The approximation at the mode.

    Examples
    --------
    >>> import torch
    >>> from hck.approximations import make_approximation
    >>> from hck.process import laplace
    >>> x = torch.linspace(0, 1, 50, dtype=torch.float64)[:, None]
    >>> found = laplace(make_approximation("exact", "gaussian", x, rank=50), x[:, 0] > 0.5)
    >>> bool(found.mode[0] < 0 < found.mode[-1]), type(found.process()).__name__
    (True, 'Process')
    """

    value: float  # the log of the approximate marginal likelihood of all labels
    mode: Tensor  # f (n, 1)
    noise: Tensor  # 1/W (n,)
    solution: Solution  # (K̃ + 1/W)⁻¹ z
    gradient: list[Tensor]  # of the value, by the parameters that were asked for

    def process(self) -> Process:
        """The posterior, as that of observations with noise."""
        source, z = self.solution.factorization.approximation, self.solution.b
        none = torch.zeros(0, 1, dtype=torch.float64, device=z.device)
        parts = self.solution.predictor, None, none, none[:, :0], self.value
        made = Process(source, self.noise.to(z.dtype), z, *parts)
        made.solution = self.solution
        return made


@torch.no_grad()
def laplace(
    source: Approximation, y: Tensor, parameters: Sequence[Tensor] = (), start: Tensor | None = None
) -> Laplace:
    """Of labels 0 and 1 (n,), with parameters among the kernel's `tensors`, from a mode (n, 1) nearby.

    Parameters
    ----------
    source : Approximation
        The kernel, on the training points.
    y : Tensor of shape (n,)
        Labels, 0 and 1.
    parameters : sequence of Tensor
        What to differentiate by, among the kernel's `tensors`.
    start : Tensor of shape (n, 1), optional
        A mode nearby, at which the search begins.

    Examples
    --------
    >>> import torch
    >>> from hck.approximations import make_approximation
    >>> from hck.kernels import Gaussian
    >>> from hck.process import laplace
    >>> x = torch.linspace(0, 1, 50, dtype=torch.float64)[:, None]
    >>> wide, narrow = (make_approximation("exact", Gaussian(s), x, rank=50) for s in (0.5, 0.01))
    >>> laplace(wide, x[:, 0] > 0.5).value > laplace(narrow, x[:, 0] > 0.5).value  # which is the likelier
    True
    """
    y = y.to(source.device).long()
    zero = torch.zeros(1, dtype=torch.float64, device=source.device)
    problem = Problem(Logistic(), y, None, zero)
    found = minimise(source, problem, 1.0, start, _EFFORTS[source.dtype])
    f, w = found.fitted, found.weights
    curvature = problem.curvature(f).clamp_min(_LEAST)
    noise = 1 / curvature
    solution = source.solve(noise.to(source.dtype), (f + noise[:, None] * w).to(source.dtype))
    factorization = solution.factorization
    log_determinant = factorization.log_determinant.double() + curvature.log().sum()
    value = -problem.value(f) - float((w * f).sum()) / 2 - float(log_determinant) / 2
    made = Laplace(value, f, noise, solution, [])
    if parameters:
        made.gradient = _gradient(source, made, parameters)
    return made


def _gradient(source: Approximation, made: Laplace, parameters: Sequence[Tensor]) -> list[Tensor]:
    """½ wᵀ dK w − ½ tr(R dK) + uᵀ dK w, with R = (K̃ + 1/W)⁻¹ and u for how the mode moves the determinant.

    R b is w for b = z, and u for b = ½ diag(Σ) (2p − 1), where Σ = 1/W − R/W² is the posterior's covariance.
    With G(b) the gradient for observations b, what is wanted is 2 G(z + c b) − G(z + √2 c b), where the
    squares of u cancel for c = 1/(2 − √2).
    """
    z, noise, factorization = made.solution.b, made.noise, made.solution.factorization
    diagonal = factorization.inverse_diagonal().double()
    spread = (noise - diagonal * noise.square()).clamp_min(0)
    p = made.mode[:, 0].sigmoid()
    moved = (spread * (2 * p - 1) / 2)[:, None]
    c = 1 / (2 - 2**0.5)
    one, two = (
        factorization.solution((z.double() + step * moved).to(z.dtype)).kernel_gradient()
        for step in (c, 2**0.5 * c)
    )
    tensors, found = source.kernel.tensors(), []
    for parameter in parameters:
        total = torch.zeros_like(parameter)
        for tensor, first, second in zip(tensors, one, two, strict=True):
            if tensor is parameter:
                total += 2 * first - second
        found.append(total)
    return found


def labels_of(process: Process) -> Tensor:
    """The labels 0 and 1 (n,) of a posterior: z is above the mode for the ones, below it for the others."""
    weights = process.solution.weights[:, 0]  # ∇ log p(y | f), which is y − p
    return (weights > 0).long()


def probability(mean: Tensor, variance: Tensor) -> Tensor:
    """∫ σ(f) N(f; mean, variance) df at each point, (points,), by a sum of error functions."""
    total = torch.zeros_like(mean)
    for a, b in zip(_A, _B, strict=True):
        total += a / 2 * (1 + torch.erf(b * mean / (1 + 2 * b**2 * variance).sqrt()))
    return total.clamp(0, 1)
