"""Points that are alike, few or wrong."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.decomposition import KernelPCA
from sklearn.exceptions import NotFittedError

from component_problem import NEW, X, shared_letters
from hck import HCKKernelPCA
from hck.approximations import Iterative
from hck.kernels import Gaussian

pytestmark = pytest.mark.usefixtures("one_thread")


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
    with pytest.raises(ValueError, match="infinity"):
        HCKKernelPCA().fit(torch.full((5, 2), torch.inf))
    with pytest.raises(ValueError, match="empty"):
        HCKKernelPCA(kernel=shared_letters).fit([])
    model = HCKKernelPCA(rank=20).fit(X)
    with pytest.raises(ValueError, match="2 features"):
        model.transform(X[:, :2])
    with pytest.raises(NotFittedError, match="fit_inverse_transform=True"):
        model.inverse_transform(model.transform(X))
    with pytest.raises(ValueError, match="neither sparse data"):
        HCKKernelPCA(fit_inverse_transform=True).fit(sp.csr_matrix(X))
