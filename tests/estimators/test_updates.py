"""partial_fit, forget and update: the model of all that is left, changed as a whole or not at all."""

import pickle
import threading
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from sklearn.base import clone

import hck
from hck import HCKClassifier, HCKGaussianProcessRegressor, HCKRegressor
from hck.approximations import TreeKernel
from hck.errors import ModelFileError
from hck.online.workshop import Workshop
from hck.outofcore import DiskHCKRegressor
from hck.process import Process

RNG = np.random.default_rng(0)
X, NEW = RNG.uniform(size=(260, 3)), RNG.uniform(size=(20, 3))
Y = np.sin(5 * X[:, 0]) + X[:, 1] + 0.1 * RNG.standard_normal(260)
LABELS = np.array(["low", "high"])[(Y > 1).astype(int)]
RIDGE = {"lengthscale": 0.6, "alpha": 0.02, "rank": 12, "random_state": 0}
MODELS = {
    "regressor": HCKRegressor(**RIDGE, n_trees=2),
    "classifier": HCKClassifier(**RIDGE),
    "process": HCKGaussianProcessRegressor(
        lengthscale=0.6, noise=0.02, optimizer=None, rank=12, random_state=0, trend="linear"
    ),
}


def targets(name):
    return LABELS if name == "classifier" else Y


@pytest.fixture(params=MODELS)
def named(request):
    return request.param, clone(MODELS[request.param]).fit(X[:150], targets(request.param)[:150])


def said(model):
    if isinstance(model, HCKGaussianProcessRegressor):
        return np.stack(model.predict(NEW, return_std=True))
    return model.decision_function(NEW) if isinstance(model, HCKClassifier) else model.predict(NEW)


def solved_anew(model):
    """What the fast code of `fit` makes of the same tree, landmarks and observations."""
    found = []
    for state in model._online:
        blueprint, data = state.harvested
        if isinstance(model, HCKGaussianProcessRegressor):
            process = Process.of(TreeKernel(blueprint), data.noise, data.b[:, 0], data.b[:, 1:])
            features = model._trend(NEW)
            mean = model._trend.restore(features, process.predict(torch.from_numpy(NEW), features))
            found.append(
                torch.stack([mean, process.variance(torch.from_numpy(NEW), features).sqrt()]).numpy()
            )
        else:
            points = model._placed(NEW)
            found.append(
                TreeKernel(blueprint).ridge(data.noise, data.b)[0](points).numpy()[:, 0] + model.intercept_
            )
    return np.mean(found, 0)


def test_equal_to_a_fit_on_the_same_tree(named):
    name, model = named
    y = targets(name).copy()
    model.partial_fit(X[150:], y[150:])
    np.testing.assert_allclose(said(model), solved_anew(model), rtol=0, atol=1e-9)
    model.forget(np.arange(3, 90, 2)).forget(keep=200)
    y, x = np.delete(y, np.arange(3, 90, 2))[-200:], np.delete(X, np.arange(3, 90, 2), 0)[-200:]
    model.update([7, -1], y[[0, 1]])
    y[[7, -1]] = y[[0, 1]]
    np.testing.assert_allclose(said(model), solved_anew(model), rtol=0, atol=1e-9)
    data = model._online[0].harvested[1]
    np.testing.assert_array_equal(model.tree_.n_points, len(x))
    scaled = model._placed(x) if hasattr(model, "_placed") else x
    np.testing.assert_allclose(data.points.x.numpy(), scaled.x.numpy())


def test_likelihood_and_left_out_values():
    model = clone(MODELS["process"]).fit(X[:150], Y[:150]).partial_fit(X[150:], Y[150:]).forget(range(40))
    blueprint, data = model._online[0].harvested
    process = Process.of(TreeKernel(blueprint), data.noise, data.b[:, 0], data.b[:, 1:])
    assert model.log_marginal_likelihood() == pytest.approx(process.log_likelihood, abs=1e-8)
    assert model.log_marginal_likelihood(model.theta_) == pytest.approx(process.log_likelihood, abs=1e-8)
    np.testing.assert_allclose(model.loo_predict(return_std=True)[1], process.leave_one_out().variance.sqrt())
    assert model.loo_metrics()["rmse"] < 0.2
    assert model.sample_posterior(NEW, 2).shape == (20, 2)
    ridge = clone(MODELS["regressor"]).fit(X[:150], Y[:150]).partial_fit(X[150:], Y[150:])
    found = []
    for state in ridge._online:
        blueprint, data = state.harvested
        found.append(TreeKernel(blueprint).ridge(data.noise, data.b, True)[1].numpy() + ridge.intercept_)
    np.testing.assert_allclose(ridge.loo_predict(), np.mean(found, 0)[:, 0], rtol=0, atol=1e-9)


