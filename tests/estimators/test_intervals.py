"""Intervals of the regressor and sets of the classifier, on data that they have not seen."""

import os
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError

import hck
from hck import HCKClassifier, HCKRegressor
from hck.outofcore import DiskHCKClassifier, DiskHCKRegressor

RNG = np.random.default_rng(0)
N = 600
X = RNG.uniform(-1, 1, (3 * N, 2))
SPREAD = 0.05 + 0.5 * (X[:, 0] > 0)
Y = np.sin(3 * X[:, 0]) + X[:, 1] + SPREAD * RNG.normal(size=3 * N)
NEW = X[N:], Y[N:]
FIXED = {"kernel": "matern32", "lengthscale": 1.0, "alpha": 0.3, "random_state": 0}


def fitted(**settings):
    return HCKRegressor(**{**FIXED, **settings}).fit(X[:N], Y[:N])


def inside(model, level, x=NEW[0], y=NEW[1]):
    mean, lower, upper = model.predict(x, interval=level)
    np.testing.assert_array_equal(mean, model.predict(x))
    assert (lower < mean).all()
    assert (mean < upper).all()
    np.testing.assert_allclose(mean - lower, upper - mean)
    return (lower <= y) & (y <= upper), upper - lower


@pytest.mark.parametrize("trees", [1, 4])
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_they_hold_what_they_should_everywhere(trees, level):
    held, width = inside(fitted(n_trees=trees, rank=20, leaf_size=100), level)
    noisy = NEW[0][:, 0] > 0
    assert abs(held.mean() - level) < 0.05
    assert abs(held[noisy].mean() - level) < 0.1
    assert abs(held[~noisy].mean() - level) < 0.1
    assert np.median(width[noisy]) > 4 * np.median(width[~noisy])


APPROXIMATIONS = ("exact", "nystrom", "fourier", "tapered", "independent")


@pytest.mark.parametrize("name", APPROXIMATIONS)
def test_other_approximations(name):
    model = fitted(approximation=name, rank=40)
    held, width = inside(model, 0.8)
    assert abs(held.mean() - 0.8) < 0.06
    assert (np.ptp(width) < 1e-9) == (name not in ("exact", "independent"))  # where no leaf knows neighbours


def test_several_targets_each_for_itself():
    both = HCKRegressor(**FIXED).fit(X[:N], np.stack([Y[:N], 3 * X[:N, 0]], 1))
    alone = fitted()
    parts = both.predict(NEW[0], interval=0.9)
    assert all(part.shape == (2 * N, 2) for part in parts)
    for part, single in zip(parts, alone.predict(NEW[0], interval=0.9), strict=True):
        np.testing.assert_allclose(part[:, 0], single)


def test_weights_count_points():
    weight = np.where(X[:N, 0] > 0, 1e-9, 1.0)  # the noisy half counts for nothing, or nearly
    few, none = (
        HCKRegressor(**FIXED).fit(X[:N], Y[:N], sample_weight=each)
        for each in (weight, np.where(weight < 1, 0.0, 1.0))
    )
    width = [model._left_out_errors.threshold(0.9)[0] for model in (few, none, fitted())]
    assert width[0] == pytest.approx(width[1], rel=0.02)
    assert width[0] < 0.5 * width[2]
    assert np.isfinite(few.predict(NEW[0], interval=0.9)).all()


def test_tensors_sparse_points_and_single_precision():
    model = fitted()
    expected = model.predict(NEW[0][:50], interval=0.9)
    for part, array in zip(model.predict(torch.from_numpy(NEW[0][:50]), interval=0.9), expected, strict=True):
        assert isinstance(part, torch.Tensor)
        np.testing.assert_allclose(part.numpy(), array)
    sparse = HCKRegressor(**FIXED).fit(sp.csr_matrix(X[:N]), Y[:N])
    for part, array in zip(sparse.predict(sp.csr_matrix(NEW[0][:50]), interval=0.9), expected, strict=True):
        np.testing.assert_allclose(part, array, rtol=1e-6)
    single = fitted(dtype="float32").predict(NEW[0][:50], interval=0.9)
    assert all(part.dtype == np.float32 for part in single)
    np.testing.assert_allclose(single[1], expected[1], atol=0.02)


