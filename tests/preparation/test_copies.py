"""Rows that are there several times."""

import warnings

import numpy as np
import pytest
import torch

from hck import HCKGaussianProcessRegressor, HCKRegressor
from hck.preparation.copies import warn_of_copies

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 3))
y = X[:, 0] + 0.1 * rng.normal(size=200)


@pytest.mark.parametrize("as_given", [np.asarray, torch.from_numpy, np.float32])
@pytest.mark.parametrize("columns", [1, 2])
def test_copies_are_told(as_given, columns):
    targets = np.stack([y] * columns, 1)
    with pytest.warns(UserWarning, match="^50 of 250 rows are copies of others"):
        warn_of_copies(as_given(np.vstack([X, X[:50]])), np.vstack([targets, targets[:50]]))


@pytest.mark.parametrize(
    ("points", "targets"),
    [
        (X, y),
        (np.repeat(X[:50], 4, 0), y),  # the same settings, measured again
        (np.repeat(X[:50], 4, 0), np.repeat(np.arange(50) % 7, 4)),  # counts
        (np.vstack([X, X[:10]]), np.r_[y, y[:10]]),  # few
        (X[:50].repeat(2, 0)[:90], y[:50].repeat(2)[:90]),  # of few
        (np.zeros((200, 1)), np.zeros(200)),
        (1e15 + np.arange(2000.0)[:, None] % 2, rng.normal(size=2000)),  # far from 0
    ],
)
def test_what_may_be_chance_or_measured_again_is_not(points, targets):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_copies(points, targets)


@pytest.mark.parametrize("kind", [HCKRegressor, HCKGaussianProcessRegressor])
def test_estimators_warn(kind):
    with pytest.warns(UserWarning, match="rows are copies"):
        kind(fit_time="fast", random_state=0).fit(np.repeat(X, 2, 0), np.repeat(y, 2))
