"""How much to trust each of several models: by what they predict of left-out observations."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import nnls


def blend_weights(
    predicted: Sequence[Any], y: np.ndarray, weight: Any = None
) -> np.ndarray:  # fmt: skip
    """Weights, none negative and 1 in all, with which a mean of predictions has the least squared error.

    Those below a hundredth are 0.

    Stacking (Wolpert, 1992; Breiman, 1996), with predictions of left-out observations.

    Parameters
    ----------
    predicted : sequence of ndarray of shape (n, columns)
        Of each model.
    y : ndarray of shape (n, columns)
    weight : array-like of shape (n,), optional
        Of the observations.

    Examples
    --------
    >>> y = np.array([[1.0], [2.0], [3.0]])
    >>> blend_weights([y + 1, y - 1], y).round(6)
    array([0.5, 0.5])
    """
    scale = np.ones((len(y), 1)) if weight is None else np.sqrt(np.asarray(weight))[:, None]
    rest = np.stack([((each - y) * scale).ravel() for each in predicted], 1)
    # Σ w = 1, so that the error of the mean is the mean of errors: minimise ‖rest w‖ with a heavy row for Σ w
    root = np.asarray(np.linalg.qr(rest, mode="r"))
    heavy = 1e4 * max(float(np.abs(root).max()), 1e-300)
    found = nnls(np.vstack([root, np.full((1, root.shape[1]), heavy)]), np.r_[np.zeros(len(root)), heavy])[0]
    found = np.where(found < 0.01, 0, found)
    return found / found.sum()
