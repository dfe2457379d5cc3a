"""A Gaussian process given observations: mean, uncertainty, leave-one-out, draws."""

from dataclasses import dataclass

import torch
from torch import Tensor

from hck.approximations import Approximation, Factorization, Predictor, Solution
from hck.approximations.factorization import Paths, check_covariance, needs_factorization
from hck.backend.caches import cached_property
from hck.backend.checks import check_floats, require
from hck.backend.moments import moments_of
from hck.backend.random import Random, RandomLike, as_random
from hck.hierarchy.leave_one_out import LeftOut, leave_one_out
from hck.hierarchy.likelihood import half_covariance
from hck.kernels.slope import check_slope
from hck.points import PointsLike, as_points_like, check_alike, check_weights
from hck.process.likelihood import evidence, subtracting


@dataclass
class Process:
    """f and β given y = H β + f(X) + noise, where f has the covariance k̃ of any approximation.

    β has no prior: it is estimated by generalised least squares, and its uncertainty is part of that of
    predictions (O'Hagan, 1978). Several outputs, the columns of y, are independent of each other and share
    kernel, noise and H, and so one factorization; of one output, results lack their axis. Made by
    `Process.of`.

    Examples
    --------
    >>> import torch
    >>> from hck.approximations import make_approximation
    >>> from hck.process import Process
    >>> x = torch.linspace(0, 1, 50, dtype=torch.float64)[:, None]
    >>> made, no_trend = make_approximation("exact", "matern52", x, rank=50), torch.zeros(50, 0)
    >>> process = Process.of(made, 0.01, torch.sin(6 * x[:, 0]), no_trend)
    >>> new, none = [[0.5], [3.0]], torch.zeros(2, 0, dtype=torch.float64)
    >>> process.predict(new, none).shape, process.variance(new, none).round(decimals=2)
    (torch.Size([2]), tensor([0.0000, 0.9700], dtype=torch.float64))
    """

    source: Approximation
    noise: Tensor  # (n,): variances
    y: Tensor  # (n, outputs + trends): observations and H
    mean: Predictor  # x ↦ k̃(x, X) (K̃ + noise)⁻¹ (y − H β)
    trend: Predictor | None  # the same of H, if it has columns
    coefficients: Tensor  # β (trends, outputs)
    precision: Tensor  # (trends, trends): the inverse of the covariance of β
    log_likelihood: float  # of all outputs; NaN if it is not known
    outputs: int = 1

    def validate(self) -> None:
        """Raise ValueError unless all parts fit together."""
        n, trends = len(self.source), self.y.shape[-1] - self.outputs
        check_floats("y", self.y, n, None)
        require(self.outputs > 0 and trends >= 0, f"outputs must be columns of y, got {self.outputs}")
        check_floats("noise", self.noise, n)
        require(bool((self.noise >= 0).all()), "noise must not be negative")
        require(self.noise.dtype == self.y.dtype == self.source.dtype, "noise and y must be of one type")
        check_floats("coefficients", self.coefficients, trends, self.outputs)
        check_floats("precision", self.precision, trends, trends)
        most = torch.finfo(self.y.dtype).max ** 0.5  # since variances have squares of what the trend explains
        small = bool((self.y.abs() <= most).all()) and bool(moments_of(self.y).isfinite().all())
        require(small, "y must not be so large that squares overflow")
        require(bool((self.precision.abs() < 1e200).all()), "precision must not be so large")
        require(bool((self._half.abs() < 1e100).all()), "precision must not be so small")
        require(bool((self.coefficients.abs() < 1e200).all()), "coefficients must not be so large")
        require(self.mean.columns == self.outputs, f"mean must have {self.outputs} columns")
        found = 0 if self.trend is None else self.trend.columns
        require(found == trends, f"trend has {found} columns in place of {trends}")
        for predictor in (self.mean, self.trend or self.mean):
            check_alike(predictor.points, self.source.points)
        for name in ("weights", "landmark_weights"):
            if (weights := getattr(self.trend, name, None)) is not None:
                check_weights(f"trend.{name}", weights, most, *weights.shape)

    @classmethod
    @torch.no_grad()
    def of(cls, source: Approximation, noise: float | Tensor, y: Tensor, trend: Tensor) -> "Process":
        """Condition on observations y (n,) or (n, outputs), with noise () or (n,), and H (n, trends)."""
        variance, y = source.variances(noise), source.columns(y)
        both, outputs = torch.cat([y, source.columns(trend)], 1), y.shape[1]
        solution = source.solve(variance, both)
        found = evidence(solution, outputs)
        mean, along = solution.combine(subtracting(found.coefficients)).predictor, None
        if trend.shape[1]:
            every = torch.eye(both.shape[1], dtype=torch.float64, device=both.device)
            along = solution.combine(every[:, outputs:]).predictor
        known = found.coefficients, found.precision, float(found.value), outputs
        made = cls(source, variance, both, mean, along, *known)
        made.solution = solution
        return made

    @cached_property
    def solution(self) -> Solution:
        """(K̃ + noise)⁻¹ (y, H). Not kept when this is pickled, but computed again."""
        return self.source.solve(self.noise, self.y)

    @property
    def observations(self) -> Tensor:
        """Without H: shape (n,) or (n, outputs)."""
        return self._squeeze(self.y[:, : self.outputs])

    @property
    def features(self) -> Tensor:
        """H (n, trends)."""
        return self.y[:, self.outputs :]

    @property
    def explained(self) -> Tensor:
        """What the trend says of the observations: shape (n, outputs)."""
        return self.features @ self.coefficients.to(self.y)

    def _squeeze(self, values: Tensor) -> Tensor:
        """Values (…, outputs) without that axis if there is one output."""
        return values[..., 0] if self.outputs == 1 else values

    def _each(self, values: Tensor) -> Tensor:
        """Values (points, …) that all outputs share, one for each: (points, …, outputs)."""
        return values if self.outputs == 1 else values[..., None].expand(*values.shape, self.outputs)

    @property
    def factorization(self) -> Factorization:
        """Of K̃ + noise."""
        return self.solution.factorization

    def __getstate__(self) -> dict[str, object]:
        return {k: v for k, v in self.__dict__.copy().items() if k not in ("solution", "_half")}

    # New points -------------------------------------------------------------------------------------

    def predict(self, x: PointsLike, trend: Tensor, verbose: bool = False) -> Tensor:
        """The mean at new points with the trend's features (points, trends): (points, [outputs])."""
        return self._squeeze(self.mean(x, verbose) + trend.to(self.y) @ self.coefficients.to(self.y))

    @torch.no_grad()
    def variance(self, x: PointsLike, trend: Tensor, verbose: bool = False) -> Tensor:
        """The variance of the latent function, trend included, at new points, like `predict`."""
        own = self.factorization.variance(x, verbose).clamp_min(0)
        return self._each(own + self._unexplained(x, trend, self._half).square().sum(1))

    @torch.no_grad()
    def slope(self, x: PointsLike, trend: Tensor, verbose: bool = False) -> Tensor:
        """The gradient of the mean, given that of the trend (d, trends): shape (points, d, [outputs])."""
        return self._squeeze(self.mean.slope(x, verbose) + trend.to(self.y) @ self.coefficients.to(self.y))

    @torch.no_grad()
    def slope_variance(self, x: PointsLike, trend: Tensor, verbose: bool = False) -> Tensor:
        """The variance of the latent function's gradient, trend included, like `slope`."""
        check_slope(self.source.kernel)
        own = self.factorization.slope_variance(x, verbose).clamp_min(0)
        if self.trend is not None:
            rest = (trend.to(self.y) - self.trend.slope(x)) @ self._half.to(self.y)
            own = own + rest.square().sum(-1)
        return self._each(own)

    @torch.no_grad()
    def covariance(self, x: PointsLike, trend: Tensor) -> Tensor:
        """The same for pairs of points, for all outputs alike: shape (points, points)."""
        check_covariance(as_points_like(x, self.mean.points))
        rest = self._unexplained(x, trend, self._half)
        return self.factorization.covariance(x) + rest @ rest.mT

    @torch.no_grad()
    def sample(self, x: PointsLike, trend: Tensor, count: int, generator: RandomLike = None) -> Tensor:
        """Latent functions given the observations, at new points: (points, [outputs,] count).

        With trees and with features at any number of points; else for some thousands of them at most.
        """
        random = as_random(generator)
        values, errors = self.factorization.sample(x, count * self.outputs, random.child(0))
        mean = self.predict(x, trend)[..., None]
        shape = (*mean.shape[:-1], -1)
        values = values.reshape(shape) + mean
        if self.trend is None:
            return values
        shift = self._shift(errors, count, random.child(1))
        return values + self._unexplained(x, trend, shift).reshape(shape)

    @torch.no_grad()
    def functions(self, count: int, generator: RandomLike = None, n_waves: int = 512) -> "Functions":
        """The same as functions that can be evaluated anywhere; see `Factorization.functions`."""
        random = as_random(generator)
        paths, errors = self.factorization.functions(count * self.outputs, random.child(0), n_waves)
        each = torch.eye(self.outputs, dtype=torch.float64, device=self.y.device)
        each = each.repeat_interleave(count, 1)
        paths, beta = paths.plus(self.mean, each), self.coefficients.to(each) @ each
        if self.trend is not None:
            shift = self._shift(errors, count, random.child(1)).to(beta)
            paths, beta = paths.plus(self.trend, -shift), beta + shift
        return Functions(paths, beta.to(self.y), self.outputs)

    def _shift(self, errors: Tensor | None, count: int, random: Random) -> Tensor:
        """By how much β differs from its mean in draws: shape (trends, outputs · count)."""
        half = self._half
        if errors is None:
            size = half.shape[1], count * self.outputs
            return half @ random.normal(size, self.y.dtype, self.y.device).to(half)
        along = self.solution.weights[:, self.outputs :].double()  # β of what draws make of observations
        return half @ (half.mT @ (along.mT @ errors.double()))

    @cached_property
    def _half(self) -> Tensor:
        """A root of the covariance of β."""
        return half_covariance(self.precision, moments_of(self.features))

    def _unexplained(self, x: PointsLike, trend: Tensor, change: Tensor) -> Tensor:
        """What a change of β, of shape (trends, columns), does at new points: shape (points, columns)."""
        explained = 0 if self.trend is None else self.trend(x)
        return (trend.to(self.y) - explained) @ change.to(self.y)

    # The observations themselves --------------------------------------------------------------------

    @property
    def has_left_out(self) -> bool:
        """Whether observations can be predicted from all others: not where equations are solved by steps."""
        return self.factorization.has_left_out

    @torch.no_grad()
    def leave_one_out(self) -> LeftOut:
        """Every observation predicted from all others."""
        if not self.has_left_out:
            raise needs_factorization("leave-one-out predictions")
        diagonal = self.factorization.inverse_diagonal()  # first: then solutions can use what it made
        rest = self.solution.combine(subtracting(self.coefficients)).weights
        along = self.solution.weights[:, self.outputs :] @ self._half.to(self.y)
        found = leave_one_out(self.observations, self._squeeze(rest), diagonal, along)
        return LeftOut(found.mean, self._each(found.variance))


@dataclass
class Functions:
    """Functions drawn from a process given its observations: the same whenever they are evaluated."""

    paths: Paths  # without the trend, (points, outputs · count)
    coefficients: Tensor  # β (trends, outputs · count)
    outputs: int

    @torch.no_grad()
    def __call__(self, x: PointsLike, trend: Tensor) -> Tensor:
        """Values at points with the trend's features: (points, count) or (points, outputs, count)."""
        values = self.paths(x) + trend.to(self.coefficients) @ self.coefficients
        return values if self.outputs == 1 else values.unflatten(1, (self.outputs, -1))

    def take(self, which: Tensor) -> "Functions":
        """Some of them, by number."""
        count = self.paths.columns // self.outputs
        first = count * torch.arange(self.outputs, device=which.device)
        every = (first[:, None] + which).flatten()
        return Functions(self.paths.take(every), self.coefficients[:, every], self.outputs)
