"""Scores against scikit-learn's, and against their definitions, by integration and by simulation."""

import math
import warnings
from functools import partial

import numpy as np
import pytest
import sklearn.metrics
import torch
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.calibration import calibration_curve as sklearn_curve

from hck.metrics import (
    accuracy,
    alignment_difference,
    calibration_curve,
    calibration_error,
    coverage,
    crps,
    log_loss,
    mae,
    nlpd,
    r2,
    relative_error,
    reliability_curve,
    rmse,
)

RNG = np.random.default_rng(0)
MEAN, STD = RNG.normal(size=50), RNG.uniform(0.1, 3, size=50)
Y = MEAN + STD * RNG.normal(size=50)
EVERY = [nlpd, crps, coverage, calibration_curve]
PLAIN = {
    rmse: sklearn.metrics.root_mean_squared_error,
    mae: sklearn.metrics.mean_absolute_error,
    r2: sklearn.metrics.r2_score,
    relative_error: lambda y, predicted: np.linalg.norm(y - predicted) / np.linalg.norm(y),
}

# Numbers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("score", PLAIN)
def test_numbers(score):
    assert score(Y, MEAN) == pytest.approx(PLAIN[score](Y, MEAN), rel=1e-12)
    assert score(Y.tolist(), MEAN) == score(Y, MEAN)
    assert math.isnan(score(Y, np.full(50, np.nan)))
    assert score(Y, Y) == (1 if score is r2 else 0)


def test_scores_that_make_no_sense():
    assert math.isnan(r2([0.1] * 3, [0.0, 1.0, 2.0]))
    assert math.isnan(r2([1.0], [1.0]))
    assert math.isnan(relative_error([0.0, 0.0], [1.0, 1.0]))


@pytest.mark.parametrize("score", [*PLAIN, accuracy])
@pytest.mark.parametrize("predicted", [MEAN[:-1], MEAN[:, None], 1.0])
def test_other_shapes(score, predicted):
    with pytest.raises(ValueError, match="y and predicted must have one shape"):
        score(Y, predicted)
    with pytest.raises(ValueError, match="one shape"):
        score([], [])


# Numbers with a standard deviation ----------------------------------------------------------------------


def test_nlpd():
    assert nlpd(Y, MEAN, STD) == pytest.approx(-norm.logpdf(Y, MEAN, STD).mean(), rel=1e-12)


def test_crps():
    """∫ (F(t) − 1[t ≥ y])² dt."""

    def one(y, mean, std):
        left = quad(lambda t: norm.cdf(t, mean, std) ** 2, -np.inf, y)[0]
        return left + quad(lambda t: norm.sf(t, mean, std) ** 2, y, np.inf)[0]

    expected = np.mean([one(*each) for each in zip(Y[:8], MEAN[:8], STD[:8], strict=True)])
    assert crps(Y[:8], MEAN[:8], STD[:8]) == pytest.approx(expected, rel=1e-6)


def test_crps_of_certain_predictions_is_the_absolute_error():
    assert crps(Y, MEAN, np.full(50, 1e-9)) == pytest.approx(np.abs(Y - MEAN).mean(), rel=1e-6)


def test_the_truth_scores_best():
    y = RNG.normal(size=20_000)
    zero, one = np.zeros(20_000), np.ones(20_000)
    for score in (nlpd, crps):
        best = score(y, zero, one)
        assert best < score(y, zero, 1.2 * one)
        assert best < score(y, zero, 0.8 * one)
        assert best < score(y, zero + 0.2, one)


def test_coverage_and_calibration():
    y = RNG.normal(size=20_000)
    zero, one = np.zeros(20_000), np.ones(20_000)
    assert coverage(y, zero, one) == pytest.approx(0.95, abs=0.01)
    assert coverage(y, zero, 0.5 * one) < 0.7
    levels, shares = calibration_curve(y, zero, one, 9)
    np.testing.assert_allclose(levels, np.arange(1, 10) / 10)
    np.testing.assert_allclose(shares, levels, atol=0.015)
    for level, share in zip(levels, shares, strict=True):
        assert share == pytest.approx(coverage(y, zero, one, level))
    assert calibration_curve(y, zero, one, [0.5])[0].tolist() == [0.5]
    given = np.quantile(np.abs(y), [0.2, 0.7])  # intervals that are no Gaussian's
    np.testing.assert_allclose(calibration_curve(y, zero, one, [0.2, 0.7], given)[1], [0.2, 0.7], atol=1e-3)
    assert coverage(y, zero, one, 0.7, given[1]) == calibration_curve(y, zero, one, [0.7], given[1:])[1][0]
    with pytest.raises(ValueError, match="a number for each of 2 levels"):
        calibration_curve(y, zero, one, [0.2, 0.7], given[:1])


