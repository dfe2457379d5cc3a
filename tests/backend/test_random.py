"""Random numbers: their distribution, and that they depend on nothing but key and place."""

import numpy as np
import pytest
import torch
from scipy import stats

from hck.backend.random import Random, as_random

CPU = torch.device("cpu")


def split_mix(seed, count):
    """SplitMix64 as it was published, one number after another."""
    state, found = seed, []
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        found.append(z ^ (z >> 31))
    return found


@pytest.mark.parametrize("key", [0, 1, 2**63, 2**64 - 1])
def test_it_is_splitmix64(key):
    found = Random(key).uniform((50,), CPU)
    assert found.tolist() == [(word >> 11) * 2.0**-53 for word in split_mix(key, 50)]


def test_parts_and_rows_are_the_same_numbers(monkeypatch):
    random = as_random(3)
    whole = random.uniform((7, 11), CPU)
    monkeypatch.setattr("hck.backend.random._AT_ONCE", 4)
    assert torch.equal(random.uniform((7, 11), CPU), whole)
    rows = random.rows(torch.tensor([5, 0, 2]), 9)
    assert torch.equal(rows[1:], random.rows(torch.tensor([0, 2]), 9))
    assert torch.equal(rows[:, :4], random.rows(torch.tensor([5, 0, 2]), 4))


def test_distributions():
    random = as_random(0)
    assert stats.kstest(random.uniform((20_000,), CPU).numpy(), "uniform").pvalue > 1e-3
    assert stats.kstest(random.normal((20_001,), torch.float64, CPU).numpy(), "norm").pvalue > 1e-3
    counts = np.bincount(random.integers(7, 70_000, CPU).numpy(), minlength=7)
    assert stats.chisquare(counts).pvalue > 1e-3
    assert sorted(random.permutation(100, CPU).tolist()) == list(range(100))
    first = [as_random(seed).uniform((1,), CPU).item() for seed in range(5000)]
    children = [random.child(0, i).uniform((1,), CPU).item() for i in range(5000)]
    for numbers in (first, children):
        assert stats.kstest(numbers, "uniform").pvalue > 1e-3
        assert abs(np.corrcoef(numbers[1:], numbers[:-1])[0, 1]) < 0.05


def test_streams_are_told_apart():
    random = as_random(0)
    streams = [random, random.child(0), random.child(1), random.child(0, 1), random.child(1, 0), as_random(1)]
    assert len({stream.seed() for stream in streams}) == len(streams)
    assert as_random(random) is random
    assert as_random(None) == random


def test_generators_of_torch_give_seeds():
    first, again = (as_random(torch.Generator().manual_seed(4)) for _ in range(2))
    assert first == again != as_random(4)
    generator = torch.Generator().manual_seed(4)
    assert as_random(generator) != as_random(generator)
