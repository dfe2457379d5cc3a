"""Every observation predicted from all others, in closed form."""

from typing import NamedTuple

import torch
from torch import Tensor

from hck.hierarchy.factor import Factor


class LeftOut(NamedTuple):
    """Predictions of observations by models that have not seen them.

    Attributes
    ----------
    mean : Tensor of shape (n,) or (n, columns)
    variance : Tensor of shape (n,)
        Of the observations, noise included.
    """

    mean: Tensor
    variance: Tensor


def leave_one_out(factor: Factor, y: Tensor) -> LeftOut:
    """What the other n − 1 observations say about each, with the same tree, landmarks and noise.

    With K = K_h + noise: the residual is [K⁻¹ y]_i / [K⁻¹]_ii and the variance 1 / [K⁻¹]_ii (Dubrule, 1983).
    It costs one solution and the diagonal of the inverse.

    Parameters
    ----------
    y : Tensor of shape (n,) or (n, columns)
        The observations, less their mean function.
    """
    y = torch.as_tensor(y, dtype=factor.dtype, device=factor.device)
    variance = 1 / factor.inverse_diagonal()
    residual = factor.solve(y) * (variance if y.ndim == 1 else variance[:, None])
    return LeftOut(y - residual, variance)
