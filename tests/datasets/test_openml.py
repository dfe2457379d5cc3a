"""Data sets of OpenML."""

from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pytest

from hck.datasets import load, records
from made_downloads import RNG


def openml(monkeypatch, answer):
    asked = []

    def fetch(**options):
        asked.append(options)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr("hck.datasets._find.fetch_openml", fetch)
    return asked


def test_openml(monkeypatch, cache):
    X, y = RNG.normal(size=(50, 48)), RNG.uniform(50, 60, size=50)
    X[:, 10:32] = 7.0  # constant
    asked = openml(monkeypatch, SimpleNamespace(data=X, target=y.astype(str)))
    cache.mkdir(parents=True)
    data = load("pol", prepare=False)
    assert (asked[0]["data_id"], asked[0]["data_home"]) == (201, cache)
    assert data.X_train.shape == (40, 26)
    table = records("pol")
    np.testing.assert_array_equal(table.X, X[:, [*range(10), *range(32, 48)]])
    np.testing.assert_allclose(table.y, y - y.mean(), atol=1e-12)
    assert len(asked) == 1  # then it was kept


def test_targets_of_openml(monkeypatch):
    """Numbers are centred where the files at hand are; classes are integers or words."""
    X, classes = RNG.normal(size=(50, 16)), RNG.integers(0, 3, 50)
    openml(monkeypatch, SimpleNamespace(data=X[:, :8], target=classes.astype(float)))
    np.testing.assert_array_equal(records("kin8nm").y, classes)
    openml(monkeypatch, SimpleNamespace(data=X, target=classes.astype(str).astype(object)))
    np.testing.assert_array_equal(records("pendigits").y, classes)
    words = np.array(list("ABC"), dtype=object)[classes]
    openml(monkeypatch, SimpleNamespace(data=X, target=words))
    for _ in range(2):  # as it came, and from what was kept
        np.testing.assert_array_equal(records("letter").y, words)


def test_openml_has_something_else(monkeypatch):
    openml(monkeypatch, SimpleNamespace(data=RNG.normal(size=(50, 19)), target=np.zeros(50)))
    with pytest.raises(ValueError, match="data set 216 of OpenML has 19 features that vary, not 18"):
        load("elevators")


def test_openml_without_network(monkeypatch, cache):
    openml(monkeypatch, URLError("no network"))
    with pytest.raises(FileNotFoundError) as caught:
        load("elevators")
    for part in (
        "no network",
        f"Put elevators.npz in {cache}",
        "X with 18 features, and y",
        "openml.org/d/216",
    ):
        assert part in str(caught.value)
