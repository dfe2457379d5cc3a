"""Losses of left-out observations: weights against copies."""

import numpy as np
import pytest

from hck.selection.loss import Calibration, InUnits, LogLoss, SquaredError

pytestmark = pytest.mark.usefixtures("one_thread")

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(50, 3))
CODES = {2: (X[:, 0] > 0.5).astype(int), 3: np.digitize(X[:, 0] + 0.2 * RNG.normal(size=50), [0.3, 0.7])}
LOSSES = {
    "squares": SquaredError(RNG.normal(size=(50, 2))),
    "weighted squares": SquaredError(RNG.normal(size=(50, 2)), RNG.uniform(0.5, 2, 50)),
    "two classes": LogLoss(CODES[2]),
    "three classes": LogLoss(CODES[3], RNG.uniform(0.5, 2, 50)),
}


def columns(name):
    return {"two classes": 1, "three classes": 3}.get(name, 2)


@pytest.mark.parametrize("name", LOSSES)
def test_some_of_the_observations(name):
    loss, rows = LOSSES[name], np.arange(5, 45)
    weight = None if loss.weight is None else loss.weight[rows]
    predicted = RNG.normal(size=(40, columns(name)))
    expected = type(loss)(loss.observed[rows], weight)(predicted)
    assert loss.take(rows)(predicted) == expected
    units = InUnits(loss, np.full(columns(name), 2.0), np.zeros(columns(name)))
    assert units.take(rows)(predicted / 2) == pytest.approx(expected, rel=1e-9)
    assert units.margin_of_series == loss.margin_of_series


@pytest.mark.parametrize("classes", [2, 3])
def test_a_weight_counts_like_copies(classes):
    weight = RNG.integers(1, 4, 50).astype(float)
    again = np.repeat(np.arange(50), weight.astype(int))
    decision, code = RNG.normal(size=(50, classes if classes > 2 else 1)), CODES[classes]
    once, copies = LogLoss(code, weight)(decision), LogLoss(code[again])(decision[again])
    assert once == pytest.approx(copies, rel=1e-6)
    y = RNG.normal(size=(50, 1))
    once, copies = SquaredError(y, weight)(decision[:, :1]), SquaredError(y[again])(decision[again, :1])
    assert once == pytest.approx(copies, rel=1e-9)
    slopes = [Calibration.fit(decision, code, weight), Calibration.fit(decision[again], code[again])]
    assert slopes[0].slope == pytest.approx(slopes[1].slope, rel=1e-4)


@pytest.mark.parametrize("classes", [2, 4])
def test_calibrations_bend_where_values_are_differences_of_probabilities(classes):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(classes, 0.5), 5000)
    code = (p.cumsum(1) < rng.uniform(size=(5000, 1))).sum(1)
    decision = 2 * p[:, 1:] - 1 if classes == 2 else 2 * p - 1
    straight, bent = Calibration.straight(decision, code), Calibration.fit(decision, code)
    assert straight.bend == 0 < bent.bend
    assert bent.loss < straight.loss - 0.005
    found = bent(decision)
    assert np.mean(-np.log(found[np.arange(5000), code])) == pytest.approx(bent.loss, rel=1e-9)
    np.testing.assert_array_equal(found.argmax(1), p.argmax(1))
    assert np.abs(found - p).mean() < 0.6 * np.abs(straight(decision) - p).mean()
    far = bent(np.full((1, decision.shape[1]), 50.0) * np.eye(1, decision.shape[1]))
    assert np.isfinite(far).all()
    loss = InUnits(LogLoss(code), np.ones(decision.shape[1]), np.zeros(decision.shape[1]))
    assert loss(decision) == pytest.approx(straight.loss)
    assert loss.final(decision) == pytest.approx(bent.loss)
    assert SquaredError(decision).final(decision) == 0


def test_calibrations_of_logits_stay_straight():
    rng = np.random.default_rng(1)
    decision = 2 * rng.normal(size=(5000, 1))
    code = (rng.uniform(size=5000) < 1 / (1 + np.exp(-decision[:, 0]))).astype(int)
    found = Calibration.fit(decision, code)
    assert (found.bend, found.slope) == (0, pytest.approx(1, rel=0.1))
    assert Calibration.fit(np.zeros((9, 1)), np.arange(9) % 2).bend == 0
    with pytest.raises(ValueError, match="bend must be finite"):
        Calibration(1.0, bend=-1.0).validate()


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("n", [5, 10, 100])
def test_few_observations_that_are_all_right_do_not_make_probabilities_extreme(classes, n):
    """Likelihood alone would make the slope as large as it may be: log-losses of 18 were seen."""
    code = np.arange(n) % classes
    right = 0.5 * np.eye(classes)[code] if classes > 2 else 0.5 * (2.0 * code[:, None] - 1)
    found = Calibration.fit(right, code)
    likely = found(right)[np.arange(n), code]
    np.testing.assert_allclose(likely, (n + 1) / (n + 2), rtol=1e-3)  # the rule of succession
    weighted = Calibration.fit(right, code, np.full(n, 1e-9))
    assert weighted.slope == pytest.approx(found.slope, rel=1e-6)
    assert found.loss == pytest.approx(np.log((n + 2) / (n + 1)), rel=2e-2)


def test_of_many_observations_likelihood_decides():
    decision = RNG.normal(size=(20_000, 1))
    code = (RNG.uniform(size=20_000) < 1 / (1 + np.exp(-3 * decision[:, 0]))).astype(int)
    assert Calibration.fit(decision, code).slope == pytest.approx(3.0, rel=0.05)
