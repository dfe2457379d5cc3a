"""How close an approximation is to its kernel, and how much there is to approximate."""

from numbers import Integral

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from torch import Tensor

from hck.approximations.base import Approximation, part_of
from hck.approximations.eigenvectors import FeatureAxes, RandomState, leading
from hck.approximations.features import FeatureMap
from hck.backend.interrupts import interruptible
from hck.backend.parallel import chunks
from hck.kernels import make_kernel
from hck.kernels.inputs import real_array
from hck.kernels.registry import KernelLike
from hck.points import KernelBlocks, Points, PointsLike, as_points

__all__ = ["effective_rank", "error", "spectrum"]

_AT_ONCE = 2**24  # numbers of K̃ computed together


@torch.no_grad()
@interruptible
def error(
    approximation: Approximation, sample: int = 2000, norm: str = "fro", random_state: RandomState = 0
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
    index, some = _draw(approximation.points, sample, random_state)
    exact = KernelBlocks.between(approximation.kernel, some, some).tensor()[0].double()
    rest = _restrict(approximation, some, index).double() - exact
    if str(norm) == "fro":
        return float(rest.norm() / exact.norm())
    sizes = [torch.linalg.eigvalsh((matrix + matrix.mT) / 2).abs().max() for matrix in (rest, exact)]
    return float(sizes[0] / sizes[1])


@torch.no_grad()
@interruptible
def spectrum(
    source: Approximation | KernelLike,
    x: PointsLike = None,
    count: int = 10,
    sample: int = 2000,
    random_state: RandomState = 0,
) -> np.ndarray:
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
    some = _draw(points, sample, random_state)[1]
    _check_count(count, len(some))
    matrix = KernelBlocks.between(kernel.to(points.device, points.dtype), some, some).tensor()[0].double()
    values = torch.linalg.eigvalsh(matrix).flip(0)[:count].clamp_min(0)
    return (values * (len(points) / len(some))).cpu().numpy()


@torch.no_grad()
@interruptible
def effective_rank(source: Approximation | ArrayLike, noise: float) -> float:
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
        source = FeatureAxes.of(source, centred=False).values.cpu()
    if isinstance(source, Approximation):
        left = source.factor(noise).inverse_diagonal().double().sum()
        return float(len(source.points) - noise * left)
    if not np.iterable(source):
        raise TypeError(f"an approximation or eigenvalues are needed, got {source!r}: see make_approximation")
    values = real_array(source)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError("eigenvalues must be finite numbers, of shape (m,)")
    values = values.clip(min=0)
    return float((values / (values + noise)).sum())


def _draw(points: Points, sample: int, random_state: RandomState) -> tuple[Tensor, Points]:
    """Which of the points are in a sample, and these."""
    if not isinstance(sample, Integral) or sample < 1:
        raise ValueError(f"sample must be a whole number, at least 1, got {sample!r}")
    index = np.arange(len(points))
    if len(points) > sample:
        index = check_random_state(random_state).choice(len(points), sample, replace=False)
    chosen = torch.from_numpy(index).to(points.device)
    return chosen, points.take(chosen)


def _check_count(count: int, n: int) -> None:
    if not isinstance(count, Integral) or not 1 <= count <= n:
        raise ValueError(f"count must be a whole number from 1 to the {n} points, got {count!r}")


def _restrict(approximation: Approximation, some: Points, index: Tensor) -> Tensor:
    """K̃ between some of the training points."""
    if isinstance(approximation, FeatureMap):
        phi = approximation.features(some)
        return phi @ phi.mT
    out = torch.empty(len(index), len(index), dtype=some.dtype, device=some.device)
    for part in chunks(0, len(index), max(1, _AT_ONCE // len(approximation.points))):
        out[:, part] = approximation.cross(part_of(some, part))[index]
    return out
