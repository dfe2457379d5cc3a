"""Estimators with losses beyond least squares: against scikit-learn on one leaf, and with odd input."""

import pickle
import re
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import GammaRegressor, LogisticRegression, PoissonRegressor
from sklearn.metrics import d2_pinball_score, r2_score
from sklearn.svm import LinearSVC

import hck
from hck import HCKClassifier, HCKRegressor
from hck.kernels import Matern
from hck.losses import Effort, Huber, Logistic, Quantile, Squared, Tweedie
from hck.outofcore import DiskHCKClassifier, DiskHCKRegressor

N = 160
RNG = np.random.default_rng(0)
X, NEW = RNG.uniform(size=(N, 2)), RNG.uniform(size=(20, 2))
F = np.sin(6 * X[:, 0]) + X[:, 1]
Y = F + 0.3 * RNG.standard_t(3, N)
COUNTS = RNG.poisson(np.exp(F)).astype(float)
AMOUNTS = RNG.gamma(2, np.exp(F) / 2)
HALF = (np.median(Y) < Y).astype(int)  # as many of each, so that the intercept is 0
THREE = np.digitize(Y, [0.4, 1.0])
GIVEN = {"kernel": "matern32", "lengthscale": 0.5, "alpha": 0.1, "random_state": 0}
ONE_LEAF = {**GIVEN, "rank": 200}
TREES = {**GIVEN, "rank": 8, "leaf_size": 20, "n_trees": 2}


def root(points=X):
    """Features whose products are the kernel."""
    k = Matern(0.5)
    factor = np.linalg.cholesky(np.asarray(k(X)) + 1e-12 * np.eye(N))
    return np.linalg.solve(factor, np.asarray(k(points)).T if points is X else np.asarray(k(X, points))).T


# Against scikit-learn --------------------------------------------------------------------------------


