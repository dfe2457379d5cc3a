"""Memory that is used again."""

import gc
import pickle

import numpy as np
import pytest
import torch

from hck import HCKRegressor
from hck.backend import reuse
from hck.backend.reuse import reusing, room

CPU, SHAPE = torch.device("cpu"), (300, 100)


def make(shape=SHAPE, dtype=torch.float64):
    return room(shape, dtype, CPU)


def test_what_is_gone_is_used_again():
    with reusing():
        first = make()
        place = first.data_ptr()
        del first
        assert make().data_ptr() == place
        kept = make()
        assert kept.data_ptr() == place
        assert make().data_ptr() != place


def test_a_view_keeps_its_memory():
    with reusing():
        view = make()[5:7].mT
        view.fill_(3.0)
        for _ in range(5):
            make().fill_(0.0)
        assert (view == 3.0).all()
        array = make().numpy()[::2]
        array[:] = 4.0
        make().fill_(0.0)
        assert (array == 4.0).all()


def test_sizes_and_types():
    with reusing():
        place = make().data_ptr()
        other = make((299, 100), torch.float32)  # half as large: not worth so much memory
        assert other.data_ptr() != place
        assert (other.shape, other.dtype) == ((299, 100), torch.float32)
        assert make((290, 100)).data_ptr() == place
        assert make((0, 4)).shape == (0, 4)


def test_no_more_is_kept_than_was_in_use():
    """Whatever sizes come one after another."""
    with reusing():
        shelf = reuse._shelf
        for rows in (900, 300, 700, 500, 100, 800):
            make((rows, 100))
            gc.collect()
        make((900, 100))
        assert shelf.unused == sum(size for size, _ in shelf.free)
        assert shelf.unused + shelf.used <= shelf.most_used == 900 * 100 * 8


def test_outside_nothing_is_kept():
    first = make()
    first.fill_(1.0)
    with reusing(), reusing():
        inside = make()
    assert inside.fill_(2.0).sum() == 2 * inside.numel()  # which outlives the end
    assert reuse._shelf is None
    assert torch.equal(pickle.loads(pickle.dumps(inside)), inside)


def test_an_error_ends_it():
    with pytest.raises(RuntimeError), reusing():
        raise RuntimeError
    assert reuse._shelf is None


def test_forests_are_the_same_with_it(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(3000, 3))
    y = np.sin(5 * X[:, 0]) + X[:, 1]
    options = {"kernel": "gaussian", "lengthscale": 0.5, "alpha": 0.01, "rank": 32, "leaf_size": 200}

    def predicted():
        return HCKRegressor(**options, n_trees=4, random_state=0).fit(X, y).predict(X[:200])

    found = predicted()
    monkeypatch.setattr("hck.backend.reuse._LEAST_BYTES", 2**60)
    np.testing.assert_array_equal(found, predicted())


@pytest.mark.parametrize("refused", [False, True])
def test_large_pieces_where_the_system_has_large_pages_or_not(monkeypatch, refused):
    if refused:
        monkeypatch.delattr(reuse.mmap, "MADV_HUGEPAGE", raising=False)
    with reusing():
        first = make((3, 1000, 1000)).fill_(1.0)
        place = first.data_ptr()
        del first
        again = make((3, 1000, 1000))
        assert again.data_ptr() == place
        view = again[1].fill_(2.0)
        del again
    assert float(view.sum()) == 2e6  # memory lives as long as any view of it
