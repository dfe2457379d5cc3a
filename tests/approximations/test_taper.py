"""Wendland's functions, and radii that give a rank."""

import numpy as np
import pytest
import torch

from hck.approximations.taper import wendland
from hck.approximations.tapered import Tapered
from hck.kernels import Gaussian, Matern
from tapered_problem import NEW, TABLE, B, X, check, close, dense

pytestmark = pytest.mark.usefixtures("one_thread")


def test_wendland_functions_as_in_the_table():
    s = torch.linspace(0, 1, 101, dtype=torch.float64)
    for smoothness, function in enumerate(TABLE):
        close(wendland(s, 3, smoothness), function(s), 1e-14)
        close(wendland(s, 2, smoothness), function(s), 1e-14)
    line = [1 - s, (1 - s) ** 3 * (3 * s + 1), (1 - s) ** 5 * (8 * s**2 + 5 * s + 1)]
    for smoothness, expected in enumerate(line):
        close(wendland(s, 1, smoothness), expected, 1e-14)
        assert float(wendland(s + 1, 1, smoothness).abs().max()) == 0


@pytest.mark.parametrize("smoothness", [0, 1, 2])
@pytest.mark.parametrize("d", [1, 3, 8])
def test_wendland_functions_are_positive_definite(d, smoothness):
    x = torch.from_numpy(np.random.default_rng(d).uniform(size=(300, d)))
    for radius in (0.1, 0.5, 2.0):
        matrix = wendland(torch.cdist(x, x) / radius, d, smoothness)
        assert float(torch.linalg.eigvalsh(matrix)[0]) > -1e-12


def test_a_function_for_few_dimensions_is_not_in_many():
    corners = torch.from_numpy(np.random.default_rng(0).integers(0, 2, size=(400, 12)).astype(float))
    s = torch.cdist(corners, corners) / 2.5
    assert float(torch.linalg.eigvalsh(wendland(s, 1, 0))[0]) < -1e-3
    assert float(torch.linalg.eigvalsh(wendland(s, 12, 0))[0]) > -1e-12


CLOUDS = {
    "uniform": lambda g: g.uniform(size=(2000, 2)),
    "clusters": lambda g: g.normal(size=(2000, 2)) * 0.1 + g.integers(0, 5, size=(2000, 1)) ** 2,
    "eight features": lambda g: g.normal(size=(2000, 8)),
}


@pytest.mark.parametrize(("rank", "sampled"), [(1, False), (64, False), (64, True)])
@pytest.mark.parametrize("cloud", CLOUDS)
def test_rank_is_the_mean_number_of_nonzeros(cloud, rank, sampled, monkeypatch):
    if sampled:
        monkeypatch.setattr("hck.approximations.taper._DISTANCES", 0)
    made = Tapered.of(Gaussian(1.0), CLOUDS[cloud](np.random.default_rng(1)), rank)
    mean = len(made.pattern.column) / 2000
    assert abs(mean - rank) <= (0.25 if sampled else 0.001) * rank


def test_the_taper_stays_where_it_was():
    first = Tapered.of(Gaussian([0.3, 0.6, 1.2]), X, 20)
    kernel = Matern([1.0, 0.2, 0.4])
    made = first.with_kernel(kernel)
    k = dense(kernel, first.radius, np.concatenate([X, NEW]), 1, np.array([0.3, 0.6, 1.2]))
    check(made, k, 0.1)
    close((first @ B), dense(first.kernel, first.radius, X, 1, np.array([0.3, 0.6, 1.2])) @ B)
    assert made.elimination.fronts is first.elimination.fronts
