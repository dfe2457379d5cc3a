"""One observation after another, as river has it."""

import numpy as np
import pytest

from hck import HCKClassifier, HCKRegressor
from hck.estimators.stream import StreamingClassifier, StreamingRegressor

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
        model.learn_one({"a": 5.0, "b": 5.0}, "off")
    assert model.predict_one({"a": 5.0, "b": 5.0}) == "off"
    chances = model.predict_proba_one({"a": 1.0, "b": 0.0})
    assert set(chances) == {"up", "down", "off"}
    assert sum(chances.values()) == pytest.approx(1.0)


def test_bad_features():
    model = StreamingRegressor(HCKRegressor(**GIVEN), first=20)
    with pytest.raises(ValueError, match="finite"):
        model.learn_one({"a": np.nan}, 1.0)
    with pytest.raises(ValueError, match="first must be"):
        StreamingRegressor(first=1)


def test_river_takes_them():
    base = pytest.importorskip("river.base")
    from river import evaluate, metrics

    model = StreamingClassifier(HCKClassifier(**GIVEN), first=20, again=None)
    assert isinstance(model, base.Classifier)
    score = evaluate.progressive_val_score(stream(150, classes=True), model, metrics.Accuracy())
    assert score.get() > 0.8
    regressor = StreamingRegressor(HCKRegressor(**GIVEN), first=50, again=None)
    assert evaluate.progressive_val_score(stream(150), regressor, metrics.MAE()).get() < 0.3


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


@pytest.mark.parametrize("label", [None, np.nan, 1.5, 3, ["up"], np.datetime64("2020")])
def test_labels_that_cannot_stand_beside_others(label):
    model = StreamingClassifier(HCKClassifier(**GIVEN), first=20)
    for x, y in stream(10, classes=True):
        model.learn_one(x, y)
    with pytest.raises(ValueError, match="y "):
        model.learn_one({"a": 0.0, "b": 0.0}, label)
    assert len(model._seen) == 10


@pytest.mark.parametrize(
    "given",
    [{"first": "a"}, {"first": 2.5}, {"first": True}, {"window": np.nan}, {"again": "b"}, {"again": 1}],
)
def test_parameters(given):
    with pytest.raises(ValueError, match="first must be a whole number"):
        StreamingRegressor(HCKRegressor(**GIVEN), **given)
