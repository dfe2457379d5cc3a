"""Parameters that choose themselves."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from sklearn.base import clone

from hck import HCKClassifier, HCKRegressor
from hck.kernels import Gaussian

pytestmark = pytest.mark.usefixtures("one_thread")

RNG = np.random.default_rng(0)
UNITS = np.array([1.0, 1e4, 1e-3, 10.0])
X, NEW = RNG.uniform(size=(600, 4)) * UNITS, RNG.uniform(size=(300, 4)) * UNITS


def truth(x):
    """Two features of four matter."""
    return np.sin(6 * x[:, 0] / UNITS[0]) + 2 * x[:, 1] / UNITS[1]


Y = truth(X) + 0.1 * RNG.standard_normal(600)
LABELS = np.digitize(truth(X), [0.5, 1.5])


@pytest.fixture(scope="module")
def regressor():
    return HCKRegressor(fit_time="fast", random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def classifier():
    return HCKClassifier(fit_time="fast", random_state=0).fit(X, LABELS)


def test_a_raw_table_is_enough(regressor):
    error = np.sqrt(np.mean((regressor.predict(NEW) - truth(NEW)) ** 2))
    assert error < 0.06


def test_features_that_do_not_matter_are_found(regressor):
    chosen = regressor.selection_
    assert chosen.candidates[0].many
    scales = chosen.kernel.importances() ** -0.5
    assert scales[2:].min() > 3 * scales[0]
    assert regressor.feature_importances_[:2].sum() > 0.8
    assert [c.loss for c in chosen.candidates] == sorted(c.loss for c in chosen.candidates)


def test_the_selection_explains_itself(regressor):
    text = str(regressor.selection_)
    for part in ("kernel ", "alpha", "loss on left-out observations", "chosen in"):
        assert part in text


def test_the_same_seed_chooses_the_same(regressor):
    again = clone(regressor).fit(X, Y)
    np.testing.assert_allclose(again.predict(NEW), regressor.predict(NEW), rtol=1e-9)


def test_left_out_predictions_tell_the_error(regressor):
    """The error of left-out targets is that of new ones, noise included."""
    left_out = np.mean((regressor.loo_predict() - Y) ** 2)
    fresh = np.mean((regressor.predict(NEW) - truth(NEW)) ** 2) + 0.01
    assert left_out == pytest.approx(fresh, rel=0.25)
    with pytest.raises(ValueError, match="leave_one_out=True"):
        clone(regressor).set_params(leave_one_out=False, alpha=0.1, lengthscale=1.0).fit(X, Y).loo_predict()


def test_classes(classifier):
    assert classifier.score(NEW, np.digitize(truth(NEW), [0.5, 1.5])) > 0.93


def test_probabilities(classifier):
    p = classifier.predict_proba(NEW)
    assert p.shape == (300, 3)
    np.testing.assert_allclose(p.sum(1), 1)
    assert (classifier.classes_[p.argmax(1)] == classifier.predict(NEW)).all()
    code = np.digitize(truth(NEW), [0.5, 1.5])
    assert -np.log(p[np.arange(300), code]).mean() < 0.35
    sure = p.max(1) > 0.9
    assert (p.argmax(1) == code)[sure].mean() > 0.9


def test_probabilities_of_two_classes_follow_the_noise():
    """Labels that are right in 80 of 100 cases get probabilities about 0.8, not 1."""
    labels = (X[:, 0] > 0.5) ^ (RNG.uniform(size=600) < 0.2)
    model = HCKClassifier(lengthscale=1.0, scale="standard", rank=64, random_state=0).fit(X, labels)
    p = model.predict_proba(NEW)
    assert p.max(1).mean() == pytest.approx(0.8, abs=0.1)


@pytest.mark.parametrize("alpha", [1e-3, 1.0])
def test_what_is_given_stays(alpha):
    model = HCKRegressor(alpha=alpha, fit_time=0.1, random_state=0).fit(X, Y)
    assert model.selection_.alpha == alpha
    given = HCKRegressor(Gaussian(0.7), scale="standard", random_state=0).fit(X, Y).selection_
    assert repr(given.kernel) == repr(Gaussian(0.7))
    named = HCKRegressor("laplace", fit_time=0.1, random_state=0).fit(X, Y).selection_
    assert "Laplace" in repr(named.kernel)


def test_alpha_alone_follows_the_noise():
    chosen = []
    for noise in (0.01, 1.0):
        y = truth(X) + noise * np.random.default_rng(1).standard_normal(600)
        model = HCKRegressor(lengthscale=1.0, scale="standard", rank=64, random_state=0).fit(X, y)
        chosen.append(model.selection_.alpha)
    assert chosen[0] < 0.1 * chosen[1]


@pytest.mark.parametrize("kind", ["standard", "minmax"])
def test_scaling_is_part_of_the_estimator(kind):
    """Units of features change nothing."""
    settings = {"lengthscale": 0.5, "alpha": 0.01, "scale": kind, "rank": 32, "random_state": 0}
    here = HCKRegressor(**settings).fit(X, Y).predict(NEW)
    there = HCKRegressor(**settings).fit(X / UNITS + 3, Y).predict(NEW / UNITS + 3)
    np.testing.assert_allclose(there, here, rtol=1e-5, atol=1e-6)


def test_sparse_and_constant_features():
    x = np.where(X / UNITS > 0.5, X / UNITS, 0)
    x[:, 3] = 7.0
    dense, sparse = (
        HCKRegressor(fit_time="fast", random_state=0).fit(form(x), Y) for form in (np.asarray, sp.csr_matrix)
    )
    np.testing.assert_allclose(sparse.predict(sp.csr_matrix(x)), dense.predict(x), rtol=1e-6, atol=1e-8)
    for kind in ("standard", "minmax"):
        scaled = HCKRegressor(lengthscale=1.0, alpha=0.1, scale=kind, rank=32).fit(sp.csr_matrix(x), Y)
        assert np.isfinite(scaled.predict(sp.csr_matrix(x))).all()


def test_several_targets_and_weights():
    targets = np.column_stack([Y, 100 * Y[::-1]])
    model = HCKRegressor(fit_time=0.1, random_state=0)
    weight = RNG.uniform(0, 2, 600)
    weight[::7] = 0
    assert model.fit(X, targets, sample_weight=weight).predict(NEW).shape == (300, 2)
    assert model.loo_predict().shape == ((weight > 0).sum(), 2)


def test_tensors():
    model = HCKRegressor(fit_time=0.1, random_state=0).fit(torch.from_numpy(X), Y)
    found = model.predict(torch.from_numpy(NEW))
    assert isinstance(found, torch.Tensor)
    np.testing.assert_allclose(found.numpy(), model.predict(NEW), rtol=1e-9)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"fit_time": "quick"}, "fit_time"),
        ({"fit_time": 0}, "fit_time"),
        ({"scale": "robust"}, "scale"),
        ({"lengthscale": "median"}, "lengthscale"),
        ({"alpha": "best"}, "alpha"),
        ({"kernel": "rbf"}, "unknown kernel 'rbf'"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        HCKRegressor(**parameters).fit(X, Y)


def test_rare_classes_are_compared_with_their_intercept():
    """The loss of left-out labels is that of decision values, whose mean is the intercept."""
    rare = truth(X) > 2.4
    chosen = HCKClassifier(fit_time="fast", random_state=0).fit(X, rare).selection_
    share = rare.mean()
    chance = -(share * np.log(share) + (1 - share) * np.log(1 - share))
    assert chosen.candidates[0].loss < 0.6 * chance


@pytest.mark.parametrize("size", [1e-3, 1e3])
def test_the_unit_of_weights_changes_nothing(size):
    weight = RNG.uniform(0.5, 2, 600)
    settings = {"lengthscale": 1.0, "scale": "standard", "rank": 64, "random_state": 0}
    here, there = (HCKRegressor(**settings).fit(X, Y, sample_weight=w) for w in (weight, size * weight))
    np.testing.assert_allclose(there.predict(NEW), here.predict(NEW), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("size", [1e-3, 1e3])
def test_the_size_of_a_kernel_changes_nothing(size):
    settings = {"scale": "standard", "rank": 64, "random_state": 0}
    here, there = (HCKRegressor(k, **settings).fit(X, Y) for k in (Gaussian(1.0), size * Gaussian(1.0)))
    np.testing.assert_allclose(there.predict(NEW), here.predict(NEW), rtol=1e-6, atol=1e-8)


def test_a_tree_and_landmarks_belong_to_features_as_they_are():
    x = X / UNITS
    tree = HCKRegressor(lengthscale=1.0, alpha=0.1, rank=32, random_state=0).fit(x, Y).tree_
    model = HCKRegressor(partition=tree, landmarks=x[:20], fit_time=0.1, random_state=0).fit(x, Y)
    assert model._scaling.factor is None
    assert np.mean((model.predict(NEW / UNITS) - truth(NEW)) ** 2) < 0.05
    with pytest.raises(ValueError, match="scale=None"):
        HCKRegressor(partition=tree, scale="minmax").fit(x, Y)


def test_float32_keeps_the_digits_of_features_far_from_0():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(400, 2))
    y = np.sin(6 * X[:, 0]) + X[:, 1]
    options = {"alpha": 1e-3, "lengthscale": 1.0, "rank": 64, "scale": "standard", "random_state": 0}
    near, far = (
        HCKRegressor(dtype="float32", **options).fit(X[:300] + shift, y[:300]).predict(X[300:] + shift)
        for shift in (0.0, 1e6)
    )
    np.testing.assert_allclose(far, near, rtol=0, atol=1e-3)


def test_sparse_data_are_made_dense_by_parts(monkeypatch):
    X = sp.random(300, 6, density=0.5, format="csr", random_state=0)
    y = X[:, 0].toarray().ravel()
    model = HCKRegressor(fit_time="fast", random_state=0).fit(X, y)
    expected = model.predict(X)
    monkeypatch.setattr("hck.estimators.ridge._MOST_DENSE", 6 * 70)
    np.testing.assert_allclose(model.predict(X), expected, rtol=0, atol=1e-9)


def test_names_of_an_earlier_table_are_forgotten():
    X, options = np.random.default_rng(0).uniform(size=(50, 2)), {"alpha": 0.1, "lengthscale": 1.0, "rank": 8}
    model = HCKRegressor(**options).fit(pd.DataFrame(X, columns=["a", "b"]), X[:, 0])
    assert list(model.feature_names_in_) == ["a", "b"]
    model.fit(torch.from_numpy(X), X[:, 0])
    assert not hasattr(model, "feature_names_in_")


def test_weights_of_one_size_are_a_smaller_ridge():
    options = {"kernel": "matern32", "fit_time": 0.01, "random_state": 0}
    heavy = HCKRegressor(alpha=1.0, **options).fit(X, Y, sample_weight=np.full(len(Y), 100.0))
    plain = HCKRegressor(alpha=0.01, **options).fit(X, Y)
    assert str(heavy.selection_.kernel) == str(plain.selection_.kernel)


def test_tensors_of_yes_and_no():
    x = torch.rand(80, 3, generator=torch.Generator().manual_seed(0)) > 0.5
    model = HCKRegressor(fit_time="fast", random_state=0).fit(x, x[:, 0].double().numpy())
    np.testing.assert_allclose(model.predict(x).numpy(), x[:, 0].double().numpy(), atol=0.1)
