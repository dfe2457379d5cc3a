"""The largest eigenvalues of an approximation's matrix, and their eigenvectors."""

import numpy as np
import torch
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.utils import check_random_state
from torch import Tensor

from hck.approximations.base import Approximation
from hck.approximations.features import FeatureMap

_DENSE = 500  # points up to which all eigenvalues are computed


@torch.no_grad()
def leading(
    approximation: Approximation,
    count: int,
    centred: bool = False,
    tol: float = 0.0,
    random_state: int | np.random.RandomState | None = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """The largest eigenvalues of K̃ and their eigenvectors.

    Features: by the eigenvectors of their r × r covariance. Few points, or half as many eigenvalues as
    points: by those of the whole matrix. Else by Lanczos' method (ARPACK), with one product with K̃ for each
    step.

    On cadata, ijcnn1 and clusters SciPy's LOBPCG, which multiplies blocks of vectors, took 0.7 to 1.4 times
    as long for 3 and 10 eigenvalues, with larger residuals. torch's takes a matrix only, no products.

    Parameters
    ----------
    approximation : Approximation
    count : int
        How many, at most n.
    centred : bool, default=False
        Whether K̃ has its means taken away from rows and columns: H K̃ H, with H = I − 11ᵀ/n.
    tol : float, default=0
        The relative error of eigenvalues at which Lanczos' method stops; 0: the precision of the numbers.
    random_state : int, RandomState instance or None, default=0
        For the vector to start with.

    Returns
    -------
    values : ndarray of shape (count,)
        In descending order; 0 where they are lost in rounding.
    vectors : ndarray of shape (n, count)
        Of length 1; 0 for eigenvalues of features that are 0.
    """
    if isinstance(approximation, FeatureMap):
        values, axes, mean = feature_axes(approximation, centred)
        vectors = feature_vectors(approximation, values, axes, mean, count)
        filled = torch.cat([values, values.new_zeros(max(0, count - len(values)))])[:count]
        return filled.to(vectors.dtype).cpu().numpy(), vectors.cpu().numpy()
    points = approximation.points
    n, number = len(points), np.float64 if points.dtype == torch.float64 else np.float32

    def product(b: Tensor) -> Tensor:
        if not centred:
            return approximation @ b
        out = approximation @ (b - b.mean(0))
        return out - out.mean(0)

    if n <= _DENSE or 2 * count >= n:
        matrix = product(torch.eye(n, dtype=points.dtype, device=points.device)).double()
        values, vectors = torch.linalg.eigh((matrix + matrix.mT) / 2)
        first = slice(n - count, n)
        found = values[first].cpu().numpy(), vectors[:, first].cpu().numpy()
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


@torch.no_grad()
def feature_axes(approximation: FeatureMap, centred: bool) -> tuple[Tensor, Tensor, Tensor]:
    """The principal axes of features, less their mean if `centred`, in one pass over the points.

    Returns
    -------
    values : Tensor of shape (rank,)
        Squares of the features' singular values, in descending order and in float64; 0 where they are lost
        in rounding.
    axes : Tensor of shape (rank, rank)
        Columns of length 1.
    mean : Tensor of shape (rank,)
        Of the features; 0 if it is not taken away.
    """
    points, rank = approximation.points, approximation.rank
    gram = torch.zeros(rank, rank, dtype=torch.float64, device=points.device)
    origin, total, power = gram.new_zeros(rank), gram.new_zeros(rank), 0.0
    for part, phi in approximation.chunks(points):
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
    return values.flip(0), axes.flip(1), origin


@torch.no_grad()
def feature_vectors(
    approximation: FeatureMap, values: Tensor, axes: Tensor, mean: Tensor, count: int
) -> Tensor:
    """The first eigenvectors of K̃ from what `feature_axes` finds: shape (n, count).

    They are 0 where the eigenvalue is, and beyond the rank.
    """
    points = approximation.points
    scaled = torch.where(values > 0, axes / values.sqrt(), 0)[:, :count]
    found = approximation.expand(points, scaled.to(points.dtype)) - (mean @ scaled).to(points.dtype)
    return torch.nn.functional.pad(found, (0, count - found.shape[1]))
