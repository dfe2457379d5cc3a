"""Made-up data: their sizes, their classes, that they can be learned, and that they say what they are."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.pipeline import make_pipeline

from hck.datasets import names, synthetic
from hck.datasets._registry import REGISTRY
from hck.datasets._synthetic import _RECIPES

CLASSES = {
    "ijcnn1": [-1, 1],
    "covtype.binary": [False, True],
    "SUSY": [0, 1],
    "mnist": list(range(10)),
    "acoustic": [1, 2, 3],
    "covtype": [1, 2, 3, 4, 5, 6, 7],
    "a9a": [-1, 1],
    "reuters": [-1, 1],
    "letter": list("ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    "pendigits": list(range(10)),
    "adult": ["<=50K", ">50K"],
}


@pytest.fixture(scope="module")
def made():
    return {name: synthetic(name, n=3000) for name in names()}


def test_every_real_data_set_has_one():
    assert tuple(_RECIPES) == names()


@pytest.mark.parametrize("name", names())
def test_what_it_is(made, name):
    data, real = made[name], REGISTRY[name]
    assert data.name == f"synthetic {name}"
    assert data.synthetic
    assert data.task == real.task
    assert data.source == f"Made up by hck.datasets.synthetic('{name}', n=3000, seed=0)."
    assert data.X_train.shape == (3000, real.d)
    assert data.X_test.shape == (round(3000 * real.n_test / real.n_train), real.d)
    assert data.y_train.shape == (3000,)
    assert sp.issparse(data.X_train) == real.sparse
    assert data.X_train.min() >= 0
    assert data.X_train.max() <= 1
    if real.task == "regression":
        kind = _RECIPES[name]
        assert data.y_train.mean() == pytest.approx(kind.mean, abs=0.15 * kind.std)
        assert data.y_train.std() == pytest.approx(kind.std, rel=0.1)
    else:
        found, counts = np.unique(data.y_train, return_counts=True)
        assert found.tolist() == CLASSES[name]
        np.testing.assert_allclose(counts / 3000, _RECIPES[name].shares, atol=0.04)


@pytest.mark.parametrize("name", names())
def test_it_can_be_learned(made, name):
    """A kernel of low rank does better than a constant, and not better than is possible."""
    data, kind = made[name], _RECIPES[name]
    features = Nystroem(gamma=4 / data.X_train.shape[1], n_components=300, random_state=0)
    if sp.issparse(data.X_train):
        features.gamma = 0.05 if name == "a9a" else 0.5
    y, is_regression = data.y_train, data.task == "regression"
    if is_regression:
        mean = y.mean()
        model = make_pipeline(features, Ridge(0.01)).fit(data.X_train, y - mean)
        error = data.error(model.predict(data.X_test) + mean)
        constant = data.error(np.full(data.y_test.shape, mean))
        floor = kind.floor * constant
    else:
        model = make_pipeline(features, RidgeClassifier(0.01)).fit(data.X_train, y)
        error, floor = data.error(model.predict(data.X_test)), kind.floor
        values, counts = np.unique(y, return_counts=True)
        constant = data.error(np.full(data.y_test.shape, values[counts.argmax()]))
    assert 0.8 * floor < error < constant * (1.0 if name == "reuters" else 0.99)


@pytest.mark.parametrize("name", ["cadata", "ijcnn1", "mnist", "a9a"])
def test_seeds(name):
    first, same, other = (synthetic(name, n=200, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.y_train, same.y_train)
    assert abs(first.X_train - same.X_train).sum() == 0
    assert abs(first.X_train - other.X_train).sum() > 0


def test_chunks_do_not_show(monkeypatch):
    monkeypatch.setattr("hck.datasets._synthetic._CHUNK", 70)
    for name in ("cadata", "a9a", "mnist"):
        data = synthetic(name, n=200)
        assert data.X_train.shape[0] == len(data.y_train) == 200


def test_the_whole_size():
    data = synthetic("cadata")
    assert data.X_train.shape == (16_512, 8)
    assert data.X_test.shape == (4_128, 8)
    assert data.source == "Made up by hck.datasets.synthetic('cadata', seed=0)."


@pytest.mark.parametrize("n", [0, -5])
def test_bad_sizes(n):
    with pytest.raises(ValueError, match=f"n must be positive, got {n}"):
        synthetic("cadata", n=n)


def test_unknown_names():
    with pytest.raises(ValueError, match="no data set 'iris'"):
        synthetic("iris")
