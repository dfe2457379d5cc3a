"""Estimators with other kernels than the hierarchical one, against dense formulas and scikit-learn."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

from hck import HCKClassifier, HCKGaussianProcessRegressor, HCKRegressor
from hck.approximations import Iterative, make_approximation
from hck.kernels import Gaussian, make_kernel
from hck.selection.auto import KERNELS

pytestmark = pytest.mark.usefixtures("one_thread")

RNG = np.random.default_rng(0)
X, NEW = RNG.uniform(size=(220, 3)), RNG.uniform(size=(40, 3))


def function(x):
    return np.sin(4 * x[:, 0]) + x[:, 1] * x[:, 2]


Y = function(X) + 0.05 * RNG.normal(size=220)
NAMES = ["hierarchical", "compositional", "independent", "exact", "nystrom", "fourier", "tapered"]
EVERY = [*NAMES, Iterative(tolerance=1e-10)]
GIVEN = {"kernel": "gaussian", "lengthscale": 0.5, "alpha": 0.02, "rank": 40, "random_state": 0}


def same_kernel(approximation, seed_source):
    """K̃ over old and new points, as the estimator made it, by the protocol."""
    seed = seed_source.randint(2**31 - 1, size=1)[0]
    generator = int(seed)
    return make_approximation(approximation, Gaussian(0.5), X, 40, generator=generator)


@pytest.mark.parametrize("approximation", EVERY, ids=str)
def test_ridge_regression(approximation):
    model = HCKRegressor(**GIVEN, approximation=approximation).fit(X, Y)
    made = same_kernel(approximation, np.random.RandomState(0))
    k = (made @ torch.eye(220, dtype=torch.float64)).numpy()
    weights = np.linalg.solve(k + 0.02 * np.eye(220), Y - Y.mean())
    expected = made.cross(NEW).numpy().T @ weights + Y.mean()
    np.testing.assert_allclose(model.predict(NEW), expected, rtol=0, atol=1e-7)
    assert model.score(NEW, function(NEW)) > 0.85
    if isinstance(approximation, Iterative):
        assert model.residuals_[0][-1] <= 1e-10
        with pytest.raises(ValueError, match="nothing was left out"):
            model.loo_predict()
    else:
        inverse = np.linalg.inv(k + 0.02 * np.eye(220))
        np.testing.assert_allclose(model.loo_predict(), Y - weights / inverse.diagonal(), rtol=0, atol=1e-7)
        assert model.residuals_ == []
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))


@pytest.mark.parametrize("approximation", EVERY, ids=str)
def test_classification(approximation):
    labels = np.array(["low", "middle", "high"])[np.digitize(function(X), [0.3, 0.9])]
    model = HCKClassifier(**GIVEN, approximation=approximation).fit(X, labels)
    assert model.score(X, labels) > 0.75  # a third by chance
    if not isinstance(approximation, Iterative):
        np.testing.assert_allclose(model.predict_proba(NEW).sum(1), 1)


@pytest.mark.parametrize("approximation", EVERY, ids=str)
def test_gaussian_process(approximation):
    options = {"kernel": "gaussian", "rank": 60, "max_iter": 30, "random_state": 0}
    model = HCKGaussianProcessRegressor(**options, approximation=approximation).fit(X, Y)
    mean, std = model.predict(NEW, return_std=True)
    assert np.sqrt(np.mean((mean - function(NEW)) ** 2)) < (0.35 if approximation == "tapered" else 0.12)
    assert (std >= 0).all()
    assert model.predict(NEW[:5], return_cov=True)[1].shape == (5, 5)
    assert model.sample_posterior(NEW, 3).shape == (40, 3)
    if isinstance(approximation, Iterative):
        assert np.isnan(model.log_marginal_likelihood_value_)
        assert model.residuals_[0][-1] <= 1e-10
        with pytest.raises(ValueError, match="leave-one-out predictions need a factorization"):
            model.loo_predict()
        with pytest.raises(ValueError, match="likelihoods need a factorization"):
            model.log_marginal_likelihood(model.theta_)
    else:
        assert model.sample_prior(NEW, 2).shape == (40, 2)
        value, slope = model.log_marginal_likelihood(eval_gradient=True)
        assert value == pytest.approx(model.log_marginal_likelihood_value_)
        assert slope.shape == model.theta_.shape
        assert set(model.loo_metrics()) == {"rmse", "lpd", "crps", "coverage"}


def test_nystrom_as_in_scikit_learn():
    features = Nystroem(gamma=2.0, n_components=40, random_state=0).fit(X)
    ridge = Ridge(alpha=0.02, fit_intercept=False).fit(features.transform(X), Y - Y.mean())
    model = HCKRegressor(**GIVEN, approximation="nystrom", landmarks=features.components_).fit(X, Y)
    expected = ridge.predict(features.transform(NEW)) + Y.mean()
    np.testing.assert_allclose(model.predict(NEW), expected, rtol=0, atol=1e-6)


def test_exact_ridge_regression_as_in_scikit_learn():
    theirs = KernelRidge(kernel="rbf", gamma=2.0, alpha=0.02).fit(X, Y - Y.mean())
    for approximation in (
        "exact",
        *(Iterative(guide, tolerance=1e-12) for guide in ("hierarchical", "nystrom", None)),
    ):
        model = HCKRegressor(**GIVEN, approximation=approximation).fit(X, Y)
        np.testing.assert_allclose(model.predict(NEW) - Y.mean(), theirs.predict(NEW), rtol=0, atol=1e-8)


def test_exact_process_as_in_scikit_learn():
    kernel = ConstantKernel(1.0, "fixed") * RBF(0.5, "fixed") + WhiteKernel(0.02, "fixed")
    theirs = GaussianProcessRegressor(kernel).fit(X, Y)
    options = {"kernel": 1.0 * Gaussian(0.5), "noise": 0.02, "trend": "zero", "optimizer": None}
    mean, std = theirs.predict(NEW, return_std=True)
    for approximation in ("exact", Iterative(tolerance=1e-12)):
        model = HCKGaussianProcessRegressor(**options, approximation=approximation, rank=40).fit(X, Y)
        found = model.predict(NEW, return_std=True, observed=True)
        np.testing.assert_allclose(found[0], mean, rtol=0, atol=1e-8)
        np.testing.assert_allclose(found[1], std, rtol=0, atol=1e-8)


def test_iteration_where_memory_is_short():
    model = HCKRegressor(**GIVEN, approximation="exact", memory_budget="200kB").fit(X, Y)
    assert 1 < len(model.residuals_[0]) < 120
    whole = HCKRegressor(**GIVEN, approximation="exact").fit(X, Y)
    assert whole.residuals_ == []
    np.testing.assert_allclose(model.predict(NEW), whole.predict(NEW), rtol=0, atol=1e-5)


@pytest.mark.parametrize("approximation", ["nystrom", "fourier", "compositional", "exact", "tapered"])
def test_everything_chosen(approximation):
    model = HCKRegressor(approximation=approximation, fit_time=1.0, random_state=0).fit(X, Y)
    assert model.score(NEW, function(NEW)) > 0.95
    refined = approximation in ("nystrom", "fourier", "tapered")
    assert ("with this approximation" in str(model.selection_)) == refined
    assert f"1 × {approximation}" in str(model.selection_)


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_that_are_chosen_have_fourier_features_and_draws(name):
    """With time for all kernels, one without a spectral density was chosen, and ended the fit."""
    assert make_kernel(name).has_spectral_density
    HCKRegressor(name, approximation="fourier", alpha=0.1, rank=8).fit(X, function(X))


@pytest.mark.parametrize("approximation", ["nystrom", "fourier"])
def test_several_draws_are_averaged(approximation):
    options = {**GIVEN, "rank": 12, "approximation": approximation}
    one, several = (HCKRegressor(**options, n_trees=n).fit(X, Y) for n in (1, 12))
    errors = [np.mean((model.predict(NEW) - function(NEW)) ** 2) for model in (one, several)]
    assert errors[1] < errors[0]


def test_sparse_data_and_tensors():
    for approximation in ("nystrom", "fourier", "independent"):
        model = HCKRegressor(**GIVEN, approximation=approximation).fit(X, Y)
        sparse = HCKRegressor(**GIVEN, approximation=approximation).fit(sp.csr_matrix(X), Y)
        np.testing.assert_allclose(sparse.predict(sp.csr_matrix(NEW)), model.predict(NEW), rtol=0, atol=1e-8)
        found = HCKRegressor(**GIVEN, approximation=approximation).fit(torch.from_numpy(X), Y)
        assert isinstance(found.predict(torch.from_numpy(NEW)), torch.Tensor)


def test_with_scikit_learn():
    model = HCKRegressor(**GIVEN, approximation=Iterative("nystrom", tolerance=1e-4))
    assert clone(model).approximation == model.approximation
    grid = {"approximation": ["fourier", "nystrom"], "rank": [2, 40]}
    assert GridSearchCV(HCKRegressor(**GIVEN), grid, cv=3).fit(X, Y).best_params_["rank"] == 40


WORDS = [a + b + c for a in "abcd" for b in "efgh" for c in "ijk"]
LENGTHS = np.array([ord(word[0]) + 2.0 * ord(word[1]) - ord(word[2]) for word in WORDS])


def shared_letters(a, b):
    return np.array([[np.exp(-sum(s != t for s, t in zip(x, y, strict=True))) for y in b] for x in a])


@pytest.mark.parametrize("approximation", [*NAMES, Iterative()], ids=str)
def test_objects(approximation):
    options = {"approximation": approximation, "partition": "kernel", "rank": 12, "random_state": 0}
    ridge = HCKRegressor(shared_letters, alpha=0.01, **options)
    process = HCKGaussianProcessRegressor(shared_letters, noise=0.01, **options)
    for model in (ridge, process):
        if approximation in ("fourier", "tapered"):
            with pytest.raises(TypeError, match=r"coordinates|dense array"):
                model.fit(WORDS, LENGTHS)
        else:
            assert model.fit(WORDS, LENGTHS).score(WORDS, LENGTHS) > 0.2  # 12 landmarks for 48 words


def test_processes_with_the_exact_kernel_beyond_memory(monkeypatch):
    """Parameters are learned with trees, or on few points; then the mean is found by iteration."""
    options = {"kernel": "gaussian", "rank": 40, "max_iter": 20, "random_state": 0}
    truth = HCKGaussianProcessRegressor(**options, approximation="exact").fit(X, Y)
    monkeypatch.setattr("hck.estimators.base.FEW", 100)
    short = HCKGaussianProcessRegressor(**options, approximation="exact", memory_budget="250kB").fit(X, Y)
    assert truth.residuals_ == []
    assert short.residuals_[0][-1] <= 1e-6
    error = np.abs(short.predict(NEW) - truth.predict(NEW)).max()
    assert error < 0.2  # other parameters
    tree = truth.tree_
    given = HCKGaussianProcessRegressor(**options, approximation=Iterative(), partition=tree, learn_size=None)
    assert given.fit(X, Y).residuals_[0][-1] <= 1e-6


def test_what_is_not_random_is_made_once():
    for approximation in ("exact", "tapered", Iterative()):
        model = HCKRegressor(**GIVEN, approximation=approximation, n_trees=4).fit(X, Y)
        assert len(model.forest_.members) == 1


def test_memory_for_left_out_points():
    """The factor of a taper in many dimensions is nearly dense: it is not made if memory is short."""
    model = HCKRegressor(**GIVEN, approximation="tapered", memory_budget="50kB").fit(X, Y)
    with pytest.raises(ValueError, match="memory was too short"):
        model.loo_predict()
    whole = HCKRegressor(**GIVEN, approximation="tapered").fit(X, Y)
    np.testing.assert_allclose(model.predict(NEW), whole.predict(NEW), rtol=0, atol=1e-6)


def test_fewer_preconditioners_where_memory_is_short():
    how = {**GIVEN, "approximation": Iterative(tolerance=1e-8)}
    few, many = (HCKRegressor(**how, memory_budget=b).fit(X, Y).residuals_[0] for b in ("300kB", "1GB"))
    assert len(few) > len(many)


@pytest.mark.parametrize("approximation", ["nystrom", "fourier"])
def test_smooth_functions_in_single_precision(approximation):
    smooth = function(X)
    model = HCKRegressor(approximation=approximation, dtype="float32", fit_time=0.5, random_state=0)
    assert model.fit(X, smooth).score(NEW, function(NEW)) > 0.99
    process = HCKGaussianProcessRegressor("gaussian", approximation=approximation, dtype="float32", rank=100)
    process.set_params(max_iter=20, random_state=0)
    assert process.fit(X, smooth + 1e-3 * RNG.normal(size=220)).score(NEW, function(NEW)) > 0.99


def test_errors():
    with pytest.raises(ValueError, match="approximation"):
        HCKRegressor(approximation="low rank").fit(X, Y)
    with pytest.raises(ValueError, match="spectral density of InverseMultiquadric"):
        HCKRegressor("inverse_multiquadric", lengthscale=1.0, approximation="fourier").fit(X, Y)
    with pytest.raises(ValueError, match="unknown approximation 'svd'"):
        make_approximation("svd", Gaussian(1.0), X, 10)
    with pytest.raises(AttributeError, match="no tree with approximation='nystrom'"):
        _ = HCKRegressor(**GIVEN, approximation="nystrom").fit(X, Y).tree_
    for wrong in ({"tolerance": 0}, {"tolerance": "a"}, {"n_trees": 0}, {"max_iter": 1.5}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            Iterative(**wrong)
    with pytest.raises(ValueError, match="unknown preconditioner 'exact'"):
        Iterative("exact")
    tree = HCKRegressor(**GIVEN).fit(X, Y).tree_
    for approximation, wrong, text in [
        ("fourier", {"landmarks": "unif"}, "unknown landmarks 'unif'"),
        ("fourier", {"landmarks": X[:5]}, "no use for given landmarks"),
        ("nystrom", {"partition": "foo"}, "unknown partition 'foo'"),
        ("nystrom", {"partition": tree}, "no use for the tree"),
        ("nystrom", {"landmarks": "none"}, "unknown landmarks 'none'"),
        ("nystrom", {"landmarks": X[:0]}, "no landmarks"),
    ]:
        with pytest.raises(ValueError, match=text):
            HCKRegressor(**GIVEN, approximation=approximation, **wrong).fit(X, Y)
    for rank in (0, -1, 2.5, "x"):
        with pytest.raises(ValueError, match="rank must be a whole number"):
            make_approximation("compositional", Gaussian(1.0), X, rank)
    with pytest.raises(TypeError, match="one set of landmarks"):
        make_approximation("nystrom", Gaussian(1.0), X, 10, landmarks=[X[:5], X[5:9]])
