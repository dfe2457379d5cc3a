"""A diagonal metric is a lengthscale for each feature, whatever stands in for the kernel."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from hck.approximations import make_approximation
from hck.kernels import Gaussian, Laplace, Matern
from hck.points import KernelBlocks, SparsePoints, as_points
from hck.process import log_likelihood

RNG = np.random.default_rng(0)
X, NEW = (RNG.normal(size=(n, 3)) * (RNG.uniform(size=(n, 3)) < 0.8) for n in (70, 15))
Y = torch.from_numpy(np.sin(2 * X[:, :1]) + X[:, 1:2])
SCALE = np.array([0.5, 1.0, 4.0])
FULL = np.array([[1.0, 0.3], [-0.5, 1.0], [0.2, 2.0]])
OPTIONS = {"rank": 8, "leaf_size": 10, "generator": 0}
kinds = pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])


def pair(name="matern"):
    if name == "laplace":
        return Laplace(SCALE), Laplace(1.0, metric=np.diag(1 / SCALE))
    return 2.0 * Matern(SCALE), 2.0 * Matern(2.0, metric=np.diag(2 / SCALE))


def compare(kernels, x, new, approximation, **options):
    """All of two approximations: trees, landmarks, matrices, predictions."""
    expected, found = (make_approximation(approximation, k, x, **OPTIONS, **options) for k in kernels)
    if hasattr(expected, "blueprint"):
        assert torch.equal(found.tree.order, expected.tree.order)
        assert torch.equal(found.tree.parent, expected.tree.parent)
        assert torch.equal(found.tree.route(as_points(new)), expected.tree.route(as_points(new)))
        mine, theirs = (made.blueprint.landmarks for made in (found, expected))
        assert torch.equal(mine.blocks.index, theirs.blocks.index)
        np.testing.assert_allclose(dense(mine.points), dense(theirs.points), rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.cross(new), expected.cross(new), rtol=0, atol=1e-10)
    values = [made.factor(0.1).predictor(Y)(as_points(new)) for made in (found, expected)]
    np.testing.assert_allclose(*values, rtol=0, atol=1e-9)


def dense(points):
    return points.x.toarray() if isinstance(points, SparsePoints) else points.x.numpy()


@kinds
@pytest.mark.parametrize("partition", ["random_projection", "pca", "kd", "kmeans", "kernel"])
@pytest.mark.parametrize("landmarks", ["uniform", "kmeans", "farthest"])
def test_of_trees(kind, partition, landmarks):
    compare(pair(), kind(X), kind(NEW), "hierarchical", partition=partition, landmarks=landmarks)


@kinds
@pytest.mark.parametrize("name", ["matern", "laplace"])
@pytest.mark.parametrize("approximation", ["compositional", "independent", "nystrom", "fourier", "exact"])
def test_of_others(kind, name, approximation):
    compare(pair(name), kind(X), kind(NEW), approximation)


@pytest.mark.parametrize("name", ["matern", "laplace"])
def test_of_tapered(name):
    compare(pair(name), X, NEW, "tapered")


@kinds
@pytest.mark.parametrize("partition", ["random_projection", "pca", "kmeans"])
@pytest.mark.parametrize("landmarks", ["uniform", "kmeans", "farthest"])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_points_that_are_multiplied_before(kind, partition, landmarks, k):
    """The same tree and values as for points that the metric was applied to; also of fewer columns."""
    metric = np.random.default_rng(k).normal(size=(3, k))
    options = {"partition": partition, "landmarks": landmarks}
    found = make_approximation("hierarchical", Gaussian(0.7, metric=metric), kind(X), **OPTIONS, **options)
    expected = make_approximation(
        "hierarchical", Gaussian(0.7), X @ (metric / 0.7) * 0.7, **OPTIONS, **options
    )
    assert torch.equal(found.tree.order, expected.tree.order)
    np.testing.assert_allclose(found.cross(kind(NEW)), expected.cross(NEW @ metric), rtol=0, atol=1e-7)
    if landmarks == "kmeans":
        mine, theirs = (dense(made.blueprint.landmarks.points) for made in (found, expected))
        np.testing.assert_allclose(mine @ metric, theirs, rtol=0, atol=1e-9)
        assert np.abs(mine).max() < 2 * np.abs(X).max()


@kinds
@pytest.mark.parametrize("approximation", ["hierarchical", "nystrom", "fourier", "exact", "tapered"])
def test_gradient_of_the_likelihood(kind, approximation):
    """By the metric, as by anything else of a kernel."""
    if approximation == "tapered" and kind is not np.asarray:
        pytest.skip("for dense points only")
    metric = torch.from_numpy(FULL.copy()).requires_grad_()
    made = make_approximation(approximation, 1.5 * Matern(0.8, metric=metric), kind(X), **OPTIONS)
    (found,) = log_likelihood(made, 0.1, Y, [metric]).gradient

    def value(metric):
        return float(log_likelihood(made.with_kernel(1.5 * Matern(0.8, metric=metric)), 0.1, Y).value)

    for i, j in ((0, 0), (1, 1), (2, 0)):
        move = np.zeros_like(FULL)
        move[i, j] = 1e-5
        expected = (value(FULL + move) - value(FULL - move)) / 2e-5
        assert float(found[i, j]) == pytest.approx(expected, rel=1e-5, abs=1e-5)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device")
@kinds
@pytest.mark.parametrize("partition", ["random_projection", "pca", "kd", "kmeans"])
@pytest.mark.parametrize("landmarks", ["uniform", "kmeans", "farthest"])
@pytest.mark.parametrize("name", ["matern", "laplace"])
def test_on_a_gpu(kind, partition, landmarks, name):
    """The same values and gradients as on the CPU, for points and a metric that are there."""
    kernel = pair(name)[1]
    options = {**OPTIONS, "partition": partition, "landmarks": landmarks}
    here, there = (
        make_approximation("hierarchical", kernel, as_points(kind(X)).to(torch.device(device)), **options)
        for device in ("cpu", "cuda")
    )
    new = as_points(kind(NEW))
    found = there.factor(0.1).predictor(Y.cuda())(new.to(torch.device("cuda")))
    torch.testing.assert_close(found.cpu(), here.factor(0.1).predictor(Y)(new), rtol=1e-6, atol=1e-6)
    pairs = [KernelBlocks.between(made.kernel, made.points, made.points) for made in (here, there)]
    weight = torch.ones(1, len(X), len(X), dtype=torch.float64)
    slopes = [
        made.kernel.gradient_of_metric(each, weight.to(made.device))
        for made, each in zip((here, there), pairs, strict=True)
    ]
    torch.testing.assert_close(slopes[1].cpu(), slopes[0], rtol=1e-7, atol=1e-7)


def test_kernels_of_kernels():
    metric = np.diag(1 / SCALE)
    kernels = (
        Matern(SCALE) + Laplace([1.0, 2.0, 3.0]),
        Matern(1.0, metric=metric) + Laplace([1.0, 2.0, 3.0]),
    )
    # the matrices side by side have six columns, and directions are drawn there: other trees, the same values
    for approximation in ("nystrom", "exact", "compositional"):
        expected, found = (make_approximation(approximation, k, X, **OPTIONS) for k in kernels)
        assert found.cross(NEW).shape == expected.cross(NEW).shape
    np.testing.assert_allclose(kernels[1](X), kernels[0](X), rtol=0, atol=1e-12)
