"""Halves of nodes: by selection, as on the CPU, and by sorting, as on a GPU."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hck.kernels import Gaussian
from hck.partition import cutter
from hck.partition.cutter import Frontier, grow, halve
from hck.partition.hyperplane import KD, RandomProjection
from hck.points import as_points

both_ways = pytest.mark.parametrize("way", ["_separate_by_selection", "_separate_by_sorting"])


@st.composite
def frontiers(draw):
    """Some nodes of at least two points, perhaps with points between them that belong to none."""
    sizes = draw(st.lists(st.integers(2, 40), min_size=1, max_size=6))
    gaps = draw(st.lists(st.integers(0, 3), min_size=len(sizes) + 1, max_size=len(sizes) + 1))
    if draw(st.booleans()):
        gaps = [0] * len(gaps)
    start, at = [], gaps[0]
    for size, gap in zip(sizes, gaps[1:], strict=True):
        start.append(at)
        at += size + gap
    order = torch.randperm(at, generator=torch.Generator().manual_seed(draw(st.integers(0, 99))))
    distinct = draw(st.sampled_from([2, 5, 10**6]))
    value = torch.randint(distinct, (at,), generator=torch.Generator().manual_seed(1)).double()
    points = as_points(torch.zeros(at, 1, dtype=torch.float64))
    frontier = Frontier(
        points, Gaussian(), order, torch.tensor(start), torch.tensor(sizes), torch.Generator()
    )
    return frontier, value


@both_ways
@settings(max_examples=60, deadline=None)
@given(frontiers())
def test_halves(way, case):
    frontier, value = case
    before = frontier.order.clone()
    rows, which = frontier.members()
    assert which.tolist() == [i for i, size in enumerate(frontier.size.tolist()) for _ in range(size)]
    below, above = getattr(cutter, way)(frontier, value[rows])
    owned = torch.zeros(len(before), dtype=torch.bool)
    for i, (start, size) in enumerate(zip(frontier.start.tolist(), frontier.size.tolist(), strict=True)):
        here, half = slice(start, start + size), (size + 1) // 2
        owned[here] = True
        now = frontier.order[here]
        assert sorted(now.tolist()) == sorted(before[here].tolist())
        assert float(value[now[:half]].max()) == float(below[i])
        assert float(value[now[half:]].min()) == float(above[i])
        assert below[i] <= above[i]
    assert torch.equal(frontier.order[~owned], before[~owned])


def test_sizes():
    frontier = Frontier(
        as_points(torch.rand(9, 1)),
        Gaussian(),
        torch.arange(9),
        torch.tensor([0, 4]),
        torch.tensor([4, 5]),
        torch.Generator(),
    )
    assert halve(frontier, torch.rand(9))[2].tolist() == [[2, 2], [3, 2]]


@pytest.mark.parametrize("kind", [RandomProjection, KD])
@pytest.mark.parametrize("distinct", [2, 50, 10**6])
def test_trust_makes_the_same_tree(kind, distinct):
    """Whether or not there are ties, which a cutter that trusts only notes."""
    x = torch.randint(distinct, (333, 3), generator=torch.Generator().manual_seed(0)).double()
    trees = [
        grow(as_points(x), Gaussian(), kind(), 10, torch.Generator().manual_seed(5), trust)
        for trust in (False, True)
    ]
    for field in ("parent", "start", "stop", "order"):
        assert torch.equal(*(getattr(tree, field) for tree in trees))
    assert torch.equal(*(tree.route(x) for tree in trees))
