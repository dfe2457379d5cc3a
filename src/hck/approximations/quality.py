"""How close an approximation is to its kernel, and how much there is to approximate."""

from numbers import Integral
from typing import Any

import numpy as np
import torch
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.utils import check_random_state
from torch import Tensor

from hck.approximations.base import Approximation
from hck.approximations.features import FeatureMap
from hck.kernels import make_kernel
from hck.points import KernelBlocks, Points, as_points

__all__ = ["effective_rank", "error", "spectrum"]

_DENSE = 500  # points up to which all eigenvalues are computed
_AT_ONCE = 2**24  # numbers of K̃ computed together


@torch.no_grad()
def error(
    approximation: Approximation, sample: int = 2000, norm: str = "fro", random_state: Any = 0
) -> float:
    """‖K − K̃‖ / ‖K‖ for a random sample of the training points, between each other.

    Parameters
    ----------
    approximation : Approximation
    sample : int, default=2000
        How many points to draw; all of them if there are not more.
    norm : {"fro", "2"}, default="fro"
        The Frobenius norm, or the largest of the absolute eigenvalues.
    random_state : int, RandomState instance or None, default=0

    Examples
    --------
    >>> import torch
    >>> from hck.approximations import TreeKernel
    >>> from hck.approximations.quality import error
    >>> from hck.kernels import Gaussian
    >>> x = torch.linspace(0, 1, 1000, dtype=torch.float64)[:, None]
    >>> coarse, fine = (TreeKernel.of("hierarchical", Gaussian(0.1), x, rank=r) for r in (5, 20))
    >>> error(fine) < 0.01 < error(coarse)
    True
    """
    if str(norm) not in ("fro", "2"):
        raise ValueError(f"norm must be 'fro' or '2', got {norm!r}")
    points = approximation.points
    index = _draw(len(points), sample, random_state).to(points.device)
    some = points.take(index)
    exact = KernelBlocks.between(approximation.kernel, some, some).tensor()[0].double()
    rest = _restrict(approximation, some, index).double() - exact
    if str(norm) == "fro":
        return float(rest.norm() / exact.norm())
    sizes = [torch.linalg.eigvalsh((matrix + matrix.mT) / 2).abs().max() for matrix in (rest, exact)]
    return float(sizes[0] / sizes[1])


@torch.no_grad()
def spectrum(
    source: Any, x: Any = None, count: int = 10, sample: int = 2000, random_state: Any = 0
) -> np.ndarray:  # fmt: skip
    """The largest eigenvalues of a kernel's matrix, in descending order.

    Parameters
    ----------
    source : Approximation, Kernel, or what `hck.kernels.make_kernel` takes
        Of an approximation, those of K̃ on all training points, by products with K̃. Of a kernel, those of K
        on a sample of m points, times n/m: an estimate of those on all points, exact if these are sampled.
    x : Points, array-like of shape (n, d), sparse matrix, or, for a function as the kernel, any sequence
        The points of a kernel; an approximation has its own.
    count : int, default=10
        How many.
    sample : int, default=2000
        m, for a kernel.
    random_state : int, RandomState instance or None, default=0

    Returns
    -------
    ndarray of shape (count,)

    Examples
    --------
    >>> import torch
    >>> from hck.approximations import TreeKernel
    >>> from hck.approximations.quality import spectrum
    >>> from hck.kernels import Gaussian
    >>> x = torch.linspace(0, 1, 1000, dtype=torch.float64)[:, None]
    >>> spectrum(TreeKernel.of("hierarchical", Gaussian(0.1), x, rank=20), count=3).round()
    array([241., 214., 176.])
    >>> spectrum(Gaussian(0.1), x, count=3).round()
    array([241., 214., 176.])
    """
    if isinstance(source, Approximation):
        if x is not None:
            raise ValueError("an approximation has points of its own: leave x=None")
        _check_count(count, len(source.points))
        return leading(source, count, random_state=random_state)[0].astype(float)
    if x is None:
        raise ValueError("x is needed: the points on which to evaluate the kernel")
    kernel = make_kernel(source)
    points = as_points(x, objects=kernel.takes_objects)
    index = _draw(len(points), sample, random_state)
    _check_count(count, len(index))
    some = points.take(index.to(points.device))
    matrix = KernelBlocks.between(kernel.to(points.device, points.dtype), some, some).tensor()[0].double()
    values = torch.linalg.eigvalsh(matrix).flip(0)[:count].clamp_min(0)
    return (values * (len(points) / len(index))).cpu().numpy()