def test_weights_and_variances():
    weight = RNG.uniform(0.5, 2, 260)
    weight[200] = 0
    model = (
        HCKRegressor(**RIDGE).fit(X[:150], Y[:150], weight[:150]).partial_fit(X[150:], Y[150:], weight[150:])
    )
    data = model._online[0].harvested[1]
    np.testing.assert_allclose(data.noise.numpy(), 0.02 / np.delete(weight, 200))
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(loaded._weight, np.delete(weight, 200))
    process = clone(MODELS["process"]).fit(X[:150], Y[:150], weight[:150])
    process.partial_fit(X[150:200], Y[150:200], weight[150:200]).forget([0])
    np.testing.assert_allclose(process.noise_, weight[1:200])
    with pytest.raises(ValueError, match="noise_variance"):
        process.partial_fit(X[:2], Y[:2])
    with pytest.raises(ValueError, match="noise_variance"):
        clone(MODELS["process"]).fit(X, Y).partial_fit(X[:2], Y[:2], [1.0, 1.0])


def test_the_first_call_is_a_fit(named):
    name, model = named
    first = clone(model).partial_fit(X[:150], targets(name)[:150])
    np.testing.assert_array_equal(said(first), said(model))


def test_new_classes():
    y = np.where(Y > 1, 2, 0)
    model = HCKClassifier(**RIDGE).partial_fit(X[:100], y[:100], classes=[0, 2])
    with pytest.raises(ValueError, match="was not there before"):
        model.partial_fit(X[:1], [1])
    before = model.decision_function(NEW)
    model.partial_fit(X[100:101], y[100:101], classes=[0, 1, 2])
    assert model.classes_.tolist() == [0, 1, 2]
    model.forget([100])
    np.testing.assert_allclose(model.decision_function(NEW)[:, 2], before, atol=1e-9)
    np.testing.assert_allclose(model.decision_function(NEW)[:, 0], -before, atol=1e-9)
    np.testing.assert_allclose(model.decision_function(NEW)[:, 1], -1, atol=1e-9)
    model.partial_fit(np.tile(NEW[:1], (3, 1)), [1, 1, 1])
    assert model.predict(NEW[:1])[0] == 1
    assert model.predict_proba(NEW).shape == (20, 3)
    all_known = HCKClassifier(**RIDGE).partial_fit(X[:100], y[:100], classes=[0, 1, 2])
    assert all_known.decision_function(NEW).shape == (20, 3)


@pytest.mark.parametrize("kind", ["saved", "pickled"])
def test_goes_on_after_loading(named, kind, tmp_path):
    name, model = named
    y = targets(name)
    model.partial_fit(X[150:200], y[150:200])
    if kind == "saved":
        model.save(tmp_path / "model")
    loaded = hck.load(tmp_path / "model") if kind == "saved" else pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(said(loaded), said(model), rtol=0, atol=1e-9)
    for each in (loaded, model):
        each.partial_fit(X[200:], y[200:]).forget([0, 5])
    np.testing.assert_allclose(said(loaded), said(model), rtol=0, atol=1e-9)
    assert loaded.drift_ == pytest.approx(model.drift_, rel=1e-6)
    plain = clone(model).fit(X[:150], y[:150])
    plain.save(tmp_path / "plain")
    again = hck.load(tmp_path / "plain").partial_fit(X[150:200], y[150:200])
    assert again.tree_.n_points == 200


@pytest.mark.parametrize(
    ("x", "y", "match"),
    [
        (X[:2, :2], [0, 1], "features"),
        (np.full((2, 3), np.inf), [0, 1], "infinity"),
        (X[:2], [0], "inconsistent"),
        (X[:2], None, "requires y"),
        (X[:0], [], "0 sample|minimum of 1"),
        (X[:2], [np.nan, 1.0], "NaN|label"),
    ],
)
def test_bad_input_leaves_the_model_as_it_was(named, x, y, match):
    name, model = named
    model.partial_fit(X[150:160], targets(name)[150:160])
    before, attributes = said(model), dict(vars(model))
    with pytest.raises(ValueError, match=match):
        model.partial_fit(
            x, np.array(["low", "high"])[: len(y)] if name == "classifier" and y in ([0], [0, 1]) else y
        )
    assert vars(model) == attributes
    np.testing.assert_array_equal(said(model), before)


