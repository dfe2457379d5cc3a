"""Every observation predicted from all others, in closed form."""

from typing import NamedTuple

import torch
from torch import Tensor


class LeftOut(NamedTuple):
    """Predictions of observations by models that have not seen them."""

    mean: Tensor  # (n,) or (n, columns)
    variance: Tensor  # (n,), of the observations, noise included


def leave_one_out(
    y: Tensor, solved: Tensor, diagonal: Tensor, explained: Tensor | None = None
) -> LeftOut:  # fmt: skip
    """What the other n − 1 observations say about each, with the same tree, landmarks and noise.

    With K = K_h + noise: the residual is [Q y]_i / Q_ii and the variance 1 / Q_ii, where Q = K⁻¹, or, with a
    mean function H β that is estimated, Q = K⁻¹ − K⁻¹ H (Hᵀ K⁻¹ H)⁻¹ Hᵀ K⁻¹ (Dubrule, 1983).

    Parameters
    ----------
    y : Tensor of shape (n,) or (n, columns)
    solved : Tensor of the same shape
        Q y.
    diagonal : Tensor of shape (n,)
        Of K⁻¹.
    explained : Tensor of shape (n, trends), optional
        E such that Q = K⁻¹ − E Eᵀ.
    """
    y = torch.as_tensor(y, dtype=diagonal.dtype, device=diagonal.device)
    eps = torch.finfo(diagonal.dtype).eps
    diagonal = diagonal.clamp_min(eps * float(diagonal.max()))
    if explained is not None:
        left = 1 - (explained / diagonal.sqrt()[:, None]).square().sum(1)
        # 0, but for rounding, where a point alone determines a part of the trend: the others say nothing
        diagonal = diagonal * torch.where(left > 100 * eps, left, 0)
    known = diagonal > 0
    residual = solved / (diagonal if y.ndim == 1 else diagonal[:, None])
    return LeftOut(y - residual.where(known if y.ndim == 1 else known[:, None], 0), 1 / diagonal)
