"""One observation after another, as river has it."""

import pickle
import threading
from contextlib import contextmanager
from copy import deepcopy

import numpy as np
import pytest

from hck import HCKClassifier, HCKGaussianProcessRegressor, HCKRegressor
from hck.estimators.stream import StreamingClassifier, StreamingRegressor
from hck.estimators.whole import changing

GIVEN = {"lengthscale": 1.0, "alpha": 0.05, "rank": 16, "random_state": 0}


def stream(n, classes=False, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        x = {"b": rng.uniform(-2, 2), "a": rng.uniform(-2, 2)}
        y = np.sin(2 * x["a"]) + 0.5 * x["b"] + 0.05 * rng.standard_normal()
        yield x, (("up" if y > 0 else "down") if classes else y)


def test_a_stream_is_one_fit_and_updates():
    given = {**GIVEN, "rank": 64, "scale": None}
    model = StreamingRegressor(HCKRegressor(**given), first=40, again=None, window=None)
    assert model.predict_one({"a": 0.0}) == 0.0
    for x, y in stream(90):
        model.learn_one(x, y)
    other = HCKRegressor(**given)
    rows, y = (np.array(each) for each in zip(*(([x["a"], x["b"]], y) for x, y in stream(90)), strict=True))
    other.fit(rows[:40], y[:40]).partial_fit(rows[40:], y[40:])
    assert model.predict_one({"b": 0.3, "a": 0.1}) == pytest.approx(other.predict([[0.1, 0.3]])[0], abs=1e-9)


def test_fits_anew_and_keeps_a_window():
    model = StreamingRegressor(HCKRegressor(**GIVEN), first=20, again=2.0, window=60)
    for x, y in stream(200):
        model.learn_one(x, y)
    assert 60 <= len(model._rows) <= 62
    assert model.model.tree_.n_points == len(model._rows)
    assert model._fitted_to == 40
    assert abs(model.predict_one({"a": 0.5, "b": 0.0, "new": 9.0}) - np.sin(1.0)) < 0.2


def test_classes_come_when_they_come():
    model = StreamingClassifier(HCKClassifier(**GIVEN), first=30, again=None)
    assert model.predict_one({"a": 1.0}) is None
    assert model.predict_proba_one({"a": 1.0}) == {}
    for x, y in stream(60, classes=True):
        model.learn_one(x, y)
    for _ in range(5):
        model.learn_one({"a": 5.0, "b": 5.0}, "elsewhere")
    assert model.predict_one({"a": 5.0, "b": 5.0}) == "elsewhere"
    chances = model.predict_proba_one({"a": 1.0, "b": 0.0})
    assert set(chances) == {"up", "down", "elsewhere"}
    assert sum(chances.values()) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="the label 7 cannot stand beside 'elsewhere': labels are text here"):
        model.learn_one({"a": 1.0, "b": 0.0}, 7)


def test_bad_features():
    model = StreamingRegressor(HCKRegressor(**GIVEN), first=20)
    with pytest.raises(ValueError, match="finite"):
        model.learn_one({"a": np.nan}, 1.0)
    with pytest.raises(ValueError, match="first must be"):
        StreamingRegressor(first=1)


@pytest.mark.parametrize("fitted", [False, True])
@pytest.mark.parametrize(
    ("x", "y"),
    [
        *((None, 1.0), ([1.0], 1.0), ({"a": "x", "b": 1}, 1.0), ({"a": 1e300, "b": 1}, 1.0)),
        *(({"a": 1.0, "b": 0.0}, y) for y in (None, np.nan, np.inf, "up", [1.0], {}, 1e200, 1j, b"1")),
    ],
)
def test_what_cannot_be_learned_from_is_not_kept(x, y, fitted):
    """Else it would be met again, and refused, by every later fit."""
    model = StreamingRegressor(HCKRegressor(**GIVEN), first=20)
    for point, target in stream(30 if fitted else 0):
        model.learn_one(point, target)
    before = len(model._rows), model.names
    with pytest.raises((ValueError, TypeError)):
        model.learn_one(x, y)
    assert (len(model._rows), model.names) == before
    for point, target in stream(30, seed=1):
        model.learn_one(point, target)
    assert np.isfinite(model.predict_one({"a": 0.0, "b": 0.0}))


