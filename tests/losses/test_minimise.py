"""Minima against dense solvers, on one leaf and on trees, and what is promised of the way there."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import lsq_linear, minimize

from hck.approximations import Iterative, TreeKernel, make_approximation
from hck.losses import (
    Absolute,
    Effort,
    Huber,
    Logistic,
    Poisson,
    Problem,
    Quantile,
    Squared,
    SquaredHinge,
    minimise,
)
from hck.losses.interior import interior_point
from loss_problem import observed

ALPHA = 0.05
SHAPES = {"leaf": (16, 500), "tree": (8, 16)}


def approximation(x, shape, kind="hierarchical", **options):
    rank, leaf = SHAPES[shape]
    return make_approximation(kind, "matern32", x, rank=rank, leaf_size=leaf, generator=0, **options)


def matrix(made):
    k = made @ torch.eye(len(made), dtype=made.dtype)
    return ((k + k.T) / 2).double().numpy()


def by_scipy(problem, k, alpha):
    """f of the minimum, by a general method."""
    n, columns = len(k), problem.loss.columns
    root = np.linalg.cholesky(k + 1e-13 * np.eye(n))
    if problem.loss.smooth:

        def function(u):
            f = torch.from_numpy(root @ u.reshape(n, columns))
            slope = root.T @ problem.slope(f).numpy() + alpha * u.reshape(n, columns)
            return problem.value(f) + alpha * (u @ u) / 2, slope.ravel()

        options = {"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-17, "gtol": 1e-10, "maxcor": 60}
        found = minimize(function, np.zeros(n * columns), jac=True, method="L-BFGS-B", options=options)
        return root @ found.x.reshape(n, columns)
    y, weight = (problem.y - problem.intercept).numpy(), problem.weight.numpy()
    bounds = tuple(slope * weight for slope in problem.loss.slopes)
    right = np.linalg.solve(root, y) * alpha**0.5  # ½ ‖Rᵀv/√α − right‖² is the dual, R the root
    found = lsq_linear(root.T / alpha**0.5, right, bounds, method="bvls", tol=1e-14, max_iter=2000)
    return (k @ found.x / alpha)[:, None]


def objective(problem, k, f, alpha):
    w = np.linalg.lstsq(k, f, rcond=1e-14)[0]
    return problem.value(torch.from_numpy(f)) + alpha * float((w * (k @ w)).sum()) / 2


@pytest.mark.parametrize("shape", SHAPES)
def test_against_scipy(problem, x, shape):
    made = approximation(x, shape)
    k, found = matrix(made), minimise(made, problem, ALPHA)
    wanted = by_scipy(problem, k, ALPHA)
    known = found.certificate
    assert known.converged
    assert known.gradient < 1e-5
    np.testing.assert_allclose(k @ found.weights.numpy(), found.fitted, atol=1e-7)  # f is K̃ w
    best, there = objective(problem, k, wanted, ALPHA), known.objective[-1]
    assert there == pytest.approx(best, rel=1e-6)
    tolerance = 1e-5 if problem.loss.smooth else 3e-3  # of f, where the objective has an error of 1e-7
    np.testing.assert_allclose(found.fitted, wanted, atol=tolerance * np.abs(wanted).max())


def test_the_objective_only_falls(problem, x):
    known = minimise(approximation(x, "tree"), problem, 1e-3).certificate
    assert len(known.objective) > 1 or isinstance(problem.loss, Squared)
    if problem.loss.smooth:
        assert (np.diff(known.objective) <= 0).all()
    assert known.converged


def test_of_zero_errors_is_a_saddle_of_the_equations(problem, x):
    """α w is minus the slope at the minimum: the certificate, written out."""
    if not problem.loss.smooth:
        pytest.skip("has no slope")
    found = minimise(approximation(x, "tree"), problem, ALPHA)
    rest = problem.slope(found.fitted) + ALPHA * found.weights
    start = problem.slope(torch.zeros_like(found.fitted))
    assert float(rest.norm() / start.norm()) == pytest.approx(found.certificate.gradient, rel=1e-3, abs=1e-12)


def test_predictors_say_what_was_fitted(problem, x):
    made = approximation(x, "tree")
    found = minimise(made, problem, ALPHA)
    np.testing.assert_allclose(found.predictor()(x), found.fitted, atol=1e-7)


@pytest.mark.parametrize("loss", [SquaredHinge()], ids=repr)
@pytest.mark.parametrize("shape", SHAPES)
def test_points_outside_the_margin_are_left_out(problem, x, shape, monkeypatch):
    """With infinite noise instead of a large one, and the same result."""
    made, alpha, effort = approximation(x, shape), 1e-3, Effort(100, 1e-10)
    found = minimise(made, problem, alpha, effort=effort)
    monkeypatch.setattr(TreeKernel, "can_ignore", False)
    wanted = minimise(made, problem, alpha, effort=effort)
    monkeypatch.undo()
    outside = found.noise.isinf()
    assert 0.25 < outside.double().mean() < 1
    assert wanted.noise.isfinite().all()
    assert not found.weights[outside].any()
    np.testing.assert_allclose(found.fitted, wanted.fitted, atol=1e-4)
    np.testing.assert_allclose(found.left_out(), wanted.left_out(), atol=5e-3)
    np.testing.assert_allclose(found.left_out()[outside], found.fitted[outside])
    for each in (found, minimise(made, problem, alpha, start=wanted.fitted, effort=Effort(2, 1e-9))):
        np.testing.assert_allclose(each.predictor()(x), each.fitted, atol=1e-6)


def test_predictors_of_weights_that_the_last_step_left_out(x):
    problem = Problem.of(SquaredHinge(), observed(SquaredHinge(), x, np.random.default_rng(2)))
    made = approximation(x, "tree")
    found = minimise(made, problem, 1e-3)
    other = torch.ones_like(found.weights)
    joined = replace(found, weights=other, fitted=made @ other)
    np.testing.assert_allclose(joined.predictor()(x), made @ other, atol=1e-6)


def test_a_weight_of_two_is_a_point_twice(loss, x):
    y = observed(loss, x, np.random.default_rng(2))
    twice = torch.cat([torch.arange(len(y)), torch.arange(5)])
    weight = torch.ones(len(y), dtype=torch.float64)
    weight[:5] = 2
    one = minimise(approximation(x, "leaf"), Problem.of(loss, y, weight), ALPHA)
    two = minimise(approximation(x[twice], "leaf"), Problem.of(loss, y[twice]), ALPHA)
    tolerance = 1e-5 if loss.smooth else 5e-3
    np.testing.assert_allclose(one.fitted, two.fitted[: len(y)], atol=tolerance)


def test_a_start_shortens_the_way(problem, x):
    made, other = approximation(x, "tree"), approximation(x, "leaf")
    cold = minimise(made, problem, ALPHA)
    warm = minimise(made, problem, ALPHA, start=minimise(other, problem, ALPHA).fitted)
    tolerance = 1e-4 if problem.loss.smooth else 1e-2
    np.testing.assert_allclose(warm.fitted, cold.fitted, atol=tolerance)
    assert warm.certificate.n_iter <= cold.certificate.n_iter + 1


@pytest.mark.parametrize("loss", [Squared(), Logistic(), Logistic(4), Poisson(), Huber(0.3)], ids=repr)
def test_left_out_points_are_nearly_those_of_fits_without_them(problem, x):
    made = approximation(x, "leaf")
    found = minimise(made, problem, 0.3)
    others, k = found.left_out(), matrix(made)
    for i in (0, 17, 63):
        kept = torch.tensor([j for j in range(len(x)) if j != i])
        without = minimise(approximation(x[kept], "leaf"), problem.take(kept), 0.3)
        wanted = k[i, kept.numpy()] @ without.weights.numpy()
        moved = np.abs(wanted - found.fitted[i].numpy()).max()
        tolerance = 1e-6 if isinstance(problem.loss, Squared) else 0.15 * moved + 0.01
        np.testing.assert_allclose(others[i], wanted, atol=tolerance)


@pytest.mark.parametrize("kind", ["nystrom", "fourier", "tapered", "exact", "compositional", "independent"])
@pytest.mark.parametrize("loss", [Logistic(), Absolute()], ids=repr)
def test_other_approximations(problem, x, kind):
    made = approximation(x, "tree", kind)
    found = minimise(made, problem, 0.3)
    assert found.certificate.converged
    np.testing.assert_allclose(matrix(made) @ found.weights.numpy(), found.fitted, atol=1e-6)


@pytest.mark.parametrize("loss", [Logistic(), Quantile(0.2)], ids=repr)
def test_iteration_has_no_factorization(problem, x):
    made = approximation(x, "tree", Iterative())
    with pytest.raises(ValueError, match="need a factorization"):
        minimise(made, problem, ALPHA)


def test_single_precision(problem, x):
    single = approximation(torch.tensor(x, dtype=torch.float32), "tree", jitter=1e-4)
    found = minimise(single, problem, 0.3)
    wanted = minimise(approximation(x, "tree", jitter=1e-4), problem, 0.3)
    assert found.certificate.converged
    scale = float(wanted.fitted.abs().max())
    np.testing.assert_allclose(found.fitted, wanted.fitted, atol=0.02 * scale)


def test_what_is_cut_short_says_so(problem, x):
    if isinstance(problem.loss, Squared):
        pytest.skip("takes one step")
    known = minimise(approximation(x, "tree"), problem, 1e-3, effort=Effort(1, 1e-9)).certificate
    assert known.n_iter == 1
    assert not known.converged


@pytest.mark.parametrize("loss", [Absolute(), Quantile(0.3), Huber(1.0)], ids=repr)
def test_constant_observations(loss, x):
    y = torch.full((len(x),), 3.0, dtype=torch.float64)
    found = minimise(approximation(x, "tree"), Problem.of(loss, y), ALPHA)
    np.testing.assert_allclose(found.fitted, 0, atol=1e-6)
    assert found.certificate.converged


def test_one_point():
    for loss, y in ((Absolute(), 2.0), (Poisson(), 2.0)):
        problem = Problem.of(loss, torch.tensor([y], dtype=torch.float64))
        found = minimise(approximation(np.zeros((1, 2)), "leaf"), problem, ALPHA)
        np.testing.assert_allclose(found.fitted, 0, atol=1e-9)


def test_quantiles_have_their_share_below(x):
    y = torch.tensor(np.random.default_rng(7).standard_normal(len(x)))
    for level in (0.1, 0.5, 0.9):
        problem = Problem.of(Quantile(level), y)
        found = minimise(approximation(x, "tree"), problem, 1.0)
        share = float((y < found.fitted[:, 0] + problem.intercept).double().mean())
        assert share == pytest.approx(level, abs=0.1)


def test_interior_points_are_for_quantiles(x):
    with pytest.raises(TypeError, match="a loss of quantiles is needed"):
        interior_point(approximation(x, "leaf"), Problem.of(Squared(), torch.zeros(len(x)).double()), ALPHA)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu(problem, x):
    made, there = approximation(x, "tree"), approximation(torch.tensor(x, device="cuda"), "tree")
    here, found = minimise(made, problem, ALPHA), minimise(there, problem.to(there.device), ALPHA)
    np.testing.assert_allclose(found.fitted.cpu(), here.fitted, atol=1e-4)


@pytest.mark.parametrize("name", ["logistic", "squared_hinge", "softmax", "poisson"])
@pytest.mark.parametrize("alpha", [1e-6, 0.1, 10.0])
def test_repeated_points_that_contradict_each_other(name, alpha):
    """Where weights cancel, f is 0 but for rounding, and a line along it once led to 10¹⁵⁰."""
    classes = 3 if name == "softmax" else 2
    for seed in range(6):
        rng = np.random.default_rng(seed)
        places, times = int(rng.integers(1, 4)), int(rng.integers(1, 5))
        x = torch.from_numpy(np.repeat(rng.normal(size=(places, 3)), classes * times, axis=0))
        y = torch.arange(len(x)) % classes
        loss = {"logistic": Logistic(), "squared_hinge": SquaredHinge(), "softmax": Logistic(3)}.get(name)
        problem = Problem.of(Poisson(), y.double()) if loss is None else Problem.of(loss, y)
        found = minimise(approximation(x, "leaf"), problem, alpha)
        assert found.certificate.converged
        assert found.certificate.n_iter < 20
        assert float(found.fitted.abs().max()) < 1e-5
        expected = -problem.slope(torch.zeros_like(found.fitted)) / alpha
        np.testing.assert_allclose(found.weights, expected, rtol=1e-3)
