"""With river itself: its own checks of estimators, its evaluations, pipelines and wrappers."""

import random

import numpy as np
import pytest

pytest.importorskip("river")
from river import (
    base,
    checks,
    compose,
    datasets,
    drift,
    ensemble,
    evaluate,
    metrics,
    neighbors,
    preprocessing,
)

from hck import HCKClassifier, HCKRegressor
from hck.estimators.stream import StreamingClassifier, StreamingRegressor

GIVEN = {"kernel": "matern32", "lengthscale": 3.0, "alpha": 0.1, "rank": 8, "random_state": 0}


def regressor(**given):
    return StreamingRegressor(HCKRegressor(**GIVEN), **{"first": 20, **given})


def classifier(**given):
    return StreamingClassifier(HCKClassifier(**GIVEN), **{"first": 20, **given})


CHECKED = [regressor(window=500, again=None), classifier(window=500, again=None)]
CHECKS = [(model, check) for model in CHECKED for check in checks.yield_checks(model)]


@pytest.mark.parametrize(("model", "check"), CHECKS, ids=lambda each: getattr(each, "__name__", None))
def test_its_own_checks(model, check):
    random.seed(0)  # by which they draw features
    check(model.clone())


def test_models_are_of_its_kinds():
    assert isinstance(regressor(), base.Regressor)
    assert isinstance(classifier(), base.Classifier)
    assert "lengthscale=3.0" in repr(regressor())
    assert "StreamingClassifier" in classifier()._repr_html_()


@pytest.mark.parametrize("metric", [metrics.Accuracy(), metrics.LogLoss(), metrics.ROCAUC()], ids=str)
def test_evaluations(metric):
    found = list(
        evaluate.iter_progressive_val_score(
            datasets.Phishing().take(150), classifier(), metric, step=75, measure_memory=True
        )
    )
    assert found[1]["Memory"] > found[0]["Memory"] > 0
    worst = {"Accuracy": 0.75, "ROCAUC": 0.75}.get(type(metric).__name__)
    assert metric.get() > worst if worst else metric.get() < 0.65


def test_pipelines_and_wrappers():
    scaled = preprocessing.StandardScaler() | regressor()
    plain, known = (
        evaluate.progressive_val_score(datasets.TrumpApproval().take(200), model, metrics.MAE()).get()
        for model in (scaled, preprocessing.TargetStandardScaler(regressor=regressor()))
    )
    assert max(plain, known) < 3
    again = scaled.clone()
    assert again["StreamingRegressor"] is not scaled["StreamingRegressor"]
    assert not again["StreamingRegressor"]._rows
    bag = ensemble.BaggingClassifier(classifier(), n_models=2, seed=0)
    score = evaluate.progressive_val_score(datasets.Phishing().take(150), bag, metrics.Accuracy())
    assert score.get() > 0.7


def test_a_wrapper_that_begins_anew():
    """It clones what it holds, which then has seen nothing."""
    wrapped = drift.DriftRetrainingClassifier(classifier(), drift.binary.DDM())
    for x, y in datasets.Phishing().take(60):
        wrapped.learn_one(x, y)
    assert len(wrapped.model._rows) == 60
    fresh = wrapped.clone()
    assert not fresh.model._rows
    assert not hasattr(fresh.model.model, "trees_")


def test_categories_that_appear_one_by_one():
    """Each is a feature that nobody knew of."""
    rng = np.random.default_rng(0)
    model = (compose.SelectType(str) | preprocessing.OneHotEncoder()) + compose.SelectType(
        float
    ) | regressor()
    error = metrics.MAE()
    for i in range(150):
        x = {"letter": "abcdef"[min(5, i // 3 if i < 18 else rng.integers(6))], "number": rng.uniform()}
        y = float("abcdef".index(x["letter"]))
        if i > 80:
            error.update(y, model.predict_one(x))
        model.learn_one(x, y)
    assert error.get() < 0.2


def drifting(n, seed=0):
    """Labels that depend on each other, daily rhythms, rules that drift: like prices of electricity."""
    rng, level, last = np.random.default_rng(seed), 0.0, 0.0
    for i in range(n):
        hour = i / 48 % 1
        level = 0.995 * level + 0.1 * rng.standard_normal()
        demand = np.sin(2 * np.pi * hour) + level
        supply = 0.8 * np.sin(2 * np.pi * (hour + i / n)) + 0.3 * rng.standard_normal()
        price = 0.6 * last + np.tanh(demand * demand - supply) + 0.2 * rng.standard_normal()
        yield {"hour": hour, "demand": demand, "supply": supply, "last": last}, bool(price > last)
        last = price


def test_a_stream_that_drifts():
    """At least as right as river's nearest neighbours."""
    inner = HCKClassifier("matern32", lengthscale=2.0, alpha=0.3, rank=32, random_state=0)
    models = [
        StreamingClassifier(inner, first=100, window=400),
        preprocessing.StandardScaler() | neighbors.KNNClassifier(),
    ]
    ours, theirs = (
        evaluate.progressive_val_score(drifting(1000), model, metrics.Accuracy()).get() for model in models
    )
    assert ours > theirs