@pytest.mark.parametrize("name", ["regressor", "process"])
def test_targets_that_overflow(name):
    model = clone(MODELS[name]).fit(X[:150], Y[:150]).partial_fit(X[150:160], Y[150:160])
    before = said(model)
    for ask in (lambda: model.partial_fit(X[:2], [1e300, 1.0]), lambda: model.update([0], [1e300])):
        with pytest.raises(ValueError, match="too large"):
            ask()
    np.testing.assert_array_equal(said(model), before)


@pytest.mark.parametrize(
    ("ask", "match"),
    [
        (lambda m: m.forget(), "either indices or keep"),
        (lambda m: m.forget(range(150)), "at least one must stay"),
        (lambda m: m.forget([150]), "out of range"),
        (lambda m: m.forget([1, 1]), "twice"),
        (lambda m: m.forget([0.5]), "whole numbers"),
        (lambda m: m.forget(keep=0), "at least 1"),
        (lambda m: m.forget(np.ones(3, bool)), "mask"),
        (lambda m: m.update([0, 1], [1.0]), "2 indices"),
        (lambda m: m.update([0], [np.nan]), "NaN"),
    ],
)
def test_bad_indices(ask, match):
    model = HCKRegressor(**RIDGE).fit(X[:150], Y[:150])
    before = said(model)
    with pytest.raises(ValueError, match=match):
        ask(model)
    np.testing.assert_array_equal(said(model), before)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"])
def test_indices_of_any_size(dtype):
    """Also of types that cannot say how many observations there are, or what is −1 from their end."""
    model, other = (HCKRegressor(**RIDGE).fit(X, Y) for _ in range(2))
    indices = np.array([120, 3, 77], dtype)
    model.update(indices, [1.0, 2.0, 3.0]).forget(indices[:2])
    other.update([120, 3, 77], [1.0, 2.0, 3.0]).forget([3, 120])
    np.testing.assert_array_equal(said(model), said(other))
    assert model.tree_.n_points == 258
    np.testing.assert_array_equal(said(model.forget(indices[:0])), said(other))
    with pytest.raises(ValueError, match="out of range"):
        model.forget(keep=100).forget(indices)
    if dtype[0] == "i":
        last, same = deepcopy(model), deepcopy(model)
        np.testing.assert_array_equal(said(last.forget(np.array([-1], dtype))), said(same.forget([99])))


def test_one_value_for_one_index(named):
    name, model = named
    value = {"classifier": "low"}.get(name, 0.7)
    expected = said(deepcopy(model).update([3], [value]))
    for index, y in (
        (3, value),
        ([3], value),
        (-147, [value]),
        ([3], [[value]]),
        (np.int8(3), np.array(value)),
    ):
        np.testing.assert_array_equal(said(deepcopy(model).update(index, y)), expected)
    for y in (value, [value], [[value, value]]):
        with pytest.raises(ValueError, match=r"2 indices|has 2 targets|one column"):
            model.update([3, 4], y)


@pytest.mark.parametrize(
    ("y", "match"),
    [
        (sp.csr_matrix(np.ones((2, 1))), "sparse"),
        (np.ones((2, 2)), "has 2 targets|one column"),
        ([None, None], "NaN|no label"),
        (["low", "none"], "real numbers|the label 'none', which was not there"),
        ([np.inf, 0.0], "infinity|the label inf"),
    ],
    ids=str,
)
def test_bad_corrections(named, y, match):
    _, model = named
    attributes = dict(vars(model))
    with pytest.raises(ValueError, match=match):
        model.update([0, 1], y)
    assert vars(model) == attributes


