"""A fit changes a model as a whole or not at all."""

import threading

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import hck.approximations.make as making
from hck import HCKClassifier, HCKGaussianProcessRegressor, HCKKernelPCA, HCKRegressor
from hck.estimators import whole
from hck.estimators.base import HCKEstimator

rng = np.random.default_rng(0)
X = pd.DataFrame({"a": rng.uniform(size=60), "b": rng.uniform(size=60), "c": ["x", "y", "z"] * 20})
NEW = X[:10]
OTHER = pd.DataFrame(rng.uniform(size=(40, 4)), columns=list("pqrs"))
y = np.sin(5 * X["a"].to_numpy()) + X["b"].to_numpy()
RIDGE = {"lengthscale": 0.5, "alpha": 0.1, "rank": 8, "random_state": 0}

MODELS = {
    "regressor": HCKRegressor(**RIDGE),
    "classifier": HCKClassifier(**RIDGE),
    "process": HCKGaussianProcessRegressor(
        optimizer=None, lengthscale=0.5, noise=0.1, rank=8, random_state=0
    ),
    "components": HCKKernelPCA(lengthscale=0.5, rank=8, random_state=0),
}


def targets(name, n):
    return np.arange(n) % 3 if name == "classifier" else np.resize(y, n)


@pytest.fixture(params=MODELS)
def named(request):
    """A name, and a model that is fitted to a table with names and categories."""
    return request.param, clone(MODELS[request.param]).fit(X, targets(request.param, 60))


def ask(model, x=NEW):
    return model.transform(x) if isinstance(model, HCKKernelPCA) else model.predict(x)


def missing(name, model, _):
    x = OTHER.copy()
    x.iloc[3, 2] = np.inf
    model.fit(x, targets(name, 40))


def missing_targets(name, model, _):
    if name == "components":
        raise ValueError("has none")
    model.fit(OTHER, np.full(40, np.nan))


def too_short(name, model, _):
    if name == "components":
        raise ValueError("has none")
    model.fit(OTHER.to_numpy(), targets(name, 39))


def wrong_parameter(name, model, _):
    rank = model.rank
    try:
        model.set_params(rank=-1).fit(OTHER, targets(name, 40))
    finally:
        model.set_params(rank=rank)


def wrong_landmarks(name, model, _):
    try:
        model.set_params(landmarks=np.zeros((3, 9))).fit(OTHER, targets(name, 40))
    finally:
        model.set_params(landmarks="uniform")


def no_memory(name, model, monkeypatch):
    stopped(name, model, monkeypatch, MemoryError("none left"))


def interrupt(name, model, monkeypatch):
    stopped(name, model, monkeypatch, KeyboardInterrupt())


def interrupt_at_the_end(name, model, monkeypatch):
    """Right after the last attribute of the stand-in was set."""

    def trees(self, value):
        self.__dict__["trees_"] = value
        raise KeyboardInterrupt

    monkeypatch.setattr(
        type(model), "trees_", property(lambda self: vars(self)["trees_"], trees), raising=False
    )
    model.fit(OTHER, targets(name, 40))


def stopped(name, model, monkeypatch, error):
    def stop(*args, **kwargs):
        raise error

    monkeypatch.setattr(making, "_approximate", stop)
    monkeypatch.setattr("hck.estimators.base.approximate", stop)
    model.fit(OTHER, targets(name, 40))


FAILURES = [missing, missing_targets, too_short, wrong_parameter, wrong_landmarks, no_memory, interrupt]


@pytest.mark.parametrize("fails", [*FAILURES, interrupt_at_the_end], ids=lambda fails: fails.__name__)
def test_a_refit_that_fails_leaves_the_old_model(named, fails):
    name, model = named
    before, attributes = ask(model), dict(vars(model))
    with pytest.MonkeyPatch.context() as patch, pytest.raises((ValueError, MemoryError, KeyboardInterrupt)):
        fails(name, model, patch)
    assert vars(model).keys() == attributes.keys()
    assert all(vars(model)[key] is value for key, value in attributes.items())
    np.testing.assert_array_equal(ask(model), before)
    assert list(model.feature_names_in_) == list("abc")
    assert model.n_features_in_ == 3


@pytest.mark.parametrize("name", MODELS)
def test_a_first_fit_that_fails_leaves_nothing(name):
    model = clone(MODELS[name])
    before = dict(vars(model))
    with pytest.raises(ValueError):
        missing(name, model, None)
    assert vars(model) == before


def test_a_refit_replaces_everything(named):
    name, model = named
    assert model.fit(OTHER.to_numpy(), targets(name, 40)) is model
    assert not hasattr(model, "feature_names_in_")
    assert model.n_features_in_ == 4
    fresh = clone(model).fit(OTHER.to_numpy(), targets(name, 40))
    np.testing.assert_array_equal(ask(model, OTHER.to_numpy()), ask(fresh, OTHER.to_numpy()))
    assert vars(model).keys() == vars(fresh).keys()


def test_parameters_that_are_set_meanwhile_stay(named):
    name, model = named

    class Sets(type(model)):
        def _points(self, given):
            model.verbose = 0.0
            return super()._points(given)

    model.__class__ = Sets
    model.fit(X, targets(name, 60))
    assert isinstance(model.verbose, float)


def test_readers_see_one_version(named):
    """A prediction that begins before a fit ends is that of the old model."""
    name, model = named
    before, other = ask(model), OTHER.to_numpy()
    inside, done, found = threading.Event(), threading.Event(), []
    method = "transform" if name == "components" else "predict"
    validate = HCKEstimator._validate_new

    def slow(self, x):
        checked = validate(self, x)
        inside.set()
        assert done.wait(20)
        return checked

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HCKEstimator, "_validate_new", slow)
        reader = threading.Thread(target=lambda: found.append(getattr(model, method)(NEW)))
        reader.start()
        assert inside.wait(20)
        model.fit(other, targets(name, 40))
        done.set()
        reader.join()
    np.testing.assert_array_equal(found[0], before)
    assert model.n_features_in_ == 4


def test_fit_transform_is_one_fit():
    model = clone(MODELS["components"]).fit(X)
    before = ask(model)
    with pytest.raises(ValueError):
        model.fit_transform(OTHER.replace(OTHER.iloc[0, 0], np.inf))
    np.testing.assert_array_equal(ask(model), before)
    np.testing.assert_allclose(model.fit_transform(X), model.transform(X), atol=1e-8)


def test_subclasses_of_users_are_kept_whole_too():
    class Mine(HCKRegressor):
        def fit(self, X, y):
            super().fit(X, y)
            if len(y) == 40:
                raise RuntimeError("no")
            return self

    model = Mine(**RIDGE).fit(X, y)
    before = ask(model)
    with pytest.raises(RuntimeError):
        model.fit(OTHER, y[:40])
    np.testing.assert_array_equal(ask(model), before)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_every_public_method_of_a_fitted_model_is_known(model):
    """One that reads several attributes must see those of one fit: its name belongs into `whole.READS`."""
    for cls in type(model).__mro__:
        if cls.__module__.startswith("hck."):
            methods = {name for name, value in vars(cls).items() if callable(value) and name[0] != "_"}
            assert methods <= {*whole.READS, *whole.FITS, *whole.UPDATES}
