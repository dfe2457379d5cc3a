"""Seconds that `fit_time` promises: a warning where they are not kept, and none where they are."""

import time
import warnings

import numpy as np
import pytest

from hck import HCKClassifier, HCKGaussianProcessRegressor, HCKRegressor
from hck.backend import compilation
from hck.errors import FitTimeWarning
from hck.estimators.promise import deadline, keeps_time

X = np.random.default_rng(0).uniform(size=(300, 2))
Y = X[:, 0] - X[:, 1]


class Sleeper:
    def __init__(self, fit_time):
        self.fit_time = fit_time

    @keeps_time
    def fit(self, seconds):
        self.ends = deadline(self.fit_time)
        time.sleep(seconds)
        return self


@pytest.mark.parametrize("fit_time", [0.01, 1, np.float32(0.05)])
def test_who_waits_longer_is_told(fit_time):
    with pytest.warns(FitTimeWarning, match=f"where fit_time={float(fit_time):g} was asked for"):
        Sleeper(fit_time).fit(1.5 * float(fit_time) + 0.6)


@pytest.mark.parametrize("fit_time", ["fast", 0.1, 60])
def test_nobody_is_told_of_what_was_promised(fit_time):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Sleeper(fit_time).fit(0.2)


def test_compiling_does_not_count():
    class Compiler(Sleeper):
        @keeps_time
        def fit(self, seconds):
            compilation.counted(time.sleep)(seconds)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Compiler(0.1).fit(1.2)


def test_the_deadline_counts_from_the_beginning_of_a_fit():
    begin = time.perf_counter()
    ends = Sleeper(5).fit(0.0).ends
    assert begin + 5 <= ends <= time.perf_counter() + 5
    assert deadline("fast") == float("inf") == Sleeper("best").fit(0.0).ends
    assert deadline(3) > ends - 3  # the fit is over


@pytest.mark.parametrize("model", [HCKRegressor, HCKClassifier, HCKGaussianProcessRegressor])
def test_models_say_so(model, monkeypatch):
    monkeypatch.setattr("hck.estimators.promise._SECONDS", 0.0)
    given = (X, Y > 0) if model is HCKClassifier else (X, Y)
    with pytest.warns(FitTimeWarning) as caught:
        model(fit_time=1e-4, random_state=0).fit(*given)
    assert any(each.filename == __file__ for each in caught if each.category is FitTimeWarning)