@pytest.mark.parametrize("score", EVERY)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"std": np.zeros(50)}, "std must be positive"),
        ({"std": STD[:-1]}, "one shape"),
        ({"y": Y[:, None]}, "one shape"),
        ({"y": [], "mean": [], "std": []}, "one shape"),
        ({"mean": np.full(50, np.nan)}, "mean contains NaN"),
    ],
)
def test_bad_input(score, change, message):
    with pytest.raises(ValueError, match=message):
        score(**{"y": Y, "mean": MEAN, "std": STD, **change})


@pytest.mark.parametrize("level", [0, 1, 95, -0.5])
def test_bad_levels(level):
    with pytest.raises(ValueError, match="level"):
        coverage(Y, MEAN, STD, level)
    with pytest.raises(ValueError, match="levels"):
        calibration_curve(Y, MEAN, STD, [level])


# Classes ------------------------------------------------------------------------------------------------

LABELS = np.array(["a", "b", "c"])
PROBA = RNG.dirichlet(np.ones(3), 500)
CLASSES = LABELS[[RNG.choice(3, p=each) for each in PROBA]]


def test_accuracy():
    predicted = LABELS[PROBA.argmax(1)]
    assert accuracy(CLASSES, predicted) == sklearn.metrics.accuracy_score(CLASSES, predicted)
    assert accuracy(CLASSES.tolist(), predicted.astype(object)) == accuracy(CLASSES, predicted)


def test_log_loss():
    expected = sklearn.metrics.log_loss(CLASSES, PROBA, labels=LABELS)
    assert log_loss(CLASSES, PROBA) == pytest.approx(expected, rel=1e-12)
    assert log_loss(CLASSES, PROBA[:, ::-1], LABELS[::-1]) == pytest.approx(expected, rel=1e-12)
    only = CLASSES != "b"
    expected = sklearn.metrics.log_loss(CLASSES[only], PROBA[only], labels=LABELS)
    assert log_loss(CLASSES[only], PROBA[only], LABELS) == pytest.approx(expected, rel=1e-12)