@pytest.mark.parametrize("n", [1, 2, 8, 9])
def test_few_points_have_infinite_intervals(n):
    model = HCKRegressor(**FIXED).fit(X[:n], Y[:n])
    mean, lower, upper = model.predict(NEW[0][:5], interval=0.9)
    assert np.isfinite(mean).all()
    assert np.isfinite([lower, upper]).all() == (n >= 9)
    if n < 9:
        assert (lower == -np.inf).all()
        assert (upper == np.inf).all()


def test_constant_targets_have_no_width():
    model = HCKRegressor(**FIXED).fit(X[:N], np.full(N, 3.0))
    for part in model.predict(NEW[0][:5], interval=0.9):
        np.testing.assert_array_equal(part, 3.0)


@pytest.mark.parametrize("level", [0, 1, 1.5, "0.9", True, np.nan])
def test_levels_that_are_none(level):
    with pytest.raises(ValueError, match="between 0 and 1"):
        fitted().predict(NEW[0], interval=level)
    with pytest.raises(ValueError, match="between 0 and 1"):
        HCKClassifier(**FIXED).fit(X[:N], X[:N, 0] > 0).predict_set(NEW[0], coverage=level)


def test_what_was_not_left_out():
    with pytest.raises(NotFittedError):
        HCKRegressor().predict(NEW[0], interval=0.9)
    for settings in ({"leave_one_out": False}, {"memory_budget": "150KiB", "rank": 8, "leaf_size": 20}):
        with pytest.raises(ValueError, match="nothing was left out"):
            fitted(**settings).predict(NEW[0], interval=0.9)
    with pytest.raises(ValueError, match="nothing was left out"):
        HCKClassifier(**FIXED, leave_one_out=False).fit(X[:N], X[:N, 0] > 0).predict_set(NEW[0])


