"""Complex numbers are refused at every door, and gradients are left outside."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch

from hck import HCKClassifier, HCKGaussianProcessRegressor, HCKKernelPCA, HCKRegressor
from hck.approximations import TreeKernel
from hck.approximations.quality import effective_rank
from hck.hierarchy import Blueprint, ridge
from hck.kernels import CallableKernel, Gaussian
from hck.outofcore import as_rows
from hck.selection import search
from hck.settings import Settings

rng = np.random.default_rng(0)
X = rng.uniform(size=(30, 2))
y = np.sin(5 * X[:, 0]) + X[:, 1]
RIDGE = {"lengthscale": 0.5, "alpha": 0.1, "rank": 8, "random_state": 0}
MODELS = [
    HCKRegressor(**RIDGE),
    HCKClassifier(**RIDGE),
    HCKGaussianProcessRegressor(optimizer=None, rank=8, random_state=0),
    HCKKernelPCA(rank=8, fit_inverse_transform=True, random_state=0),
]
Z = X + 0.5j
BLUEPRINT = Blueprint.of(Gaussian(1.0), X, Settings(rank=8), 0)
CONTAINERS = {
    "array": Z,
    "single": Z.astype(np.complex64),
    "list": Z.tolist(),
    "objects": Z.astype(object),
    "CSR": sp.csr_matrix(Z),
    "COO": sp.coo_matrix(Z),
    "tensor": torch.from_numpy(Z),
    "table": pd.DataFrame(Z),
    "table of objects": pd.DataFrame(Z.astype(object)),
    "table with categories": pd.DataFrame({"a": ["x", "y"] * 15, "z": Z[:, 0]}),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_complex_points_are_refused(name):
    for model in MODELS:
        with pytest.raises(ValueError, match="Complex data not supported"):
            model.fit(CONTAINERS[name], (y > 1) * 1)
        if name != "table with categories":
            ask = getattr(model.fit(X, (y > 1) * 1), "predict", getattr(model, "transform", None))
            with pytest.raises(ValueError, match="Complex data not supported"):
                ask(CONTAINERS[name])


def complex_kernel(a, b):
    return np.exp(-np.abs(a[:, :1] - b[:, 0])) + 0.5j


DOORS = {
    "targets": lambda: HCKRegressor(**RIDGE).fit(X, y + 1j),
    "weights": lambda: HCKRegressor(**RIDGE).fit(X, y, np.ones(30) + 1j),
    "landmarks": lambda: HCKRegressor(**RIDGE, landmarks=Z[:4]).fit(X, y),
    "kernel": lambda: HCKRegressor(**{**RIDGE, "lengthscale": None}, kernel=complex_kernel).fit(X, y),
    "kernel of tensors": lambda: CallableKernel(lambda a, b: (a @ b.mT) * 1j, batched=True)(X),
    "variances": lambda: MODELS[2].fit(X, y, np.ones(30) + 1j),
    "trend": lambda: HCKGaussianProcessRegressor(trend=lambda x: x[:, :1] + 1j, rank=8).fit(X, y),
    "parameters": lambda: MODELS[2].fit(X, y).log_marginal_likelihood(MODELS[2].theta_ + 1j),
    "draws": lambda: HCKGaussianProcessRegressor(rank=8).sample_prior(Z),
    "way back": lambda: MODELS[3].fit(X).inverse_transform(Z),
    "eigenvalues": lambda: effective_rank(np.array([3.0, 1.0 + 1j]), noise=1.0),
    "search": lambda: search(X, y + 1j, [Gaussian(1.0)], [0.1], rank=8),
    "right-hand sides": lambda: ridge(BLUEPRINT, 0.1, torch.from_numpy(y + 1j)),
    "noise": lambda: ridge(BLUEPRINT, torch.full((30,), 0.1 + 1j), torch.from_numpy(y)),
    "columns": lambda: TreeKernel(BLUEPRINT).solve(0.1, torch.from_numpy(y + 1j)),
    "values of a kernel": lambda: Gaussian(1.0)(Z, X),
    "values for tensors": lambda: Gaussian(1.0)(torch.from_numpy(Z)),
    "sparse values": lambda: Gaussian(1.0)(sp.csr_matrix(Z)),
}


@pytest.mark.parametrize("door", DOORS)
def test_complex_numbers_are_refused_elsewhere(door):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as programs have it that lose the imaginary part
        with pytest.raises(ValueError, match="Complex data not supported"):
            DOORS[door]()


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_gradients_are_left_outside(model):
    labels = (y > 1) * 1.0
    wanting = torch.from_numpy(X.copy()).requires_grad_()
    model.fit(X, labels)
    ask = "transform" if isinstance(model, HCKKernelPCA) else "predict"
    expected = getattr(model, ask)(X)
    model.fit(wanting, torch.from_numpy(labels).requires_grad_())
    np.testing.assert_array_equal(getattr(model, ask)(list(wanting)), expected)
    for x in (wanting, wanting * 1):  # a leaf of the graph, and what was computed from it
        found = getattr(model, ask)(x)
        assert not found.requires_grad
        np.testing.assert_array_equal(found, expected)


def test_gradients_are_left_outside_by_the_rest():
    wanting = torch.from_numpy(X.copy()).requires_grad_()
    model = HCKGaussianProcessRegressor(optimizer=None, rank=8, trend="linear", random_state=0)
    model.fit(wanting, y, torch.full((30,), 0.1, dtype=torch.float64, requires_grad=True))
    for found in (*model.predict(wanting, return_std=True), model.sample_prior(wanting)):
        assert not found.requires_grad
    assert not model.sample_posterior(wanting).requires_grad
    scale = torch.tensor([0.4, 0.6], dtype=torch.float64, requires_grad=True)
    ridge = HCKRegressor(**{**RIDGE, "lengthscale": scale}).fit(wanting, y)
    again = HCKRegressor(**{**RIDGE, "lengthscale": None}, kernel=Gaussian(scale), landmarks=wanting[:4])
    assert not any(each.fit(wanting, y).predict(wanting).requires_grad for each in (ridge, again))
    np.testing.assert_array_equal(next(as_rows(wanting).blocks(5)), X[:5])
