"""Observations predicted from all others, and what follows from that for the weights of several models."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.optimize import nnls
from torch import Tensor

from hck.backend import linalg
from hck.backend.kinds import kind_of
from hck.errors import NotPositiveDefiniteError
from hck.hierarchy.blueprint import Blueprint
from hck.hierarchy.kernel import HierarchicalKernel
from hck.hierarchy.leave_one_out import LeftOut, leave_one_out


def left_out_each(
    blueprint: Blueprint, y: Tensor, noises: Sequence[float | Tensor]
) -> Iterator[LeftOut | None]:
    """What all others say about each observation, for one noise after another.

    The kernel's blocks are computed once. None where the matrix is not positive definite.
    """
    hierarchical = HierarchicalKernel.of(blueprint)
    for noise in noises:
        yield left_out_of(hierarchical, y, noise)


def left_out_of(hierarchical: HierarchicalKernel, y: Tensor, noise: float | Tensor) -> LeftOut | None:
    """What all others say about each observation; None if the matrix is not positive definite."""
    try:
        if hierarchical.tree.n_leaves == 1 and kind_of(hierarchical.points.device).dense_gain > 1:
            return _of_one_leaf(hierarchical, y, noise)
        factor = hierarchical.factor(noise)
        return leave_one_out(y, factor.solve(y.to(factor.device, factor.dtype)), factor.inverse_diagonal())
    except NotPositiveDefiniteError:
        return None


def _of_one_leaf(hierarchical: HierarchicalKernel, y: Tensor, noise: float | Tensor) -> LeftOut:
    """The same by a device's own routines for a large matrix, which are few commands."""
    matrix, layout = hierarchical.matrix, hierarchical.matrix.layout
    whole = torch.baddbmm(matrix.residual[0], matrix.basis[0], matrix.basis[0].mT)[0]
    whole.diagonal().add_(hierarchical.blueprint.pad_noise(noise)[:-1])
    root = linalg.inverse_factor(whole, "the kernel matrix with this noise")
    solved = root.mT @ (root @ layout.pad(y, whole)[:-1])
    diagonal = torch.linalg.vecdot(root, root, dim=0)
    return leave_one_out(y, layout.unsort(solved), layout.unsort(diagonal))


def blend_weights(
    predicted: Sequence[np.ndarray], y: np.ndarray, weight: ArrayLike | None = None
) -> np.ndarray:
    """Weights, none negative and 1 in all, with which a mean of predictions has the least squared error.

    Stacking (Wolpert, 1992; Breiman, 1996), with what each model predicts (n, columns) of left-out
    observations, which may have weights (n,). Those below a hundredth are 0.

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
    largest = float(np.abs(root).max())
    root, heavy = root / (largest or 1.0), 1e4
    found = nnls(np.vstack([root, np.full((1, root.shape[1]), heavy)]), np.r_[np.zeros(len(root)), heavy])[0]
    found = np.where(found < 0.01, 0, found)
    return found / found.sum()