def test_logistic_is_scikit_learns():
    model = HCKClassifier(**ONE_LEAF, loss="logistic", leave_one_out=False).fit(X, HALF)
    other = LogisticRegression(C=10.0, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(root(), HALF)
    np.testing.assert_allclose(model.decision_function(NEW), other.decision_function(root(NEW)), atol=5e-6)
    np.testing.assert_allclose(model.predict_proba(NEW), other.predict_proba(root(NEW)), atol=1e-6)
    assert model.gradient_norm_ < 1e-5
    assert 2 < model.n_iter_ < 20


def test_softmax_is_scikit_learns():
    y = np.sort(np.arange(N) % 4)[np.argsort(np.argsort(Y))]  # as many of each
    model = HCKClassifier(**ONE_LEAF, loss="logistic", leave_one_out=False).fit(X, y)
    other = LogisticRegression(C=10.0, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(root(), y)
    np.testing.assert_allclose(model.predict_proba(NEW), other.predict_proba(root(NEW)), atol=1e-6)


def test_the_squared_hinge_is_scikit_learns():
    model = HCKClassifier(**ONE_LEAF, loss="squared_hinge").fit(X, HALF)
    other = LinearSVC(C=5.0, fit_intercept=False, tol=1e-10, max_iter=10_000, dual=False)
    other.fit(root(), HALF)
    np.testing.assert_allclose(model.decision_function(NEW), other.decision_function(root(NEW)), atol=1e-5)


@pytest.mark.parametrize(
    ("loss", "kind", "y"), [("poisson", PoissonRegressor, COUNTS), ("gamma", GammaRegressor, AMOUNTS)]
)
def test_of_a_logarithm_is_scikit_learns(loss, kind, y):
    y = y / y.mean()  # so that the intercept is 0
    model = HCKRegressor(**ONE_LEAF, loss=loss).fit(X, y)
    other = kind(alpha=0.1 / N, fit_intercept=False, solver="newton-cholesky", tol=1e-10, max_iter=1000)
    np.testing.assert_allclose(model.predict(NEW), other.fit(root(), y).predict(root(NEW)), rtol=1e-6)


def test_a_wide_huber_is_least_squares_around_the_median():
    model = HCKRegressor(**ONE_LEAF, loss=Huber(1e6)).fit(X, Y)
    k, middle = Matern(0.5), model.intercept_
    w = np.linalg.solve(np.asarray(k(X)) + 0.1 * np.eye(N), Y - middle)
    np.testing.assert_allclose(model.predict(NEW), middle + np.asarray(k(NEW, X)) @ w, atol=1e-6)
    assert np.quantile(Y, 0.49) <= middle <= np.quantile(Y, 0.51)
    assert HCKRegressor(**ONE_LEAF, loss=Squared()).fit(X, Y).losses_ == []


# On trees --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["absolute", "huber", "quantile", "poisson", "gamma", "tweedie"])
def test_regression_on_trees(loss):
    y = AMOUNTS if loss in ("poisson", "gamma", "tweedie") else Y
    truth = np.exp(F) if y is AMOUNTS else F
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = HCKRegressor(**TREES | {"alpha": 1.0}, loss=loss).fit(X, y)
    assert len(model.forest_.members) == 2
    assert np.corrcoef(model.predict(X), truth)[0, 1] > 0.8
    assert np.corrcoef(model.loo_predict(), truth)[0, 1] > 0.6
    assert model.gradient_norm_ < 1e-5
    assert model.losses_[0].name == loss
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(NEW), model.predict(NEW))


def test_huber_finds_its_delta():
    model = HCKRegressor(**TREES, loss="huber").fit(X, Y)
    assert 0.1 < model.losses_[0].delta < 1.5
    assert HCKRegressor(**TREES, loss=Huber(0.7)).fit(X, Y).losses_ == [Huber(0.7)]


def test_outliers_do_not_move_medians():
    y = Y.copy()
    y[::20] += 1e4
    robust = HCKRegressor(**TREES | {"alpha": 1.0}, loss="absolute").fit(X, y)
    plain = HCKRegressor(**TREES | {"alpha": 1.0}).fit(X, y)
    assert np.abs(robust.predict(X) - F).mean() < 0.5 < np.abs(plain.predict(X) - F).mean()


def test_several_quantiles_do_not_cross():
    levels = [0.1, 0.5, 0.9]
    model = HCKRegressor(**TREES | {"alpha": 1e-3}, loss="quantile", quantile=levels).fit(X, Y)
    found = model.predict(NEW)
    assert found.shape == (20, 3)
    assert (np.diff(found, axis=1) >= 0).all()
    assert 0 < model.crossing_ <= 1  # since the ridge is small
    assert (np.diff(model.loo_predict(), axis=1) >= 0).all()
    assert isinstance(model.predict(torch.tensor(NEW)), torch.Tensor)
    smooth = HCKRegressor(**TREES | {"alpha": 3.0}, loss="quantile", quantile=levels).fit(X, Y)
    shares = (Y[:, None] < smooth.predict(X)).mean(0)
    np.testing.assert_allclose(shares, levels, atol=0.12)
    assert HCKRegressor(**TREES, loss="quantile", quantile=0.9).fit(X, Y).predict(NEW).shape == (20,)


def test_several_targets():
    both = np.c_[COUNTS, COUNTS[::-1]]
    model = HCKRegressor(**TREES, loss="poisson").fit(X, both)
    one = HCKRegressor(**TREES, loss="poisson").fit(X, COUNTS)
    np.testing.assert_allclose(model.predict(NEW)[:, 0], one.predict(NEW), rtol=1e-4)


@pytest.mark.parametrize("y", [HALF, THREE], ids=["two", "three"])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "auto"])
def test_classes_on_trees(loss, y):
    labels = np.array(["a", "b", "c"])[y]
    model = HCKClassifier(**TREES, loss=loss).fit(X, labels)
    assert model.score(X, labels) > 0.75
    p = model.predict_proba(NEW)
    np.testing.assert_allclose(p.sum(1), 1)
    assert (model.classes_[p.argmax(1)] == model.predict(NEW)).all()
    assert len(model.loo_decision_function()) == N


def test_weights_count_as_copies():
    weight = np.ones(N)
    weight[:10], weight[10:20] = 2, 0
    rows = np.r_[np.arange(N), np.arange(10)]
    rows = rows[(rows < 10) | (rows >= 20)]
    for cls, loss, y in ((HCKClassifier, "logistic", HALF), (HCKRegressor, "absolute", Y)):
        one = cls(**ONE_LEAF, loss=loss).fit(X, y, sample_weight=weight)
        two = cls(**ONE_LEAF, loss=loss).fit(X[rows], y[rows])
        evaluate = "decision_function" if cls is HCKClassifier else "predict"
        np.testing.assert_allclose(getattr(one, evaluate)(NEW), getattr(two, evaluate)(NEW), atol=5e-3)


def test_classes_without_weight_are_named():
    with pytest.raises(ValueError, match="a class has no points, or all of weight 0"):
        HCKClassifier(**TREES, loss="logistic").fit(X, HALF, sample_weight=HALF.astype(float))


def test_the_ridge_suits_the_loss():
    given = {**TREES, "alpha": "auto"}
    model = HCKClassifier(**given, loss="logistic").fit(X, HALF)
    plain = HCKClassifier(**given).fit(X, HALF)
    assert model.selection_.alpha != plain.selection_.alpha
    assert any("left-out loss" in note for note in model.selection_.notes)


