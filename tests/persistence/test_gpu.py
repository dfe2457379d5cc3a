"""Models that were trained on a GPU and are used elsewhere, and the other way round."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from hck import HCKClassifier, HCKGaussianProcessRegressor, HCKKernelPCA, HCKRegressor
from hck.approximations import Iterative
from hck.kernels import InverseMultiquadric
from hck.partition import known_partitions
from hck.persistence import load, save

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device"),
]

RNG = np.random.default_rng(0)
X, NEW = RNG.uniform(size=(600, 3)), RNG.uniform(size=(100, 3))
Y = np.sin(4 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.05 * RNG.normal(size=600)
LABELS = np.array(["low", "high"])[(Y > 0.7).astype(int)]
GIVEN = {"kernel": "gaussian", "lengthscale": 0.5, "rank": 40, "random_state": 0}
NAMES = ["hierarchical", "compositional", "independent", "exact", "nystrom", "fourier", "tapered"]
EVERY = [*NAMES, Iterative(tolerance=1e-10)]
DEVICES = [("cpu", "cuda"), ("cuda", "cpu"), ("cuda", None)]


def moved(model, path, device):
    save(model, path / "model")
    found = load(path / "model", device)
    assert found.device == (device or "cuda")
    return found


@pytest.mark.parametrize(("first", "then"), DEVICES)
@pytest.mark.parametrize("approximation", EVERY, ids=str)
def test_ridge(tmp_path, approximation, first, then):
    model = HCKRegressor(**GIVEN, alpha=0.02, approximation=approximation, device=first).fit(X, Y)
    found = moved(model, tmp_path, then)
    np.testing.assert_allclose(found.predict(NEW), model.predict(NEW), rtol=0, atol=1e-8)
    assert found.forest_.members[0].points.device.type == (then or "cuda")


@pytest.mark.parametrize(("first", "then"), DEVICES)
@pytest.mark.parametrize("partition", known_partitions())
def test_partitions(tmp_path, partition, first, then):
    kernel = InverseMultiquadric([0.5, 1.0, 2.0])
    options = {"alpha": 0.02, "partition": partition, "n_trees": 2, "rank": 30, "random_state": 0}
    model = HCKClassifier(kernel, **options, scale="standard", device=first).fit(X, LABELS)
    found = moved(model, tmp_path, then)
    np.testing.assert_allclose(found.predict_proba(NEW), model.predict_proba(NEW), rtol=0, atol=1e-8)
    np.testing.assert_allclose(found.kernel(X[:5]), kernel(X[:5]))
    np.testing.assert_allclose(found.selection_.kernel(X[:5]), kernel(X[:5]))


@pytest.mark.parametrize(("first", "then"), DEVICES)
def test_sparse_data(tmp_path, first, then):
    x = sp.csr_matrix(np.where(X[:200] > 0.5, X[:200], 0))
    model = HCKRegressor(**GIVEN, alpha=0.02, device=first).fit(x, Y[:200])
    found = moved(model, tmp_path, then)
    np.testing.assert_allclose(found.predict(x), model.predict(x), rtol=0, atol=1e-8)


@pytest.mark.parametrize(("first", "then"), DEVICES)
@pytest.mark.parametrize("approximation", EVERY, ids=str)
def test_processes(tmp_path, approximation, first, then):
    options = {**GIVEN, "optimizer": None, "noise": 0.01, "trend": "linear", "approximation": approximation}
    model = HCKGaussianProcessRegressor(**options, device=first).fit(X, Y)
    found = moved(model, tmp_path, then)
    for ours, theirs in zip(found.predict(NEW, True), model.predict(NEW, True), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6)
    assert found.sample_posterior(NEW, 2).shape == (100, 2)
    if not isinstance(approximation, Iterative):
        value, slope = found.log_marginal_likelihood(eval_gradient=True)
        assert value == pytest.approx(model.log_marginal_likelihood_value_, abs=1e-5)
        np.testing.assert_allclose(slope, model.log_marginal_likelihood(eval_gradient=True)[1], atol=1e-4)
        np.testing.assert_allclose(found.loo_predict(), model.loo_predict(), rtol=0, atol=1e-6)


@pytest.mark.parametrize(("first", "then"), DEVICES)
@pytest.mark.parametrize("approximation", ["hierarchical", "nystrom"])
def test_components(tmp_path, approximation, first, then):
    options = {**GIVEN, "approximation": approximation, "fit_inverse_transform": True}
    model = HCKKernelPCA(2, **options, device=first).fit(X)
    found = moved(model, tmp_path, then)
    np.testing.assert_allclose(found.transform(NEW), model.transform(NEW), rtol=0, atol=1e-7)
    back = model.inverse_transform(model.transform(NEW))
    np.testing.assert_allclose(found.inverse_transform(model.transform(NEW)), back, rtol=0, atol=1e-7)
    assert torch.device(found._back.device).type == (then or "cuda")
