"""The exact kernel by iteration, against dense algebra."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning

from hck.approximations import Exact, Fourier, Iterative, Nystrom, TreeKernel, make_approximation
from hck.approximations.conjugate_gradients import Stopping, conjugate_gradients
from hck.backend.kinds import KINDS
from hck.kernels import Gaussian, Matern
from hck.points import as_points
from hck.process import log_likelihood

pytestmark = pytest.mark.usefixtures("one_thread")

RNG = np.random.default_rng(0)
X, NEW = RNG.uniform(size=(173, 3)), RNG.uniform(size=(29, 3))
B = torch.from_numpy(RNG.normal(size=(173, 3)))
NOISE = {"one": 0.1, "each": torch.from_numpy(RNG.uniform(0.05, 0.2, 173))}
KERNEL = 1.5 * Matern([0.5, 1.0, 2.0])
PRECONDITIONERS = {
    "none": lambda x: [],
    "hierarchical": lambda x: [TreeKernel.of("hierarchical", KERNEL, x, 20)],
    "several trees": lambda x: several_trees(x),
    "nystrom": lambda x: [Nystrom.of(KERNEL, x, 20)],
    "fourier": lambda x: [Fourier.of(KERNEL, x, 20)],
}


def several_trees(x):
    generator = torch.Generator().manual_seed(0)
    return [TreeKernel.of("hierarchical", KERNEL, x, 20, generator=generator) for _ in range(4)]


@pytest.fixture(autouse=True)
def several_tiles(monkeypatch):
    monkeypatch.setitem(KINDS, "cpu", replace(KINDS["cpu"], tile=50))
    monkeypatch.setattr("hck.approximations.exact._AT_ONCE", 10)


def make(preconditioner="hierarchical", budget=None, **options):
    points = as_points(X)
    return Exact(KERNEL, points, PRECONDITIONERS[preconditioner](points), memory_budget=budget, **options)


def close(found, expected, tolerance=1e-8):
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("budget", [None, 100_000, 1])
def test_products(budget):
    """With all tiles kept, with some, and with none; twice, with what was kept."""
    made, k = make(budget=budget), torch.from_numpy(KERNEL(X))
    for _ in range(2):
        close(made @ B, k @ B)
        close(made @ B[:, 0], k @ B[:, 0])
    assert made.nbytes == {None: 8 * (6 * 50 * 50 + 3 * 50 * 23 + 23 * 23), 100_000: 20_000, 1: 0}[budget]


@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("preconditioner", PRECONDITIONERS)
def test_against_dense_algebra(preconditioner, noise):
    made = make(preconditioner, tolerance=1e-11)
    noisy = torch.from_numpy(KERNEL(X)) + torch.diag(
        torch.as_tensor(NOISE[noise], dtype=torch.float64).expand(len(X))
    )
    inverse, across = torch.linalg.inv(noisy), torch.from_numpy(KERNEL(X, NEW))
    factor = made.factor(NOISE[noise])
    close(factor.solve(B), inverse @ B)
    close(factor.solve(B[:, 0]), inverse @ B[:, 0])
    close(made.cross(NEW), across)
    predictor = factor.predictor(B)
    close(predictor(NEW), across.mT @ inverse @ B)
    left = torch.from_numpy(KERNEL(NEW)) - across.mT @ inverse @ across
    close(factor.variance(NEW), left.diagonal())
    close(factor.covariance(NEW), left)
    assert predictor.residuals[-1] <= 1e-11
    assert len(predictor.residuals) == sum(r > 1e-11 for r in predictor.residuals) + 1
    assert factor.log_determinant.isnan()


@pytest.mark.parametrize("preconditioner", PRECONDITIONERS)
def test_the_residual_is_what_is_recorded(preconditioner):
    made, b = make(preconditioner, tolerance=1e-5), B[:, :1]
    found = made.factor(0.1).iterate(b)
    rest = b - made @ found.x - 0.1 * found.x
    assert found.converged
    assert float(rest.norm() / b.norm()) == pytest.approx(found.residuals[-1], rel=1e-6)


@pytest.mark.parametrize("preconditioner", ["none", "hierarchical", "nystrom"])
@pytest.mark.parametrize("noise", [1e-1, 1e-5])
def test_single_precision_tells_the_truth(preconditioner, noise):
    """Whether it converges or not: in float32 the residual that is carried along is far too small."""
    points = as_points(torch.from_numpy(X).float())
    made = Exact(
        KERNEL.to(points.device, points.dtype), points, PRECONDITIONERS[preconditioner](points), max_iter=300
    )
    b = B[:, :1].float()
    factor = made.factor(noise)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = factor.iterate(b)
    k = torch.from_numpy(KERNEL(X)) + noise * torch.eye(len(X), dtype=torch.float64)
    true = float((b.double() - k @ found.x.double()).norm() / b.double().norm())
    assert found.converged == (found.residuals[-1] <= 1e-6)
    if found.converged:
        assert true < 1e-5
    else:
        assert true < 1.5 * found.residuals[-1] + 1e-5


def test_what_is_not_positive_definite_does_not_converge():
    ones = torch.ones(4, 1, dtype=torch.float64)
    for product in (lambda p: 0 * p, lambda p: -p, lambda p: p / 0):
        found = conjugate_gradients(product, ones)
        assert not found.converged
        assert found.x.isfinite().all()
    with pytest.raises(ValueError, match="NaN or infinity"):
        conjugate_gradients(lambda p: p, ones * float("nan"))


def test_better_preconditioners_need_fewer_iterations():
    counts = {
        preconditioner: len(make(preconditioner).factor(0.01).iterate(B).residuals)
        for preconditioner in PRECONDITIONERS
    }
    assert counts["several trees"] < counts["hierarchical"] < counts["none"]
    assert counts["nystrom"] < counts["none"]
    points = as_points(X)
    same = Exact(KERNEL, points, [TreeKernel.of("exact", KERNEL, points, 20)])
    assert len(same.factor(0.01).iterate(B).residuals) == 1


def test_columns_of_zeros_and_solved_columns_stay():
    b = torch.cat([torch.zeros(len(X), 1, dtype=torch.float64), B], 1)
    found = make(tolerance=1e-12).factor(0.1).iterate(b)
    assert not found.x[:, 0].any()
    assert found.x.isfinite().all()
    assert not conjugate_gradients(lambda p: p, torch.zeros(5, 2)).x.any()
    # a matrix with one eigenvalue is solved at once; the other column goes on
    scale = torch.arange(1.0, 6.0, dtype=torch.float64)[:, None]
    b = torch.stack([torch.eye(5)[0], torch.ones(5)], 1).double()
    close(conjugate_gradients(lambda p: scale * p, b, stopping=Stopping(1e-13)).x, b / scale)


def test_what_is_not_reached_is_said():
    made = make("none", max_iter=2)
    with pytest.warns(ConvergenceWarning, match="after 2 iterations the residual is"):
        made.factor(1e-6).solve(B)


def test_what_needs_a_factorization_says_so():
    made = make()
    factor = made.factor(0.1)
    asked = [factor.inverse_diagonal, lambda: factor.kernel_gradient(B), lambda: made.draw(1, None)]
    for ask in (*asked, lambda: log_likelihood(made, 0.1, B[:, 0])):
        with pytest.raises(ValueError, match="by iteration there is none"):
            ask()
    assert made.ridge(0.1, B, left_out=True)[1] is None
    for wrong in ({"tolerance": 0.0}, {"max_iter": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            make(**wrong)


def test_predictors_can_be_pickled():
    predictor = make().factor(0.1).predictor(B)
    close(pickle.loads(pickle.dumps(predictor))(NEW), predictor(NEW), 0)


def test_another_kernel():
    made = make().with_kernel(Gaussian(0.5))
    close(made @ B, torch.from_numpy(Gaussian(0.5)(X)) @ B)
    assert made.preconditioners[0].kernel is made.kernel


def test_a_small_budget_has_two_trees():
    """Of a lower rank, where there is no room for two of the given one; and never more than there is room."""
    x = np.random.default_rng(1).uniform(size=(600, 3))
    b, given = torch.from_numpy(np.sin(5 * x[:, 0])), {"rank": 64, "generator": 0}
    made = [
        make_approximation(Iterative(), KERNEL, x, memory_budget=budget, **given) for budget in (2e6, 2e9)
    ]
    alone = make_approximation(Iterative(n_trees=1), KERNEL, x, memory_budget=2e6, **given)
    few, many, one = (each.factor(1e-3) for each in (*made, alone))
    np.testing.assert_allclose(few.solve(b), many.solve(b), rtol=0, atol=1e-2)
    one.solve(b)
    trees = [each.approximation for each in few.preconditioners]
    assert 2 <= len(trees) < len(many.preconditioners) == 8
    assert sum(tree.factor_bytes() for tree in trees) <= 1e6
    assert len(few.residuals) < len(one.residuals)
