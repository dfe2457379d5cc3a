"""What others may ask of a fitted estimator."""

import numpy as np
import pandas as pd
import pytest
from sklearn.utils import estimator_checks

from hck import HCKClassifier, HCKGaussianProcessRegressor, HCKKernelPCA, HCKRegressor
from hck.estimators import inspection

pytestmark = pytest.mark.usefixtures("one_thread")

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(120, 2))
Y = np.sin(6 * X[:, 0]) + X[:, 1]
GIVEN = {"rank": 8, "random_state": 0}
RIDGE = {**GIVEN, "lengthscale": 0.5, "alpha": 0.01}
MODELS = {
    "ridge": HCKRegressor(**RIDGE, scale="minmax"),
    "process": HCKGaussianProcessRegressor("matern32", **GIVEN, max_iter=2),
    "pca": HCKKernelPCA(**GIVEN),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_training_points_are_in_their_leaves(model):
    model.fit(X, Y)
    assert inspection.n_training_points(model) == len(X)
    tree, leaves = model.tree_, inspection.leaves_of(model, X)
    sizes = np.bincount(leaves, minlength=tree.n_leaves)
    assert len(sizes) == tree.n_leaves
    assert sizes.min() > 0
    np.testing.assert_array_equal(inspection.check_new(model, X.tolist()), X)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_training_points_without_a_tree(model):
    model = type(model)(**{**model.get_params(), "approximation": "nystrom"}).fit(X, Y)
    assert inspection.n_training_points(model) == len(X)


def test_scaling_and_left_out():
    model = HCKRegressor(**RIDGE, scale="minmax").fit(X, Y)
    assert model.features_scaled_
    assert inspection.scaling_kind(model) == "minmax"
    assert inspection.has_left_out(model)
    model = HCKRegressor(**RIDGE, scale=None, leave_one_out=False).fit(X, Y)
    assert not model.features_scaled_
    assert inspection.scaling_kind(model) is None
    assert not inspection.has_left_out(model)


def test_names_that_the_kernel_sees():
    assert HCKRegressor(**RIDGE).fit(X, Y).kernel_feature_names_ is None
    table = pd.DataFrame({"size": X[:, 0], "colour": np.where(X[:, 1] > 0.5, "red", "blue")})
    model = HCKRegressor(**RIDGE).fit(table, Y)
    assert inspection.categories_of(model) == [1]
    assert model.kernel_feature_names_ == ["colour: blue", "colour: red", "size"]


def test_what_a_process_has_learned():
    model = HCKGaussianProcessRegressor("matern32", **GIVEN, max_iter=2, bounds={"noise": "fixed"}).fit(X, Y)
    assert set(inspection.learned_parameters(model)) == {"lengthscale", "scale"}
    assert inspection.has_left_out(model)


def test_checks_that_may_fail_are_those_of_weights():
    """They are checks that scikit-learn has; estimators without weights have none."""
    for model in (HCKRegressor(), HCKClassifier()):
        assert all(hasattr(estimator_checks, name) for name in inspection.expected_failed_checks(model))
    assert inspection.expected_failed_checks(HCKGaussianProcessRegressor()) == {}
