"""scikit-learn's own checks, and the ways in which people combine estimators."""

import pickle
import re
from inspect import getdoc

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification, make_regression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from hck import (
    HCKClassifier,
    HCKGaussianProcessClassifier,
    HCKGaussianProcessRegressor,
    HCKKernelPCA,
    HCKRegressor,
)
from hck.kernels import Gaussian, Matern
from hck.losses import Huber
from hck.partition import known_partitions

# With more points than a leaf holds, repeated points make another tree than weights do.
OTHER_TREE = {
    "check_sample_weight_equivalence_on_dense_data": "repeated points make another tree than weights do",
    "check_sample_weight_equivalence_on_sparse_data": "repeated points make another tree than weights do",
}
# Where a point is repeated, its copies predict it when it is left out, so that probabilities are others.
COPIES = dict.fromkeys(OTHER_TREE, "left-out points have copies")
NO_UPDATES = {"check_fit_score_takes_y": "`partial_fit` is for loss='squared' alone"}


@parametrize_with_checks(
    [
        HCKRegressor(alpha=0.01, lengthscale=None, rank=128),
        HCKClassifier(alpha=0.01, lengthscale=None, rank=128),
        HCKRegressor(rank=4, kernel="laplace", alpha=0.01, lengthscale=None),
        HCKClassifier(rank=4, partition="kd", alpha=0.01, lengthscale=None),
        HCKGaussianProcessRegressor("matern32", max_iter=2, rank=8),
        HCKRegressor(loss=Huber(1.0), alpha=0.01, lengthscale=None, rank=128),
        HCKClassifier(loss="logistic", alpha=0.01, lengthscale=None, rank=128),
        HCKGaussianProcessClassifier(optimizer=None, rank=8),
    ],
    expected_failed_checks=lambda estimator: (
        (OTHER_TREE if estimator.rank == 4 else COPIES if isinstance(estimator, HCKClassifier) else {})
        | (NO_UPDATES if getattr(estimator, "loss", "squared") != "squared" else {})
    ),
)
def test_sklearn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def regression():
    return make_regression(400, 5, noise=1.0, random_state=0)


@pytest.fixture(scope="module")
def classification():
    return make_classification(400, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)


def test_clone_keeps_parameters_and_kernels():
    model = HCKRegressor(
        kernel=2.0 * Gaussian(0.5) + Matern(1.0, nu=2.5), rank=17, alpha=0.01, lengthscale=None
    )
    copy = clone(model)
    assert copy.get_params()["rank"] == 17
    assert repr(copy.kernel) == repr(model.kernel)


def test_pipeline_and_grid_search(regression):
    X, y = regression
    pipeline = make_pipeline(
        StandardScaler(), HCKRegressor(rank=32, random_state=0, alpha=0.01, lengthscale=None)
    )
    grid = {"hckregressor__lengthscale": [0.5, 3.0], "hckregressor__alpha": [1e-3, 1.0]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_params_["hckregressor__lengthscale"] == 3.0
    assert search.best_score_ > 0.9


def test_cross_validation_of_the_classifier(classification):
    X, y = classification
    assert (
        cross_val_score(
            HCKClassifier(rank=32, random_state=0, alpha=0.01, lengthscale=None), X, y, cv=3
        ).mean()
        > 0.7
    )


def test_pandas_input_and_feature_names(regression):
    X, y = regression
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = HCKRegressor(rank=32, random_state=0, alpha=0.01, lengthscale=None).fit(frame, pd.Series(y))
    assert list(model.feature_names_in_) == list("abcde")
    np.testing.assert_array_equal(
        model.predict(frame),
        HCKRegressor(rank=32, random_state=0, alpha=0.01, lengthscale=None).fit(X, y).predict(X),
    )
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.rename(columns={"a": "z"}))


@pytest.mark.parametrize("partition", known_partitions())
@pytest.mark.parametrize("landmarks", ["uniform", "kmeans", "farthest", "same"])
def test_same_seed_same_result(regression, partition, landmarks):
    X, y = regression
    model = HCKRegressor(
        rank=20, partition=partition, landmarks=landmarks, random_state=5, alpha=0.01, lengthscale=None
    )
    first = clone(model).fit(X, y).predict(X)
    np.testing.assert_array_equal(first, clone(model).fit(X, y).predict(X))
    assert not np.array_equal(first, clone(model).set_params(random_state=6).fit(X, y).predict(X))


def test_pickled_model_predicts_the_same(classification):
    X, y = classification
    model = HCKClassifier(rank=32, random_state=0, alpha=0.01, lengthscale=None).fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_fit_does_not_change_parameters_or_data(regression):
    X, y = regression
    X, y = X.copy(), y.copy()
    X_before, y_before = X.copy(), y.copy()
    model = HCKRegressor(rank=32, random_state=0, alpha=0.01, lengthscale=None)
    before = model.get_params()
    model.fit(X, y).predict(X)
    assert model.get_params() == before
    np.testing.assert_array_equal(X, X_before)
    np.testing.assert_array_equal(y, y_before)


@pytest.mark.parametrize(
    "estimator", [HCKRegressor, HCKClassifier, HCKGaussianProcessRegressor, HCKKernelPCA]
)
def test_docstring_lists_every_parameter(estimator):
    for name in estimator().get_params():
        assert f"\n{name} : " in getdoc(estimator)  # from 3.13 on, __doc__ has no margin
    assert not re.search(r"^ *\{[a-z_]+\}", estimator.__doc__, re.MULTILINE)  # a text that was not filled in
