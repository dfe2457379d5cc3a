"""A Gaussian process given observations: mean, uncertainty, leave-one-out, draws."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from hck.approximations import Approximation, Factorization, Predictor, Solution
from hck.approximations.factorization import check_covariance, needs_factorization
from hck.backend.checks import check_floats, require
from hck.backend.random import RandomLike, as_random
from hck.hierarchy.leave_one_out import LeftOut, leave_one_out
from hck.hierarchy.likelihood import half_covariance, least_squares
from hck.kernels.slope import check_slope
from hck.points import PointsLike, as_points_like, check_alike, check_weights
from hck.process.likelihood import evidence, subtracting


@dataclass
class Process:
    """f and β given y = H β + f(X) + noise, where f has the covariance k̃ of any approximation.

    β has no prior: it is estimated by generalised least squares, and its uncertainty is part of that of
    predictions (O'Hagan, 1978). Made by `Process.of`.
    """

    source: Approximation
    noise: Tensor  # (n,): variances
    y: Tensor  # (n, 1 + trends): observations and H
    mean: Predictor  # x ↦ k̃(x, X) (K̃ + noise)⁻¹ (y − H β)
    trend: Predictor | None  # the same of H, if it has columns
    coefficients: Tensor  # β (trends, 1)
    precision: Tensor  # (trends, trends): the inverse of the covariance of β
    log_likelihood: float  # NaN if it is not known

    def validate(self) -> None:
        """Raise ValueError unless all parts fit together."""
        n, trends = len(self.source), self.y.shape[-1] - 1
        check_floats("y", self.y, n, None)
        check_floats("noise", self.noise, n)
        require(bool((self.noise >= 0).all()), "noise must not be negative")
        require(self.noise.dtype == self.y.dtype == self.source.dtype, "noise and y must be of one type")
        check_floats("coefficients", self.coefficients, trends, 1)
        check_floats("precision", self.precision, trends, trends)
        require(bool((self._half.abs() < 1e100).all()), "precision must not be so small")
        require(bool((self.coefficients.abs() < 1e200).all()), "coefficients must not be so large")
        require(self.mean.columns == 1, "mean must have one column")
        found = 0 if self.trend is None else self.trend.columns
        require(found == trends, f"trend has {found} columns in place of {trends}")
        for predictor in (self.mean, self.trend or self.mean):
            check_alike(predictor.points, self.source.points)
        most = torch.finfo(self.y.dtype).max ** 0.5  # since variances have squares of what the trend explains
        for name in ("weights", "landmark_weights"):
            if (weights := getattr(self.trend, name, None)) is not None:
                check_weights(f"trend.{name}", weights, most, *weights.shape)

    @classmethod
    @torch.no_grad()
    def of(cls, source: Approximation, noise: float | Tensor, y: Tensor, trend: Tensor) -> "Process":
        """Condition on observations y (n,), with noise () or (n,), and the trend H (n, trends)."""
        variance = source.variances(noise)
        both = torch.cat([source.columns(y), source.columns(trend)], 1)
        solution = source.solve(variance, both)
        found = evidence(solution)
        mean, along = solution.combine(subtracting(found.coefficients)).predictor, None
        if trend.shape[1]:
            every = torch.eye(both.shape[1], dtype=torch.float64, device=both.device)
            along = solution.combine(every[:, 1:]).predictor
        known = found.coefficients, found.precision, float(found.value)
        made = cls(source, variance, both, mean, along, *known)
        made.solution = solution
        return made

    @cached_property
    def solution(self) -> Solution:
        """(K̃ + noise)⁻¹ (y, H). Not kept when this is pickled, but computed again."""
        return self.source.solve(self.noise, self.y)

    @property
    def factorization(self) -> Factorization:
        """Of K̃ + noise."""
        return self.solution.factorization

    def __getstate__(self) -> dict[str, object]:
        return {k: v for k, v in self.__dict__.items() if k != "solution"}

    # New points -------------------------------------------------------------------------------------

    def predict(self, x: PointsLike, trend: Tensor, verbose: bool = False) -> Tensor:
        """The mean at new points with the trend's features (points, trends): shape (points,)."""
        return (self.mean(x, verbose) + trend.to(self.y) @ self.coefficients.to(self.y))[:, 0]

    @torch.no_grad()
    def variance(self, x: PointsLike, trend: Tensor, verbose: bool = False) -> Tensor:
        """The variance of the latent function, trend included, at new points: shape (points,)."""
        own = self.factorization.variance(x, verbose).clamp_min(0)
        return own + self._unexplained(x, trend, self._half).square().sum(1)

    @torch.no_grad()
    def slope(self, x: PointsLike, trend: Tensor, verbose: bool = False) -> Tensor:
        """The gradient of the mean at new points, given that of the trend (d, trends): shape (points, d)."""
        return self.mean.slope(x, verbose)[..., 0] + (trend.to(self.y) @ self.coefficients.to(self.y))[:, 0]

    @torch.no_grad()
    def slope_variance(self, x: PointsLike, trend: Tensor, verbose: bool = False) -> Tensor:
        """The variance of the latent function's gradient, trend included, at new points: (points, d)."""
        check_slope(self.source.kernel)
        own = self.factorization.slope_variance(x, verbose).clamp_min(0)
        if self.trend is None:
            return own
        rest = (trend.to(self.y) - self.trend.slope(x)) @ self._half.to(self.y)
        return own + rest.square().sum(-1)

    @torch.no_grad()
    def covariance(self, x: PointsLike, trend: Tensor) -> Tensor:
        """The same for pairs of points: shape (points, points)."""
        check_covariance(as_points_like(x, self.mean.points))
        rest = self._unexplained(x, trend, self._half)
        return self.factorization.covariance(x) + rest @ rest.mT

    @torch.no_grad()
    def sample(self, x: PointsLike, trend: Tensor, count: int, generator: RandomLike = None) -> Tensor:
        """Latent functions given the observations, at new points: shape (points, count).

        With trees and with features at any number of points; else for some thousands of them at most.
        """
        device = self.y.device
        random = as_random(generator)
        values, errors = self.factorization.sample(x, count, random.child(0))
        values = values + self.predict(x, trend)[:, None]
        if self.trend is None:
            return values
        if errors is None:
            half = self._half
            size = half.shape[1], count
            shift = half @ random.child(1).normal(size, self.y.dtype, device).to(half)
        else:  # β of what the draws make of the observations
            shift = least_squares(self.precision, self.solution.weights[:, 1:].double().mT @ errors.double())
        return values + self._unexplained(x, trend, shift)

    @property
    def _half(self) -> Tensor:
        """A root of the covariance of β."""
        return half_covariance(self.precision)

    def _unexplained(self, x: PointsLike, trend: Tensor, change: Tensor) -> Tensor:
        """What a change of β, of shape (trends, columns), does at new points: shape (points, columns)."""
        explained = 0 if self.trend is None else self.trend(x)
        return (trend.to(self.y) - explained) @ change.to(self.y)

    # The observations themselves --------------------------------------------------------------------

    @torch.no_grad()
    def leave_one_out(self) -> LeftOut:
        """Every observation predicted from all others."""
        if not self.factorization.has_left_out:
            raise needs_factorization("leave-one-out predictions")
        diagonal = self.factorization.inverse_diagonal()  # first: then solutions can use what it made
        rest = self.solution.combine(subtracting(self.coefficients)).weights
        along = self.solution.weights[:, 1:] @ self._half.to(self.y)
        return leave_one_out(self.y[:, 0], rest[:, 0], diagonal, along)
