"""Trends that say the same, or nearly: against dense algebra, after a fit and after updates."""

import numpy as np
import pytest
import scipy.linalg
import torch

import hck
from hck import HCKGaussianProcessRegressor
from hck.approximations import TreeKernel
from hck.hierarchy.dense import Definition
from hck.kernels import Gaussian, Matern
from hck.online import State
from hck.preparation.trend import Trend
from hck.process import Process

pytestmark = pytest.mark.usefixtures("one_thread")

RNG = np.random.default_rng(0)
X, NEW = RNG.uniform(size=(90, 2)), RNG.uniform(size=(7, 2))
Y = np.sin(5 * X[:, 0]) + X[:, 1] + 0.1 * RNG.standard_normal(90)
KERNELS = {"rough": (Matern(0.5), 0.02), "ill-conditioned": (Gaussian(3.0), 1e-4)}


def rough(x):
    return np.sin(57 * x[:, 0] + 31 * x[:, 1])


TRENDS = {  # and which columns are enough
    "twice": (lambda x: np.c_[np.ones(len(x)), x[:, 0], x[:, 0]], [0, 1]),
    "sum": (lambda x: np.c_[np.ones(len(x)), x[:, 0], 2 * x[:, 0] + 1, x[:, 1]], [0, 1, 3]),
    "constant twice": (lambda x: np.c_[np.ones(len(x)), np.full(len(x), 0.1)], [0]),
    "none": (lambda x: np.c_[np.ones(len(x)), 0 * x[:, 0]], [0]),
    "nearly": (lambda x: np.c_[np.ones(len(x)), x[:, 0], x[:, 0] + 1e-5 * rough(x)], [0, 1, 2]),
    "nearly constant": (lambda x: np.c_[np.ones(len(x)), 1 + 1e-5 * rough(x)], [0, 1]),
    "far away": (lambda x: np.c_[x[:, 0] + 1e5, np.ones(len(x)), x[:, 1] - 1e4], [0, 1, 2]),
}


def model_of(trend, kernel="rough", **given):
    base, noise = KERNELS[kernel]
    given = {"rank": 10, "leaf_size": 20, "random_state": 0, **given}
    return HCKGaussianProcessRegressor(base, noise=noise, optimizer=None, trend=trend, **given)


def columns(x, trend):
    """Of a trend, those that are enough, and are different."""
    if trend in ("linear", "other feature"):
        return np.c_[np.ones(len(x)), x] if trend == "linear" else np.c_[np.ones(len(x)), x[:, 1]]
    function, enough = TRENDS[trend]
    return function(x)[:, enough]


def dense(model, trend, x, y, new):
    """By its definition: mean, variance, likelihood, and left-out values and their variances."""
    blueprint, data = model._online[0].harvested
    definition = Definition(blueprint.kernel, blueprint.layout.tree, blueprint.landmarks, blueprint.jitter)
    points, n = model._placed(new), len(x)
    k = definition.square(data.points).numpy() + np.diag(data.noise.numpy())
    across = definition.cross(data.points, points).numpy()
    own = blueprint.kernel.evaluate(points.x, points.x).diagonal().numpy()
    h, h_new = columns(x, trend), columns(new, trend)
    q, r = np.linalg.qr(h)
    q_new = np.linalg.solve(r.T, h_new.T).T
    half = np.linalg.cholesky(k)
    a, b, c = (scipy.linalg.solve_triangular(half, each, lower=True) for each in (q, y, across))
    spread = np.linalg.inv(a.T @ a)
    rest = b - a @ (spread @ (a.T @ b))
    unknown = q_new - c.T @ a
    mean = q_new @ (spread @ (a.T @ b)) + c.T @ rest
    variance = own - (c * c).sum(0) + ((unknown @ spread) * unknown).sum(1)
    value = -(rest @ rest + 2 * np.log(np.diag(half)).sum() + n * np.log(2 * np.pi)) / 2
    inverse = scipy.linalg.solve_triangular(half, np.eye(n), lower=True)
    project = inverse.T @ (np.eye(n) - a @ spread @ a.T) @ inverse
    return mean, variance, value, y - project @ y / np.diag(project), 1 / np.diag(project)


