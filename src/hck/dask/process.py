"""A Gaussian process whose branches are on workers: trend, mean and variance put together."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hck.dask.tasks import Found, together
from hck.hierarchy.likelihood import Likelihood, half_covariance
from hck.preparation.trend import Trend

Values = list[list[Found]]


@dataclass
class Mixing:
    """From what branches compute at new points to means and standard deviations.

    Attributes
    ----------
    trend : Trend
    evidence : list of Likelihood
        One for each tree.
    """

    trend: Trend
    evidence: list[Likelihood]

    def mean(self, values: Values, x: np.ndarray) -> np.ndarray:
        """Shape (points,)."""
        if not len(x):
            return np.zeros(0, x.dtype)
        features, means = self.trend(x), self._means(values, x)
        return self.trend.restore(features, torch.stack(means).mean(0)).numpy()

    def std(self, values: Values, variances: Values, x: np.ndarray, noise: float) -> np.ndarray:
        """Shape (points,)."""
        if not len(x):
            return np.zeros(0, x.dtype)
        features, means = self.trend(x), torch.stack(self._means(values, x))
        within = []
        for tree, known in enumerate(self.evidence):
            latent, at = (torch.from_numpy(together(each, tree, len(x))) for each in (variances, values))
            rest = (features.to(at) - at[:, 1:]) @ half_covariance(known.precision).to(at)
            within.append(latent + rest.square().sum(1))
        variance = torch.stack(within).mean(0) + means.var(0, correction=0)
        return (variance + noise).sqrt().numpy()

    def _means(self, values: Values, x: np.ndarray) -> list[Tensor]:
        """Of each tree, without the rough trend."""
        features, found = self.trend(x), []
        for tree, known in enumerate(self.evidence):
            at = torch.from_numpy(together(values, tree, len(x)))
            found.append(at[:, 0] + ((features.to(at) - at[:, 1:]) @ known.coefficients.to(at))[:, 0])
        return found


def coefficients(mixing: Mixing) -> Any:
    """Of the trend's features as they came, the mean over trees."""
    beta = torch.stack([each.coefficients for each in mixing.evidence]).mean(0)
    return mixing.trend.raw(beta[:, 0].numpy())
