"""Memory budgets: what is understood, and what is refused."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

import hck.backend.memory
from hck.backend.memory import bytes_held, per_chunk, resolve_budget

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (1000, 1000),
        (2.5e9, 2_500_000_000),
        ("1000", 1000),
        ("1000B", 1000),
        ("500 MB", 500 * 1000**2),
        ("500mb", 500 * 1000**2),
        ("1.5 GB", 1500 * 1000**2),
        ("3k", 3000),
        ("3KB", 3000),
        ("4GiB", 4 * 1024**3),
        ("  4 gib ", 4 * 1024**3),
        ("0.5MiB", 512 * 1024),
        ("7Ki", 7 * 1024),
        ("2TiB", 2 * 1024**4),
        ("2T", 2 * 1000**4),
    ],
)
def test_sizes_that_are_understood(text, expected):
    budget = resolve_budget(text, CPU)
    assert budget == expected
    assert isinstance(budget, int)


@pytest.mark.parametrize(
    "wrong", ["", "much", "4 XB", "-4GB", "GiB", "4 i", "4 GB more", "1.2.3GB", ".", "1,5GB", "inf", "nan"]
)
def test_text_that_is_no_size(wrong):
    with pytest.raises(ValueError, match=r"memory_budget.*not a size.*4GiB"):
        resolve_budget(wrong, CPU)


@pytest.mark.parametrize("wrong", [0, -1, -1.0, "0", "0GiB", float("nan")])
def test_budgets_must_be_positive(wrong):
    with pytest.raises(ValueError, match="memory_budget must be positive"):
        resolve_budget(wrong, CPU)


def test_budgets_must_be_finite():
    with pytest.raises(ValueError, match="memory_budget"):
        resolve_budget(float("inf"), CPU)


def test_without_a_budget_half_of_what_is_free(monkeypatch):
    monkeypatch.setattr(hck.backend.memory, "free_bytes", lambda device: 6000)
    assert resolve_budget(None, CPU) == 3000


def test_something_is_free():
    assert resolve_budget(None, CPU) > 0


def test_free_memory_where_the_system_does_not_tell(monkeypatch):
    def no_file(*args):
        raise OSError

    monkeypatch.setattr("builtins.open", no_file)
    assert resolve_budget(None, CPU) > 0


@pytest.mark.parametrize("budget", [1, 10**4, 10**7, 10**12])
@pytest.mark.parametrize("item", [1, 10**3, 10**6, 10**9])
def test_chunks_fit_into_the_budget_unless_one_item_does_not(budget, item):
    items = per_chunk(item, budget, CPU)
    assert items >= 1
    assert items == 1 or items * item <= budget


def test_chunks_grow_with_the_budget_and_shrink_with_the_item():
    sizes = [per_chunk(1000, budget, CPU) for budget in (10**4, 10**6, 10**8, 10**10)]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]
    sizes = [per_chunk(item, 10**8, CPU) for item in (0, 10, 1000, 10**5)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < sizes[1]


def test_bytes_that_are_held():
    """What is shared counts once, with all it is a part of."""
    array, tensor = np.zeros(10_000), torch.zeros(10_000, dtype=torch.float64)
    for held, expected in (
        (array, 80_000),
        (array[:5], 80_000),
        ([array, array[3:], array[::2].reshape(2, -1)], 80_000),
        ({"a": tensor, "b": (tensor[5:], tensor.reshape(100, 100).mT)}, 80_000),
        ([tensor, tensor.clone()], 160_000),
        (SimpleNamespace(a=[tensor], b=array, c=np, d=torch.Tensor, e=len), 160_000),
    ):
        assert expected <= bytes_held(held) < expected + 3000
