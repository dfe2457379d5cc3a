"""Where the learning of a Gaussian process starts, and how sure its end is."""

from collections.abc import Callable

import numpy as np
import torch

from hck.points import DensePoints, VectorPoints


def standard_errors(
    gradient: Callable[[np.ndarray], np.ndarray], theta: np.ndarray, step: float
) -> np.ndarray:  # fmt: skip
    """Standard errors of parameters from the observed Fisher information: shape (parameters,).

    That is minus the second derivatives of a log-likelihood, here differences of its gradient. NaN where
    there is no maximum.
    """
    rows = []
    for move in step * np.eye(len(theta)):
        rows.append((gradient(theta - move) - gradient(theta + move)) / (2 * step))
    information = np.reshape(rows, (len(theta), -1))
    values, vectors = np.linalg.eigh((information + information.T) / 2)
    known = values > 1e-12 * np.abs(values).max()
    variance = (vectors[:, known] ** 2) @ (1 / values[known])
    unknown = (vectors[:, ~known] ** 2).sum(1) > 1e-6  # some of it is along a flat direction
    return np.sqrt(np.where(unknown, np.nan, variance))


def start_lengthscales(points: VectorPoints) -> np.ndarray:
    """√d standard deviations of each feature, and 1 for those that are constant: shape (d,)."""
    every = torch.arange(len(points), device=points.device)
    variance = points.variance(every, torch.zeros_like(every), 1)[0].double().clamp_min(0)
    mean = points.mean(every, torch.zeros_like(every), 1)[0].double().abs()
    rounding = 1e-12 if points.dtype == torch.float64 else 1e-4
    rounding = rounding if isinstance(points, DensePoints) else max(rounding, 1e-6)
    constant = (variance.sqrt() <= rounding * mean).cpu()
    return np.where(constant, 1.0, np.sqrt(points.n_features * variance.cpu().numpy()))