@pytest.mark.parametrize("label", [None, np.nan, 1.5, ["up"], np.datetime64("2020"), {}, 1j, 2**70, 3])
def test_labels_that_are_none(label):
    model = StreamingClassifier(HCKClassifier(**GIVEN), first=20)
    for x, y in stream(10, classes=True):
        model.learn_one(x, y)
    match = (
        "cannot stand beside 'up'" if label == 3 else "must be a whole number, True or False, or text, got"
    )
    with pytest.raises(ValueError, match=match):
        model.learn_one({"a": 0.0, "b": 0.0}, label)
    assert len(model._seen) == 10


@pytest.mark.parametrize(
    "given",
    [{"first": "a"}, {"first": 2.5}, {"first": True}, {"window": np.nan}, {"again": "b"}, {"again": 1}],
)
def test_parameters(given):
    with pytest.raises(ValueError, match="first must be a whole number"):
        StreamingRegressor(HCKRegressor(**GIVEN), **given)


@pytest.mark.parametrize("model", [HCKClassifier(), "HCKRegressor", HCKRegressor, None.__class__])
def test_models_of_other_kinds(model):
    with pytest.raises(TypeError, match="model must be of the class HCKRegressor or HCKGaussianProcessRegr"):
        StreamingRegressor(model)
    with pytest.raises(TypeError, match="model must be of the class HCKClassifier, got HCKRegressor"):
        StreamingClassifier(HCKRegressor())
    with pytest.raises(ValueError, match="updates"):
        StreamingRegressor(HCKRegressor(approximation="nystrom"))


# All or nothing --------------------------------------------------------------------------------------------


def state_of(model):
    """All that a stream is made of; the model's attributes by identity."""
    kept = {**vars(model), "_rows": list(model._rows), "_seen": list(model._seen)}
    return kept, {name: id(value) for name, value in vars(model.model).items()}


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, ValueError])
@pytest.mark.parametrize(("method", "n"), [("fit", 19), ("partial_fit", 25), ("forget", 30), ("fit", 39)])
@pytest.mark.parametrize("late", [False, True])
def test_an_observation_that_fails(method, n, late, error, monkeypatch):
    """In the model's work, or after it: names, window and model are as before, and go on so."""
    window = 30 if method == "forget" else None
    given = {"first": 20, "again": 2.0, "window": window}
    model, other = (StreamingClassifier(HCKClassifier(**GIVEN), **given) for _ in range(2))
    points = list(stream(50, classes=True))
    for x, y in points[:n]:
        model.learn_one(x, y)
        other.learn_one(x, y)
    before = state_of(model)
    with monkeypatch.context() as patch:
        work = getattr(HCKClassifier, method)

        def stop(self, *args, **kwargs):
            if late:
                work(self, *args, **kwargs)
            raise error

        patch.setattr(HCKClassifier, method, stop)
        with pytest.raises(error):
            model.learn_one({**points[n][0], "new": 1.0}, points[n][1])
    assert state_of(model) == before
    for x, y in points[n:]:
        model.learn_one(x, y)
        other.learn_one(x, y)
    assert model.predict_proba_one(points[0][0]) == other.predict_proba_one(points[0][0])
    assert (model._rows, model._seen, model.names) == (other._rows, other._seen, other.names)


def test_an_interrupt_when_all_is_done(monkeypatch):
    """Between what the model keeps and what the stream keeps."""
    model = StreamingRegressor(HCKRegressor(**GIVEN), first=20)
    points = list(stream(30))
    for x, y in points[:25]:
        model.learn_one(x, y)
    before = state_of(model)

    @contextmanager
    def interrupted(estimator):
        with changing(estimator) as changed:
            yield changed
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("hck.estimators.stream.changing", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.learn_one(*points[25])
    assert state_of(model) == before
    model.learn_one(*points[25])
    assert model.model.tree_.n_points == len(model._rows) == 26


# Labels and features ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([True, 0, 1.0, np.bool_(False), np.int8(1)], [True, False]),
        ([3, 4.0, np.uint8(3), np.array(4), np.float32(3)], [3, 4]),
        ([0, True, np.array(1.0), False], [0, 1]),
        ([2.0, 5, np.int64(2)], [2.0, 5.0]),
        (["up", np.str_("down"), np.array("up"), b"up"], ["up", "down"]),
    ],
)
def test_labels_of_like_kinds_are_one(labels, expected):
    """1, 1.0 and True are the same; all become what the first one is."""
    model = StreamingClassifier(HCKClassifier(**GIVEN), first=20)
    for i, (x, _) in enumerate(stream(40)):
        model.learn_one(x, labels[i % len(labels)])
    found = sorted(model.predict_proba_one({"a": 0.0, "b": 0.0}))
    assert found == sorted(expected)
    assert {type(each) for each in found} == {type(each) for each in expected}
    assert {type(each) for each in model._seen} == {type(expected[0])}
    assert type(model.predict_one({"a": 0.0, "b": 0.0})) is type(expected[0])