def test_saved_models_keep_them(tmp_path):
    model = fitted(n_trees=2, rank=20, leaf_size=100)
    expected = model.predict(NEW[0][:20], interval=0.9)
    model.save(tmp_path / "model")  # after errors in local units were computed, which are not saved
    for other in (hck.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        for ours, theirs in zip(other.predict(NEW[0][:20], interval=0.9), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_models_of_earlier_versions_say_that_they_have_none(tmp_path):
    for made, ask in (
        (fitted(), lambda model: model.predict(NEW[0], interval=0.9)),
        (HCKClassifier(**FIXED).fit(X[:N], X[:N, 0] > 0), lambda model: model.predict_set(NEW[0])),
    ):
        del made._left_out_errors
        made.save(tmp_path / "old", force=True)
        model = hck.load(tmp_path / "old")
        assert len(model.predict(NEW[0])) == 2 * N
        with pytest.raises(ValueError, match="saved by an earlier version: fit it again"):
            ask(model)


def test_a_refit_that_fails_leaves_them():
    model = fitted()
    before = model.predict(NEW[0], interval=0.9)
    with pytest.raises(ValueError):
        model.fit(X[:N], np.full(N, np.nan))
    np.testing.assert_array_equal(model.predict(NEW[0], interval=0.9), before)


def test_on_disk_they_are_equally_wide(tmp_path):
    settings = {"lengthscale": 1.0, "alpha": 0.3, "rank": 20, "random_state": 0}
    disk = DiskHCKRegressor(**settings, folder=tmp_path / "model").fit(X[:N], Y[:N])
    held, width = inside(disk, 0.9)
    assert abs(held.mean() - 0.9) < 0.04
    assert np.ptp(width) < 1e-9
    assert abs(inside(disk.to_local(), 0.9)[0].mean() - 0.9) < 0.04
    labels = (Y > 0).astype(int)
    disk = DiskHCKClassifier(**settings, folder=tmp_path / "classes").fit(X[:N], labels[:N])
    sets = disk.predict_set(NEW[0], 0.9)
    assert sets[np.arange(2 * N), labels[N:]].mean() > 0.86


# Classes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("centres", [2, 5])
@pytest.mark.parametrize("coverage", [0.8, 0.95])
def test_sets_hold_the_class(centres, coverage):
    x, label = make_blobs(3 * N, centers=centres, cluster_std=3.5, random_state=0)
    names = np.array(list("abcde"))[label]
    model = HCKClassifier("gaussian", lengthscale=3.0, alpha=1.0, random_state=0).fit(x[:N], names[:N])
    sets = model.predict_set(x[N:], coverage)
    assert sets.dtype == bool
    assert sets.shape == (2 * N, centres)
    size, right = sets.sum(1), sets[np.arange(2 * N), label[N:]]
    assert (size >= 1).all()
    assert right.mean() > coverage - 0.04
    likeliest = model.predict_proba(x[N:]).argmax(1)
    assert sets[np.arange(2 * N), likeliest].all()
    if size.max() > 1:  # no larger than they must be
        assert right.mean() < coverage + 0.04
    larger = model.predict_set(x[N:], 0.99)
    assert (larger >= sets).all()


def test_sets_of_few_points_are_all_classes():
    model = HCKClassifier(**FIXED).fit(X[:5], [0, 1, 0, 1, 1])
    assert model.predict_set(NEW[0][:7], 0.9).all()


# Real data --------------------------------------------------------------------------------------------

SETS = (
    *("ailerons", "bank32nh", "cadata", "cpu_act", "elevators", "flights3m", "fried", "house8L", "kin8nm"),
    *("mv", "pol", "puma32H"),
)


@pytest.mark.data
def test_coverage_of_a_table_with_categories(real_data):
    real_data("cadata")  # or the test is skipped
    path = Path(os.environ["HCK_DATA"]) / "diamonds.csv"
    if not path.exists():
        pytest.skip("no diamonds.csv in HCK_DATA")
    frame = pd.read_csv(path).sample(3000, random_state=0)
    x, y = frame.drop(columns="price"), frame.price.to_numpy(dtype=float)
    model = HCKRegressor(fit_time="fast", random_state=0).fit(x[:1000], y[:1000])
    _, lower, upper = model.predict(x[1000:], interval=0.9)
    assert 0.86 < np.mean((lower <= y[1000:]) & (y[1000:] <= upper)) < 0.93
    assert np.isfinite(model.predict_gradient(x[1000:1010])[:, 0]).all()  # carat, a number


@pytest.mark.data
@pytest.mark.parametrize("name", SETS)
def test_coverage_on_held_out_data(real_data, name):
    arrays = real_data(name)
    x, y = (arrays[part] if part in arrays else arrays[f"{part}_train"] for part in ("X", "y"))
    order, inside = np.random.default_rng(0).permutation(len(y)), []
    for some in np.array_split(order, max(2, len(order) // 3000))[:2]:
        known, new = some[:1000], some[1000:]
        model = HCKRegressor(fit_time="fast", random_state=0).fit(x[known].astype(float), y[known])
        bounds = [model.predict(x[new].astype(float), interval=level)[1:] for level in (0.5, 0.9)]
        inside.append([np.mean((lower <= y[new]) & (y[new] <= upper)) for lower, upper in bounds])
    for level, share in zip((0.5, 0.9), np.mean(inside, 0), strict=True):
        # Of the errors that are known, 300 are of points that shaped no metric, and say how large all are.
        chance = (level * (1 - level) * (1 / 300 + 1 / 2000) / 2) ** 0.5
        assert abs(share - level) < 3 * chance


def test_points_that_shaped_the_metric_are_known_after_updates(tmp_path):
    x = np.c_[X, RNG.uniform(size=(3 * N, 2))]
    model = HCKRegressor(fit_time="fast", n_trees=1, rank=20, random_state=0).fit(x[:N], Y[:N])
    held = model.selection_.held
    assert 0 < len(held) < N
    np.testing.assert_array_equal(model._errors().held, held)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(hck.load(tmp_path / "model")._errors().held, held)
    model.partial_fit(x[N : N + 100], Y[N : N + 100]).forget(np.arange(50))
    expected = np.concatenate([held[held >= 50] - 50, np.arange(N - 50, N + 50)])
    np.testing.assert_array_equal(model._errors().held, expected)
    model.save(tmp_path / "updated")
    settled = hck.load(tmp_path / "updated")
    np.testing.assert_array_equal(settled.selection_.held, expected)
    again = settled.partial_fit(x[:10], Y[:10])._errors().held
    np.testing.assert_array_equal(again, np.concatenate([expected, np.arange(N + 50, N + 60)]))


def test_without_a_metric_all_points_are_alike():
    model = HCKRegressor("gaussian", fit_time="fast", random_state=0).fit(X[:N, :1], Y[:N])
    assert model.selection_.held is None
    assert fitted().selection_.held is None
