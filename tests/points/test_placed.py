"""Points where a kernel is isotropic: placed once, remembered, and forgotten when that is due."""

import copy
import gc
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from hck.backend.blocks import Blocks
from hck.kernels import Gaussian, Laplace, Matern, kernel_names, make_kernel
from hck.kernels.placement import PerFeature, Placement
from hck.points import KernelBlocks, as_points, cross

SCALES = [0.5, 1.0, 2.5]


@pytest.fixture(params=["dense", "sparse"])
def points(request):
    x = np.random.default_rng(0).normal(size=(20, 3))
    return as_points(sp.csr_matrix(x) if request.param == "sparse" else x)


def array(points):
    return points.x.toarray() if sp.issparse(points.x) else points.x.numpy()


def everything(points):
    return Blocks(torch.arange(len(points))[None], full=True)


class Counting(Placement):
    """Twice each feature, and how often that was done."""

    def __init__(self):
        self.count = 0

    def __call__(self, x):
        self.count += 1
        return 2 * x

    def back(self, x, slope):
        return 2 * slope

    def squared_speed(self, x):
        return torch.full_like(x, 4.0)

    def tensors(self):
        return []


class Circle(Placement):
    """Angles on a circle: one feature becomes two."""

    def __call__(self, x):
        return torch.cat([x.cos(), x.sin()], -1)

    def back(self, x, slope):
        along, across = slope.split(x.shape[-1], -2)
        return x.cos()[..., None] * across - x.sin()[..., None] * along

    def squared_speed(self, x):
        return torch.ones_like(x)

    def tensors(self):
        return []


class OnACircle(Gaussian):
    """A kernel of period 2π."""

    placement = Circle()

    @property
    def unit(self):
        return self.lengthscale


def test_one_lengthscale_needs_no_copy(points):
    assert points.placed(Gaussian(0.5).placement) is points
    assert points.placed((2.0 * Gaussian(torch.tensor(0.5))).placement) is points


def test_placed_once_and_remembered(points):
    kernel = 2.0 * Matern(SCALES)
    placed = points.placed(kernel.placement)
    np.testing.assert_allclose(array(placed), array(points) / SCALES, rtol=1e-15)
    cross(kernel, points, everything(points), points, everything(points))
    moved = kernel.to(points.device, points.dtype)
    for same in (kernel, kernel.kernel, 3.0 * kernel, kernel.kernel.slope, moved):
        assert points.placed(same.placement) is placed
    assert points.placed(Matern(SCALES).placement) is not placed


def test_a_slope_is_that_of_its_lengthscales(points):
    scales = torch.tensor(SCALES, dtype=torch.float64, requires_grad=True)
    for nu in (1.5, 2.5):
        slope = Matern(scales, nu).slope
        found = cross(slope, points, everything(points), points, everything(points))[0]
        np.testing.assert_allclose(found, slope(array(points)), rtol=0, atol=1e-13)
        plain = type(slope.kernel)(slope.kernel.lengthscale, slope.kernel.nu)
        np.testing.assert_allclose(slope(array(points)), slope.scale * plain(array(points)), atol=1e-13)


def test_threads_place_together(points):
    placement = Counting()
    with ThreadPoolExecutor(8) as pool:
        placed = list(pool.map(lambda _: points.placed(placement), range(64)))
    assert placement.count == 1
    assert all(found is placed[0] for found in placed)


def test_forgotten_with_the_kernel(points):
    kernel = Gaussian(SCALES)
    points.placed(kernel.placement)
    assert len(points._placed) == 1
    del kernel
    gc.collect()
    assert len(points._placed) == 0


def test_lengthscales_that_are_written_to(points):
    scales = torch.tensor(SCALES, dtype=torch.float64)
    kernel = Laplace(scales)
    every = everything(points)
    before = cross(kernel, points, every, points, every)
    scales.mul_(2)
    after = cross(kernel, points, every, points, every)
    assert not torch.allclose(before, after)
    np.testing.assert_allclose(after[0], Laplace(2 * np.array(SCALES))(array(points)), rtol=0, atol=1e-13)


def test_gradients_are_not_remembered():
    points = as_points(np.random.default_rng(0).normal(size=(20, 3)))
    scales = torch.tensor(SCALES, dtype=torch.float64, requires_grad=True)
    kernel, every = Gaussian(scales), everything(points)
    for _ in range(2):  # a graph that was remembered could be used once only
        scales.grad = None
        cross(kernel, points, every, points, every).sum().backward()
        assert float(scales.grad.abs().min()) > 0
    assert points._placed is None
    with torch.no_grad():
        values = cross(kernel, points, every, points, every)
        assert not points.placed(kernel.placement).x.requires_grad
    torch.testing.assert_close(values[0], kernel.evaluate(points.x, points.x), rtol=0, atol=1e-13)


def test_copies_carry_no_placed_points(points):
    kernel = Gaussian(SCALES)
    points.placed(kernel.placement)
    for again in (pickle.loads(pickle.dumps(points)), copy.deepcopy(points), copy.copy(points)):
        assert again._placed is None
        np.testing.assert_array_equal(array(again), array(points))
    assert isinstance(pickle.loads(pickle.dumps(kernel)).placement, PerFeature)


@pytest.mark.parametrize("name", kernel_names())
def test_sums_and_products_place_for_each_part(name, points):
    left, right = make_kernel(name, SCALES), Gaussian([2.0, 0.7, 1.1])
    x, every = array(points), everything(points)
    for kernel, expected in ((left + right, left(x) + right(x)), (left * right, left(x) * right(x))):
        found = cross(kernel, points, every, points, every)[0]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n", [5, 200])
def test_a_placement_may_change_the_number_of_features(n):
    x = torch.linspace(0, 20, n, dtype=torch.float64)[:, None]
    kernel, points = 3.0 * OnACircle(0.8), as_points(x)
    chord = 4 * torch.sin((x - x.mT) / 2) ** 2
    expected = 3 * torch.exp(-chord / (2 * 0.8**2))
    torch.testing.assert_close(kernel.evaluate(x, x), expected, rtol=0, atol=1e-12)
    blocks = KernelBlocks.between(kernel, points, points)
    torch.testing.assert_close(blocks.tensor()[0], expected, rtol=0, atol=1e-12)
    assert blocks.compilable().x.shape[1] == 2
