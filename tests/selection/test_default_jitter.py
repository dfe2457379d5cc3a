"""The default jitter follows the kernel's variance, and so does the likelihood's gradient, by differences."""

import numpy as np
import pytest
import torch

from composed_kernels import COMPOSED
from hck.approximations import make_approximation
from hck.hierarchy import blueprint
from hck.kernels import kernel_names, make_kernel
from hck.points import as_points
from hck.selection.likelihood import evaluate
from hck.selection.observations import Observations
from hck.selection.space import Space

pytestmark = pytest.mark.usefixtures("one_thread")

X = torch.rand(60, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
DATA = Observations(as_points(X), torch.sin(4 * X[:, 0]) + X[:, 1], torch.zeros(60, 0, dtype=torch.float64))
KERNELS = {name: 1.3 * make_kernel(name) for name in kernel_names()}
KERNELS |= {name: kernel for name, (kernel, _) in COMPOSED.items()}


def check_gradient(kernel, approximation, noise, tolerance=1e-6):
    source = make_approximation(approximation, kernel, DATA.points, rank=8)
    space = Space.of(source.kernel, noise)
    gradient = evaluate(space, source, DATA, space.start)[1]

    def difference(i, step):
        ends = []
        for sign in (1, -1):
            theta = space.start.copy()
            theta[i] += sign * step
            ends.append(evaluate(space, source, DATA, theta, gradient=False)[0])
        return (ends[0] - ends[1]) / (2 * step)

    expected = []
    for i in range(len(gradient)):
        coarse, middle, fine = (difference(i, step) for step in (1e-2, 5e-3, 2.5e-3))
        expected.append((16 * (4 * fine - middle) - (4 * middle - coarse)) / 45)  # Richardson's
    np.testing.assert_allclose(gradient, expected, rtol=0, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("approximation", ["hierarchical", "compositional"])
@pytest.mark.parametrize("name", KERNELS)
def test_gradient_with_a_jitter_that_counts(name, approximation, monkeypatch):
    """A large one, so that it is a visible part of the gradient for every kernel."""
    monkeypatch.setitem(blueprint.DEFAULT_JITTER, torch.float64, 0.03)
    check_gradient(KERNELS[name], approximation, 1e-3)


@pytest.mark.parametrize(
    "approximation", ["hierarchical", "compositional", "independent", "exact", "nystrom", "tapered"]
)
@pytest.mark.parametrize("noise", [1e-4, 1e-7])
def test_gradient_with_the_default(approximation, noise):
    check_gradient(2.0 * make_kernel("gaussian", lengthscale=2.0), approximation, noise)
