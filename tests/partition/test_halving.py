"""Halves of nodes: by selection, as on the CPU, and by sorting, as on a GPU."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hck.backend import cuts
from hck.backend.cpu import halving
from hck.backend.cuts import Halvings
from hck.backend.machine import Machine
from hck.backend.random import as_random
from hck.kernels import Gaussian
from hck.partition.cutter import Cutter, Frontier, grow
from hck.partition.hyperplane import KD, RandomProjection
from hck.points import as_points

WAYS = {
    "selection": lambda frontier, value: frontier.halve(value)[:2],
    "sorting": Machine().separate,
}
both_ways = pytest.mark.parametrize("way", WAYS)


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
    frontier = Frontier(order, torch.tensor(start), torch.tensor(sizes), points, Gaussian(), as_random(0))
    return frontier, value


@both_ways
@settings(max_examples=60, deadline=None)
@given(frontiers())
def test_halves(way, case):
    frontier, value = case
    before = frontier.order.clone()
    rows, which = frontier.members()
    assert which.tolist() == [i for i, size in enumerate(frontier.size.tolist()) for _ in range(size)]
    below, above = WAYS[way](frontier, value[rows])
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
        torch.arange(9),
        torch.tensor([0, 4]),
        torch.tensor([4, 5]),
        as_points(torch.rand(9, 1)),
        Gaussian(),
        as_random(0),
    )
    assert frontier.halve(torch.rand(9))[2].tolist() == [[2, 2], [3, 2]]


@pytest.mark.parametrize("kind", [RandomProjection, KD])
@pytest.mark.parametrize("distinct", [2, 50, 10**6])
def test_trust_makes_the_same_tree(kind, distinct):
    """Whether or not there are ties, which a cutter that trusts only notes."""
    x = torch.randint(distinct, (333, 3), generator=torch.Generator().manual_seed(0)).double()
    trees = [
        grow(Frontier.root(as_points(x), Gaussian(), as_random(5)), kind(), 10, trust)
        for trust in (False, True)
    ]
    for field in ("parent", "start", "stop", "order"):
        assert torch.equal(*(getattr(tree, field) for tree in trees))
    assert torch.equal(*(tree.route(x) for tree in trees))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 3000), st.integers(1, 50))
def test_nodes_that_are_halved(n, leaf_size):
    """As if they were halved one by one."""
    nodes = Halvings.of(n, leaf_size)
    level = [(0, n)] if n > leaf_size else []
    for count, halves in zip(nodes.counts, nodes.halves, strict=True):
        assert count == len(level)
        below = []
        for (start, size), (first, second) in zip(level, halves.tolist(), strict=True):
            assert (first, second) == ((size + 1) // 2, size // 2)
            below += [(start, first), (start + first, second)]
        level = [node for node in below if node[1] > leaf_size]
    assert not level
    for i, children in enumerate(nodes.child.tolist()):
        start = int(nodes.start[i])
        for c, size in zip(children, cuts.halves(nodes.size[i : i + 1])[0].tolist(), strict=True):
            assert (c >= 0) == (size > leaf_size)
            assert c < 0 or (int(nodes.start[c]), int(nodes.size[c])) == (start, size)
            start += size


@pytest.mark.parametrize("near", [0, 2000, 2**22])
@pytest.mark.parametrize(("n", "d", "leaf_size"), [(1000, 3, 7), (777, 20, 100), (4100, 1, 16), (50, 2, 50)])
def test_all_levels_at_once_make_the_same_tree(monkeypatch, n, d, leaf_size, near):
    monkeypatch.setattr(halving, "_NEAR", near)
    points = as_points(torch.rand(n, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64))

    def tree():
        return grow(Frontier.root(points, Gaussian(), as_random(5)), RandomProjection(), leaf_size)

    at_once = tree()
    monkeypatch.setattr(RandomProjection, "cut_all", Cutter.cut_all)
    one_by_one = tree()
    for field in ("parent", "start", "stop", "order"):
        assert torch.equal(getattr(at_once, field), getattr(one_by_one, field))
    for a, b in zip(at_once.rules, one_by_one.rules, strict=True):
        assert torch.equal(a.directions, b.directions)
        assert torch.equal(a.threshold, b.threshold)


def test_close_halves_take_another_direction(monkeypatch):
    """In single precision, some medians of many points are within rounding."""
    x = torch.rand(40_000, 3, generator=torch.Generator().manual_seed(0))
    monkeypatch.setattr(halving, "_NEAR", 50_000)
    root, again = (Frontier.root(as_points(x), Gaussian(), as_random(5)) for _ in range(2))
    levels = RandomProjection().cut_all(root, 20)
    assert any(len(rule.directions) > 8 for _, rule in levels)
    tree = grow(again, RandomProjection(), 20)
    leaf = tree.route(x)
    for number, node in enumerate(tree.leaves.tolist()):
        mine = slice(tree.start[node], tree.stop[node])
        assert torch.equal(root.order[mine].sort().values, tree.order[mine])
        assert (leaf[tree.order[mine]] == number).all()


def test_ties_are_mended_level_by_level():
    """With two values in each feature, a median is hardly ever between two projections."""
    x = torch.randint(2, (400, 3), generator=torch.Generator().manual_seed(0)).double()
    root = Frontier.root(as_points(x), Gaussian(), as_random(5))
    assert RandomProjection().cut_all(root, 10) is None
    assert torch.equal(root.order, torch.arange(400))


values = st.sampled_from(["normal", "heavy", "clustered", "ties", "equal", "infinite"])


@settings(max_examples=80, deadline=None)
@given(values, st.integers(2, 3000), st.sampled_from([torch.float64, torch.float32]), st.integers(0, 99))
def test_medians_of_any_values(kind, n, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    value = torch.randn(n, generator=generator, dtype=torch.float64)
    value = {
        "normal": value,
        "heavy": (20 * value).exp(),
        "clustered": value + 1e6 * (value > 0.3),
        "ties": (2 * value).round(),
        "equal": torch.ones_like(value),
        "infinite": torch.where(value > 1, torch.inf, value),
    }[kind].to(dtype)
    points = as_points(torch.zeros(n, 1, dtype=dtype))
    whole = torch.tensor([0]), torch.tensor([n])
    frontier = Frontier(torch.arange(n), *whole, points, Gaussian(), as_random(0))
    below, above, child = frontier.halve(value)
    half, ordered = int(child[0, 0]), value.sort().values
    assert float(below[0]) == float(ordered[half - 1])
    assert float(above[0]) == float(ordered[half])
    assert torch.equal(value[frontier.order[:half]].sort().values, ordered[:half])
    assert sorted(frontier.order.tolist()) == list(range(n))
