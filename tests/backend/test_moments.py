"""Columns that say the same are found, and those that nearly do are told apart."""

import numpy as np
import pytest
import torch

from hck.backend.moments import clearly_apart, moments_of, told_apart, untangling

RNG = np.random.default_rng(0)
X, W = RNG.uniform(size=(2, 50))
ONE = np.ones(50)


def columns(*parts):
    return torch.from_numpy(np.stack(parts, 1))


COLUMNS = {  # and how many combinations of them are different
    "apart": (columns(ONE, X, W), 3),
    "twice": (columns(ONE, X, X), 2),
    "sum": (columns(ONE, X, W, 2 * X - W + 1), 3),
    "sizes": (columns(ONE, 1e6 * X, 1e-6 * W), 3),
    "nearly": (columns(ONE, X, X + 1e-5 * W), 3),
    "far away": (columns(ONE, 1e5 + X, W), 3),
    "too far away": (columns(ONE, 1e10 + X, W), 2),
    "none": (columns(ONE, 0 * X, W), 2),
    "nothing": (columns(0 * ONE, 0 * X), 0),
    "one": (columns(X), 1),
    "no columns": (torch.zeros(50, 0, dtype=torch.float64), 0),
}
every = pytest.mark.parametrize("name", [name for name in COLUMNS if name != "no columns"])


@every
def test_combinations_that_are_told_apart(name):
    h, count = COLUMNS[name]
    basis = told_apart(moments_of(h))
    assert basis.shape == (h.shape[1], count)
    if name not in ("nearly", "far away"):
        assert torch.linalg.matrix_rank(h @ basis) == count


@pytest.mark.parametrize("name", COLUMNS)
def test_a_change_that_untangles(name):
    """As many combinations as before are told apart then, and a second change is not needed."""
    h, count = COLUMNS[name]
    change = untangling(moments_of(h))
    assert (change is not None) == (name in ("sizes", "nearly", "far away", "too far away"))
    if change is None:
        return
    made = h @ change
    known = made[:, made.abs().amax(0) > 1e-7]
    torch.testing.assert_close(moments_of(known), torch.eye(count, dtype=torch.float64), rtol=0, atol=1e-4)
    assert told_apart(moments_of(made)).shape[1] == count
    assert untangling(moments_of(made)) is None
    torch.testing.assert_close(change, change.triu())
    torch.testing.assert_close(made[:, 0], h[:, 0] / h[:, 0].norm())
    back = torch.linalg.solve_triangular(change, made, upper=True, left=False)
    torch.testing.assert_close(back, h, rtol=1e-9, atol=1e-9)


def test_those_that_are_alike_stay_so():
    """Unless points come that tell them apart."""
    h = columns(ONE, 1e4 + X, 2 * (1e4 + X))
    change = untangling(moments_of(h))
    made = h @ change
    assert told_apart(moments_of(made)).shape == (3, 2)
    assert torch.linalg.matrix_rank(change / change.abs().amax(0)) == 3
    other = torch.cat([h, columns(ONE[:9], 1e4 + X[:9], W[:9])]) @ change
    assert told_apart(moments_of(other)).shape == (3, 3)


def test_doubts():
    assert clearly_apart(moments_of(columns(ONE, X - 0.5, W - 0.5)))
    assert clearly_apart(moments_of(columns(X)))
    assert not clearly_apart(moments_of(columns(ONE, X + 10)))
