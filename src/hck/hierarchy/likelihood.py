"""The log-likelihood of a Gaussian process whose mean is linear in some features, from quadratic forms."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from hck.backend import linalg
from hck.hierarchy.factor import Factor
from hck.hierarchy.smooth import Filtered


@dataclass
class Likelihood:
    """log N(y; H β, K_h + noise) at the best β (by generalised least squares), summed over columns."""

    value: Tensor
    gradient: list[Tensor]  # with respect to each of the parameters that were asked for
    coefficients: Tensor  # β (trends, columns)
    precision: Tensor  # Hᵀ (K_h + noise)⁻¹ H (trends, trends), the inverse of the covariance of β


def evidence_from_gram(
    gram: Tensor, log_determinant: Tensor | float, n: int, columns: int = 1
) -> Likelihood:  # fmt: skip
    """The log-likelihood of y (n, columns), without gradient, for any matrix K, given [y H]ᵀ K⁻¹ [y H]."""
    beta = least_squares(gram[columns:, columns:], gram[columns:, :columns])
    square = gram[:columns, :columns].diagonal().sum() - (gram[columns:, :columns] * beta).sum()
    value = -(square + columns * (log_determinant + n * math.log(2 * math.pi))) / 2
    return Likelihood(value, [], beta, gram[columns:, columns:])


def least_squares(precision: Tensor, right: Tensor) -> Tensor:
    """β of generalised least squares, from Hᵀ (K_h + noise)⁻¹ H and Hᵀ (K_h + noise)⁻¹ y: (trends, columns).

    Of trends that say the same, any combination that does.
    """
    if not len(precision):
        return right
    return torch.linalg.lstsq(precision.cpu(), right.cpu(), driver="gelsd").solution.to(right.device)


def half_covariance(precision: Tensor) -> Tensor:
    """A root of the covariance of β, given its inverse: shape (trends, trends or fewer)."""
    if not len(precision):
        return precision
    values, vectors = torch.linalg.eigh(precision.cpu())
    known = values > values.max() * len(values) * torch.finfo(values.dtype).eps
    return (vectors[:, known] * values[known].rsqrt()).to(precision.device)


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