def check(model, trend, x, y, new, tolerance):
    """The model beside dense algebra; errors are those of numbers as large as y."""
    mean, variance, value, left_out, spread = dense(model, trend, x, y, new)
    size = {"rtol": 0, "atol": tolerance * max(1, abs(y).max())}
    found, std = model.predict(new, return_std=True)
    np.testing.assert_allclose(found, mean, **size)
    np.testing.assert_allclose(std**2, variance, rtol=0, atol=tolerance)
    assert model.log_marginal_likelihood() == pytest.approx(value, rel=tolerance, abs=10 * tolerance)
    found, std = model.loo_predict(return_std=True)
    np.testing.assert_allclose(found, left_out, **size)
    np.testing.assert_allclose(std**2, spread, rtol=10 * tolerance)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("trend", TRENDS)
def test_against_dense_algebra(trend, kernel):
    model = model_of(TRENDS[trend][0], kernel).fit(X[:60], Y[:60])
    model.partial_fit(X[60:], Y[60:]).forget([0, 3]).update([5], [0.7])
    x, y = np.delete(X, [0, 3], 0), np.delete(Y, [0, 3])
    y[5] = 0.7
    check(model, trend, x, y, NEW, 1e-9 if kernel == "rough" else 1e-8)


def check_refit(model, trend, x, y, new):
    """The model beside a process on the same tree with a new trend; returns the coefficients of that."""
    made, features = Trend.of(trend, x, y)
    blueprint, data = model._online[0].harvested
    rest = torch.from_numpy(y) - features @ torch.from_numpy(made.rough)
    process = Process.of(TreeKernel(blueprint), data.noise, rest, features)
    points, size = model._placed(new), {"rtol": 0, "atol": 1e-9 * max(1, abs(y).max())}
    found, std = model.predict(new, return_std=True)
    mean = made.restore(made(new), process.predict(points, made(new)))
    np.testing.assert_allclose(found, mean, **size)
    np.testing.assert_allclose(std**2, process.variance(points, made(new)), rtol=0, atol=1e-9)
    assert model.log_marginal_likelihood() == pytest.approx(process.log_likelihood, rel=1e-9)
    found, std = model.loo_predict(return_std=True)
    left_out = process.leave_one_out()
    np.testing.assert_allclose(found, made.restore(features, left_out.mean), **size)
    np.testing.assert_allclose(std**2, left_out.variance, rtol=1e-8)
    return made.raw(process.coefficients[:, 0].numpy())


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("trend", TRENDS)
def test_updates_are_a_fit_on_the_same_tree(trend, kernel):
    function = TRENDS[trend][0]
    model = model_of(function, kernel).fit(X[:60], Y[:60]).partial_fit(X[60:], Y[60:]).forget([0])
    coefficients = check_refit(model, function, X[1:], Y[1:], NEW)
    known = function(NEW)
    np.testing.assert_allclose(known @ model.coefficients_, known @ coefficients, rtol=1e-7)


def test_coefficients_of_what_is_nearly_the_same():
    """y is what the trend says, so that nothing about them is in doubt but by rounding."""
    h = TRENDS["nearly"][0](X)
    model = model_of(TRENDS["nearly"][0]).fit(X[:60], h[:60] @ [1.0, 2.0, 3.0])
    np.testing.assert_allclose(model.coefficients_, [1, 2, 3], rtol=1e-6)
    model.partial_fit(X[60:], h[60:] @ [1.0, 2.0, 3.0])
    np.testing.assert_allclose(model.coefficients_, [1, 2, 3], rtol=1e-6)
    assert np.isfinite(model.sample_posterior(NEW, 3)).all()


