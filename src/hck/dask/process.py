"""A Gaussian process whose branches are on workers: at new points, and brought together on one machine."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hck.approximations import TreeKernel
from hck.branches import Piece, Trunk
from hck.branches.assemble import assemble_pieces
from hck.dask.tasks import Values, together
from hck.hierarchy import Blueprint
from hck.hierarchy.blueprint import lay_out
from hck.hierarchy.likelihood import Likelihood, half_covariance
from hck.preparation.trend import Trend
from hck.process import Mixture, Process


@dataclass
class Evaluated:
    """The process of a tree at points where its branches were evaluated: a member of a `Mixture`.

    Attributes
    ----------
    found : Likelihood
    values : Tensor of shape (points, 1 + trends)
        k_h(x, X) (K_h + noise)⁻¹ [y H].
    latent : Tensor of shape (points,), or None
        The variance of f if β were known.
    """

    found: Likelihood
    values: Tensor
    latent: Tensor | None

    def predict(self, x: None, trend: Tensor, verbose: bool = False) -> Tensor:
        """The mean, given the trend's features: shape (points,)."""
        return self.values[:, 0] + self._unexplained(trend, self.found.coefficients)[:, 0]

    def variance(self, x: None, trend: Tensor, verbose: bool = False) -> Tensor:
        """The variance of the latent function, trend included: shape (points,)."""
        assert self.latent is not None
        return self.latent + self._unexplained(trend, half_covariance(self.found.precision)).square().sum(1)

    def _unexplained(self, trend: Tensor, change: Tensor) -> Tensor:
        """What a change of β, of shape (trends, columns), does: shape (points, columns)."""
        return (trend.to(self.values) - self.values[:, 1:]) @ change.to(self.values)


@dataclass
class Evaluation:
    """From what branches compute at new points to means and standard deviations.

    Attributes
    ----------
    trend : Trend
    found : list of Likelihood
        One for each tree.
    """

    trend: Trend
    found: list[Likelihood]

    def mean(self, values: Values, x: np.ndarray) -> np.ndarray:
        """Shape (points,)."""
        if not len(x):
            return np.zeros(0, x.dtype)
        features = self.trend(x)
        mean = self._mixture(values, None, len(x)).predict(None, features)
        return self.trend.restore(features, mean).numpy()

    def std(self, values: Values, variances: Values, x: np.ndarray, noise: float) -> np.ndarray:
        """Shape (points,)."""
        if not len(x):
            return np.zeros(0, x.dtype)
        _, variance = self._mixture(values, variances, len(x)).variance(None, self.trend(x))
        return (variance + noise).sqrt().numpy()

    def _mixture(self, values: Values, variances: Values | None, n: int) -> Mixture:
        def of(said: Values, tree: int) -> Tensor:
            return torch.from_numpy(together(said, tree, n))

        members: list[Any] = [
            Evaluated(found, of(values, tree), None if variances is None else of(variances, tree))
            for tree, found in enumerate(self.found)
        ]
        return Mixture(members)

    @property
    def coefficients(self) -> np.ndarray:
        """Of the trend's features as they came, the mean over trees."""
        beta = torch.stack([each.coefficients for each in self.found]).mean(0)
        return self.trend.raw(beta[:, 0].numpy())


def in_one_piece(trunk: Trunk, pieces: list[Piece], noise: float, found: Likelihood) -> Process:
    """A tree's Gaussian process on one machine."""
    made = assemble_pieces(trunk, pieces)
    points, budget = made.points, made.budget
    layout = lay_out(made.tree, points, made.landmarks.rank, budget)
    source = Blueprint(made.kernel, points, made.landmarks, trunk.jitter, layout, budget)
    rows = torch.cat([piece.rows for piece in pieces if piece.rows is not None])
    values = torch.cat([piece.targets for piece in pieces if piece.targets is not None])
    both = torch.empty_like(values)
    both[rows] = values
    weights, heard = made.weights, made.landmark_weights
    small = found.coefficients.to(weights.dtype)
    mean = replace(
        made,
        weights=weights[:, :1] - weights[:, 1:] @ small,
        landmark_weights=heard[..., :1] - heard[..., 1:] @ small,
    )
    along = replace(made, weights=weights[:, 1:].contiguous(), landmark_weights=heard[..., 1:].contiguous())
    known = found.coefficients, found.precision, float(found.value)
    whole = TreeKernel(source)
    trend = along if weights.shape[1] > 1 else None
    return Process(whole, whole.variances(noise), whole.columns(both), mean, trend, *known)
