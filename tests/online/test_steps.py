"""Steps on records: compiled ones and stacks of torch agree; leaves that grow are those made anew."""

import numpy as np
import pytest
import torch

from hck.backend.kinds import KINDS, OTHER
from hck.backend.records import Record, leaf_layout, node_layout
from hck.kernels import Matern
from hck.online.node import Frame, Observed
from hck.online.steps import lower_leaves, lower_nodes
from hck.online.workshop import Workshop
from hck.points import as_points

RANK = 7
G = torch.Generator().manual_seed(0)
KERNEL = Matern(0.8, nu=1.5)


def numbers(*shape, dtype=torch.float64):
    return torch.rand(*shape, generator=G, dtype=torch.float64).to(dtype)


def observed(n, k, dtype=torch.float64, noise=0.1):
    points = as_points(numbers(n, 3), dtype)
    return Observed(points, np.arange(n), numbers(n, k, dtype=dtype), torch.full((n,), noise, dtype=dtype))


@pytest.fixture
def workshop():
    return Workshop(KERNEL, 1e-6, RANK, torch.device("cpu"))


def frame_of(workshop, landmarks, above=None):
    factor = workshop.landmark_factors([landmarks])[0]
    made = Frame(landmarks, factor, torch.zeros_like(factor), None, torch.zeros(1))
    if above is None:
        return made
    transfer = workshop.transfers([(landmarks, factor)], [above])[0]
    return Frame(landmarks, factor, transfer, None, torch.zeros(1))


def parts(record, *names):
    """What has a meaning in a record: of factors and what is sent, the upper triangle, on a CPU."""
    found = {name: record[name] for name in names}
    return {n: v.triu() if n in ("factor", "information") else v for n, v in found.items()}


def same(one, other, *names, tolerance=1e-10):
    for name, value in parts(one, *names).items():
        torch.testing.assert_close(value, parts(other, *names)[name], rtol=0, atol=tolerance, msg=name)
    torch.testing.assert_close(one.tally, other.tally, rtol=0, atol=tolerance)


LEAF = "information", "mean", "factor", "whitened", "a"


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_leaves_grow(workshop, k, dtype):
    frames = [frame_of(workshop, as_points(numbers(count, 3), dtype)) for count in (RANK, RANK - 2, RANK)]
    old = [observed(n, k, dtype) for n in (5, 70, 1)]
    more = [observed(m, k, dtype) for m in (1, 3, 2)]
    grown = workshop.append(workshop.leaves(old, frames, [4, 2, 9]), more, frames)
    anew = workshop.leaves(
        [Observed.join(list(both)) for both in zip(old, more, strict=True)], frames, [4, 2, 9]
    )
    for one, other in zip(grown, anew, strict=True):
        assert (one.key, one.size) == (other.key, other.size)
        same(one.record, other.record, *LEAF, tolerance=1e-10 if dtype == torch.float64 else 1e-4)


def test_a_point_that_is_there_already(workshop):
    """Nothing is left of its variance, so that the leaf is factored anew; others of the stack are not."""
    frame = frame_of(workshop, as_points(numbers(RANK, 3)))
    old = [observed(12, 2, noise=1e-11), observed(9, 2)]
    twin = Observed(
        old[0].points.take(torch.tensor([3])), np.array([12]), numbers(1, 2), torch.tensor([1e-11]).double()
    )
    more = [twin, observed(1, 2)]
    grown = workshop.append(workshop.leaves(old, [frame] * 2, [0, 1]), more, [frame] * 2)
    joined = [Observed.join(list(both)) for both in zip(old, more, strict=True)]
    anew = workshop.leaves(joined, [frame] * 2, [0, 1])
    torch.testing.assert_close(parts(grown[0].record, *LEAF), parts(anew[0].record, *LEAF), rtol=0, atol=0)
    same(grown[1].record, anew[1].record, *LEAF)


def way(workshop, k=2):
    """A leaf, its parent and the root, which both have another leaf."""
    top = frame_of(workshop, as_points(numbers(RANK, 3)))
    frame = frame_of(workshop, as_points(numbers(RANK, 3)), top)
    low = workshop.leaves([observed(9, k), observed(12, k)], [frame] * 2, [0, 1])
    (side,) = workshop.leaves([observed(11, k)], [top], [2])
    parent = workshop.draft(frame, tuple(low))
    root = workshop.draft(top, (parent, side))
    workshop.fill({(): root, (0,): parent})
    return root, parent, low[0]


def test_a_way_in_one_go_and_by_stacks(workshop, monkeypatch):
    G.manual_seed(0)
    root, parent, leaf = way(workshop)
    z = torch.empty(2, RANK, 2, dtype=torch.float64)
    lower_nodes([root, parent], [None, z[0]], z)
    weights = lower_leaves([leaf], [parent.frame], [z[1]])[0]
    monkeypatch.setitem(KINDS, "cpu", OTHER)  # which keeps factors in another way
    G.manual_seed(0)
    other_root, other_parent, other_leaf = way(workshop)
    other = torch.empty_like(z)
    lower_nodes([other_root, other_parent], [None, other[0]], other)
    torch.testing.assert_close(other, z, rtol=0, atol=1e-10)
    found = lower_leaves([other_leaf], [other_parent.frame], [other[1]])[0]
    torch.testing.assert_close(found, weights, rtol=0, atol=1e-10)
    torch.testing.assert_close(other_root.record.tally, root.record.tally, rtol=0, atol=1e-10)


def test_records_have_their_parts_side_by_side():
    for dtype in (torch.float32, torch.float64):
        for layout in (leaf_layout(dtype, 5, 3, 2), node_layout(dtype, 3, 2)):
            record = Record(layout, torch.device("cpu"))
            assert record.memory.numel() == layout.size
            record.memory.zero_()
            for name in layout.parts:
                assert (record[name] == 0).all()  # none overlaps with those before
                record[name].fill_(1)
            assert record.half == 0
            assert record.gram.shape == (2, 2)
            assert record.memory.sum() == layout.size - layout.head
