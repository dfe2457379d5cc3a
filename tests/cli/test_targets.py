"""Models of several targets, which are fitted in Python, predict a column for each."""

import numpy as np
import pytest

pytest.importorskip("typer")
from hck import HCKGaussianProcessRegressor
from hck.cli.predict import predictions

pytestmark = pytest.mark.usefixtures("one_thread")


def test_a_process_has_intervals_for_each_target():
    X = np.random.default_rng(0).uniform(size=(40, 2))
    model = HCKGaussianProcessRegressor(optimizer=None, random_state=0).fit(
        X, np.stack([X[:, 0], 9 * X[:, 1]], 1)
    )
    found = predictions(model, X[:5], 0.5)
    kinds = ("prediction", "std", "lower", "upper")
    assert list(found) == [f"{name}_{k}" for k in range(2) for name in kinds]
    mean, lower, upper = model.predict(X[:5], interval=0.5)
    for k in range(2):
        np.testing.assert_allclose(found[f"prediction_{k}"], mean[:, k])
        np.testing.assert_allclose(found[f"lower_{k}"], lower[:, k])
        np.testing.assert_allclose(found[f"upper_{k}"], upper[:, k])


def test_where_the_noise_is_given_intervals_are_the_functions():
    X = np.random.default_rng(0).uniform(size=(40, 2))
    model = HCKGaussianProcessRegressor(optimizer=None, random_state=0).fit(X, X[:, 0], np.full(40, 0.01))
    found, (mean, std) = predictions(model, X[:5], 0.5), model.predict(X[:5], return_std=True)
    np.testing.assert_allclose(found["upper"] - mean, 0.67449 * std, rtol=1e-4)