@pytest.mark.parametrize("given", ["before", "after"])
@pytest.mark.parametrize(("name", "dtype"), [("regressor", "float64"), ("process", "float32")])
def test_observations_that_count_for_nothing(name, dtype, given):
    """Their noise is infinite: an error that says so, not one of a matrix."""
    model = clone(MODELS[name]).set_params(dtype=dtype, jitter=1e-4)
    each = np.ones(150)
    each[0] = nothing = 1e-320 if name == "regressor" else 1e100
    model.fit(X[:150], Y[:150], each if given == "before" else np.ones(150))
    with pytest.raises(
        ValueError, match=f"too large for {dtype}, up to .*: leave out what counts for nothing"
    ):
        model.partial_fit(X[:2], Y[:2], [1.0, 1.0 if given == "before" else nothing])


def test_nothing_to_do():
    model = HCKRegressor(**RIDGE).fit(X[:150], Y[:150])
    before = said(model)
    model.forget([]).forget(keep=500).update([], [])
    np.testing.assert_array_equal(said(model), before)
    assert model.drift_ == 1.0


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"approximation": "nystrom"}, "nystrom"),
        ({"approximation": "exact"}, "exact"),
        ({"partition": "kmeans"}, "hyperplanes"),
    ],
)
def test_what_cannot_be_updated_says_so(options, match):
    model = HCKRegressor(**{**RIDGE, **options})
    for each in (model, model.fit(X, Y)):
        with pytest.raises(ValueError, match=match):
            each.partial_fit(X, Y)
    with pytest.raises(ValueError, match=match):
        model.forget([0])


def test_models_on_disk_say_so(tmp_path):
    with pytest.raises(ValueError, match="DiskHCKRegressor has no updates"):
        DiskHCKRegressor(folder=tmp_path / "model").partial_fit(X, Y)


def test_what_is_given_is_not_kept():
    x, y = X.copy(), Y.copy()
    model = HCKRegressor(**RIDGE, scale=None).fit(X[:150], Y[:150])
    for new in (slice(150, 151), slice(151, 260)):
        model.partial_fit(x[new], y[new])
    before = said(model)
    x[:], y[:] = 0, 0
    model.update([0], Y[:1])
    np.testing.assert_allclose(said(model), before, rtol=0, atol=1e-12)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_update_that_is_interrupted(named, monkeypatch, error):
    name, model = named
    model.partial_fit(X[150:160], targets(name)[150:160])
    before, attributes = said(model), dict(vars(model))

    def stop(*_):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(Workshop, "fill", stop)
        for ask in (
            lambda: model.partial_fit(X[160:], targets(name)[160:]),
            lambda: model.forget([0]),
            lambda: model.update([0], targets(name)[:1]),
        ):
            with pytest.raises(error):
                ask()
    assert vars(model) == attributes
    np.testing.assert_array_equal(said(model), before)
    model.partial_fit(X[160:], targets(name)[160:])
    np.testing.assert_allclose(said(model), solved_anew(model), rtol=0, atol=1e-9)


def test_threads_see_one_version_or_the_other():
    """The target jumps between 0 and 1 at all points at once: predictions are those of one of both."""
    model = HCKRegressor(**RIDGE).fit(X[:60], np.zeros(60))
    model.update(np.arange(60), np.ones(60))
    high = said(model)
    low, wrong, done = high - high, [], threading.Event()

    def watch():
        while not done.is_set():
            now = said(model)
            if not (np.allclose(now, high, atol=1e-9) or np.allclose(now, low, atol=1e-9)):
                wrong.append(now)

    threads = [threading.Thread(target=watch) for _ in range(2)]
    for thread in threads:
        thread.start()
    for i in range(20):
        model.update(np.arange(60), np.full(60, float(i % 2)))
    done.set()
    for thread in threads:
        thread.join()
    assert not wrong