def test_auto_says_what_it_compared():
    model = HCKClassifier(**TREES | {"alpha": "auto"}, loss="auto").fit(X, HALF)
    note = next(note for note in model.selection_.notes if "squared" in note)
    logistic, squared = (float(each) for each in re.findall(r"(?:logistic|squared) ([0-9.]+)", note))
    assert (model.losses_ == [Logistic()]) == (logistic < 0.99 * squared)


def test_seconds_are_kept():
    model = HCKClassifier(fit_time=1.0, loss="logistic", random_state=0).fit(X, HALF)
    assert model.score(X, HALF) > 0.75


@pytest.mark.parametrize("loss", ["poisson", "quantile", "huber"])
def test_saved_models(loss, tmp_path):
    model = HCKRegressor(**TREES, loss=loss, quantile=[0.2, 0.8]).fit(X, COUNTS)
    model.save(tmp_path / "model")
    loaded = hck.load(tmp_path / "model")
    assert loaded.losses_ == model.losses_
    assert loaded.get_params()["loss"] == loss
    np.testing.assert_array_equal(loaded.predict(NEW), model.predict(NEW))


def test_losses_as_objects_are_parameters(tmp_path):
    model = clone(HCKRegressor(**TREES, loss=Tweedie(1.2))).fit(X, COUNTS)
    assert model.losses_ == [Tweedie(1.2)]
    model.save(tmp_path / "model")
    assert hck.load(tmp_path / "model").loss == Tweedie(1.2)


def test_a_fit_forgets_the_loss_before():
    model = HCKRegressor(**TREES, loss="poisson").fit(X, COUNTS)
    model.set_params(loss="squared").fit(X, COUNTS)
    assert (model.losses_, model.n_iter_) == ([], 1)
    plain = HCKRegressor(**TREES).fit(X, COUNTS)
    np.testing.assert_array_equal(model.predict(NEW), plain.predict(NEW))


# Odd input -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "y", "what"),
    [
        (HCKRegressor(loss="poisson"), -COUNTS, "needs no negative numbers"),
        (HCKRegressor(loss="gamma"), COUNTS, "needs positive numbers, but y is 0 in row"),
        (HCKRegressor(loss="tweedie"), 0 * COUNTS, "all of them are 0"),
        (HCKRegressor(loss="logistic"), Y, "unknown loss 'logistic' for numbers; known: squared, absolute"),
        (HCKRegressor(loss=Logistic()), Y, "is a loss of classes"),
        (HCKRegressor(loss="quantile", quantile=1.0), Y, "quantile"),
        (HCKRegressor(loss="quantile", quantile=[0.1, 1.5]), Y, "between 0 and 1"),
        (HCKRegressor(loss="quantile", quantile=[0.9, 0.1]), Y, "must ascend"),
        (HCKRegressor(loss="quantile", quantile=[]), Y, "at least one"),
        (HCKRegressor(loss="quantile", quantile=[0.1, 0.9]), np.c_[Y, Y], "need a single target"),
        (HCKRegressor(loss="absolute", alpha=0.0), Y, "alpha=0 is for loss='squared' alone"),
        (HCKRegressor(loss=3), Y, "loss"),
        (
            HCKClassifier(loss="hinge"),
            HALF,
            "unknown loss 'hinge' for classes; known: auto, squared, logistic",
        ),
        (HCKClassifier(loss=Quantile(0.5)), HALF, "for classes"),
        (HCKClassifier(loss="logistic"), 0 * HALF, "one class only"),
        (HCKClassifier(loss="logistic", alpha=0.0), HALF, "alpha=0"),
        (HCKClassifier(loss="logistic", approximation=hck.approximations.Iterative()), HALF, "factorization"),
        (DiskHCKRegressor(loss="huber", folder="nowhere"), Y, "not possible branch by branch"),
        (DiskHCKClassifier(loss="logistic", folder="nowhere"), HALF, "not possible branch by branch"),
    ],
)
def test_what_is_refused(model, y, what):
    given = {name: value for name, value in GIVEN.items() if name != "alpha" or model.alpha == "auto"}
    with pytest.raises(ValueError, match=what):
        model.set_params(**given, rank=8).fit(X, y)


def test_a_fit_that_fails_leaves_the_model_whole():
    model = HCKRegressor(**TREES, loss="poisson").fit(X, COUNTS)
    before = model.predict(NEW)
    with pytest.raises(ValueError, match="negative"):
        model.fit(X, -COUNTS)
    np.testing.assert_array_equal(model.predict(NEW), before)


def test_memory_that_is_too_short():
    model = HCKRegressor(**TREES, loss="absolute", memory_budget=20_000)
    with pytest.raises(MemoryError, match="keep a factorization"):
        model.fit(X, Y)


def test_a_minimum_that_is_not_reached_is_told(monkeypatch):
    monkeypatch.setattr("hck.estimators.penalised._OF_A_FOREST", Effort(1, 1e-12))
    with pytest.warns(ConvergenceWarning, match="not at its minimum after 1 steps"):
        HCKClassifier(**TREES, loss="logistic").fit(X, HALF)