@pytest.mark.parametrize(
    ("first", "second", "other"),
    [
        (True, False, 2),
        (True, False, "up"),
        (1, 2, "up"),
        ("up", "down", True),
        ("up", "down", 1.0),
    ],
)
def test_labels_of_other_kinds(first, second, other):
    model = StreamingClassifier(HCKClassifier(**GIVEN), first=20)
    for n in (1, 30):  # before there is a fit, and after
        for i, (x, _) in enumerate(stream(n)):
            model.learn_one(x, first if i % 2 else second)
        with pytest.raises(ValueError, match="cannot stand beside"):
            model.learn_one({"a": 0.0, "b": 0.0}, other)


def test_a_class_of_the_same_kind_comes_later():
    model = StreamingClassifier(HCKClassifier(**GIVEN), first=20, again=None)
    for i, (x, _) in enumerate(stream(30)):
        model.learn_one(x, i % 2)
    for label in (np.int8(7), 300, 2.0, -1):  # whatever fits into eight bits
        model.learn_one({"a": 0.0, "b": 0.0}, label)
    assert model.model.classes_.tolist() == [-1, 0, 1, 2, 7, 300]
    assert model.model.classes_.dtype == np.int64


def test_features_that_come_later():
    """They count from the next fit on, whenever that is, and 0 before."""
    model = StreamingRegressor(HCKRegressor(**GIVEN, scale=None), first=20, again=2.0)
    rng, rows, y = np.random.default_rng(0), np.zeros((44, 3)), np.zeros(44)
    for i in range(44):
        x = {"b": rng.uniform(), "a": rng.uniform(), "c": rng.uniform()}
        if i < 5:
            x.pop("a")
        if i < 25:
            x.pop("c")
        y[i] = x["b"] + x.get("c", 0)
        rows[i] = [x.get(name, 0) for name in ("b", "a", "c")]
        model.learn_one(x, y[i])
        model.predict_one({**x, "d": 3.0})
        assert i < 20 or model.model.n_features_in_ == (2 if i < 39 else 3)
    assert model.names == ["b", "a", "c"]
    other = HCKRegressor(**GIVEN, scale=None).fit(rows[:40], y[:40]).partial_fit(rows[40:], y[40:])
    new = {"b": 0.3, "a": 0.2, "c": 0.5}
    assert model.predict_one(new) == pytest.approx(other.predict([[0.3, 0.2, 0.5]])[0], abs=1e-9)
    with pytest.raises(ValueError, match="finite numbers"):
        model.learn_one({"b": 0.1, "new": "text"}, 1.0)
    assert model.names == ["b", "a", "c"]
    for x, target in stream(60):
        model.learn_one(x, target)
    assert model.names == ["b", "a", "c"]


def test_nothing_is_known_yet():
    model = StreamingRegressor(HCKRegressor(**GIVEN))
    for x in ({}, {"a": 1.0}, {"a": "text"}):
        assert model.predict_one(x) == 0.0
    with pytest.raises(ValueError, match=r"at least one, got \{\}"):
        model.learn_one({}, 1.0)


# Copies ----------------------------------------------------------------------------------------------------


def learned(n=45, **given):
    model = StreamingClassifier(HCKClassifier(**GIVEN), **{"first": 20, "window": 40, **given})
    for x, y in stream(n, classes=True):
        model.learn_one(x, y)
    return model


