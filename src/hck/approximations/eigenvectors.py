"""The largest eigenvalues of an approximation's matrix, their eigenvectors, and principal components."""

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import torch
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.utils import check_random_state
from sklearn.utils.extmath import svd_flip
from torch import Tensor
from torch.nn.functional import pad

from hck.approximations.base import Approximation
from hck.approximations.features import FeatureMap, FeaturePredictor
from hck.backend.interrupts import interruptible
from hck.backend.memory import require_bytes
from hck.hierarchy.forest import Predictor

_DENSE = 500  # points up to which all eigenvalues are computed

RandomState: TypeAlias = int | np.random.RandomState | None


@torch.no_grad()
@interruptible
def leading(
    approximation: Approximation,
    count: int,
    centred: bool = False,
    tol: float = 0.0,
    random_state: RandomState = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """The largest eigenvalues of K̃ and their eigenvectors.

    Features: by the eigenvectors of their r × r covariance. Few points, or half as many eigenvalues as
    points: by those of the whole matrix. Else by Lanczos' method (ARPACK), with one product with K̃ for each
    step.

    On cadata, ijcnn1 and clusters SciPy's LOBPCG, which multiplies blocks of vectors, took 0.7 to 1.4 times
    as long for 3 and 10 eigenvalues, with larger residuals. torch's takes a matrix only, no products.

    Values (count,) are in descending order, 0 where they are lost in rounding; vectors (n, count) have length
    1, but are 0 for eigenvalues of features that are 0. At most n are asked for. If `centred`, K̃ has its
    means taken away from rows and columns: H K̃ H, with H = I − 11ᵀ/n. `tol` is the relative error of
    eigenvalues at which Lanczos' method stops, 0 for the precision of the numbers, and `random_state` for the
    vector to start with.
    """
    if isinstance(approximation, FeatureMap):
        first = FeatureAxes.of(approximation, centred).first(count)
        return first.values.to(approximation.dtype).cpu().numpy(), first.vectors().cpu().numpy()
    points = approximation.points
    n, number = len(points), np.float64 if points.dtype == torch.float64 else np.float32

    def product(b: Tensor) -> Tensor:
        if not centred:
            return approximation @ b
        out = approximation @ (b - b.mean(0))
        return out - out.mean(0)

    if n <= _DENSE or 2 * count >= n:
        what, instead = f"all eigenvectors of {n:,} points", "ask for fewer than half as many as points"
        require_bytes(5.0 * 8 * n * n, points.device, what, instead)
        matrix = product(torch.eye(n, dtype=points.dtype, device=points.device)).double()
        values, vectors = torch.linalg.eigh((matrix + matrix.mT) / 2)
        found = values[n - count :].cpu().numpy(), vectors[:, n - count :].cpu().numpy()
    else:

        def multiply(b: np.ndarray) -> np.ndarray:
            return product(torch.from_numpy(b).to(points.device)).cpu().numpy()

        # With a basis of 20 vectors 3 eigenvalues took 20 to 70 products on such data, with 12 20 to 100.
        size = max(20, 2 * count + 1)
        start = check_random_state(random_state).uniform(-1, 1, n).astype(number)
        operator = LinearOperator((n, n), matvec=multiply, dtype=number)
        found = eigsh(operator, count, which="LA", ncv=size, v0=start, tol=tol)
    order = found[0].argsort()[::-1]
    largest, least = found[0].max(), 1e-12 if number == np.float64 else 2e-7  # as in scikit-learn
    eigenvalues = np.where(found[0] > least * largest, found[0], 0)[order]
    return eigenvalues.astype(number), found[1][:, order].astype(number)


@dataclass(frozen=True)
class FeatureAxes:
    """The principal axes of features, in float64, those of the largest singular values first."""

    source: FeatureMap
    values: Tensor  # (axes,): squares of the features' singular values; 0 where they are lost in rounding
    axes: Tensor  # (rank, axes): columns of length 1
    mean: Tensor  # (rank,): of the features; 0 if it is not taken away

    @classmethod
    @torch.no_grad()
    def of(cls, source: FeatureMap, centred: bool) -> "FeatureAxes":
        """All of them, in one pass over the points."""
        points, rank = source.points, source.rank
        gram = torch.zeros(rank, rank, dtype=torch.float64, device=points.device)
        origin, total, power = gram.new_zeros(rank), gram.new_zeros(rank), 0.0
        for part, phi in source.chunks(points):
            phi = phi.double()
            power += float(phi.square().sum())
            if centred and part.start == 0:
                origin = phi.mean(0)  # close to the mean of all, so that little cancels
            phi = phi - origin
            total += phi.sum(0)
            gram.addmm_(phi.mT, phi)
        if centred:
            total /= len(points)
            gram.addr_(total, total, alpha=-len(points))
            origin = origin + total
        values, axes = torch.linalg.eigh(gram)
        values = torch.where(values > power * torch.finfo(points.dtype).eps, values, 0)
        return cls(source, values.flip(0), axes.flip(1), origin)

    def first(self, count: int) -> "FeatureAxes":
        """So many of them, those beyond the rank 0."""
        values, axes = (pad(part, (0, count))[..., :count] for part in (self.values, self.axes))
        return replace(self, values=values, axes=axes)

    @torch.no_grad()
    def vectors(self) -> Tensor:
        """The eigenvectors of K̃: shape (n, axes); 0 where the eigenvalue is."""
        points = self.source.points
        scaled = torch.where(self.values > 0, self.axes / self.values.sqrt(), 0)
        return self.source.expand(points, scaled.to(points.dtype)) - (self.mean @ scaled).to(points.dtype)


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
@interruptible
def principal_components(
    approximation: Approximation,
    count: int,
    tol: float = 0.0,
    random_state: RandomState = 0,
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
    every, kind = FeatureAxes.of(approximation, centred=True), approximation.dtype
    first, total = every.first(count), float(every.values.sum()) or 1.0
    signed, turned = svd_flip(first.vectors().cpu().numpy(), first.axes.mT.cpu().numpy())
    axes = torch.from_numpy(turned.T).to(every.mean)
    predictor = FeaturePredictor(approximation.without_points(), axes.to(kind))
    values, mean = first.values.to(kind).cpu().numpy(), (every.mean @ axes).to(kind)
    return Components(values, signed, total, predictor, mean)
