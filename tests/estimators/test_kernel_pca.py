"""Kernel PCA against scikit-learn, and against dense algebra for every approximation."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from sklearn.datasets import make_circles
from sklearn.decomposition import KernelPCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from hck import HCKKernelPCA
from hck.approximations import Iterative, make_approximation
from hck.approximations.make import NAMES
from hck.estimators.kernel_pca import principal_components
from hck.kernels import CallableKernel, Gaussian

pytestmark = pytest.mark.usefixtures("one_thread")

RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(130, 3)), RNG.normal(size=(17, 3))
EVERY = [*NAMES, Iterative("nystrom")]


@parametrize_with_checks(
    [
        HCKKernelPCA(),
        HCKKernelPCA(rank=4, kernel="laplace", partition="kd"),
        HCKKernelPCA(approximation="nystrom", rank=8),
        HCKKernelPCA(approximation="fourier", rank=8, dtype="float32"),
        HCKKernelPCA(approximation=Iterative(), rank=4),
        HCKKernelPCA(fit_inverse_transform=True, rank=16),
    ]
)
def test_sklearn_checks(estimator, check):
    check(estimator)


# As in scikit-learn -------------------------------------------------------------------------------------


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


# Against dense algebra ----------------------------------------------------------------------------------


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
        monkeypatch.setattr("hck.approximations.quality._DENSE", 10)
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


def test_what_transform_does_not_need_is_not_kept():
    x = RNG.normal(size=(3000, 3))
    model = HCKKernelPCA(2, rank=64, random_state=0).fit(x)
    stored = make_approximation("hierarchical", "gaussian", x, 64).nbytes
    assert len(pickle.dumps(model)) < stored / 5


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


# Kinds of points ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["hierarchical", "exact", "nystrom", "fourier", Iterative(None)], ids=str)
def test_sparse_matrices_and_tensors(how):
    settings = {"lengthscale": 0.8, "approximation": how, "rank": 20, "random_state": 0, "partition": "kd"}
    x = np.where(np.abs(X) < 0.7, 0, X)
    dense, sparse = HCKKernelPCA(2, **settings).fit(x), HCKKernelPCA(2, **settings).fit(sp.csr_matrix(x))
    np.testing.assert_allclose(sparse.transform(sp.csr_matrix(NEW)), dense.transform(NEW), atol=1e-6)
    np.testing.assert_allclose(sparse.transform(NEW), dense.transform(NEW), atol=1e-6)
    tensor = HCKKernelPCA(2, **settings)
    embedded = tensor.fit_transform(torch.from_numpy(x))
    assert isinstance(embedded, torch.Tensor)
    np.testing.assert_allclose(embedded.numpy(), dense.fit_transform(x), atol=1e-9)
    np.testing.assert_allclose(
        tensor.transform(torch.from_numpy(NEW)).numpy(), dense.transform(NEW), atol=1e-9
    )
    assert isinstance(tensor.transform(NEW), np.ndarray)


def shared_letters(a, b):
    """Of words, relative to their lengths: an inner product."""
    return np.array(
        [[len(set(s) & set(t)) / np.sqrt(len(set(s)) * len(set(t))) for t in b] for s in a], dtype=float
    )


def test_objects():
    words = [a + b + c for a in "abcdef" for b in "ghijk" for c in "lmno"]
    model = HCKKernelPCA(3, kernel=shared_letters, partition="kernel", rank=120, random_state=0).fit(words)
    theirs = KernelPCA(3, kernel="precomputed").fit(shared_letters(words, words))
    np.testing.assert_allclose(model.eigenvalues_, theirs.eigenvalues_)
    assert model.transform(["agl", "unseen"]).shape == (2, 3)
    with pytest.raises(ValueError, match="dense points"):
        HCKKernelPCA(
            kernel=shared_letters, partition="kernel", rank=120, fit_inverse_transform=True
        ).fit(words)  # fmt: skip


def test_tables_and_names():
    table = pd.DataFrame(X, columns=list("abc"))
    model = HCKKernelPCA(2, rank=20, random_state=0).set_output(transform="pandas").fit(table)
    assert list(model.feature_names_in_) == list("abc")
    assert list(model.transform(table).columns) == ["hckkernelpca0", "hckkernelpca1"]
    table["colour"] = np.where(X[:, 0] > 0, "red", "blue")
    assert HCKKernelPCA(rank=20).fit(table).transform(table[:5]).shape == (5, 2)
    with pytest.raises(ValueError, match="dense points"):
        HCKKernelPCA(rank=20, fit_inverse_transform=True).fit(table)


def test_in_a_pipeline():
    x, y = make_circles(1200, factor=0.3, noise=0.05, random_state=0)
    pipeline = make_pipeline(HCKKernelPCA(2, lengthscale=0.4, rank=32, random_state=0), LogisticRegression())
    assert pipeline.fit(x, y).score(x, y) > 0.99


# Odd input ----------------------------------------------------------------------------------------------


def test_points_that_are_all_the_same_with_a_jitter():
    """It makes them a little different from one leaf to another."""
    model = HCKKernelPCA(2, rank=4, random_state=0).fit(np.ones((700, 2)))
    assert model.eigenvalues_.max() < 1e-7 * 700
    assert np.isfinite(model.transform(NEW[:, :2])).all()


@pytest.mark.parametrize("how", ["exact", "nystrom", Iterative(None)], ids=str)
@pytest.mark.parametrize("n", [10, 700])
def test_points_that_are_all_the_same(n, how):
    model = HCKKernelPCA(2, approximation=how, rank=4, random_state=0).fit(np.ones((n, 2)))
    np.testing.assert_array_equal(model.eigenvalues_, 0)
    np.testing.assert_array_equal(model.explained_variance_ratio_, 0)
    np.testing.assert_array_equal(model.transform(NEW[:, :2]), 0)


def test_few_different_points():
    """More steps than the matrix has eigenvalues that are not 0."""
    x = np.repeat(X[:3], 300, axis=0)
    model = HCKKernelPCA(4, lengthscale=1.0, rank=1000).fit(x)
    theirs = KernelPCA(4, kernel="rbf", gamma=0.5, eigen_solver="dense").fit(x)
    np.testing.assert_allclose(model.eigenvalues_, theirs.eigenvalues_, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(model.transform(X)[:, :2], theirs.transform(X)[:, :2], atol=1e-8)
    np.testing.assert_allclose(model.transform(X)[:, 2:], 0)


def test_more_components_than_features():
    model = HCKKernelPCA(30, lengthscale=0.8, approximation="nystrom", rank=20, random_state=0).fit(X)
    assert model.transform(NEW).shape == (17, 30)
    assert (model.eigenvalues_[20:] == 0).all()
    assert (model.transform(NEW)[:, 20:] == 0).all()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 131}, "n_components=131 is more than n_samples=130"),
        ({"n_components": 0}, "n_components"),
        ({"n_components": None}, "n_components"),
        ({"n_components": 1.5}, "n_components"),
        ({"approximation": "nearest"}, "approximation"),
        ({"tol": -1}, "tol"),
        ({"alpha": -1}, "alpha"),
        ({"rank": 0}, "rank"),
        ({"lengthscale": [1.0, 2.0]}, "2 lengthscales but the points have 3 features"),
        ({"kernel": "gauss"}, "unknown kernel"),
        ({"kernel": Gaussian(1.0), "lengthscale": 1.0}, "lengthscale is for kernels given by name"),
        ({"lengthscale": [1.0, 2.0, 3.0], "fit_inverse_transform": True}, "one lengthscale"),
        ({"kernel": Gaussian([1.0, 2.0, 3.0]), "fit_inverse_transform": True}, "one lengthscale"),
    ],
)
def test_bad_parameters(parameters, message):
    model = HCKKernelPCA(**parameters)
    with pytest.raises(ValueError, match=message):
        model.fit(X)
    with pytest.raises(NotFittedError):
        model.transform(X)


def test_bad_input():
    with pytest.raises(ValueError, match="NaN"):
        HCKKernelPCA().fit(torch.full((5, 2), torch.nan))
    with pytest.raises(ValueError, match="empty"):
        HCKKernelPCA(kernel=shared_letters).fit([])
    model = HCKKernelPCA(rank=20).fit(X)
    with pytest.raises(ValueError, match="2 features"):
        model.transform(X[:, :2])
    with pytest.raises(NotFittedError, match="fit_inverse_transform=True"):
        model.inverse_transform(model.transform(X))
    with pytest.raises(ValueError, match="neither sparse data"):
        HCKKernelPCA(fit_inverse_transform=True).fit(sp.csr_matrix(X))


def test_same_seed_same_result():
    model = HCKKernelPCA(2, rank=20, random_state=3)
    np.testing.assert_array_equal(model.fit_transform(X), model.fit_transform(X))


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


def test_docstring_lists_every_parameter():
    for name in HCKKernelPCA().get_params():
        assert f"\n    {name} : " in HCKKernelPCA.__doc__


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
