"""Ragged groups as padded tables, against lists of ranges."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hck.backend.blocks import Blocks, batches, consecutive, group_by, pieces, ranges

quick = settings(max_examples=60, deadline=None)
counts = st.lists(st.integers(0, 60), max_size=40)


@st.composite
def groups(draw):
    """Disjoint groups of consecutive positions, with gaps between them: starts and counts."""
    count = draw(counts)
    gap = draw(st.lists(st.integers(0, 3), min_size=len(count), max_size=len(count)))
    start, position = [], 0
    for c, g in zip(count, gap, strict=True):
        start.append(position + g)
        position += g + c
    return torch.tensor(start, dtype=torch.long), torch.tensor(count, dtype=torch.long)


def members(start, count):
    return [list(range(s, s + c)) for s, c in zip(start.tolist(), count.tolist(), strict=True)]


@quick
@given(groups())
def test_ranges(table):
    position, group = ranges(*table)
    expected = members(*table)
    assert position.tolist() == [p for one in expected for p in one]
    assert group.tolist() == [g for g, one in enumerate(expected) for _ in one]


@quick
@given(groups(), st.integers(1, 200))
def test_batches_hold_every_position_once_with_little_padding(table, room):
    start, count = table
    expected, seen = members(start, count), []

    def per_chunk(width, count=0):
        return max(1, room // width)

    for batch in batches(start, count, per_chunk):
        blocks, width = batch.index.shape
        assert len(batch) == blocks == len(batch.groups)
        assert blocks <= per_chunk(width)
        assert not batch.full or (batch.index >= 0).all()
        for row, group in zip(batch.index.tolist(), batch.groups.tolist(), strict=True):
            mine = expected[group]
            assert row == mine + [-1] * (width - len(mine))
            assert width - len(mine) < 0.2 * width + 1  # at most a fifth, but for rounding
            seen.append(group)
    assert sorted(seen) == [g for g, one in enumerate(expected) if one]


@quick
@given(groups())
def test_a_batch_is_as_wide_as_its_widest_group(table):
    start, count = table
    found = batches(start, count, lambda width, many: many)
    assert all(batch.index.shape[1] == int(count[batch.groups].max()) for batch in found)
    assert sum(len(batch) for batch in found) == int((count > 0).sum())


def test_equal_groups_are_one_full_batch():
    start, count = torch.arange(0, 50, 5), torch.full((10,), 5)
    (batch,) = batches(start, count, lambda width, many: 10)
    assert batch.full
    assert batch.index.tolist() == members(start, count)


@quick
@given(groups(), st.integers(1, 70))
def test_pieces(table, limit):
    start, count = table
    piece_start, piece_count, group = pieces(start, count, limit)
    assert (piece_count >= 1).all()
    assert (piece_count <= limit).all()
    joined = [[] for _ in range(len(start))]
    for one, g in zip(members(piece_start, piece_count), group.tolist(), strict=True):
        joined[g] += one
    assert joined == members(start, count)
    assert torch.equal(torch.bincount(group, minlength=len(start)), torch.ceil(count / limit).long())


@quick
@given(st.lists(st.integers(0, 6), max_size=60))
def test_group_by(labels):
    order, start, count = group_by(torch.tensor(labels, dtype=torch.long), 7)
    for g, (s, c) in enumerate(zip(start.tolist(), count.tolist(), strict=True)):
        assert order[s : s + c].tolist() == [i for i, label in enumerate(labels) if label == g]
    assert sorted(order.tolist()) == list(range(len(labels)))


@pytest.mark.parametrize("full", [True, False])
def test_blocks(full):
    count = torch.tensor([3, 3]) if full else torch.tensor([3, 1])
    blocks = consecutive(torch.tensor([0, 7]), count, 3, full)
    assert blocks.index.tolist() == [[0, 1, 2], [7, 8, 9] if full else [7, -1, -1]]
    assert blocks.mask.tolist() == [[True] * 3, [True, full, full]]
    assert blocks.safe.tolist() == [[0, 1, 2], [7, 8, 9] if full else [7, 7, 7]]
    second = blocks[torch.tensor([1])]
    assert isinstance(second, Blocks)
    assert len(second) == 1
    assert second.index.tolist() == blocks.index[1:].tolist()
    assert blocks[:1].index.tolist() == [[0, 1, 2]]