def test_threads_that_update_wait_for_each_other():
    model = HCKRegressor(**RIDGE).fit(X[:60], Y[:60])
    threads = [
        threading.Thread(target=model.partial_fit, args=(X[i : i + 1], Y[i : i + 1])) for i in range(60, 80)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert model.tree_.n_points == 80


def test_importances_are_those_of_all_points():
    model = HCKRegressor(**RIDGE).fit(X[:150], Y[:150]).partial_fit(X[150:], Y[150:])
    spread = model._placed(X).x.numpy().var(0)
    np.testing.assert_allclose(model.feature_importances_, spread / spread.sum())


def test_memory_that_is_not_there(monkeypatch):
    model = HCKRegressor(**{**RIDGE, "rank": 150}).fit(X, Y)
    monkeypatch.setattr("hck.backend.memory._SMALL", 0)
    monkeypatch.setattr("hck.backend.memory.free_bytes", lambda device: 1_000_000)
    with pytest.raises(MemoryError, match="updates of 260 points"):
        model.partial_fit(X[:1], Y[:1])


def test_drift():
    model = HCKRegressor(**RIDGE).fit(X[:200], Y[:200]).partial_fit(X[200:], Y[200:])
    assert 0.4 < model.drift_ < 2.0
    model.partial_fit(X[:60] + 0.01, 3 * RNG.standard_normal(60))
    assert model.drift_ > 5
    assert model.forget(keep=60).drift_ == np.inf  # nothing of the fit is left


def test_other_kinds_of_data():
    for x in (sp.csr_matrix(X), torch.from_numpy(X), X.astype(np.float32)):
        model = HCKRegressor(**RIDGE).fit(x[:150], Y[:150]).partial_fit(x[150:], Y[150:])
        np.testing.assert_allclose(np.asarray(said(model)), solved_anew(model), rtol=0, atol=1e-9)
    blended = HCKRegressor(rank=12, random_state=0, fit_time="best", n_trees=1).fit(X[:150], Y[:150])
    blended.partial_fit(X[150:], Y[150:])
    assert blended.score(X, Y) > 0.9
    several = (
        HCKRegressor(**RIDGE)
        .fit(X[:150], np.stack([Y, -Y], 1)[:150])
        .partial_fit(X[150:], np.stack([Y, -Y], 1)[150:])
    )
    assert several.predict(NEW).shape == (20, 2)
    with pytest.raises(ValueError, match="targets"):
        several.partial_fit(X[:1], Y[:1])


def test_no_landmarks_and_one_point():
    model = HCKRegressor(**RIDGE, landmarks="none").fit(X[:150], Y[:150]).partial_fit(X[150:], Y[150:])
    np.testing.assert_allclose(said(model), solved_anew(model), rtol=0, atol=1e-9)
    alone = HCKRegressor(**RIDGE, scale=None).fit(X[:1], Y[:1])
    for i in range(1, 60):
        alone.partial_fit(X[i : i + 1], Y[i : i + 1])
    np.testing.assert_allclose(said(alone), solved_anew(alone), rtol=0, atol=1e-9)
    alone.forget(keep=1)
    assert alone.tree_.n_points == 1


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_weights_that_are_all_alike(dtype):
    """Those without weights have none after a copy either; a weight that all have left is not forgotten."""
    given = {**RIDGE, "dtype": dtype, "jitter": 1e-4}
    plain = HCKRegressor(**given).fit(X[:150], Y[:150]).partial_fit(X[150:], Y[150:])
    assert pickle.loads(pickle.dumps(plain))._weight is None
    model = HCKRegressor(**given).fit(X[:150], Y[:150]).partial_fit(X[150:], Y[150:], np.full(110, 4.0))
    model.forget(keep=110)
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(loaded._weight, 4.0, rtol=1e-6)
    for each in (model, loaded):
        each.partial_fit(X[:5], Y[:5])
        np.testing.assert_allclose(each._online[0].harvested[1].noise, [0.005] * 110 + [0.02] * 5, rtol=1e-6)
    np.testing.assert_allclose(said(loaded), said(model), rtol=0, atol=1e-9 if dtype == "float64" else 1e-4)


# With what else models have ------------------------------------------------------------------------------


def test_intervals_sets_and_gradients_are_those_of_what_is_left(named, tmp_path):
    name, model = named
    model.partial_fit(X[150:], targets(name)[150:]).forget(np.arange(40))
    model.save(tmp_path / "model")
    again = hck.load(tmp_path / "model")
    np.testing.assert_allclose(
        model.predict_gradient(NEW), again.predict_gradient(NEW), rtol=1e-8, atol=1e-10
    )
    if name == "classifier":
        np.testing.assert_array_equal(model.predict_set(NEW, 0.8), again.predict_set(NEW, 0.8))
    elif name == "regressor":
        mean, lower, upper = model.predict(NEW, interval=0.8)
        half = np.sort(abs(model.loo_predict() - Y[40:]))[int(np.ceil(0.8 * 221)) - 1]
        np.testing.assert_allclose(upper - mean, half, rtol=1e-7)
        np.testing.assert_allclose(mean - lower, half, rtol=1e-7)
    else:
        draws = model.draw_functions(3, random_state=0)
        np.testing.assert_allclose(
            draws(NEW), again.draw_functions(3, random_state=0)(NEW), rtol=1e-6, atol=1e-6
        )


def test_a_calibrated_forest_in_units_of_its_own():
    given = {"lengthscale": 0.6, "noise": 0.02, "optimizer": None, "random_state": 0}
    given |= {"rank": 12, "n_trees": 3, "normalize_y": True, "calibrate": "loo"}
    model = HCKGaussianProcessRegressor("matern32", **given).fit(X[:150], 5 + 100 * Y[:150])
    before = model.posterior_.spread
    model.partial_fit(X[150:], 5 + 100 * Y[150:]).update([0], [5 + 100 * Y[0]])
    assert model.posterior_.spread == before
    np.testing.assert_allclose(model.y_train_, 5 + 100 * Y, rtol=1e-9)
    members = [
        Process.of(each.source, each.noise, each.observations, each.features)
        for each in model.posterior_.members
    ]
    expected = np.mean([each.predict(NEW, model._trend(NEW)).numpy() for each in members], 0)
    expected = model._units.restore(
        model._trend.restore(model._trend(NEW), torch.from_numpy(expected))
    ).numpy()
    np.testing.assert_allclose(model.predict(NEW), expected, rtol=1e-8)


@pytest.mark.parametrize("loss", ["huber", "poisson"])
def test_other_losses_have_no_updates(loss):
    model = HCKRegressor(**RIDGE, loss=loss).fit(X[:150], abs(Y[:150]))
    with pytest.raises(ValueError, match="updates are for loss='squared'"):
        model.partial_fit(X[150:], abs(Y[150:]))


def test_several_targets_of_a_process_have_no_updates():
    model = clone(MODELS["process"]).fit(X, np.stack([Y, -Y], 1))
    with pytest.raises(ValueError, match="updates are for one target"):
        model.partial_fit(X[:3], np.ones((3, 2)))


def test_given_values_have_no_updates():
    model = HCKRegressor("precomputed", alpha=0.1, partition="kernel").fit(X @ X.T, Y)
    with pytest.raises(ValueError, match="updates"):
        model.partial_fit(X[:2] @ X.T, Y[:2])


def test_a_fit_after_updates_begins_anew(named):
    name, model = named
    y = targets(name)
    model.partial_fit(X[150:], y[150:]).fit(X[:200], y[:200]).partial_fit(X[200:], y[200:])
    fresh = clone(MODELS[name]).fit(X[:200], y[:200]).partial_fit(X[200:], y[200:])
    np.testing.assert_array_equal(said(model), said(fresh))
    assert model.drift_ == fresh.drift_


@pytest.mark.parametrize("name", MODELS)
def test_names_of_columns_stay(name):
    """Else columns in another order would be taken for others after an update."""
    y, table = targets(name), pd.DataFrame(X, columns=["a", "b", "c"])
    model = clone(MODELS[name]).fit(table[:150], y[:150]).partial_fit(table[150:160], y[150:160])
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    for wrong in (table[["c", "b", "a"]], table.rename(columns={"a": "z"})):
        for call in (lambda x: model.predict(x), lambda x: model.partial_fit(x[:5], y[:5])):
            with pytest.raises(ValueError, match="feature names should match"):
                call(wrong)


# What is not lost, and what does not come in ---------------------------------------------------------------


@pytest.mark.parametrize("ask", [lambda m: m.forget([0]), lambda m: m.partial_fit(X[150:152], Y[150:152])])
def test_weights_need_a_ridge(ask):
    """Else noise, which is 0, does not say what they were."""
    weight = RNG.uniform(0.5, 2, 150)
    model = HCKRegressor("matern32", lengthscale=1.0, alpha=0.0, rank=16).fit(X[:150], Y[:150], weight)
    attributes = dict(vars(model))
    with pytest.raises(ValueError, match="weighted observations need alpha above 0"):
        ask(model)
    assert vars(model) == attributes
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model))._weight, weight)
    plain = HCKRegressor("matern32", lengthscale=1.0, alpha=0.0, rank=16).fit(X[:150], Y[:150]).forget([0])
    assert np.isfinite(plain.predict(NEW, interval=0.9)).all()
    with pytest.raises(ValueError, match="weighted observations need alpha above 0"):
        plain.partial_fit(X[:2], Y[:2], [1.0, 2.0])


