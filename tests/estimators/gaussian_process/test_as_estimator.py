"""What people do with estimators: pickle, clone, pipelines, data of any kind."""

import pickle
from inspect import getdoc

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hck import HCKGaussianProcessRegressor
from hck.kernels import Gaussian, Matern
from process_problem import NEW, TREE, N, X, Y, fixed, learning

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("asked", [False, True], ids=["before_std", "after_std"])
def test_a_pickled_model_predicts_the_same(asked):
    model = learning(max_iter=3, trend="linear").fit(X, Y)
    if asked:
        model.predict(NEW, return_std=True)
    again = pickle.loads(pickle.dumps(model))
    assert "uncertainty" not in again.posterior_.__dict__
    np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))
    for settings in ({"return_std": True}, {"return_cov": True}):
        for found, expected in zip(
            again.predict(NEW, **settings), model.predict(NEW, **settings), strict=True
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(again.loo_predict(), model.loo_predict(), rtol=1e-10)
    np.testing.assert_allclose(again.sample_posterior(NEW), model.sample_posterior(NEW), rtol=1e-9)
    assert again.log_marginal_likelihood(model.theta_) == model.log_marginal_likelihood(model.theta_)


def test_clones_are_unfitted_and_alike():
    kernel = 2.0 * Gaussian(0.5) + Matern(1.0, nu=2.5)
    model = learning(kernel=kernel, bounds={"noise": "fixed"}, priors={"left.scale": (1, 1)}, max_iter=2)
    model.fit(X, Y)
    copy = clone(model)
    with pytest.raises(NotFittedError):
        copy.predict(X)
    assert repr(copy.kernel) == repr(kernel) == repr(model.kernel)  # and fit has not changed it
    assert copy.get_params()["bounds"] == {"noise": "fixed"}
    np.testing.assert_array_equal(copy.fit(X, Y).predict(NEW), model.predict(NEW))


def test_fit_changes_neither_parameters_nor_data():
    x, y, variance = X.copy(), Y.copy(), np.full(N, 0.1)
    model = learning(max_iter=2, bounds={"scale": (0.1, 10)}, priors={"scale": (1, 1)})
    before = model.get_params()
    model.fit(x, y, noise_variance=variance).predict(x, return_std=True)
    assert model.get_params() == before
    assert before["bounds"] == {"scale": (0.1, 10)}
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(y, Y)
    np.testing.assert_array_equal(variance, 0.1)


@pytest.fixture
def all_warnings():
    """torch gives some warnings once in a process: then the order of tests would matter."""
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(before)


def test_arrays_that_cannot_be_written_to(all_warnings):
    """Series of pandas give such arrays."""
    arrays = X.copy(), Y.copy(), np.full(N, 0.1)
    for array in arrays:
        array.setflags(write=False)
    model = fixed(**TREE).fit(*arrays)
    np.testing.assert_array_equal(
        model.predict(arrays[0]), fixed(**TREE).fit(X, Y, np.full(N, 0.1)).predict(X)
    )


def test_every_parameter_is_described():
    for name in HCKGaussianProcessRegressor().get_params():
        assert f"\n{name} : " in getdoc(HCKGaussianProcessRegressor)  # from 3.13 on, __doc__ has no margin
    assert "{settings}" not in HCKGaussianProcessRegressor.__doc__


def test_frames_pipelines_and_cross_validation():
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = learning(max_iter=5).fit(frame, pd.Series(Y))
    assert list(model.feature_names_in_) == ["a", "b"]
    np.testing.assert_array_equal(model.predict(frame), learning(max_iter=5).fit(X, Y).predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.rename(columns={"a": "z"}), return_std=True)
    pipeline = make_pipeline(StandardScaler(), learning(max_iter=5))
    assert cross_val_score(pipeline, X, Y, cv=3).mean() > 0.9
    mean, std = pipeline.fit(X, Y).predict(NEW, return_std=True)
    assert mean.shape == std.shape == (15,)
