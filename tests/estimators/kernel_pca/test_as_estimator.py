"""Components as an estimator: points of any kind, pipelines, seeds."""

import pickle
from inspect import getdoc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from sklearn.datasets import make_circles
from sklearn.decomposition import KernelPCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from component_problem import NEW, RNG, X, shared_letters
from hck import HCKKernelPCA
from hck.approximations import Iterative, make_approximation

pytestmark = pytest.mark.usefixtures("one_thread")


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


def test_what_transform_does_not_need_is_not_kept():
    x = RNG.normal(size=(3000, 3))
    model = HCKKernelPCA(2, rank=64, random_state=0).fit(x)
    stored = make_approximation("hierarchical", "gaussian", x, 64).nbytes
    assert len(pickle.dumps(model)) < stored / 5


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


def test_same_seed_same_result():
    model = HCKKernelPCA(2, rank=20, random_state=3)
    np.testing.assert_array_equal(model.fit_transform(X), model.fit_transform(X))


def test_docstring_lists_every_parameter():
    for name in HCKKernelPCA().get_params():
        assert f"\n{name} : " in getdoc(HCKKernelPCA)  # from 3.13 on, __doc__ has no margin
