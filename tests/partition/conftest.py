"""What every tree must satisfy, checked node after node."""

import pytest


def check(tree, n):
    """Raise AssertionError unless `tree` is a tree over n points; its leaves' sets of points, by number."""
    assert tree.n_points == n
    assert sorted(tree.order.tolist()) == list(range(n))
    parent, start, stop = tree.parent.tolist(), tree.start.tolist(), tree.stop.tolist()
    assert parent[0] == -1
    assert (start[0], stop[0]) == (0, n)
    assert all(0 <= p < i for i, p in enumerate(parent) if i > 0)
    children, level = [[] for _ in parent], [0] * len(parent)
    for i, p in enumerate(parent[1:], 1):
        children[p].append(i)
        level[i] = level[p] + 1
    assert level == sorted(level)  # numbered level by level
    assert tree.level.tolist() == level
    assert tree.depth == max(level)
    assert tree.n_children.tolist() == [len(c) for c in children]
    first_child = tree.first_child.tolist()
    for node, mine in enumerate(children):
        assert stop[node] > start[node]
        assert len(mine) != 1
        if mine:  # consecutive, and their ranges tile the parent's
            assert mine == list(range(first_child[node], first_child[node] + len(mine)))
            edges = [start[node], *(stop[c] for c in mine)]
            assert [start[c] for c in mine] == edges[:-1]
            assert edges[-1] == stop[node]
    inner = [node for node, mine in enumerate(children) if mine]
    assert tree.inner.tolist() == inner
    assert tree.slot[tree.inner].tolist() == list(range(len(inner)))
    assert (tree.slot[tree.leaves] == -1).all()
    ranges = [[s for s, node in enumerate(inner) if level[node] == l] for l in range(tree.depth)]
    assert [list(range(*r)) for r in tree.inner_levels] == ranges
    leaves = [node for node, mine in enumerate(children) if not mine]
    assert tree.leaves.tolist() == leaves
    assert tree.n_leaves == len(leaves)
    members = [tree.order[start[node] : stop[node]].tolist() for node in leaves]
    assert sorted(p for one in members for p in one) == list(range(n))  # each point in one leaf
    leaf = tree.leaf_of_point.tolist()
    assert all(leaf[p] == number for number, one in enumerate(members) for p in one)
    return members


@pytest.fixture(scope="session")
def check_tree():
    return check
