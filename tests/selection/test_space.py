"""The logarithms of parameters as one vector, there and back."""

import numpy as np
import pytest
import torch

from hck.kernels import CallableKernel, Gaussian, Laplace, Matern
from hck.selection import Space

KERNEL = 2.0 * Matern([0.5, 3.0], nu=2.5) + Laplace(4.0)
NAMES = ["left.lengthscale[0]", "left.lengthscale[1]", "left.scale", "right.lengthscale", "noise"]
VALUES = np.array([0.5, 3.0, 2.0, 4.0, 0.1])
CPU = torch.device("cpu")


@pytest.fixture
def space():
    return Space.of(KERNEL, 0.1)


def nothing():
    """A space in which everything is fixed."""
    return Space.of(CallableKernel(lambda a, b: a @ b.T), 0.1, {"noise": "fixed"})


# The vector ---------------------------------------------------------------------------------------------


def test_start_and_names(space):
    np.testing.assert_allclose(space.start, np.log(VALUES), rtol=1e-15)
    assert space.names == NAMES


def test_split(space):
    parts = space.split(np.arange(5))
    assert {name: part.tolist() for name, part in parts.items()} == {
        "left.lengthscale": [0, 1],
        "left.scale": 2,
        "right.lengthscale": 3,
        "noise": 4,
    }


def test_one_lengthscale_per_feature_even_if_there_is_one_feature():
    one = Space.of(Gaussian([0.5]), 0.1)
    assert one.names == ["lengthscale[0]", "noise"]
    assert one.at(np.log([0.3, 0.2]))[0].lengthscale.tolist() == pytest.approx([0.3])


def test_at_the_start_everything_is_as_given(space):
    kernel, noise = space.at(space.start)
    x = np.random.default_rng(0).normal(size=(5, 2))
    np.testing.assert_allclose(kernel(x), KERNEL(x), rtol=1e-12)
    assert noise == pytest.approx(0.1)


def test_at(space):
    kernel, noise = space.at(np.log([1.0, 2.0, 3.0, 4.0, 5.0]))
    x = np.random.default_rng(0).normal(size=(5, 2))
    expected = 3.0 * Matern([1.0, 2.0], nu=2.5) + Laplace(4.0)
    np.testing.assert_allclose(kernel(x), expected(x), rtol=1e-12)
    assert noise == pytest.approx(5.0)
    assert isinstance(noise, float)
    assert kernel.tensors() == []


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_tensors_at(space, dtype):
    theta = np.log([1.0, 2.0, 3.0, 4.0, 5.0])
    kernel, noise, tensors = space.tensors_at(theta, CPU, dtype)
    assert [t.tolist() for t in tensors] == [pytest.approx(v) for v in ([1.0, 2.0], 3.0, 4.0, 5.0)]
    assert all(t.requires_grad and t.dtype == dtype for t in tensors)
    assert noise is tensors[-1]
    found = kernel.tensors()
    assert len(found) == 3
    assert all(any(t is other for other in found) for t in tensors[:-1])


def test_gradients_of_logarithms(space):
    """d/d(log p) = p d/dp."""
    theta = np.log([1.0, 2.0, 3.0, 4.0, 5.0])
    _, _, tensors = space.tensors_at(theta, CPU, torch.float64)
    total = (tensors[0] ** 2).sum() + 7 * tensors[1] + tensors[2] ** 3 + 1 / tensors[3]
    found = space.log_gradient(theta, torch.autograd.grad(total, tensors))
    np.testing.assert_allclose(found, [2.0, 8.0, 21.0, 192.0, -0.2], rtol=1e-12)


# What is fixed ------------------------------------------------------------------------------------------


def test_fixed_parameters_are_not_in_theta():
    space = Space.of(KERNEL, 0.1, {"left.lengthscale": "fixed", "noise": "fixed"})
    assert space.names == ["left.scale", "right.lengthscale"]
    assert space.bounds.shape == (2, 2)
    kernel, noise = space.at(np.log([7.0, 8.0]))
    assert kernel.left.kernel.lengthscale.tolist() == [0.5, 3.0]
    assert kernel.left.scale == pytest.approx(7.0)
    assert kernel.right.lengthscale == pytest.approx(8.0)
    assert noise == 0.1
    _, noise, tensors = space.tensors_at(np.log([7.0, 8.0]), CPU, torch.float64)
    assert len(tensors) == 2
    assert noise.item() == 0.1
    assert not noise.requires_grad


def test_noise_that_is_known():
    space = Space.of(Gaussian(0.5), None)
    assert space.names == ["lengthscale"]
    assert space.at(np.log([2.0]))[1] is None
    assert space.tensors_at(np.log([2.0]), CPU, torch.float64)[1] is None


def test_nothing_to_learn():
    space = nothing()
    assert space.start.shape == (0,)
    assert space.bounds.shape == (0, 2)
    assert space.names == []
    assert space.split([]) == {}
    kernel, noise = space.at([])
    assert kernel is space.kernel
    assert noise == 0.1
    value, gradient = space.log_prior([])
    assert value == 0
    assert gradient.shape == (0,)


def test_gradient_where_there_is_nothing_to_learn():
    assert nothing().log_gradient([], []).shape == (0,)


# Bounds -------------------------------------------------------------------------------------------------


def test_usual_bounds():
    low, high = np.exp(Space.of(KERNEL, 0.1, scale=50.0).bounds).T
    np.testing.assert_allclose(low, [5e-4, 5e-4, 2e-3, 4e-3, 5e-5], rtol=1e-12)
    np.testing.assert_allclose(high, [3e3, 3e3, 2e3, 4e3, 5e2], rtol=1e-12)


