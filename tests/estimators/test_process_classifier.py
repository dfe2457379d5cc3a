"""Gaussian process classification: scikit-learn's on one leaf, gradients on trees, and odd input."""

import numpy as np
import pytest
import torch
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import hck
from hck import HCKGaussianProcessClassifier
from hck.approximations import Iterative, make_approximation
from hck.kernels import Gaussian
from hck.process.laplace import laplace, probability
from hck.selection import Space
from hck.selection.likelihood import evaluate_classes

N = 150
RNG = np.random.default_rng(0)
X, NEW = RNG.uniform(size=(N, 2)), RNG.uniform(size=(25, 2))
F = np.sin(6 * X[:, 0]) + X[:, 1] + 0.3 * RNG.standard_normal(N)
TWO, THREE = (F > 0.7).astype(int), np.digitize(F, [0.3, 1.0])
KERNEL, OTHER = 4.0 * Gaussian([0.3, 0.5]), ConstantKernel(4.0) * RBF([0.3, 0.5])
FIXED = {"optimizer": None, "random_state": 0}


@pytest.fixture(scope="module")
def learned():
    return HCKGaussianProcessClassifier(rank=16, n_trees=2, max_iter=10, random_state=0).fit(X, TWO)


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_one_leaf_is_scikit_learns(y):
    model = HCKGaussianProcessClassifier(KERNEL, rank=256, **FIXED).fit(X, y)
    other = GaussianProcessClassifier(OTHER, optimizer=None).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(NEW), other.predict_proba(NEW), atol=1e-6)
    assert (model.predict(NEW) == other.predict(NEW)).all()
    value = other.log_marginal_likelihood()
    assert model.log_marginal_likelihood_value_ == pytest.approx(value, rel=1e-6)
    assert len(model.kernels_) == len(model.posteriors_) == (1 if y is TWO else 3)


def test_the_gradient_is_scikit_learns():
    model = HCKGaussianProcessClassifier(KERNEL, rank=256, **FIXED).fit(X, TWO)
    other = GaussianProcessClassifier(OTHER, optimizer=None).fit(X, TWO)
    value, slope = model.log_marginal_likelihood(eval_gradient=True)
    wanted, by_other = other.log_marginal_likelihood(other.kernel_.theta, eval_gradient=True)
    assert value == pytest.approx(wanted, rel=1e-6)
    np.testing.assert_allclose(slope[0], np.roll(by_other, -1), rtol=1e-6)  # the scale is the last of ours


def test_learning_ends_where_scikit_learns_does():
    bounds = {"lengthscale": (1e-5, 1e5), "scale": (1e-5, 1e5)}
    model = HCKGaussianProcessClassifier(KERNEL, rank=256, optimizer="lbfgs", max_iter=200, bounds=bounds)
    other = GaussianProcessClassifier(OTHER).fit(X, TWO)
    model.fit(X, TWO)
    assert model.log_marginal_likelihood_value_ == pytest.approx(
        other.log_marginal_likelihood_value_, rel=1e-4
    )
    np.testing.assert_allclose(model.predict_proba(NEW), other.predict_proba(NEW), atol=5e-3)


@pytest.mark.parametrize("kind", ["hierarchical", "nystrom"])
def test_gradients_against_differences(kind):
    made = make_approximation(kind, KERNEL, X, rank=8, leaf_size=16, generator=0, jitter=1e-6)
    space, y = Space.of(KERNEL, None), torch.tensor(TWO)
    slope = evaluate_classes(space, made, y, space.start, 1e-6)[1]
    for i, move in enumerate(1e-4 * np.eye(3)):
        up, down = (evaluate_classes(space, made, y, space.start + d, 1e-6)[0] for d in (move, -move))
        assert slope[i] == pytest.approx((up - down) / 2e-4, rel=1e-4, abs=1e-4)


def test_the_posterior_against_its_definition():
    """On a tree: mode, variance and likelihood of the dense matrix."""
    made = make_approximation("hierarchical", KERNEL, X, rank=8, leaf_size=16, generator=0)
    k = (made @ torch.eye(N, dtype=torch.float64)).numpy()
    found = laplace(made, torch.tensor(TWO))
    f = found.mode[:, 0].numpy()
    p = 1 / (1 + np.exp(-f))
    np.testing.assert_allclose(f, k @ (TWO - p), atol=1e-7)
    w = p * (1 - p)
    b = np.eye(N) + np.sqrt(w)[:, None] * k * np.sqrt(w)
    value = np.log(np.where(TWO, p, 1 - p)).sum() - f @ (TWO - p) / 2 - np.linalg.slogdet(b)[1] / 2
    assert found.value == pytest.approx(value, rel=1e-9)
    cross = made.cross(NEW).numpy()
    spread = 4.0 - (cross * np.linalg.solve(k + np.diag(1 / w), cross)).sum(0)
    none = torch.zeros(25, 0, dtype=torch.float64)
    np.testing.assert_allclose(found.process().variance(torch.tensor(NEW), none), spread, atol=1e-7)


