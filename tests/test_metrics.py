"""Scores of Gaussian predictions against their definitions, by integration and by simulation; embeddings."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from hck.metrics import alignment_difference, calibration_curve, coverage, crps, nlpd

RNG = np.random.default_rng(0)
MEAN, STD = RNG.normal(size=50), RNG.uniform(0.1, 3, size=50)
Y = MEAN + STD * RNG.normal(size=50)
EVERY = [nlpd, crps, coverage, calibration_curve]


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