@pytest.mark.parametrize("noise", [1e-12, 1e12])
def test_usual_bounds_of_the_noise_hold_its_start(noise):
    space = Space.of(Gaussian(1.0), noise, scale=1.0)
    low, high = space.bounds[-1]
    assert low <= space.start[-1] <= high
    assert low < high


@pytest.mark.parametrize("form", [tuple, list, np.array])
def test_given_bounds(form):
    space = Space.of(KERNEL, 0.1, {"left.lengthscale": form([0.4, 5.0]), "noise": form([0.1, 1])})
    np.testing.assert_allclose(np.exp(space.bounds)[[0, 1, 4]], [[0.4, 5], [0.4, 5], [0.1, 1]], rtol=1e-12)
    assert (space.bounds[:, 0] <= space.start).all()


@pytest.mark.parametrize(
    "wrong",
    [(2, 1), (1, 1), (0, 1), (-1, 1), (1, np.inf), (np.nan, 1), (1,), (1, 2, 3), 3, None, [(1, 2), (1, 2)]],
    ids=str,
)
def test_malformed_bounds(wrong):
    with pytest.raises(ValueError, match=r"bounds of 'noise' must be two positive numbers, low < high"):
        Space.of(Gaussian(1.0), 0.5, {"noise": wrong})


def test_bounds_that_are_other_words():
    with pytest.raises(ValueError, match=r"bounds of 'noise' must be \(low, high\) or 'fixed', got 'free'"):
        Space.of(Gaussian(1.0), 0.5, {"noise": "free"})


@pytest.mark.parametrize("what", ["bounds", "priors"])
def test_words_where_numbers_belong(what):
    with pytest.raises(ValueError, match="'noise'"):
        Space.of(Gaussian(1.0), 0.5, **{what: {"noise": ("low", "high")}})


@pytest.mark.parametrize("bounds", [(0.6, 1.0), (0.1, 2.9)], ids=str)
def test_bounds_that_exclude_the_start(bounds):
    with pytest.raises(ValueError, match=r"bounds of 'lengthscale', .* exclude its start, \[0\.5 3\. ?\]"):
        Space.of(Gaussian([0.5, 3.0]), 0.1, {"lengthscale": bounds})
    with pytest.raises(ValueError, match=r"bounds of 'noise', 1 to 2, exclude its start, 0\.1"):
        Space.of(Gaussian(1.0), 0.1, {"noise": (1, 2)})


@pytest.mark.parametrize("what", ["bounds", "priors"])
def test_unknown_names(what):
    with pytest.raises(ValueError, match=rf"{what} .*'sigma'.* there are: lengthscale, noise"):
        Space.of(Gaussian(1.0), 0.1, **{what: {"sigma": (1, 2)}})
    with pytest.raises(ValueError, match=rf"{what} .*'noise'.* there are: lengthscale$"):
        Space.of(Gaussian(1.0), None, **{what: {"noise": (1, 2)}})
    with pytest.raises(ValueError, match=rf"{what} .*'noise'.* there are: none$"):
        Space.of(CallableKernel(lambda a, b: a @ b.T), None, **{what: {"noise": (1, 2)}})


@pytest.mark.parametrize("theta", [np.zeros(4), np.zeros(6), np.zeros((1, 5)), 0.0], ids=np.shape)
def test_theta_of_the_wrong_shape(space, theta):
    for use in (space.split, space.at, space.log_prior):
        with pytest.raises(ValueError, match=r"theta must have shape \(5,\)"):
            use(theta)


# Priors -------------------------------------------------------------------------------------------------


def test_no_prior_is_flat(space):
    value, gradient = space.log_prior(space.start)
    assert value == 0
    assert gradient.tolist() == [0] * 5


def test_priors_are_normal_in_the_logarithm():
    space = Space.of(KERNEL, 0.1, priors={"left.lengthscale": (2.0, 0.5), "noise": [0.01, 3.0]})
    theta = np.log([1.0, 3.0, 2.0, 4.0, 0.2])
    expected = -(np.log(1 / 2) ** 2 + np.log(3 / 2) ** 2) / (2 * 0.25) - np.log(20) ** 2 / (2 * 9)
    value, gradient = space.log_prior(theta)
    assert value == pytest.approx(expected)
    differences = [
        (space.log_prior(theta + move)[0] - space.log_prior(theta - move)[0]) / 2e-5
        for move in 1e-5 * np.eye(5)
    ]
    np.testing.assert_allclose(gradient, differences, rtol=1e-7, atol=1e-9)


def test_a_prior_is_largest_at_its_median():
    space = Space.of(Gaussian(1.0), 0.1, priors={"lengthscale": (2.0, 0.5)})
    value, gradient = space.log_prior(np.log([2.0, 0.1]))
    assert value == 0
    np.testing.assert_allclose(gradient, 0, atol=1e-15)
    assert space.log_prior(np.log([2.1, 0.1]))[0] < 0


@pytest.mark.parametrize("wrong", [(1,), (1, 2, 3), "wide", 3, (-1, 1), (1, 0), (0, 1), (1, np.inf)], ids=str)
def test_malformed_priors(wrong):
    with pytest.raises(ValueError, match=r"the prior of 'noise' must be \(median, spread\)"):
        Space.of(Gaussian(1.0), 0.5, priors={"noise": wrong})
