"""The log-likelihood of a Gaussian process whose mean is linear in some features, from quadratic forms."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from hck.backend import linalg
from hck.backend.moments import told_apart
from hck.hierarchy.factor import Factor
from hck.hierarchy.smooth import Filtered


@dataclass
class Likelihood:
    """log N(y; H β, K_h + noise) at the best β (by generalised least squares), summed over columns."""

    value: Tensor
    gradient: list[Tensor]  # with respect to each of the parameters that were asked for
    coefficients: Tensor  # β (trends, columns)
    precision: Tensor  # Hᵀ (K_h + noise)⁻¹ H (trends, trends), the inverse of the covariance of β
    half: Tensor  # a root of that covariance (trends, trends or fewer)


def evidence_from_gram(
    gram: Tensor, log_determinant: Tensor | float, n: int, columns: int = 1, moments: Tensor | None = None
) -> Likelihood:
    """The log-likelihood of y (n, columns), without gradient, for any matrix K.

    Given [y H]ᵀ K⁻¹ [y H], and HᵀH where that is known; see `half_covariance`. Of trends that say the same, β
    is any combination that does.
    """
    precision, along = gram[columns:, columns:], gram[columns:, :columns]
    half = half_covariance(precision, moments)
    beta = half @ (half.mT @ along)
    square = gram[:columns, :columns].diagonal().sum() - (along * beta).sum()
    value = -(square + columns * (log_determinant + n * math.log(2 * math.pi))) / 2
    return Likelihood(value, [], beta, precision, half)


def half_covariance(precision: Tensor, moments: Tensor | None = None) -> Tensor:
    """A root of the covariance of β, given its inverse: shape (trends, trends or fewer).

    It is without combinations of trends that all observations have alike. HᵀH says which these are; in its
    place the precision does, but rounding errors make more of it, as much more as K_h is badly conditioned.
    """
    if not len(precision):
        return precision
    inner = precision.cpu()
    basis = told_apart(inner if moments is None else moments.cpu())
    if not basis.shape[1]:
        return basis.to(precision.device)
    values, vectors = torch.linalg.eigh(basis.mT @ inner @ basis)
    known = values > values.max() * len(values) * torch.finfo(values.dtype).eps
    return (basis @ (vectors[:, known] * values[known].rsqrt())).to(precision.device)


def quadratic_form(factor: Factor, filtered: Filtered) -> Tensor:
    """bᵀ (K_h + noise)⁻¹ b for right-hand sides that have gone up: Σ aᵀa − Σ (νᵀν − qᵀ M q), in float64."""
    columns = filtered.b.shape[1]
    total = torch.zeros(columns, columns, dtype=torch.float64, device=filtered.b.device)
    for a in filtered.whitened:
        total += _gram(a, a)
    for level, parts in enumerate(factor.nodes):
        total -= _gram(filtered.mean[level], filtered.mean[level])
        for part in parts:
            q = filtered.expected[level][part.here]
            total += _gram(linalg.multiply_packed(part.packed, part.diagonal, q.contiguous()), q)
    return total


def _gram(a: Tensor, b: Tensor) -> Tensor:
    """Σ aᵀ b over the members of stacks."""
    return a.flatten(0, 1).mT.double() @ b.flatten(0, 1).double()
