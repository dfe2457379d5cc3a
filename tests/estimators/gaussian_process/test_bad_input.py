"""Errors that say what was wrong."""

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError

from hck import HCKGaussianProcessRegressor
from hck.kernels import Gaussian
from process_problem import NEW, TREE, N, X, Y, changed, fixed, rational

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize(
    ("points", "targets", "message"),
    [
        (changed(X, np.inf), Y, "infinity"),
        (torch.from_numpy(changed(X, np.inf)), Y, "infinity"),
        (X, changed(Y, np.nan), "NaN"),
        (X, changed(Y, -np.inf), "infinity"),
        (X, Y.reshape(N, 1, 1), r"y must have the shape .* got \(90, 1, 1\)"),
        (
            torch.from_numpy(X),
            torch.from_numpy(Y.reshape(N, 1, 1)),
            r"y must have the shape .* got \(90, 1, 1\)",
        ),
        (X, [[[value]] for value in Y], "dim 3"),
        (X, np.empty((N, 0)), r"y must have the shape .* got \(90, 0\)"),
        (X, np.stack([Y, changed(Y, np.nan)], 1), "NaN"),
        (X, np.stack([Y, Y], 1)[:-1], "inconsistent numbers of samples"),
        (X, np.stack([Y, Y], 1).astype("U"), "y must be real numbers|convert"),
        (X, Y[:-1], "inconsistent numbers of samples"),
        (torch.from_numpy(X), Y[:-1], "90 points but y has 89"),
        (X, None, "requires y to be passed"),
        (np.empty((0, 2)), np.empty(0), "0 sample"),
        (X[:, 0], Y, "1D array"),
    ],
)
def test_bad_training_data(points, targets, message):
    model = HCKGaussianProcessRegressor()
    with pytest.raises(ValueError, match=message):
        model.fit(points, targets)
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"noise": 0.0}, "'noise' parameter"),
        ({"noise": -1.0}, "'noise' parameter"),
        ({"noise": np.nan}, "'noise' parameter"),
        ({"noise": [0.1] * N}, "'noise' parameter"),
        ({"trend": "quadratic"}, "'trend' parameter"),
        ({"trend": None}, "'trend' parameter"),
        ({"optimizer": "adam"}, "'optimizer' parameter"),
        ({"max_iter": 0}, "'max_iter' parameter"),
        ({"n_restarts": -1}, "'n_restarts' parameter"),
        ({"learn_size": 0}, "'learn_size' parameter"),
        ({"bounds": [("noise", "fixed")]}, "'bounds' parameter"),
        ({"priors": "wide"}, "'priors' parameter"),
        ({"ard": "yes"}, "'ard' parameter"),
        ({"normalize_y": "yes"}, "'normalize_y' parameter"),
        ({"lengthscale": 0.0}, "lengthscale"),
        ({"lengthscale": [1.0, -1.0]}, "lengthscale must be positive"),
        ({"lengthscale": [1.0, 1.0, 1.0]}, "3 lengthscales but the points have 2 features"),
        ({"kernel": Gaussian(1.0), "lengthscale": 2.0}, "lengthscale=None"),
        ({"kernel": "gauss"}, "unknown kernel 'gauss'; known kernels: gaussian"),
        ({"kernel": Gaussian([1.0, 1.0, 1.0])}, "3 lengthscales but the points have 2 features"),
        ({"noise": 0.1, "bounds": {"noise": (10, 20)}}, "bounds of 'noise', 10 to 20, exclude its start"),
        (
            {"lengthscale": 1.0, "bounds": {"lengthscale": (10, 20)}},
            "bounds of 'lengthscale', 10 to 20, exclude its start",
        ),
        ({"bounds": {"sigma": (1, 2)}}, "'sigma', .* there are: lengthscale, scale, noise"),
        ({"bounds": {"noise": "free"}}, "bounds of 'noise' must be .* 'fixed', got 'free'"),
        ({"bounds": {"noise": (2, 1)}}, "bounds of 'noise' must be two positive numbers, low < high"),
        ({"bounds": {"noise": 3}}, "bounds of 'noise' must be two positive numbers, low < high"),
        ({"priors": {"sigma": (1, 2)}}, "'sigma', .* there are: lengthscale, scale, noise"),
        ({"priors": {"noise": (1,)}}, r"prior of 'noise' must be \(median, spread\)"),
        ({"priors": {"noise": (-1, 1)}}, r"prior of 'noise' must be \(median, spread\)"),
        ({"priors": {"noise": "small"}}, r"prior of 'noise' must be \(median, spread\)"),
        ({"kernel": rational, "bounds": {"lengthscale": (1, 2)}}, "'lengthscale', .* there are: noise"),
        ({"trend": lambda x: x[:, 0]}, r"trend function must return an array of shape \(90, n_trends\)"),
        ({"trend": lambda x: x[:3]}, r"trend function must return .* got \(3, 2\)"),
        ({"trend": lambda x: x * np.nan}, "trend function returned NaN"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        HCKGaussianProcessRegressor(**parameters).fit(X, Y)


@pytest.mark.parametrize(
    "use",
    [
        lambda model: model.predict(X),
        lambda model: model.predict(X, return_std=True),
        lambda model: model.sample_posterior(X),
        lambda model: model.draw_functions(),
        lambda model: model.X_train_,
        lambda model: model.y_train_,
        lambda model: model.y_scale_,
        lambda model: model.theta_bounds_,
        lambda model: model.log_marginal_likelihood(),
        lambda model: model.standard_errors(),
        lambda model: model.loo_predict(),
        lambda model: model.loo_metrics(),
        lambda model: model.plot_history(),
        lambda model: model.score(X, Y),
    ],
)
def test_before_fit(use):
    with pytest.raises(NotFittedError):
        use(HCKGaussianProcessRegressor())


@pytest.mark.parametrize(
    "failure",
    [{"kernel": "nope"}, {"bounds": {"sigma": "fixed"}}, {"trend": lambda x: x[:, 0]}],
    ids=lambda failure: next(iter(failure)),
)
def test_a_failed_refit_keeps_the_old_model(failure):
    model = fixed("matern32", **TREE).fit(X, Y)
    before = model.predict(NEW, return_std=True)
    with pytest.raises(ValueError):
        model.set_params(**failure).fit(X, Y + 100)
    np.testing.assert_array_equal(model.predict(NEW, return_std=True), before)
