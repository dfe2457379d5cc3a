"""Solutions on disk that overflow or rounding spoils: an error or a warning says so, as in memory."""

import warnings

import numpy as np
import pytest
import torch

from hck.errors import NumericalWarning
from hck.outofcore import DiskHCKClassifier, DiskHCKRegressor
from hck.outofcore.job import Job

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))
Y = np.clip(1.5 * np.sin(X[:, 0]) + 0.5, -1, 2)
GIVEN = {"scale": None, "rank": 16, "leaf_size": 32, "random_state": 0}
SINGULAR = {**GIVEN, "lengthscale": 1e9, "alpha": 0.0}


def said(model, y):
    """How often rounding was warned of."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        model.fit(X, y)
    return sum("wrong by rounding" in str(each.message) for each in found)


@pytest.mark.parametrize("leave_one_out", [False, True])
def test_a_singular_system_is_named(tmp_path, leave_one_out):
    more = {"leave_one_out": leave_one_out, **SINGULAR}
    assert said(DiskHCKRegressor("gaussian", folder=tmp_path / "numbers", **more), Y) == 1
    assert said(DiskHCKClassifier("gaussian", folder=tmp_path / "classes", **more), Y > 0.5) == 1


def test_a_column_that_is_far_smaller_than_another(tmp_path):
    y = np.column_stack([1e12 * X[:, 0], Y])
    assert said(DiskHCKRegressor("gaussian", folder=tmp_path / "a", **SINGULAR), y) == 1


def test_a_stopped_run_tells_of_the_branches_before(tmp_path, monkeypatch):
    """The last branch is solved when the run goes on; the others were before."""
    model, keep = DiskHCKRegressor("gaussian", folder=tmp_path / "a", **SINGULAR), Job.keep

    def stop_at(job, name, what):
        if name.startswith("model"):
            raise KeyboardInterrupt
        keep(job, name, what)

    monkeypatch.setattr(Job, "keep", stop_at)
    with pytest.raises(KeyboardInterrupt):
        said(model, Y)
    monkeypatch.undo()
    assert said(model, Y) == 1


def test_a_right_solution_is_not_blamed(tmp_path):
    """Nor where the y of one branch are all 0, beside large ones elsewhere."""
    y = np.where(X[:, 0] > 0.5, 100.0, 0.0)
    model = DiskHCKRegressor("gaussian", folder=tmp_path / "a", lengthscale=1.0, alpha=1e-3, **GIVEN)
    with warnings.catch_warnings():
        warnings.simplefilter("error", NumericalWarning)
        model.fit(X, y)


def test_overflow(tmp_path):
    given = {**GIVEN, "lengthscale": 1.0, "alpha": 0.1}
    model = DiskHCKRegressor("gaussian", dtype="float32", folder=tmp_path / "a", **given)
    with pytest.raises(ValueError, match=r"the solution overflows.*Scale y"):
        model.fit(X, 1e37 * Y)
    for y in (8e307 * Y, np.where(X[:, 0] > 0, 1.7e308, -1.7e308)):
        with pytest.raises(ValueError, match=r"y is too large.*Scale y"):
            DiskHCKRegressor("gaussian", folder=tmp_path / "b", **given).fit(X, y)


def test_what_has_no_numbers(tmp_path):
    model = DiskHCKRegressor("gaussian", folder=tmp_path / "a", lengthscale=1.0, alpha=0.1, **GIVEN)
    with pytest.raises(ValueError, match="y has no columns"):
        model.fit(X, np.zeros((len(X), 0)))
    with pytest.raises(ValueError, match="has no numbers to learn from"):
        model.fit(torch.empty(400, 3, device="meta"), Y)
    with pytest.raises(TypeError, match="folder must be a path, got 1"):
        model.set_params(folder=1).fit(X, Y)