def test_log_loss_of_two_classes():
    y, p = np.array([False, True, True, True]), np.array([0.3, 0.6, 0.0, 1.0])
    expected = sklearn.metrics.log_loss(y, p)
    assert log_loss(y, p) == pytest.approx(expected, rel=1e-12)
    assert log_loss(y, np.stack([1 - p, p], 1)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("bins", [1, 7, 10])
def test_reliability(bins):
    happened, probability = CLASSES == "a", PROBA[:, 0]
    shares, predicted = sklearn_curve(happened, probability, n_bins=bins)
    found = reliability_curve(happened, probability, bins)
    np.testing.assert_allclose(found[0], predicted, rtol=1e-12)
    np.testing.assert_allclose(found[1], shares, rtol=1e-12)
    assert found[2].sum() == 500
    error = (found[2] * np.abs(predicted - shares)).sum() / 500
    assert calibration_error(happened, probability, bins) == pytest.approx(error, rel=1e-12)


def test_calibration_error_by_hand():
    """2 of 4 right at 0.9, 1 of 1 right at 0.6."""
    happened, probability = [True, True, False, False, True], [0.9, 0.9, 0.9, 0.9, 0.6]
    assert calibration_error(happened, probability) == pytest.approx((4 * 0.4 + 1 * 0.4) / 5)
    assert reliability_curve(happened, probability)[2].tolist() == [1, 4]


def test_certain_probabilities():
    predicted, shares, counts = reliability_curve([0, 1], [0.0, 1.0])
    assert (predicted.tolist(), shares.tolist(), counts.tolist()) == ([0, 1], [0, 1], [1, 1])


@pytest.mark.parametrize(
    ("happened", "probability", "bins", "message"),
    [
        ([True], [0.5, 0.5], 10, "one shape"),
        ([True, False], [0.5, 1.5], 10, "between 0 and 1"),
        ([True, False], [0.5, np.nan], 10, "between 0 and 1"),
        ([True, False], [0.5, 0.5], 0, "bins must be at least 1"),
    ],
)
def test_bad_events(happened, probability, bins, message):
    for score in (reliability_curve, calibration_error):
        with pytest.raises(ValueError, match=message):
            score(happened, probability, bins)


@pytest.mark.parametrize(
    ("y", "proba", "classes", "message"),
    [
        ([0, 1], [0.5], None, "same n"),
        ([0, 1], [[0.5, 0.5, 0.0]] * 2, None, "3 columns, but there are 2 classes"),
        ([0, 2], [0.5, 0.5], [0, 1], "label 2, which is not one of the classes"),
        ([0, 1], [0.5, 1.5], None, "between 0 and 1"),
    ],
)
def test_bad_classes(y, proba, classes, message):
    with pytest.raises(ValueError, match=message):
        log_loss(y, proba, classes)


# Embeddings ---------------------------------------------------------------------------------------------


def test_alignment_difference_by_hand():
    """U has the part (1, 1)/2 · (1 + 3) in the direction of V, and (−1, 1) is left."""
    assert alignment_difference([[1.0], [3.0]], [[1.0], [1.0]]) == pytest.approx((2 / 10) ** 0.5)
    both = [[1.0, 1.0], [3.0, 1.0]]
    assert alignment_difference(both, [[1.0], [1.0]]) == pytest.approx((2 / 12) ** 0.5)


def test_linear_maps_do_not_matter():
    u, matrix = RNG.normal(size=(50, 3)), RNG.normal(size=(3, 3))
    assert alignment_difference(u, u @ matrix) < 1e-12
    other = RNG.normal(size=(50, 4))
    found = alignment_difference(u, other)
    assert 0 < found < 1
    assert alignment_difference(u, other @ RNG.normal(size=(4, 4))) == pytest.approx(found)
    projected = u - other @ np.linalg.pinv(other) @ u
    assert found == pytest.approx(np.linalg.norm(projected) / np.linalg.norm(u))


def test_orthogonal_embeddings():
    q = np.linalg.qr(RNG.normal(size=(50, 5)))[0]
    assert alignment_difference(q[:, :2], q[:, 2:]) == pytest.approx(1)
    assert alignment_difference(q[:, :2], np.zeros((50, 2))) == 1
    assert alignment_difference(q[:, :2], q[:, [2, 3, 2]]) == pytest.approx(1)  # columns that repeat


@pytest.mark.parametrize(
    ("u", "v", "message"),
    [
        (np.ones(5), np.ones((5, 1)), "shapes"),
        (np.ones((5, 2)), np.ones((4, 2)), "shapes"),
        (np.ones((0, 2)), np.ones((0, 2)), "shapes"),
        (np.ones((5, 2)), np.ones((5, 0)), "shapes"),
        (np.full((5, 2), np.nan), np.ones((5, 2)), "U contains NaN"),
        (np.ones((5, 2)), np.full((5, 2), np.inf), "V contains NaN"),
        (np.zeros((5, 2)), np.ones((5, 2)), "U is 0"),
    ],
)
def test_bad_embeddings(u, v, message):
    with pytest.raises(ValueError, match=message):
        alignment_difference(u, v)


def test_complex_numbers_are_refused():
    """In every argument of every function: the imaginary part would be lost, with a warning at most."""
    y, z, std = np.array([0.0, 1.0, 1.0]), np.array([0.0, 1.0 + 1j, 1.0]), np.ones(3)
    calls = [
        *(partial(f, *given) for f in (rmse, mae, relative_error, r2) for given in ((z, y), (y, z))),
        *(partial(f, *g) for f in (nlpd, crps, coverage) for g in ((z, y, std), (y, z, std), (y, y, z))),
        partial(calibration_curve, y, y, std, levels=[0.5 + 1j]),
        partial(log_loss, y, z),
        partial(reliability_curve, y, z),
        partial(alignment_difference, z[:, None], y[:, None]),
        partial(rmse, torch.from_numpy(z), y),
        partial(rmse, z.astype(object), y),
        partial(mae, y.astype("datetime64[D]"), y),
    ]
    for call in calls:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as programs have it that lose the imaginary part
            with pytest.raises(ValueError, match="must be real numbers"):
                call()