def test_a_window_that_slides_away():
    """The slope and the mean are ever harder to tell apart, by features that were centred elsewhere."""
    model, x, y = model_of("linear").fit(X, Y), X, Y
    for place in (3, 50, 1e3, 1e5, 1e6, 1e6 + 2):
        more = RNG.uniform(size=(90, 2)) + np.array([place, 0])
        new = NEW + np.array([place, 0])
        x, y = np.append(x, more, 0), np.append(y, np.sin(5 * more[:, 0]) + 2 * more[:, 0])
        model.partial_fit(more, y[90:])
        check_refit(model, "linear", x, y, new)
        model.forget(keep=90)
        x, y = x[90:], y[90:]
        coefficients = check_refit(model, "linear", x, y, new)
        np.testing.assert_allclose(model.coefficients_, coefficients, rtol=1e-6)
        if place < 100:  # distances of points so far away are rounded, too
            check(model, "linear", x, y, new, 1e-9)
    assert np.isfinite(model.predict_gradient(new)).all()


def test_a_feature_that_is_constant_for_a_while(tmp_path):
    model = model_of("linear").fit(X, Y)
    x, y = np.c_[np.full(40, 3.0), X[:40, 1]], Y[:40]
    model.partial_fit(x, y).forget(keep=40)
    check(model, "other feature", x, y, x[:5] + np.array([0, 0.1]), 1e-9)
    for width in (1e-4, 0.01, 0.5):
        more = np.c_[3 + width * X[40:60, 0], X[40:60, 1]]
        x, y = np.append(x, more, 0), np.append(y, Y[40:60])
        model.save(tmp_path / "model", force=True)
        model.partial_fit(more, Y[40:60])
        check(model, "linear", x, y, more[:5], 1e-9)
        again = hck.load(tmp_path / "model").partial_fit(more, Y[40:60])
        np.testing.assert_allclose(again.predict(more), model.predict(more), rtol=0, atol=1e-9)


def test_y_that_moves_away():
    """What the trend of the fit explains no longer is taken away anew, before digits are lost."""
    model, x, y = model_of("linear").fit(X, Y), X, Y
    for offset in (1e3, -1e5, 1e5):
        x, y = np.append(x, X + 0.3, 0)[-90:], np.append(y, Y + offset)[-90:]
        model.partial_fit(X + 0.3, y).forget(keep=90)
        assert model.log_marginal_likelihood() == pytest.approx(
            dense(model, "linear", x, y, NEW)[2], rel=1e-9
        )
        rough = model._trend.rough
        model.partial_fit(X[:1], y[:1]).forget([0])
        assert model._trend.rough is rough  # that is rare


def test_points_where_the_trend_is_far_too_large():
    """They would take all digits of the others."""

    def powers(x):
        return np.c_[np.ones(len(x)), np.asarray(x)[:, 0] ** 9]

    for trend in ("linear", powers):
        model = model_of(trend).fit(X, Y)
        attributes = dict(vars(model))
        with pytest.raises(ValueError, match="times what it was in `fit`"):
            model.partial_fit(X[:3] + 1e9, Y[:3])
        assert vars(model) == attributes
    with pytest.raises(ValueError, match="values above 1e\\+150, whose squares overflow"):
        model_of(lambda x: 1e200 * np.asarray(x)).fit(X, Y)


@pytest.mark.parametrize("trend", ["constant", "linear"])
def test_y_that_is_all_trend(trend, monkeypatch):
    """What is left are rounding errors, and they need no other trend with each update."""
    y = 0.1 + 0.3 * X[:, 0] * (trend == "linear")
    model = model_of(trend).fit(X[:60], y[:60])
    asked = []
    monkeypatch.setattr(State, "recode", lambda *_: asked.append(1))
    for i in range(60, 90):
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    assert not asked
    np.testing.assert_allclose(model.predict(X), y, rtol=1e-12)
