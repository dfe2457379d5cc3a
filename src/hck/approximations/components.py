"""Principal components in the feature space of any approximation."""

from dataclasses import dataclass

import numpy as np
import torch
from sklearn.utils.extmath import svd_flip
from torch import Tensor

from hck.approximations.base import Approximation
from hck.approximations.eigenvectors import feature_axes, feature_vectors, leading
from hck.approximations.features import FeatureMap, FeaturePredictor
from hck.hierarchy.forest import Predictor


@dataclass
class Components:
    """Principal components in the feature space of an approximation: of the centred K̃."""

    values: np.ndarray  # (components,): eigenvalues
    vectors: np.ndarray  # (n, components): eigenvectors
    total: float  # the sum of all eigenvalues
    predictor: Predictor  # coordinates of any points, before the mean of the training points is taken away
    mean: Tensor  # (components,)

    @property
    def embedding(self) -> np.ndarray:
        """Coordinates of the training points."""
        return self.vectors * np.sqrt(self.values)


@torch.no_grad()
def principal_components(
    approximation: Approximation,
    count: int,
    tol: float = 0.0,
    random_state: int | np.random.RandomState | None = 0,
) -> Components:
    """The first principal components in the feature space of an approximation.

    With α an eigenvector of H K̃ H and λ > 0 its eigenvalue, a point has the coordinate
    (k̃(x, X) − 1ᵀK̃/n) α/√λ: since α sums to 0, the means of k̃(x, X) and of K̃ itself have no part in it.
    There are at most n; `tol` and `random_state` are as in `leading`.
    """
    if isinstance(approximation, FeatureMap):
        return _of_features(approximation, count)
    points = approximation.points
    every = approximation @ torch.ones(len(points), 1, dtype=points.dtype, device=points.device)
    diagonal, mean = float(approximation.diagonal().double().sum()), every[:, 0] / len(points)
    total = diagonal - float(mean.double().sum())
    exact = points.dtype == torch.float64
    if total > (1e-12 if exact else 1e-6) * diagonal:
        values, vectors = leading(approximation, count, True, tol, random_state)
    else:  # all points are one
        number = np.float64 if exact else np.float32
        values, vectors, total = np.zeros(count, number), np.zeros((len(points), count), number), 1.0
    vectors, _ = svd_flip(vectors, None)
    weights = np.divide(vectors, np.sqrt(values), out=np.zeros_like(vectors), where=values > 0)
    scaled = torch.from_numpy(weights - weights.mean(0)).to(points.device)
    return Components(values, vectors, total, approximation.extend(scaled), mean @ scaled)


def _of_features(approximation: FeatureMap, count: int) -> Components:
    values, axes, mean = feature_axes(approximation, centred=True)
    vectors = feature_vectors(approximation, values, axes, mean, count)
    kind, total = vectors.dtype, float(values.sum()) or 1.0
    values, axes = (torch.nn.functional.pad(part, (0, count))[..., :count] for part in (values, axes))
    signed, turned = svd_flip(vectors.cpu().numpy(), axes.mT.cpu().numpy())
    axes = torch.from_numpy(turned.T).to(mean)
    predictor = FeaturePredictor(approximation.without_points(), axes.to(kind))
    return Components(values.to(kind).cpu().numpy(), signed, total, predictor, (mean @ axes).to(kind))