def test_sparse_points_and_tensors():
    import scipy.sparse as sp

    dense = HCKClassifier(**TREES, loss="logistic").fit(X, HALF).decision_function(NEW)
    sparse = HCKClassifier(**TREES, loss="logistic").fit(sp.csr_matrix(X), HALF)
    np.testing.assert_allclose(sparse.decision_function(sp.csr_matrix(NEW)), dense, atol=1e-5)
    tensor = HCKRegressor(**TREES, loss="poisson").fit(torch.tensor(X), COUNTS)
    assert isinstance(tensor.predict(torch.tensor(NEW)), torch.Tensor)


@pytest.mark.parametrize("n", [2, 3])
def test_few_points(n):
    y = np.arange(n) % 2
    given = {"kernel": "matern32", "lengthscale": 0.5}
    assert HCKClassifier(**given, loss="logistic").fit(X[:n], y).predict(X[:n]).shape == (n,)
    assert HCKRegressor(**given, loss="absolute").fit(X[:n], y).predict(X[:n]).shape == (n,)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device")
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_on_a_gpu(loss):
    here = HCKClassifier(**TREES, loss=loss).fit(X, THREE).decision_function(NEW)
    there = HCKClassifier(**TREES, loss=loss, device="cuda").fit(X, THREE).decision_function(NEW)
    np.testing.assert_allclose(here, there, atol=1e-4)


# Classes that are not there, and steps that lead nowhere --------------------------------------------------


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_classes_without_points(loss):
    labels = np.array(["a", "b", "c"])[np.arange(len(X)) % 3]
    for classes in (["a", "b", "c", "d"], ["a", "aa", "b", "c"]):
        with pytest.raises(ValueError, match="needs points of each class"):
            HCKClassifier(**TREES, loss=loss).partial_fit(X, labels, classes=classes)
    model = HCKClassifier(**TREES, loss="auto").partial_fit(X, labels, classes=["a", "b", "c", "d"])
    assert model.predict_proba(X).shape == (len(X), 4)


@pytest.mark.parametrize("approximation", ["nystrom", "fourier"])
@pytest.mark.parametrize("seed", range(4))
def test_a_softmax_of_few_features(approximation, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(300, 3))
    labels = np.digitize(np.sin(x[:, 0]) + x[:, 1] ** 2 + 0.1 * rng.normal(size=300), [0.3, 1.2])
    given = {"lengthscale": 1.0, "alpha": 1e-3, "rank": 8, "random_state": seed}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = HCKClassifier(approximation=approximation, loss="logistic", **given).fit(x, labels)
    assert np.isfinite(model.predict_proba(x)).all()


@pytest.mark.parametrize("loss", ["poisson", "tweedie"])
def test_intervals_of_amounts_are_not_negative(loss):
    lower = HCKRegressor(**TREES, loss=loss).fit(X, COUNTS).predict(X, interval=0.9)[1]
    assert lower.min() == 0


def test_score_of_several_quantiles():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(300, 2))
    y = np.sin(5 * x[:, 0]) + 0.3 * rng.standard_normal(300)
    levels = [0.1, 0.5, 0.9]
    model = HCKRegressor("gaussian", lengthscale=0.5, alpha=0.1, rank=16, loss="quantile", quantile=levels)
    model.fit(x[:200], y[:200])
    weight = rng.uniform(size=100)
    predicted = model.predict(x[200:]).T
    for given in (None, weight):
        each = [
            d2_pinball_score(y[200:], values, alpha=level, sample_weight=given)
            for values, level in zip(predicted, levels, strict=True)
        ]
        assert model.score(x[200:], y[200:], given) == pytest.approx(np.mean(each))
    assert 0.2 < model.score(x[200:], y[200:]) < 1
    one = HCKRegressor("gaussian", lengthscale=0.5, alpha=0.1, rank=16, loss="quantile", quantile=0.5)
    one.fit(x[:200], y[:200])
    assert one.score(x[200:], y[200:]) == pytest.approx(r2_score(y[200:], one.predict(x[200:])))


@pytest.mark.parametrize("loss", ["huber", "poisson", "gamma", "tweedie"])
@pytest.mark.parametrize("value", [1.0, 2.5, 7.0, 1e-20, 1e20])
def test_a_constant_is_a_minimum(loss, value):
    X = np.random.default_rng(0).standard_normal((60, 3))
    model = HCKRegressor("gaussian", lengthscale=1.0, alpha=0.01, loss=loss, rank=8, random_state=0)
    model.fit(X, np.full(60, value))  # without a warning
    np.testing.assert_allclose(model.predict(X), value, rtol=1e-12)
    assert np.max(model.n_iter_) < 5
