"""A Gaussian process whose observations come and go."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hck.approximations import TreeKernel
from hck.backend.caches import cached_property
from hck.backend.moments import clearly_apart
from hck.backend.random import Random, RandomLike
from hck.hierarchy.leave_one_out import LeftOut, leave_one_out
from hck.hierarchy.likelihood import Likelihood, evidence_from_gram
from hck.online.predictor import OnlinePredictor
from hck.online.read import inverse_diagonal, predict, variance
from hck.online.state import State
from hck.points import PointsLike, as_points_like
from hck.process import Process
from hck.process.likelihood import subtracting
from hck.process.process import Functions

_MOST = 1 - 1e-4  # of y, by its quadratic form: if the trend explains more, digits of the rest are lost


@dataclass(frozen=True, eq=False)
class OnlineProcess:
    """One version of a `hck.process.Process`, of a state whose right-hand sides are observations and trend.

    What follows from the sweep up, the trend and the likelihood, is there at once; means and variances need
    what lies on the way to a point. All else is asked of a process that does not change (`settled`).

    Examples
    --------
    >>> import torch
    >>> from hck.hierarchy import Blueprint
    >>> from hck.online import Habit, OnlineProcess, State
    >>> from hck.settings import Settings
    >>> x = torch.linspace(0, 1, 100, dtype=torch.float64)[:, None]
    >>> blueprint = Blueprint.of("gaussian", x, Settings(rank=8), generator=0)
    >>> habit = Habit("random_projection", "uniform", leaf_size=16)
    >>> state = State.of(blueprint, 8, habit, torch.sin(6 * x), torch.full((100,), 0.1))
    >>> process, no_trend = OnlineProcess(state), torch.zeros(1, 0, dtype=torch.float64)
    >>> bool(process.variance([[0.5]], no_trend) < process.variance([[2.0]], no_trend))
    True
    """

    state: State
    outputs = 1
    has_left_out = True

    @cached_property
    def evidence(self) -> Likelihood:
        """The likelihood at the best trend, and the trend's coefficients."""
        state, gram = self.state, self.state.gram.cpu()
        moments = None if self.is_clear else state.moments[1:, 1:].cpu()
        return evidence_from_gram(gram, state.log_determinant, len(state), moments=moments)

    @cached_property
    def is_clear(self) -> bool:
        """Whether observations tell trends apart for sure, which is seen without a look at all of them."""
        return clearly_apart(self.state.gram[1:, 1:].cpu())

    @property
    def is_all_trend(self) -> bool:
        """Whether the trend explains nearly all there is of y."""
        gram = self.state.gram.cpu()
        return float(gram[0, 1:] @ self.coefficients[:, 0].to(gram)) > _MOST * float(gram[0, 0])

    @property
    def log_likelihood(self) -> float:
        """Of all observations, at the best trend."""
        return float(self.evidence.value)

    @property
    def coefficients(self) -> Tensor:
        """β (trends, 1)."""
        return self.evidence.coefficients

    @property
    def mean(self) -> OnlinePredictor:
        """x ↦ k_h(x, X) (K_h + noise)⁻¹ (y − H β)."""
        return OnlinePredictor(self.state, subtracting(self.coefficients))

    def predict(self, x: PointsLike, trend: Tensor, verbose: bool = False) -> Tensor:
        """The mean at new points with the trend's features (points, trends): shape (points,)."""
        mean = self.mean
        return (mean(x, verbose) + (trend @ self.coefficients).to(self.state.root.record.memory))[:, 0]

    @torch.no_grad()
    def variance(self, x: PointsLike, trend: Tensor, verbose: bool = False) -> Tensor:
        """The variance of the latent function, trend included, at new points: shape (points,)."""
        points, like = as_points_like(x, self.mean.points), self.state.root.record.memory
        own = variance(self.state, points)  # type: ignore[arg-type]
        explained = predict(self.state, points)[:, 1:].double()  # type: ignore[arg-type]
        rest = (trend.to(explained) - explained) @ self.evidence.half.to(explained)
        return own + rest.square().sum(1).to(like)

    @torch.no_grad()
    def leave_one_out(self) -> LeftOut:
        """Every observation predicted from all others."""
        diagonal, w, b = inverse_diagonal(self.state, np.arange(len(self.state)))
        rest = (w.double() @ subtracting(self.coefficients).to(w.device)).to(w)
        along = (w[:, 1:].double() @ self.evidence.half.to(w.device)).to(w)
        return leave_one_out(b[:, 0], rest[:, 0], diagonal, along)

    # What needs all of the tree ---------------------------------------------------------------------

    @cached_property
    def settled(self) -> Process:
        """The same process, as one that does not change."""
        blueprint, data = self.state.harvested
        found, k = self.evidence, self.state.columns
        every, along = torch.eye(k, dtype=torch.float64, device="cpu"), None
        if k > 1:
            along = OnlinePredictor(self.state, every[:, 1:]).settle()
        known = found.coefficients.to(data.b.device), found.precision.to(data.b.device), self.log_likelihood
        return Process(TreeKernel(blueprint), data.noise, data.b, self.mean.settle(), along, *known)

    def covariance(self, x: PointsLike, trend: Tensor) -> Tensor:
        """Between all pairs of new points: shape (points, points)."""
        return self.settled.covariance(x, trend)

    def sample(self, x: PointsLike, trend: Tensor, count: int, generator: RandomLike = None) -> Tensor:
        """Latent functions given the observations, at new points: shape (points, count)."""
        return self.settled.sample(x, trend, count, generator)

    def slope(self, x: PointsLike, trend: Tensor, verbose: bool = False) -> Tensor:
        """The gradient of the mean: shape (points, d)."""
        return self.settled.slope(x, trend, verbose)

    def slope_variance(self, x: PointsLike, trend: Tensor, verbose: bool = False) -> Tensor:
        """The variance of the latent function's gradient: shape (points, d)."""
        return self.settled.slope_variance(x, trend, verbose)

    def functions(self, count: int, random: Random, n_waves: int = 512) -> Functions:
        """Draws as functions."""
        return self.settled.functions(count, random, n_waves)

    @property
    def observations(self) -> Tensor:
        """Without the trend: shape (n,)."""
        return self.y[:, 0]

    @property
    def features(self) -> Tensor:
        """Of the trend: shape (n, trends)."""
        return self.y[:, 1:]

    @property
    def source(self) -> TreeKernel:
        """The kernel on all points."""
        return self.settled.source  # type: ignore[return-value]

    @property
    def y(self) -> Tensor:
        """Observations and trend (n, 1 + trends), in the order in which they came."""
        return self.state.harvested[1].b

    @property
    def noise(self) -> Tensor:
        """Variances (n,), in the same order."""
        return self.state.harvested[1].noise
