"""Approximations give the same results on a GPU as on the CPU."""

from dataclasses import replace

import pytest
import torch

from hck import HCKGaussianProcessRegressor, HCKRegressor
from hck.approximations import Exact, Iterative, Nystrom, TreeKernel
from hck.approximations.hierarchical import TREE_KERNELS
from hck.backend import kinds
from hck.kernels import Gaussian, Laplace, Matern

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device"),
]

G = torch.Generator().manual_seed(0)
X, NEW = (torch.rand(n, 3, generator=G, dtype=torch.float64) for n in (311, 40))
Y = torch.sin(4 * X[:, 0]) + X[:, 1]
NOISY = Y + 0.1 * torch.randn(len(Y), generator=G, dtype=torch.float64)
KERNEL = 1.5 * Matern([0.5, 1.0, 2.0])


def close(there, here, tolerance=1e-7):
    assert there.device.type == "cuda"
    torch.testing.assert_close(there.cpu(), here, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind", TREE_KERNELS)
def test_trees(kind):
    here = TreeKernel.of(kind, KERNEL, X, 20)
    tree, landmarks = here.blueprint.layout.tree, here.blueprint.landmarks
    given = [landmarks.of_slot(slot).x for slot in range(len(tree.inner))]
    options = {"partition": tree.to("cuda"), "landmarks": given if kind in TREE_KERNELS[:2] else "uniform"}
    there = TreeKernel.of(kind, KERNEL, X.cuda(), 20, **options)
    compare(here, there)


def test_nystrom():
    z = X[::7]
    compare(Nystrom.of(KERNEL, X, 0, z), Nystrom.of(KERNEL, X.cuda(), 0, z.cuda()))


def compare(here, there):
    factors = here.factor(0.1), there.factor(0.1)
    close(there @ Y.cuda(), here @ Y)
    close(there.cross(NEW.cuda()), here.cross(NEW))
    close(factors[1].solve(Y.cuda()), factors[0].solve(Y))
    close(factors[1].predictor(Y.cuda())(NEW.cuda()), factors[0].predictor(Y)(NEW))
    close(factors[1].variance(NEW.cuda()), factors[0].variance(NEW))
    close(factors[1].inverse_diagonal(), factors[0].inverse_diagonal())
    close(there.extend(Y.cuda())(NEW.cuda()), here.extend(Y)(NEW))


def test_exact_by_iteration(monkeypatch):
    for name, kind in kinds.KINDS.items():
        monkeypatch.setitem(kinds.KINDS, name, replace(kind, tile=100))
    dense = torch.linalg.solve(KERNEL(X, X) + 0.1 * torch.eye(311, dtype=X.dtype), Y)
    for preconditioner in ("hierarchical", "nystrom", "fourier", None):
        how = Iterative(preconditioner, n_trees=2, tolerance=1e-10)
        model = HCKRegressor(KERNEL, alpha=0.1, rank=20, approximation=how).fit(X.cuda(), Y - Y.mean())
        mean = float((Y - Y.mean()).mean())
        solved = torch.linalg.solve(KERNEL(X, X) + 0.1 * torch.eye(311, dtype=X.dtype), Y - Y.mean() - mean)
        close(model.predict(NEW.cuda()), KERNEL(NEW, X) @ solved + mean)
    made = Exact(KERNEL.to(torch.device("cuda"), X.dtype), TreeKernel.of("exact", KERNEL, X.cuda(), 5).points)
    close(made @ dense.cuda(), KERNEL(X, X) @ dense)


@pytest.mark.parametrize("approximation", ["nystrom", "fourier", "tapered", "independent", "exact"])
def test_processes(approximation):
    options = {"approximation": approximation, "rank": 60, "max_iter": 10, "random_state": 0}
    model = HCKGaussianProcessRegressor(**options).fit(X.cuda(), NOISY)  # or differences are rounding errors
    mean, std = model.predict(NEW.cuda(), return_std=True)
    assert mean.device.type == "cuda"
    truth = torch.sin(4 * NEW[:, 0]) + NEW[:, 1]
    assert (mean.cpu() - truth).square().mean().sqrt() < 0.3
    assert (std >= 0).all()
    value, slope = model.log_marginal_likelihood(eval_gradient=True)
    step = 1e-4
    for i in (0, len(slope) - 1):
        move = step * torch.eye(len(slope), dtype=torch.float64).numpy()[i]
        ends = [model.log_marginal_likelihood(model.theta_ + sign * move) for sign in (1, -1)]
        assert slope[i] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-3, abs=1e-3 * abs(value))


def test_frequencies_of_a_gpu():
    for kernel in (Gaussian(0.5), Laplace(1.5), Matern(0.7)):
        model = HCKRegressor(kernel, alpha=0.01, rank=2000, approximation="fourier", random_state=0)
        exact = HCKRegressor(kernel, alpha=0.01, approximation="exact").fit(X, Y).predict(NEW)
        found = model.fit(X.cuda(), Y).predict(NEW.cuda())
        assert (found.cpu() - exact).abs().max() < 0.15
