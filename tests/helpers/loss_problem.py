"""Losses, and observations that suit them."""

import numpy as np
import torch

from hck.losses import (
    Absolute,
    Gamma,
    Huber,
    Logistic,
    Poisson,
    Quantile,
    Squared,
    SquaredHinge,
    Tweedie,
)

LOSSES = (
    *(Squared(), Huber(0.3), Poisson(), Gamma(), Tweedie(1.5)),
    *(Logistic(), Logistic(4), SquaredHinge(), Absolute(), Quantile(0.9)),
)


def observed(loss, x, rng):
    """Draws that a loss is meant for, around a smooth function."""
    f = np.sin(6 * x[:, 0]) + x[:, 1]
    noisy = f + 0.3 * rng.standard_t(3, len(f))
    if isinstance(loss, Gamma):
        return torch.tensor(rng.gamma(2, np.exp(f) / 2))
    if isinstance(loss, Tweedie):
        return torch.tensor(rng.poisson(np.exp(f)), dtype=torch.float64)
    if isinstance(loss, Logistic) and loss.classes == 4:
        return torch.tensor(np.digitize(noisy, [0.2, 0.7, 1.2]))
    if isinstance(loss, Logistic | SquaredHinge):
        return torch.tensor(noisy > 0.7).long()
    return torch.tensor(noisy)
