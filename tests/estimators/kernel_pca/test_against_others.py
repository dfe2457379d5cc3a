"""Components against scikit-learn's and against dense algebra."""

import pickle

import numpy as np
import pytest
import torch
from sklearn.datasets import make_circles
from sklearn.decomposition import KernelPCA

from component_problem import NEW, RNG, X
from hck import HCKKernelPCA
from hck.approximations import Iterative, make_approximation
from hck.approximations.eigenvectors import principal_components
from hck.approximations.make import NAMES
from hck.kernels import CallableKernel, Gaussian

pytestmark = pytest.mark.usefixtures("one_thread")

EVERY = [*NAMES, Iterative("nystrom")]


@pytest.mark.parametrize("name", ["hierarchical", "compositional", "independent", "exact", "nystrom"])
@pytest.mark.parametrize(("n", "solver"), [(200, "dense"), (1500, "arpack")])
def test_one_leaf_is_exact_kernel_pca(n, solver, name):
    rng = np.random.default_rng(1)
    x, new = rng.normal(size=(n, 3)), rng.normal(size=(40, 3))
    x -= x.mean(0)
    theirs = KernelPCA(4, kernel="rbf", gamma=0.5, eigen_solver=solver).fit(x)
    ours = HCKKernelPCA(4, lengthscale=1.0, approximation=name, rank=n).fit(x)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-8)
    np.testing.assert_allclose(ours.eigenvectors_, theirs.eigenvectors_, rtol=0, atol=1e-8)
    np.testing.assert_allclose(ours.fit_transform(x), theirs.fit_transform(x), rtol=0, atol=1e-8)
    np.testing.assert_allclose(ours.transform(x), theirs.transform(x), rtol=0, atol=1e-8)
    np.testing.assert_allclose(ours.transform(new), theirs.transform(new), rtol=0, atol=1e-8)


def test_the_way_back_is_as_good_as_in_scikit_learn():
    points, _ = make_circles(400, factor=0.3, noise=0.05, random_state=0)
    settings = {"fit_inverse_transform": True, "alpha": 1e-3}
    theirs = KernelPCA(4, kernel="rbf", gamma=5.0, **settings).fit(points)
    ours = HCKKernelPCA(4, lengthscale=0.1**0.5, rank=400, **settings).fit(points)
    errors = [np.square(m.inverse_transform(m.transform(points)) - points).mean() for m in (ours, theirs)]
    assert errors[0] <= 1.1 * errors[1]
    assert errors[0] < 0.02
    back = ours.inverse_transform(torch.from_numpy(ours.transform(points)))
    np.testing.assert_allclose(back.numpy(), ours.inverse_transform(ours.transform(points)))


def made(how, x, dtype=torch.float64):
    return make_approximation(how, Gaussian(0.8), torch.as_tensor(x, dtype=dtype), 20)


def centred(matrix):
    matrix = matrix - matrix.mean(0)
    return matrix - matrix.mean(1, keepdim=True)


@pytest.mark.parametrize("lanczos", [False, True])
@pytest.mark.parametrize("how", EVERY, ids=str)
def test_against_dense_algebra(how, lanczos, monkeypatch):
    monkeypatch.setattr("hck.approximations.features._AT_ONCE", 500)  # several chunks
    if lanczos:
        monkeypatch.setattr("hck.approximations.eigenvectors._DENSE", 10)
    approximation, n = made(how, X), len(X)
    k = approximation @ torch.eye(n, dtype=torch.float64)
    values, vectors = (part.flip(-1).numpy() for part in torch.linalg.eigh(centred(k)))
    found = principal_components(approximation, 3)
    np.testing.assert_allclose(found.values, values[:3], rtol=1e-8)
    signs = np.sign((found.vectors * vectors[:, :3]).sum(0))
    np.testing.assert_allclose(found.vectors, signs * vectors[:, :3], rtol=0, atol=1e-7)
    assert found.total == pytest.approx(values.sum(), rel=1e-8)
    across = approximation.cross(NEW).mT
    rest = across - across.mean(1, keepdim=True) - k.mean(0) + k.mean()
    expected = rest.numpy() @ found.vectors / np.sqrt(found.values)
    np.testing.assert_allclose(found.predictor(NEW) - found.mean, expected, rtol=0, atol=1e-7)
    np.testing.assert_allclose(found.predictor(X) - found.mean, found.embedding, rtol=0, atol=1e-7)


