"""Scores of a search against dense algebra, and what it reuses."""

import numpy as np
import pytest

from hck.hierarchy import HierarchicalKernel
from hck.kernels import Gaussian, Matern
from hck.selection import search

pytestmark = pytest.mark.usefixtures("one_thread")

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(120, 2))
Y = np.stack([np.sin(6 * X[:, 0]), X[:, 1] ** 2], 1) + 0.1 * RNG.normal(size=(120, 2))


@pytest.mark.parametrize("leaf_size", [16, 200])
@pytest.mark.parametrize("columns", [1, 2])
def test_scores(leaf_size, columns):
    y = Y[:, :columns]
    found = search(X, y, [Matern(0.5), Gaussian(0.3)], [1e-2, 1.0], rank=16, leaf_size=leaf_size)
    assert [(str(t.kernel), t.alpha) for t in found.trials] == [
        (str(k), a) for k in (Matern(0.5), Gaussian(0.3)) for a in (1e-2, 1.0)
    ]
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    k = HierarchicalKernel.build(Matern(0.5), X, 16, leaf_size, generator=seed).to_dense().numpy()
    centred = y - y.mean(0)
    smoother = k @ np.linalg.inv(k + 1e-2 * np.eye(120))
    residual = centred - smoother @ centred
    left_out = (residual / (1 - np.diag(smoother))[:, None]) ** 2
    gcv = 120 * (residual**2).sum(0) / np.trace(np.eye(120) - smoother) ** 2
    assert found.trials[0].left_out == pytest.approx((left_out.mean(0) / y.var(0)).mean(), rel=1e-6)
    assert found.trials[0].gcv == pytest.approx((gcv / y.var(0)).mean(), rel=1e-6)


def test_refining_goes_on_from_the_best():
    options = {"rank": 16, "n_trees": 2, "score": "gcv"}
    coarse = search(X, Y[:, 0], [Matern([0.05, 0.1]), Matern([5.0, 9.0])], [1e-3, 10.0], **options)
    fine = search(X, Y[:, 0], [Matern([0.05, 0.1]), Matern([5.0, 9.0])], [1e-3, 10.0], refine=25, **options)
    assert [t.gcv for t in fine.trials[:4]] == [t.gcv for t in coarse.trials]
    assert 4 < len(fine.trials) <= 31
    assert fine.best.gcv < 0.9 * coarse.best.gcv
    again = search(X, Y[:, 0], [Matern([0.05, 0.1]), Matern([5.0, 9.0])], [1e-3, 10.0], refine=25, **options)
    assert [t.gcv for t in again.trials] == [t.gcv for t in fine.trials]


def test_what_it_says():
    lines = str(search(X, Y[:, 0], [Matern(0.5)], [1e-2, 1e-1], rank=16)).splitlines()
    assert lines[0].split() == ["left", "out", "GCV", "alpha", "kernel"]
    assert len(lines) == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"score": "r2"}, "score must be one of left_out, gcv"),
        ({"alphas": [0.0]}, "larger than 0"),
        ({"kernels": []}, "at least one kernel"),
        ({"y": Y[:5]}, "120 points but y has 5"),
    ],
)
def test_wrong_input(changes, message):
    given = {"X": X, "y": Y, "kernels": [Matern(0.5)], "alphas": [0.1], **changes}
    with pytest.raises(ValueError, match=message):
        search(**given)
