"""A Gaussian process given observations: mean, uncertainty, leave-one-out, draws."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from hck.backend import linalg
from hck.hierarchy.blueprint import Blueprint
from hck.hierarchy.extend import Extension, extension, landmark_weights
from hck.hierarchy.factor import Factor
from hck.hierarchy.leave_one_out import LeftOut, leave_one_out
from hck.hierarchy.likelihood import evidence, least_squares, quadratic_form, subtract_trend
from hck.hierarchy.sample import sample_prior
from hck.hierarchy.smooth import Filtered, filter_up
from hck.hierarchy.uncertainty import Uncertainty
from hck.points import as_points_like


class Conditioned(ABC):
    """f and β given y = H β + f(X) + noise, for any covariance of f: what the trend adds to the latent f.

    β has no prior: it is estimated by generalised least squares, and its uncertainty is part of that of
    predictions (O'Hagan, 1978).

    Attributes
    ----------
    y : Tensor
        Has the dtype and the device of results.
    mean, trend : Predictor
        x ↦ k(x, X) (K + noise)⁻¹ (y − H β), and the same of H; the second is needed only if H has columns.
    coefficients : Tensor of shape (trends, 1)
        β.
    precision : Tensor of shape (trends, trends)
        The inverse of the covariance of β.
    """

    y: Tensor
    mean: Any
    trend: Any
    coefficients: Tensor
    precision: Tensor

    @abstractmethod
    def latent_variance(self, x: Any, verbose: bool = False) -> Tensor:
        """The variance of f at new points if β were known: shape (points,)."""

    @abstractmethod
    def latent_covariance(self, x: Any) -> Tensor:
        """The same for pairs of points: shape (points, points)."""

    def predict(self, x: Any, trend: Tensor, verbose: bool = False) -> Tensor:
        """The mean at new points with the trend's features (points, trends): shape (points,)."""
        return (self.mean(x, verbose) + trend.to(self.y) @ self.coefficients.to(self.y))[:, 0]

    @torch.no_grad()
    def variance(self, x: Any, trend: Tensor, verbose: bool = False) -> Tensor:
        """The variance of the latent function, trend included, at new points: shape (points,)."""
        out = self.latent_variance(x, verbose)
        return out if not trend.shape[1] else out + self._unexplained(x, trend).square().sum(1)

    @torch.no_grad()
    def covariance(self, x: Any, trend: Tensor) -> Tensor:
        """The same for pairs of points: shape (points, points)."""
        out = self.latent_covariance(x)
        if not trend.shape[1]:
            return out
        rest = self._unexplained(x, trend)
        return out + rest @ rest.mT

    def _unexplained(self, x: Any, trend: Tensor) -> Tensor:
        """The standard deviations that the uncertainty of β adds along its principal axes."""
        return (trend.to(self.y) - self.trend(x)) @ half_covariance(self.precision).to(self.y)


@dataclass
class Posterior(Conditioned):
    """f and β given y = H β + f(X) + noise, where f is the hierarchical Gaussian process.

    Made by `Posterior.of`.

    Attributes
    ----------
    blueprint : Blueprint
    noise : Tensor of shape (n + 1,)
        Variances in the tree's order, and a 0.
    y : Tensor of shape (n + 1, 1 + trends)
        Observations and H in the tree's order, with a zero row at the end.
    mean : Extension
        x ↦ k_h(x, X) (K_h + noise)⁻¹ (y − H β).
    coefficients : Tensor of shape (trends, 1)
        β.
    precision : Tensor of shape (trends, trends)
        The inverse of the covariance of β.
    log_likelihood : float
    """

    blueprint: Blueprint
    noise: Tensor
    y: Tensor
    mean: Extension
    trend: Extension  # x ↦ k_h(x, X) (K_h + noise)⁻¹ H
    coefficients: Tensor
    precision: Tensor
    log_likelihood: float

    @classmethod
    @torch.no_grad()
    def of(
        cls, blueprint: Blueprint, noise: float | Tensor, y: Tensor, trend: Tensor, verbose: bool = False
    ) -> "Posterior":
        """Condition on observations.

        Parameters
        ----------
        noise : float or Tensor of shape (n,)
        y : Tensor of shape (n,)
        trend : Tensor of shape (n, trends)
            H, perhaps with no columns.
        """
        variance = blueprint.pad_noise(noise)
        right = torch.cat([y[:, None].to(variance), trend.to(variance)], 1)
        b = blueprint.layout.pad(right, variance)

        def work() -> "Posterior":
            factor = Factor(blueprint, variance, blueprint.budget, b, verbose=verbose)
            found = evidence(factor)
            beta, value = found.coefficients, float(found.value)
            mean = solve_filtered(blueprint, factor, subtract_trend(factor.filtered, 1, beta))
            along = solve_filtered(blueprint, factor, factor.filtered.map(lambda x: x[..., 1:].contiguous()))
            made = cls(blueprint, variance, b, mean, along, beta, found.precision, value)
            made.factor = factor
            return made

        return linalg.without_waiting(work, variance.device)

    @cached_property
    def factor(self) -> Factor:
        """Of K_h + noise. Not kept when this is pickled, but computed again."""
        return linalg.without_waiting(
            lambda: Factor(self.blueprint, self.noise, self.blueprint.budget), self.noise.device
        )

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in ("factor", "uncertainty")}

    @cached_property
    def uncertainty(self) -> Uncertainty:
        """Prepared when it is first asked for, so that means alone do not pay for it."""
        return linalg.without_waiting(lambda: Uncertainty(self.blueprint, self.factor), self.noise.device)

    def latent_variance(self, x: Any, verbose: bool = False) -> Tensor:
        return self.uncertainty.variance(x, verbose)

    def latent_covariance(self, x: Any) -> Tensor:
        return self.uncertainty.covariance(x)

    @torch.no_grad()
    def leave_one_out(self) -> LeftOut:
        """Every observation predicted from all others."""
        along = self.trend.weights @ half_covariance(self.precision).to(self.y)
        weights = self.blueprint.layout.unsort(torch.cat([self.mean.weights, along], 1))
        y = self.blueprint.layout.unpad(self.y)[:, 0]
        return leave_one_out(y, weights[:, 0], self.factor.inverse_diagonal(), weights[:, 1:])

    def observations(self) -> tuple[Tensor, Tensor]:
        """Observations and H (n, 1 + trends), and the variances of the noise (n,), in the original order."""
        layout = self.blueprint.layout
        return layout.unpad(self.y), layout.unpad(self.noise[:, None])[:, 0]

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

        Matheron's rule: a draw of f at old and new points together, corrected by what is expected at the new
        points of the difference between the observations and the draw. It takes O((n + points) r) for each.
        """
        source = self.blueprint
        x = as_points_like(x, source.points)
        generator = torch.Generator(x.device).manual_seed(0) if generator is None else generator
        joint = source.join(x)
        drawn = linalg.without_waiting(lambda: sample_prior(joint, count, generator, verbose), x.device)
        old, new = drawn[: len(source.points)], drawn[len(source.points) :]  # the old in the tree's order
        error = torch.randn(old.shape, generator=generator, dtype=old.dtype, device=old.device)
        b = torch.zeros(len(self.y), count + self.y.shape[1] - 1, dtype=old.dtype, device=old.device)
        b[:-1, :count] = self.y[:-1, :1] - old - self.noise[:-1, None].sqrt() * error
        b[:, count:] = self.y[:, 1:]
        filtered = filter_up(self.factor, b)
        gram = quadratic_form(self.factor, filtered, slice(count, None))
        beta = least_squares(gram[:, count:], gram[:, :count])
        correction = solve_filtered(source, self.factor, subtract_trend(filtered, count, beta))
        return new + correction(x) + trend.to(self.y) @ beta.to(self.y)


def half_covariance(precision: Tensor) -> Tensor:
    """A root of the covariance of β, given its inverse: shape (trends, trends or fewer)."""
    if not len(precision):
        return precision
    values, vectors = torch.linalg.eigh(precision.cpu())
    known = values > values.max() * len(values) * torch.finfo(values.dtype).eps
    return (vectors[:, known] * values[known].rsqrt()).to(precision.device)


def ridge_and_left_out(blueprint: Blueprint, noise: float | Tensor, b: Tensor) -> tuple[Extension, Tensor]:
    """What `hck.hierarchy.ridge` returns, and each of the b predicted from all others: (n, columns)."""

    def work() -> tuple[Extension, Tensor]:
        variance, layout = blueprint.pad_noise(noise), blueprint.layout
        padded = layout.pad(b, variance)
        factor = Factor(blueprint, variance, blueprint.budget, padded, verbose=blueprint.verbose)
        solved = solve_filtered(blueprint, factor, factor.filtered)
        weights = layout.unsort(solved.weights)
        columns = b if b.ndim == 2 else b[:, None]
        return solved, leave_one_out(columns, weights, factor.inverse_diagonal()).mean

    return linalg.without_waiting(work, blueprint.points.device)


def solve_filtered(blueprint: Blueprint, factor: Factor, filtered: Filtered) -> Extension:
    """x ↦ k_h(x, X) (K_h + noise)⁻¹ b for right-hand sides that have gone up."""
    w, ambient = factor.smooth(filtered)
    landmark_weights(blueprint.part(factor.layout), ambient)
    return extension(blueprint, w, ambient)
