"""The log-likelihood of a Gaussian process whose mean is linear in some features, from quadratic forms."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from hck.backend import linalg
from hck.hierarchy.factor import Factor
from hck.hierarchy.smooth import Filtered

_ROUNDING = 64  # units in the last place by which correlations of trends may be off
_TINY = 1e-8  # of the size of a trend, beside which another is none
_DOUBT = 1e-2  # of correlations: rounding errors are not as large


@dataclass
class Likelihood:
    """log N(y; H β, K_h + noise) at the best β (by generalised least squares), summed over columns."""

    value: Tensor
    gradient: list[Tensor]  # with respect to each of the parameters that were asked for
    coefficients: Tensor  # β (trends, columns)
    precision: Tensor  # Hᵀ (K_h + noise)⁻¹ H (trends, trends), the inverse of the covariance of β


def evidence_from_gram(
    gram: Tensor, log_determinant: Tensor | float, n: int, columns: int = 1, moments: Tensor | None = None
) -> Likelihood:
    """The log-likelihood of y (n, columns), without gradient, for any matrix K.

    Given [y H]ᵀ K⁻¹ [y H], and HᵀH if that is known; see `half_covariance`.
    """
    beta = least_squares(gram[columns:, columns:], gram[columns:, :columns], moments)
    square = gram[:columns, :columns].diagonal().sum() - (gram[columns:, :columns] * beta).sum()
    value = -(square + columns * (log_determinant + n * math.log(2 * math.pi))) / 2
    return Likelihood(value, [], beta, gram[columns:, columns:])


def least_squares(precision: Tensor, right: Tensor, moments: Tensor | None = None) -> Tensor:
    """β of generalised least squares, from Hᵀ (K_h + noise)⁻¹ H and Hᵀ (K_h + noise)⁻¹ y: (trends, columns).

    Of trends that say the same, any combination that does.
    """
    half = half_covariance(precision, moments)
    return half @ (half.mT @ right)


def half_covariance(precision: Tensor, moments: Tensor | None = None) -> Tensor:
    """A root of the covariance of β, given its inverse: shape (trends, trends or fewer).

    It is without combinations of trends that all observations have alike. HᵀH says which these are; in its
    place the precision does, but rounding errors make more of it, as much more as K_h is badly conditioned.
    """
    if not len(precision):
        return precision
    inner = precision.cpu()
    basis = _told_apart(inner if moments is None else moments.cpu())
    values, vectors = torch.linalg.eigh(basis.mT @ inner @ basis)
    known = values > values.max() * len(values) * torch.finfo(values.dtype).eps
    return (basis @ (vectors[:, known] * values[known].rsqrt())).to(precision.device)


def tells_apart(precision: Tensor) -> bool:
    """Whether observations tell all trends apart beyond doubt, whatever rounding errors did."""
    return len(precision) < 2 or bool(_correlations(precision.cpu())[0].min() > _DOUBT)


def _told_apart(moments: Tensor) -> Tensor:
    """Combinations of trends, (trends, combinations), that observations of these moments tell apart."""
    values, vectors, size = _correlations(moments)
    known = values > _ROUNDING * len(values) * torch.finfo(values.dtype).eps
    return vectors[:, known] / size[:, None]


def _correlations(moments: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Eigenvalues and eigenvectors of the correlations of trends, and sizes that these are without."""
    size = moments.diagonal().clamp_min(0).sqrt()
    size = size.clamp_min(max(float(size.max()) * _TINY, torch.finfo(size.dtype).tiny))
    return *torch.linalg.eigh(moments / size / size[:, None]), size


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