def test_a_clone_has_seen_nothing():
    model = learned()
    other = model.clone()
    assert other._get_params().keys() == {"model", "first", "again", "window"}
    assert (other.first, other.again, other.window) == (20, 2.0, 40)
    assert other.model is not model.model
    assert other.model.get_params() == model.model.get_params()
    assert not hasattr(other.model, "trees_")
    assert (other._rows, other._seen, other.names, other.predict_one({"a": 0.0})) == ([], [], None, None)
    other = model.clone({"window": 30, "again": None})
    assert (other.first, other.again, other.window) == (20, None, 30)
    assert model.clone({"model": HCKClassifier(rank=7)}).model.rank == 7
    with pytest.raises(ValueError, match="window"):
        model.clone({"window": 3})


def test_a_clone_with_all_that_was_seen():
    model = learned()
    other, smaller = (
        model.clone(include_attributes=True),
        model.clone({"window": 25}, include_attributes=True),
    )
    again = model.clone({"model": HCKClassifier(**GIVEN, n_trees=2)}, include_attributes=True)
    x = {"a": 0.3, "b": 0.1}
    assert other.predict_proba_one(x) == pytest.approx(model.predict_proba_one(x), abs=1e-9)
    for each in (other, smaller, again):
        assert each._rows == model._rows
        assert each._rows is not model._rows
        each.learn_one(x, "up")
    assert len(model._rows) == 40
    assert (len(other._rows), len(smaller._rows), len(again._rows)) == (40, 25, 40)
    assert smaller.model.tree_.n_points == 25
    assert len(again.model.trees_) == 2


@pytest.mark.parametrize("copied", [lambda m: pickle.loads(pickle.dumps(m)), deepcopy])
def test_copies_go_on(copied):
    model = learned()
    other, more = copied(model), list(stream(30, classes=True, seed=1))
    for x, y in more:
        model.learn_one(x, y)
        other.learn_one(x, y)
    for x, _ in more:
        assert other.predict_proba_one(x) == pytest.approx(model.predict_proba_one(x), abs=1e-9)


def test_memory_that_is_used():
    """With what updates need, which no copy has."""
    model = StreamingRegressor(HCKRegressor(**GIVEN), first=200, again=None)
    sizes = [model._raw_memory_usage]
    for i, (x, y) in enumerate(stream(202)):
        model.learn_one(x, y)
        if i in (150, 199, 201):
            sizes.append(model._raw_memory_usage)
    assert sizes == sorted(sizes)
    assert sizes[-1] - sizes[-2] > 8 * 200 * 16  # factors of the leaves
    assert sizes[-1] > len(pickle.dumps(model))


# Threads ---------------------------------------------------------------------------------------------------


def test_threads_that_predict_and_copy_while_another_learns():
    """Classes and features that are new, windows, fits: what is said is of one moment."""
    model = StreamingClassifier(HCKClassifier(**GIVEN), first=20, window=40, again=1.5)
    wrong, done = [], threading.Event()

    def watch(ask):
        while not done.is_set():
            try:
                ask()
            except Exception as error:
                wrong.append(error)

    def copy():
        other = pickle.loads(pickle.dumps(model))
        if other._fitted_to:
            assert other.model.tree_.n_points == len(other._rows) == len(other._seen)

    def say():
        chances = model.predict_proba_one({"a": 0.1, "b": 0.2})
        assert not chances or sum(chances.values()) == pytest.approx(1)
        model.predict_one({"a": 0.1, "b": 0.2})

    threads = [threading.Thread(target=watch, args=(ask,)) for ask in (copy, say)]
    for thread in threads:
        thread.start()
    for i, (x, y) in enumerate(stream(90, classes=True)):
        model.learn_one({**x, f"new {i // 10}": 1.0}, f"{y} {i // 30}")
    done.set()
    for thread in threads:
        thread.join()
    assert not wrong


def test_threads_that_learn_wait_for_each_other():
    model, points = StreamingRegressor(HCKRegressor(**GIVEN), first=20), list(stream(60))
    threads = [
        threading.Thread(target=lambda i=i: [model.learn_one(*p) for p in points[i::3]]) for i in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(model._rows) == model.model.tree_.n_points == 60
    assert sorted(model._seen) == sorted(y for _, y in points)


def test_a_process_learns_from_a_stream():
    inner = HCKGaussianProcessRegressor(lengthscale=1.0, noise=0.01, optimizer=None, rank=16, trend="linear")
    model = StreamingRegressor(inner, first=20, window=50)
    for x, y in stream(120):
        model.learn_one(x, y)
    assert abs(model.predict_one({"a": 0.5, "b": 0.0}) - np.sin(1.0)) < 0.3
