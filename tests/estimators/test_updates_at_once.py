"""Updates while other threads read, copy and save: what these get is of one moment."""

import pickle
import threading
from copy import deepcopy

import numpy as np
import pytest

import hck
from hck import HCKClassifier, HCKGaussianProcessRegressor, HCKRegressor

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(120, 2))
Y = np.sin(5 * X[:, 0]) + X[:, 1]
GIVEN = {"lengthscale": 0.6, "rank": 10, "random_state": 0}
MODELS = {
    "regressor": lambda: HCKRegressor(**GIVEN, alpha=0.02).fit(X[:60], Y[:60]),
    "classifier": lambda: HCKClassifier(**GIVEN, alpha=0.02).fit(X[:60], Y[:60] > 1),
    "process": lambda: HCKGaussianProcessRegressor(**GIVEN, noise=0.02, optimizer=None).fit(X[:60], Y[:60]),
}


@pytest.fixture(params=MODELS)
def named(request):
    return request.param, MODELS[request.param]()


def targets(name):
    return Y > 1 if name == "classifier" else Y


@pytest.mark.parametrize("copied", ["pickled", "deep", "saved"])
def test_a_copy_while_another_thread_updates(named, copied, tmp_path, monkeypatch):
    """The other one is done in the midst of it: the copy is of before."""
    name, model = named
    y = targets(name)
    model.partial_fit(X[60:70], y[60:70])
    before, work = model.predict(X), type(model)._settled_parts

    def parts(self):
        found = work(self)
        if self is not model:
            monkeypatch.undo()
            model.fit(X[:30], y[:30])
        return found

    monkeypatch.setattr(type(model), "_settled_parts", parts)
    if copied == "saved":
        model.save(tmp_path / "model")
        other = hck.load(tmp_path / "model")
    else:
        other = deepcopy(model) if copied == "deep" else pickle.loads(pickle.dumps(model))
    assert model.tree_.n_points == 30
    assert other.tree_.n_points == 70
    np.testing.assert_allclose(other.predict(X), before, rtol=0, atol=1e-9)
    assert other.partial_fit(X[70:80], y[70:80]).tree_.n_points == 80


def test_a_property_while_another_thread_fits(named, monkeypatch):
    name, model = named
    y = targets(name)
    model.partial_fit(X[60:], y[60:])
    expected, work = model.drift_, type(model)._compared

    def compared(self, states):
        found = work(self, states)
        model.fit(X[:30], y[:30])
        return found

    monkeypatch.setattr(type(model), "_compared", compared)
    assert model.drift_ == expected
    assert model.drift_ == 1.0


def test_copies_and_properties_while_threads_update(named):
    name, model = named
    y, wrong, done = targets(name), [], threading.Event()
    model.partial_fit(X[60:61], y[60:61])

    def copy():
        other = pickle.loads(pickle.dumps(model))
        n = other.tree_.n_points
        assert other.forget(keep=30).tree_.n_points == 30
        assert 61 <= n <= 120

    def read():
        assert model.drift_ > 0
        tree = model.tree_
        assert tree.n_points == len(tree.order)
        if name == "process":
            assert len(model.X_train_) >= 61
            assert len(model.y_train_) >= 61

    def watch(ask):
        while not done.is_set():
            try:
                ask()
            except Exception as error:
                wrong.append(error)

    readers = [threading.Thread(target=watch, args=(ask,)) for ask in (copy, read)]
    writers = [
        threading.Thread(
            target=lambda i=i: [model.partial_fit(X[k : k + 1], y[k : k + 1]) for k in range(61 + i, 120, 2)]
        )
        for i in range(2)
    ]
    for thread in readers + writers:
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    for thread in readers:
        thread.join()
    assert not wrong
    assert model.tree_.n_points == 120