@torch.no_grad()
def effective_rank(source: Any, noise: float) -> float:
    """tr(K̃ (K̃ + λ)⁻¹): how many directions stand out from noise of the variance λ.

    Also called effective dimension, or degrees of freedom: the trace of what turns observations into fitted
    values in ridge regression.

    Parameters
    ----------
    source : Approximation, or array-like of shape (m,)
        Or the eigenvalues; those that are missing count as 0.
    noise : float
        λ > 0.

    Examples
    --------
    >>> from hck.approximations.quality import effective_rank
    >>> effective_rank([3.0, 1.0, 0.0], noise=1.0)
    1.25
    """
    if not 0 < noise < float("inf"):
        raise ValueError(f"noise must be positive and finite, got {noise!r}")
    if isinstance(source, FeatureMap):
        source = feature_axes(source, centred=False)[0].cpu()
    if isinstance(source, Approximation):
        left = source.factor(noise).inverse_diagonal().double().sum()
        return float(len(source.points) - noise * left)
    if not np.iterable(source):
        raise TypeError(f"an approximation or eigenvalues are needed, got {source!r}: see make_approximation")
    values = np.asarray(source, dtype=float)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError("eigenvalues must be finite numbers, of shape (m,)")
    values = values.clip(min=0)
    return float((values / (values + noise)).sum())


# Eigenvectors ------------------------------------------------------------------------------------------


@torch.no_grad()
def leading(
    approximation: Approximation,
    count: int,
    centred: bool = False,
    tol: float = 0.0,
    random_state: Any = 0,
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
    """The principal axes of features, in one pass over the points.

    Parameters
    ----------
    approximation : FeatureMap
    centred : bool
        Whether to take the mean away from the features.

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
) -> Tensor:  # fmt: skip
    """The first eigenvectors of K̃ from what `feature_axes` finds: shape (n, count).

    They are 0 where the eigenvalue is, and beyond the rank.
    """
    points = approximation.points
    scaled = torch.where(values > 0, axes / values.sqrt(), 0)[:, :count]
    found = approximation.expand(points, scaled.to(points.dtype)) - (mean @ scaled).to(points.dtype)
    return torch.nn.functional.pad(found, (0, count - found.shape[1]))


# Samples -----------------------------------------------------------------------------------------------


def _draw(n: int, sample: int, random_state: Any) -> Tensor:
    """Which of n points are in a sample."""
    if not isinstance(sample, Integral) or sample < 1:
        raise ValueError(f"sample must be a whole number, at least 1, got {sample!r}")
    if n <= sample:
        return torch.arange(n)
    return torch.from_numpy(check_random_state(random_state).choice(n, sample, replace=False))


def _check_count(count: int, n: int) -> None:
    if not isinstance(count, Integral) or not 1 <= count <= n:
        raise ValueError(f"count must be a whole number from 1 to the {n} points, got {count!r}")


def _restrict(approximation: Approximation, some: Points, index: Tensor) -> Tensor:
    """K̃ between some of the training points."""
    if isinstance(approximation, FeatureMap):
        phi = approximation.features(some)
        return phi @ phi.mT
    out = torch.empty(len(index), len(index), dtype=some.dtype, device=some.device)
    step = max(1, _AT_ONCE // len(approximation.points))
    for i in range(0, len(index), step):
        here = torch.arange(i, min(i + step, len(index)), device=some.device)
        out[:, here] = approximation.cross(some.take(here))[index]
    return out
