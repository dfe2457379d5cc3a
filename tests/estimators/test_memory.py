"""What does not fit into memory is refused before it is allocated, and the error says what to do."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import hck
from hck.approximations import make_approximation
from hck.approximations.eigenvectors import leading
from hck.backend import memory
from hck.estimators import process_draws
from hck.hierarchy import HierarchicalKernel
from hck.kernels import Gaussian
from hck.points import KernelBlocks, as_points, as_points_like

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(300, 2)), RNG.normal(size=300)
MANY = np.zeros((300_000, 2))  # of which all pairs take 720 GB
SETTINGS = {"rank": 8, "optimizer": None, "random_state": 0}


@pytest.fixture
def little(monkeypatch):
    """A machine with little memory, so that nothing large is asked for even where this is not refused."""
    monkeypatch.setattr(memory, "free_bytes", lambda device: 10**5)
    monkeypatch.setattr(memory, "_SMALL", 1000)


def refused(what):
    return pytest.raises(MemoryError, match=rf"{what}.* takes [\d,.]+ [TGMk]B, but .*: \w+")


def test_says_what_is_needed_and_what_is_free(monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda device: 10**9)
    memory.require_bytes(10**9, torch.device("cpu"), "this", "do that")
    text = r"^this takes 720 GB, but 1 GB are free on 'cuda:1': do that$"
    with pytest.raises(MemoryError, match=text):
        memory.require_bytes(720e9, torch.device("cuda:1"), "this", "do that")
    with pytest.raises(MemoryError, match=r"5 MB, but 4 MB are allowed by memory_budget"):
        memory.require_bytes(5e6, torch.device("cpu"), "this", "do that", 4e6)


@pytest.mark.parametrize(
    "approximation",
    ["hierarchical", "compositional", "independent", "exact", "nystrom", "fourier", "tapered"],
)
def test_covariances(approximation):
    model = hck.HCKGaussianProcessRegressor(approximation=approximation, **SETTINGS, ard=False).fit(X, Y)
    with refused("the covariance between 300,000 points"):
        model.predict(MANY, return_cov=True)
    if approximation == "tapered":
        with refused("the covariance between 300,000 points"):
            model.sample_posterior(MANY)
    with refused("drawing 1000000000 functions at 300 points"):
        model.sample_posterior(X, 10**9)
    with refused("drawing 1000000000 functions at 300 points"):
        model.sample_prior(X, 10**9)
    mean, cov = model.predict(X[:5], return_cov=True)
    assert mean.shape == (5,)
    assert cov.shape == (5, 5)


def test_dense_matrices(little):
    points = as_points(X)
    with refused("a kernel's matrix of 300 × 300"):
        KernelBlocks.between(Gaussian(1.0), points, points).tensor()
    with refused("the dense matrix of 300 points"):
        HierarchicalKernel.build(Gaussian(1.0), X, 8).to_dense()
    with refused("all eigenvectors of 300 points"):
        leading(make_approximation("hierarchical", "gaussian", X, 8), 3)
    with refused("a dense copy of sparse X"):
        as_points_like(sp.csr_matrix((300_000, 2)), points)


def test_one_leaf_that_is_too_large():
    model = hck.HCKGaussianProcessRegressor(**{**SETTINGS, "rank": 4}, leaf_size=len(MANY))
    with refused("a Gaussian process of 300,000 points"):
        model.fit(RNG.normal(size=MANY.shape), np.zeros(len(MANY)))


@pytest.mark.parametrize("optimizer", [None, "lbfgs"])
def test_the_budget_of_a_process(optimizer):
    model = hck.HCKGaussianProcessRegressor(
        "matern32", rank=32, optimizer=optimizer, max_iter=2, memory_budget="100 kB"
    )
    with refused("a Gaussian process of 300 points"):
        model.fit(X, Y)
    model.set_params(memory_budget="20 MB").fit(X, Y)


@pytest.mark.parametrize(("targets", "trees"), [(5, 1), (1, 9)])
def test_covariances_of_several_targets_and_trees(monkeypatch, targets, trees):
    """One matrix for each of them is there at once."""
    y = np.stack([Y] * targets, 1)
    model = hck.HCKGaussianProcessRegressor(n_trees=trees, **SETTINGS).fit(X, y)
    monkeypatch.setattr(memory, "_SMALL", 1000)
    monkeypatch.setattr(memory, "free_bytes", lambda device: 6 * 8 * len(X) ** 2)
    with refused("the covariance between 300 points"):
        model.predict(X, return_cov=True)
    assert np.isfinite(model.predict(X[:100], return_cov=True)[1]).all()


@pytest.mark.parametrize("full", ["cpu", "elsewhere"])
def test_draws_need_room_where_they_are_made_and_where_they_go(monkeypatch, full):
    there = torch.device("cuda:1")
    monkeypatch.setattr(memory, "_SMALL", 1000)
    monkeypatch.setattr(
        memory, "free_bytes", lambda device: 0 if (device == there) == (full != "cpu") else 10**9
    )
    with refused("drawing 50 functions at 1000 points"):
        process_draws._check_count(50, 1000, 2, there)


def test_the_budget_of_a_process_of_classes():
    model = hck.HCKGaussianProcessClassifier("matern32", rank=32, optimizer=None, memory_budget="100 kB")
    with refused("a Gaussian process of 300 points"):
        model.fit(X, Y > 0)
