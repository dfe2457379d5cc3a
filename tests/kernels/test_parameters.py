"""Names and values of a kernel's parameters."""

import numpy as np
import pytest

from composed_kernels import dot, every_composed, every_kernel, every_scale, plain
from hck.kernels import CallableKernel, Gaussian, Laplace, Matern, make_kernel

X = np.random.default_rng(0).normal(size=(6, 3))


@every_kernel
@every_scale
def test_a_kernel_has_its_lengthscale(name, scale):
    kernel = make_kernel(name, scale)
    before = plain(kernel)
    assert before["lengthscale"] == scale
    assert tuple(before) == kernel.learned
    other = kernel.with_parameters({"lengthscale": 3 * np.asarray(scale)})
    assert type(other) is type(kernel)
    np.testing.assert_allclose(other(X), make_kernel(name, 3 * np.asarray(scale))(X), rtol=1e-12)
    assert plain(kernel) == before


@every_composed
def test_names_of_kernels_made_of_kernels(kernel, names):
    assert list(kernel.parameters()) == names


@every_composed
def test_its_own_parameters_change_nothing(kernel, names):
    again = kernel.with_parameters(kernel.parameters())
    assert repr(again) == repr(kernel)
    np.testing.assert_array_equal(again(X), kernel(X))


@every_composed
def test_each_parameter_can_be_changed_alone(kernel, names):
    before, shape = plain(kernel), kernel(X)
    for name in names:
        value = (1.5 * np.asarray(before[name])).tolist()
        changed = kernel.with_parameters({name: value})
        assert plain(changed) == {**before, name: value}
        assert not np.allclose(changed(X), shape)
        assert plain(kernel) == before


@every_composed
def test_all_parameters_can_be_changed_at_once(kernel, names):
    values = {name: (1.5 * np.asarray(value)).tolist() for name, value in plain(kernel).items()}
    assert plain(kernel.with_parameters(values)) == values


def test_the_numbers_that_parameters_mean():
    kernel = 2.0 * (3.0 * Gaussian(0.5) + Laplace(1.5))
    changed = kernel.with_parameters({"left.scale": 5.0, "right.lengthscale": 0.7, "scale": 4.0})
    np.testing.assert_allclose(changed(X), 4 * (5 * Gaussian(0.5)(X) + Laplace(0.7)(X)), rtol=1e-12)
    kernel = 2.0 * (3.0 * Gaussian(0.5))
    np.testing.assert_allclose(
        kernel.with_parameters({"inner.scale": 5.0})(X), 2 * 5 * Gaussian(0.5)(X), rtol=1e-12
    )


def test_three_scales_of_one_kernel_are_three_parameters():
    kernel = 2.0 * (3.0 * (4.0 * Gaussian(0.5)))
    assert sorted(v for name, v in kernel.parameters().items() if "scale" in name.split(".")) == [2, 3, 4]
    again = kernel.with_parameters(kernel.parameters())
    np.testing.assert_allclose(again(X), 24 * Gaussian(0.5)(X), rtol=1e-12)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_smoothness_is_kept(nu):
    assert Matern(1.0, nu=nu).with_parameters({"lengthscale": 2.0}).nu == nu


def test_a_function_has_no_parameters():
    kernel = CallableKernel(dot)
    assert kernel.parameters() == {}
    assert kernel.with_parameters({}) is kernel


@pytest.mark.parametrize(
    ("kernel", "known"),
    [
        (Gaussian(1.0), "lengthscale"),
        (2.0 * Gaussian(1.0) + Laplace(1.0), "left.lengthscale, left.scale, right.lengthscale"),
        (CallableKernel(dot), "none"),
    ],
    ids=["one", "sum", "function"],
)
@pytest.mark.parametrize("name", ["sigma", "left.sigma", "scale.lengthscale", ""])
def test_unknown_names(kernel, known, name):
    with pytest.raises(ValueError, match=rf"no parameter '{name}'; it has: {known}$"):
        kernel.with_parameters({name: 1.0})


@pytest.mark.parametrize(
    "values", [{"lengthscale": 0.0}, {"lengthscale": [1.0, -1.0]}, {"scale": -2.0}, {"scale": np.nan}]
)
def test_values_must_be_positive(values):
    with pytest.raises(ValueError, match="positive"):
        (2.0 * Gaussian(1.0)).with_parameters(values)
