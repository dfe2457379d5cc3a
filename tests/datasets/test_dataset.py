"""How errors are measured."""

import numpy as np
import pytest
import scipy.sparse as sp

from hck.datasets import Dataset

X = np.arange(12.0).reshape(6, 2)


def make(task, y, X=X):
    return Dataset("made", task, X, np.asarray(y), X, np.asarray(y))


def test_relative_error():
    data = make("regression", [3.0, 4, 0, 0, 0, 0])
    assert data.measure == "relative error"
    assert data.error([3, 4, 0, 0, 0, 2]) == pytest.approx(2 / 5)
    assert data.error(data.y_test) == 0


@pytest.mark.parametrize("y", [[1, 1, 2, 2, 3, 3], [True, False] * 3, ["a", "b", "c"] * 2])
def test_share_misclassified(y):
    data = make("multiclass", y)
    assert data.measure == "share misclassified"
    wrong = data.y_test.copy()
    wrong[0] = wrong[5]
    assert data.error(wrong) == pytest.approx(1 / 6)
    assert data.error(data.y_test) == 0


@pytest.mark.parametrize("shape", [(6, 1), (5,), ()])
def test_predictions_of_another_shape(shape):
    with pytest.raises(ValueError, match=r"shape of y_test, \(6,\), got"):
        make("regression", np.ones(6)).error(np.ones(shape))


@pytest.mark.parametrize("features", [X, sp.csr_matrix(X)])
def test_shrink(features):
    data = make("regression", np.arange(6.0), features).shrink(4, 2)
    assert data.X_train.shape == (4, 2)
    assert data.X_test.shape == (2, 2)
    assert data.y_train.tolist() == [0, 1, 2, 3]
    assert data.y_test.tolist() == [0, 1]
    assert data.shrink(100, 100).y_train.shape == (4,)


def test_it_cannot_be_changed_and_is_short_to_print():
    data = make("regression", np.arange(6.0))
    with pytest.raises(AttributeError):
        data.name = "another"
    assert repr(data) == "Dataset(name='made', task='regression', synthetic=False)"