def test_probabilities_are_integrals():
    mean, variance = torch.tensor([-3.0, 0.2, 4.0]).double(), torch.tensor([0.5, 2.0, 9.0]).double()
    draws = np.random.default_rng(1).standard_normal(400_000)
    for m, v, p in zip(mean.tolist(), variance.tolist(), probability(mean, variance).tolist(), strict=True):
        assert p == pytest.approx(np.mean(1 / (1 + np.exp(-m - v**0.5 * draws))), abs=3e-3)


def test_a_forest_learns(learned):
    assert learned.score(X, TWO) > 0.85
    assert len(learned.trees_) == 2
    assert learned.history_[-1] > learned.history_[0]
    assert learned.theta_.shape == (1, 3)
    mean, std = learned.predict_latent(NEW, return_std=True)
    assert mean.shape == std.shape == (25,)
    assert (std > 0).all()
    assert ((mean > 0) == (learned.predict_proba(NEW)[:, 1] > 0.5)).all()
    far = learned.predict_proba([[50.0, 50.0]])
    np.testing.assert_allclose(far, 0.5, atol=0.05)


def test_likelihoods_of_other_parameters(learned):
    value = learned.log_marginal_likelihood(learned.theta_)
    assert value == pytest.approx(learned.log_marginal_likelihood_value_, rel=1e-6)
    assert learned.log_marginal_likelihood(learned.theta_[0] + 3) < value
    assert learned.log_marginal_likelihood(learned.theta_[0], eval_gradient=True)[1].shape == (3,)
    (errors,) = learned.standard_errors()
    assert set(errors) == {"lengthscale", "scale"}
    with pytest.raises(ValueError, match="theta must be"):
        learned.log_marginal_likelihood([1.0])


def test_saved_models(learned, tmp_path):
    learned.save(tmp_path / "model")
    loaded = hck.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(NEW), learned.predict_proba(NEW))
    assert loaded.log_marginal_likelihood(loaded.theta_) == pytest.approx(learned.log_marginal_likelihood())


def test_tensors_and_words():
    labels = np.array(["no", "yes"])[TWO]
    model = HCKGaussianProcessClassifier(KERNEL, rank=8, **FIXED).fit(torch.tensor(X), labels)
    assert set(model.predict(NEW)) <= {"no", "yes"}
    assert isinstance(model.predict_latent(torch.tensor(NEW)), torch.Tensor)


@pytest.mark.parametrize(
    ("given", "y", "what"),
    [
        ({}, 0 * TWO, "one class only"),
        ({}, F, "continuous"),
        ({}, TWO[:-1], "inconsistent numbers"),
        ({"rank": 0}, TWO, "rank"),
        ({"optimizer": "newton"}, TWO, "optimizer"),
        ({"bounds": {"noise": (1, 2)}}, TWO, "not a parameter here"),
        ({"approximation": Iterative(), "optimizer": None}, TWO, "need a factorization"),
    ],
)
def test_what_is_refused(given, y, what):
    with pytest.raises(ValueError, match=what):
        HCKGaussianProcessClassifier(**given).fit(X, y)


def test_separable_labels():
    """Where f could grow without end, the prior holds it."""
    x = np.linspace(0, 1, 60)[:, None]
    model = HCKGaussianProcessClassifier(1e6 * Gaussian(0.3), rank=8, **FIXED).fit(x, x[:, 0] > 0.5)
    assert np.isfinite(model.log_marginal_likelihood_value_)
    assert model.score(x, x[:, 0] > 0.5) == 1
    assert np.isfinite(model.predict_proba(x)).all()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device")
def test_on_a_gpu():
    here, there = (
        HCKGaussianProcessClassifier(KERNEL, rank=16, device=device, **FIXED).fit(X, THREE)
        for device in ("cpu", "cuda")
    )
    np.testing.assert_allclose(here.predict_proba(NEW), there.predict_proba(NEW), atol=1e-6)


@pytest.mark.parametrize("places", [1, 3])
def test_repeated_points_with_as_many_labels_of_each_kind(places):
    """The likelihood was 10³⁰⁰, or learning ended in NaN."""
    x, y = np.repeat(X[:places], 4, axis=0), np.tile([0, 1], 2 * places)
    model = HCKGaussianProcessClassifier(random_state=0).fit(x, y)
    np.testing.assert_allclose(model.predict_proba(x), 0.5, atol=1e-3)
    assert model.log_marginal_likelihood_value_ == pytest.approx(-len(y) * np.log(2), rel=0.2)