@pytest.mark.parametrize("kind", ["saved", "pickled", "copied"])
def test_drift_is_not_lost(named, kind, tmp_path):
    name, model = named
    model.partial_fit(X[150:200], targets(name)[150:200])
    if kind == "saved":
        model.save(tmp_path / "model")
        loaded = hck.load(tmp_path / "model")
    else:
        loaded = pickle.loads(pickle.dumps(model)) if kind == "pickled" else deepcopy(model)
    assert model.drift_ != 1.0
    for change in (
        lambda m: m,
        lambda m: m.forget([]),
        lambda m: m.update([], []),
        lambda m: m.forget(keep=500),
        lambda m: pickle.loads(pickle.dumps(m)),
    ):
        loaded = change(loaded)
        assert loaded.drift_ == pytest.approx(model.drift_, rel=1e-6)
    for each in (model, loaded):
        each.forget([0, 160])
    assert loaded.drift_ == pytest.approx(model.drift_, rel=1e-6)


SET_LATER = {"jitter": 1e-2, "partition": "pca", "landmarks": "kmeans", "approximation": "nystrom", "rank": 3}


@pytest.mark.parametrize("kind", ["same", "saved"])
@pytest.mark.parametrize("set_later", [*SET_LATER, "alpha"])
def test_parameters_that_are_set_later_are_for_the_next_fit(named, set_later, kind, tmp_path):
    name, model = named
    if set_later == "alpha" and name == "process":
        model.set_params(noise=0.5)
    elif set_later == "alpha":
        weight = RNG.uniform(0.5, 2, 150)
        model = clone(model).set_params(alpha="auto").fit(X[:150], targets(name)[:150], weight)
        model = model.set_params(alpha=0.5)
    same = deepcopy(model)
    before = said(model)
    if set_later != "alpha":
        model.set_params(**{set_later: SET_LATER[set_later]})
    if kind == "saved":
        model.save(tmp_path / "model")
        model = hck.load(tmp_path / "model")
    np.testing.assert_allclose(said(model.update([0], targets(name)[:1])), before, rtol=0, atol=1e-9)
    for each in (model, same):
        each.partial_fit(np.tile(X[:1], (110, 1)) + 0.3 * X[150:], targets(name)[150:])  # so that trees grow
    np.testing.assert_allclose(said(model), said(same), rtol=0, atol=1e-8)


