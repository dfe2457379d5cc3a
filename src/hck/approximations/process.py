"""Gaussian processes with any approximation of a kernel: likelihood, mean, uncertainty, draws."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from hck.hierarchy.forest import Predictor
from hck.hierarchy.leave_one_out import LeftOut, leave_one_out
from hck.hierarchy.likelihood import Likelihood, evidence_from_gram
from hck.hierarchy.posterior import Conditioned, half_covariance

if TYPE_CHECKING:
    from hck.approximations.base import Approximation, Factorization


@torch.no_grad()
def log_likelihood(
    approximation: "Approximation",
    noise: float | Tensor,
    y: Tensor,
    parameters: Sequence[Tensor] = (),
    trend: Tensor | None = None,
) -> Likelihood:
    """log N(y; trend β, K̃ + noise) at the best β, and its gradient; as in `hck.hierarchy.likelihood`."""
    y, factor = approximation.columns(y), approximation.factor(noise)
    if not factor.has_determinant:
        factor.pull(y)  # says why there is no likelihood
    h = y.new_zeros(len(y), 0) if trend is None else approximation.columns(trend)
    found, solved, _ = _evidence(factor, y, h)
    if parameters:
        slopes = factor.pull(solved)
        for parameter in parameters:
            total = torch.zeros_like(parameter)
            for tensor, slope in zip(approximation.kernel.tensors(), slopes, strict=True):
                if tensor is parameter:
                    total += slope
            if parameter is noise:
                each = (solved.square().sum(1) - y.shape[1] * factor.inverse_diagonal()) / 2
                total += each if parameter.ndim else each.sum()
            found.gradient.append(total)
    return found


def _evidence(factor: "Factorization", y: Tensor, h: Tensor) -> tuple[Likelihood, Tensor, Tensor]:
    """The log-likelihood, without gradient, (K̃ + noise)⁻¹ (y − H β) and (K̃ + noise)⁻¹ H."""
    columns, determinant = y.shape[1], factor.log_determinant  # first: then solutions can use what it made
    solved = factor.solve(torch.cat([y, h], 1)).double()
    gram = torch.cat([y, h], 1).double().mT @ solved
    found = evidence_from_gram(gram, determinant, len(y), columns)
    rest = solved[:, :columns] - solved[:, columns:] @ found.coefficients
    return found, rest.to(y.dtype), solved[:, columns:].to(y.dtype)


@dataclass
class Process(Conditioned):
    """f and β given y = H β + f(X) + noise, where f has the covariance k̃.

    It has the methods of `hck.hierarchy.posterior.Posterior`. Made by `Process.of`.

    Attributes
    ----------
    source : Approximation
    noise : Tensor of shape (n,)
    y : Tensor of shape (n, 1 + trends)
        Observations and H.
    mean, trend : Predictor
        x ↦ k̃(x, X) (K̃ + noise)⁻¹ (y − H β), and the same of H, if it has columns.
    coefficients : Tensor of shape (trends, 1)
        β.
    precision : Tensor of shape (trends, trends)
        The inverse of the covariance of β.
    log_likelihood : float
    """

    source: "Approximation"
    noise: Tensor
    y: Tensor
    mean: Predictor
    trend: Predictor | None
    coefficients: Tensor
    precision: Tensor
    log_likelihood: float

    @classmethod
    @torch.no_grad()
    def of(
        cls, source: "Approximation", noise: float | Tensor, y: Tensor, trend: Tensor
    ) -> "Process":  # fmt: skip
        """Condition on observations; for the parameters see `Posterior.of`."""
        variance, y, h = source.variances(noise), source.columns(y), source.columns(trend)
        factor = source.factor(variance)
        found, rest, along = _evidence(factor, y, h)
        made = cls(
            source,
            variance,
            torch.cat([y, h], 1),
            factor.predictor(y - h @ found.coefficients.to(h), rest),
            factor.predictor(h, along) if h.shape[1] else None,
            found.coefficients,
            found.precision,
            float(found.value),
        )
        made.factor = factor
        return made

    @cached_property
    def factor(self) -> "Factorization":
        """Of K̃ + noise. Not kept when this is pickled, but computed again."""
        return self.source.factor(self.noise)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "factor"}

    def observations(self) -> tuple[Tensor, Tensor]:
        """Observations and H (n, 1 + trends), and the variances of the noise (n,)."""
        return self.y, self.noise

    def latent_variance(self, x: Any, verbose: bool = False) -> Tensor:
        return self.factor.variance(x).clamp_min(0)

    def latent_covariance(self, x: Any) -> Tensor:
        return self.factor.covariance(x)

    @torch.no_grad()
    def leave_one_out(self) -> LeftOut:
        """Every observation predicted from all others."""
        y, h = self.y[:, :1], self.y[:, 1:]
        diagonal = self.factor.inverse_diagonal()
        solved = self.factor.solve(torch.cat([y - h @ self.coefficients.to(h), h], 1))
        along = solved[:, 1:] @ half_covariance(self.precision).to(h)
        return leave_one_out(y[:, 0], solved[:, 0], diagonal, along)

    @torch.no_grad()
    def sample(
        self,
        x: Any,
        trend: Tensor,
        count: int,
        generator: torch.Generator | None = None,
        verbose: bool = False,
    ) -> Tensor:
        """Latent functions given the observations, at new points: shape (points, count).

        With features at any number of points; else by a root of the covariance at these points, so for some
        thousands of them at most.
        """
        device = self.y.device
        generator = torch.Generator(device).manual_seed(0) if generator is None else generator
        drawn = self.predict(x, trend)[:, None] + self.factor.sample(x, count, generator)
        if not trend.shape[1]:
            return drawn
        rest = self._unexplained(x, trend)
        normal = torch.randn(rest.shape[1], count, generator=generator, dtype=rest.dtype, device=device)
        return drawn + rest @ normal