@pytest.mark.parametrize("how", EVERY, ids=str)
def test_extension_from_weights(how):
    approximation, w = made(how, X), torch.from_numpy(RNG.normal(size=(130, 2)))
    expected = approximation.cross(NEW).mT @ w
    function = approximation.extend(w)
    torch.testing.assert_close(function(NEW), expected, rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(function(X), approximation @ w, rtol=1e-8, atol=1e-8)
    assert function.nbytes > 0
    assert type(function.points) is type(approximation.points)
    matrix = approximation @ torch.eye(130, dtype=torch.float64)
    torch.testing.assert_close(approximation.diagonal(), matrix.diagonal(), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("how", EVERY, ids=str)
def test_transform_of_the_training_points(how, dtype):
    model = HCKKernelPCA(3, lengthscale=0.8, approximation=how, rank=20, random_state=0, dtype=dtype)
    first = model.fit_transform(X)
    assert first.dtype == model.transform(X).dtype == dtype
    assert first.dtype == model.eigenvalues_.dtype == model.eigenvectors_.dtype
    np.testing.assert_allclose(model.transform(X), first, rtol=0, atol=1e-9 if dtype == "float64" else 2e-4)
    np.testing.assert_allclose(first.mean(0), 0, atol=1e-9 if dtype == "float64" else 2e-4)
    np.testing.assert_allclose(model.explained_variance_, first.var(0), rtol=1e-4)
    assert 0 < model.explained_variance_ratio_.sum() < 1
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).transform(NEW), model.transform(NEW))


def test_all_components_explain_everything():
    for how in ("hierarchical", "nystrom"):
        model = HCKKernelPCA(130, lengthscale=0.8, approximation=how, rank=20, random_state=0).fit(X)
        assert model.explained_variance_ratio_.sum() == pytest.approx(1)
        assert model.eigenvalues_[-1] == 0
        np.testing.assert_allclose(model.transform(NEW)[:, -1], 0)


def test_single_precision_is_close():
    x = RNG.normal(size=(600, 3)) * [3, 2, 1]
    double, single = (
        HCKKernelPCA(2, lengthscale=3.0, rank=600, dtype=dtype).fit_transform(x)
        for dtype in ("float64", "float32")
    )
    np.testing.assert_allclose(single, double, atol=1e-4)


def test_looser_tolerance_takes_fewer_products(monkeypatch):
    approximation, products = made("hierarchical", RNG.normal(size=(900, 3))), []
    once = type(approximation).__matmul__

    def count(self, b):
        products.append(b.shape)
        return once(self, b)

    monkeypatch.setattr(type(approximation), "__matmul__", count)
    tight = principal_components(approximation, 2).values
    before = len(products)
    loose = principal_components(approximation, 2, tol=1e-3).values
    assert before < 150
    assert len(products) < 1.6 * before
    np.testing.assert_allclose(loose, tight, rtol=1e-3)


def test_a_batched_function():
    def function(a, b):
        return torch.exp(-torch.cdist(a, b).square() / 2)

    model = HCKKernelPCA(2, kernel=CallableKernel(function, batched=True), rank=20, random_state=0).fit(X)
    named = HCKKernelPCA(2, rank=20, random_state=0).fit(X)
    np.testing.assert_allclose(model.transform(NEW), named.transform(NEW), atol=1e-7)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device")
@pytest.mark.parametrize("how", EVERY, ids=str)
def test_on_a_gpu(how):
    x = RNG.normal(size=(700, 3))
    settings = {"lengthscale": 0.8, "approximation": how, "rank": 700, "random_state": 0}
    if how in ("fourier", "tapered"):
        settings["rank"] = 64
    model = HCKKernelPCA(3, **settings, fit_inverse_transform=True)
    embedded = model.fit_transform(torch.from_numpy(x).cuda())
    assert embedded.device.type == "cuda"
    torch.testing.assert_close(model.transform(torch.from_numpy(x).cuda()), embedded, rtol=0, atol=1e-7)
    assert model.inverse_transform(embedded).shape == x.shape
    if how != "fourier":  # whose frequencies are drawn elsewhere
        expected = HCKKernelPCA(3, **settings).fit_transform(x)
        np.testing.assert_allclose(embedded.cpu().numpy(), expected, rtol=0, atol=1e-6)