def test_models_of_earlier_versions_go_on(named):
    """These know no more of their fit than parameters say."""
    name, model = named
    weight = None
    if name != "process":
        weight = RNG.uniform(0.5, 2, 150)
        model = clone(model).set_params(alpha="auto").fit(X[:150], targets(name)[:150], weight)
    old = deepcopy(model)
    for attribute in {"_built", "_unit_weight"} & {*vars(old)}:
        delattr(old, attribute)
    for each in (model, old):
        each.partial_fit(X[150:], targets(name)[150:]).forget([0])
    np.testing.assert_array_equal(said(model), said(old))


def test_forged_settings_are_refused(tmp_path):
    model = HCKRegressor(**RIDGE).fit(X[:150], Y[:150])
    for wrong in ({"partition": "no"}, {"landmarks": 3}, {"partition": 3}):
        forged = deepcopy(model)
        forged._built = replace(model._built, **wrong)
        forged.save(tmp_path / "model", force=True)
        with pytest.raises(ModelFileError, match="_built"):
            hck.load(tmp_path / "model")


@pytest.mark.parametrize("name", ["regressor", "classifier"])
def test_nothing_left_out_before_or_after(name):
    model = clone(MODELS[name]).set_params(leave_one_out=False).fit(X[:150], targets(name)[:150])
    asks = {
        "regressor": [lambda m: m.predict(NEW, interval=0.5), lambda m: m.loo_predict()],
        "classifier": [lambda m: m.predict_set(NEW, 0.5), lambda m: m.loo_decision_function()],
    }
    after = deepcopy(model).forget([0])
    for each in (model, after, pickle.loads(pickle.dumps(after))):
        for ask in asks[name]:
            with pytest.raises(ValueError, match="nothing was left out"):
                ask(each)
