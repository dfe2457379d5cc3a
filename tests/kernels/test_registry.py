"""What every kernel with a name has to have; and that a new one needs no more than a class."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import exp, log

from hck.approximations import TreeKernel
from hck.backend.blocks import Blocks
from hck.backend.kernels import Formula
from hck.backend.random import as_random
from hck.branches.ridge import ridge
from hck.cli._options import KERNELS
from hck.hierarchy.blueprint import Blueprint
from hck.kernels import Matern, kernel_classes, kernel_names, make_kernel, named, registry
from hck.kernels.inputs import positive
from hck.kernels.stationary import Stationary
from hck.persistence.classes import RECIPES
from hck.points import KernelBlocks, as_points, cross
from hck.process import log_likelihood
from hck.report.model import describe_kernel
from hck.settings import Settings

every_kernel = pytest.mark.parametrize("name", kernel_names())
X = np.random.default_rng(0).normal(size=(40, 3))


def test_names_are_registered_once():
    assert len(set(kernel_names())) == len(kernel_names())
    paper = {"gaussian", "laplace", "inverse_multiquadric"}
    assert paper | {"matern12", "matern32", "matern52"} <= {*kernel_names()}


def test_the_command_line_knows_them_without_torch():
    assert kernel_names() == KERNELS


@every_kernel
def test_documented(name):
    page = Path(__file__).parents[2] / "docs" / "kernels.md"
    assert f"`{name}`" in page.read_text(encoding="utf-8")


@every_kernel
def test_made_of_its_arguments(name):
    kernel = make_kernel(name, [0.5, 1.0, 2.0])
    again = type(kernel)(**{argument: getattr(kernel, argument) for argument in kernel.arguments})
    np.testing.assert_array_equal(again(X), kernel(X))
    assert type(kernel) in kernel_classes()
    assert type(kernel) in RECIPES
    assert set(kernel.learned) <= set(kernel.arguments)


@every_kernel
def test_labels(name):
    label = describe_kernel(make_kernel(name))
    assert label
    assert label == describe_kernel(make_kernel(name, 3.0))
    assert [describe_kernel(Matern(nu=nu)) for nu in (0.5, 1.5, 2.5)] == [
        "Matérn 1/2",
        "Matérn 3/2",
        "Matérn 5/2",
    ]


@every_kernel
def test_formula_is_1_at_0_and_smooth_where_it_says_so(name):
    formula, shape = make_kernel(name).formula, make_kernel(name).shape
    s = torch.tensor([0.0, 1e-10, 2e-10], dtype=torch.float64)
    values = formula(s, shape)
    assert float(values[0]) == 1
    steep = float((values[1] - values[0]) / 1e-10)
    assert (abs(steep) < 100) == (formula.smooth or formula.manhattan)


@every_kernel
def test_slope_is_the_derivative(name):
    kernel = make_kernel(name)
    if kernel.slope is None:
        pytest.skip("gradients by autograd")
    s = torch.linspace(0.1, 5, 30, dtype=torch.float64, requires_grad=True)
    (derivative,) = torch.autograd.grad(kernel.formula(s, kernel.shape).sum(), s)
    x = s.detach().sqrt()[:, None]
    slope = kernel.slope.evaluate(x, torch.zeros(1, 1, dtype=torch.float64))[:, 0]
    torch.testing.assert_close(slope, -2 * derivative, rtol=1e-10, atol=1e-12)


@every_kernel
def test_spectral_draws_have_the_kernel_as_their_mean(name):
    kernel, random = make_kernel(name), as_random(0)
    try:
        omega = kernel.draw_frequencies(3, 200_000, random)
    except ValueError as error:
        assert "spectral density" in str(error)  # noqa: PT017
        return
    assert omega.shape == (3, 200_000)
    gap = torch.tensor([[0.3, -0.5, 0.2], [1.0, 0.4, -0.6]], dtype=torch.float64)
    expected = kernel.evaluate(gap, gap.new_zeros(1, 3))[:, 0] / kernel.amplitude
    torch.testing.assert_close((gap @ omega).cos().mean(1), expected, rtol=0, atol=0.01)


def rational(s, shape):
    return exp(-shape * log(1 + s / (2 * shape)))


@pytest.fixture
def new_kernel(monkeypatch):
    """A kernel with a shape, registered for one test."""
    monkeypatch.setattr(registry, "_CLASSES", dict(registry._CLASSES))

    @named("private")
    class Private(Stationary):
        formula = Formula(rational, smooth=True)
        arguments = learned = ("lengthscale", "power")

        def __init__(self, lengthscale=1.0, power=1.5):
            super().__init__(lengthscale)
            self.power = positive("power", power)

        @property
        def shape(self):
            return self.power

    return Private


@pytest.mark.parametrize("scale", [0.8, [0.5, 1.0, 2.0]], ids=["one", "ard"])
def test_a_new_kernel_is_a_class(new_kernel, scale):
    kernel = 2.0 * make_kernel("private", scale).with_parameters({"power": 0.7})
    square = (((X[:, None] - X) / np.asarray(scale)) ** 2).sum(-1)
    expected = 2 * (1 + square / 1.4) ** -0.7
    np.testing.assert_allclose(kernel(X), expected, rtol=0, atol=1e-12)
    points = as_points(X)
    blocks = KernelBlocks.between(kernel, points, points)
    assert blocks.compilable() is not None
    np.testing.assert_allclose(blocks.tensor()[0], expected, rtol=0, atol=1e-12)
    every = Blocks(torch.arange(40).view(2, 20), full=True)
    np.testing.assert_allclose(
        cross(kernel, points, every, points, every)[1], expected[20:, 20:], rtol=0, atol=1e-12
    )
    assert "power=0.7" in repr(kernel)
    with pytest.raises(ValueError, match="power must be positive"):
        new_kernel(power=-1.0)


def test_a_new_kernel_learns_its_shape(new_kernel):
    y = torch.from_numpy(np.sin(X[:, :1]))

    def likelihood(scale, power, wanted=()):
        blueprint = Blueprint.of(new_kernel(scale, power), torch.from_numpy(X), Settings(5, 10))
        return log_likelihood(TreeKernel(blueprint), 0.1, y, wanted)

    scale = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64, requires_grad=True)
    power = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    slope = likelihood(scale, power, (scale, power)).gradient[1]
    ends = [float(likelihood(scale.detach(), 0.7 + h).value) for h in (1e-5, -1e-5)]
    assert float(slope) == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-4)


def test_a_new_kernel_in_the_sweeps(new_kernel):
    x, y = torch.from_numpy(X), torch.from_numpy(X[:, :1])
    exact = ridge(Blueprint.of(new_kernel(0.8, 0.7), x, Settings(40)), 0.1, y)
    expected = np.linalg.solve(new_kernel(0.8, 0.7)(X) + 0.1 * np.eye(40), X[:, :1])
    np.testing.assert_allclose(exact(x), new_kernel(0.8, 0.7)(X) @ expected, rtol=0, atol=1e-8)
