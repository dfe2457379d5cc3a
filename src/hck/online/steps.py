"""The steps of the sweeps on the nodes of a tree: in one go where there is code for it, or by stacks."""

from collections.abc import Sequence

import torch
from torch import Tensor

from hck.backend import linalg
from hck.backend.records import Record, stacked
from hck.backend.steps import Inbox, NodeInput, whole_steps
from hck.hierarchy.steps import leaf_down, node_down, node_up
from hck.online.node import Frame, Inner, Leaf, stack


def raise_nodes(nodes: Sequence[Inner]) -> list[Inner]:
    """Fill the records of inner nodes, and return them.

    Where they are done in one go, each may be a child of a later one; elsewhere none is.
    """
    if not nodes:
        return []
    made, transfers = [node.record for node in nodes], [node.frame.transfer for node in nodes]
    children = [[child.record for child in node.children] for node in nodes]
    whole = whole_steps(made[0].memory)
    if whole is not None:
        whole.records_up(made, transfers, children)
    else:
        _raise_stack(made, transfers, children)
    return list(nodes)


def _raise_stack(made: list[Record], transfers: list[Tensor], children: list[list[Record]]) -> None:
    layout, device = made[0].layout, made[0].memory.device
    boxes = [
        Inbox.empty(len(made), layout.rank, torch.empty(0, layout.k, dtype=layout.dtype, device=device))
        for _ in range(2)
    ]
    for information, mean, each in zip(boxes[0].information, boxes[0].mean, children, strict=True):
        for child in each:
            information += child["information"][0]
            mean += child["mean"][0]
    which = torch.arange(len(made), device=device)
    given = NodeInput(stack(transfers), None, None, which)
    packed, diagonal, _, nu, q, half = node_up(boxes[0], given, boxes[1])
    # The gram of all below is Σ aᵀa − Σ (νᵀν − qᵀ M q), and M q is what is sent, with its sign changed.
    own = torch.baddbmm(nu.double().mT @ nu.double(), q.double().mT, boxes[1].mean.double())
    sent = boxes[1].information, boxes[1].mean
    for i, (record, each) in enumerate(zip(made, children, strict=True)):
        tally = torch.stack([child.tally for child in each]).sum(0)
        gram = tally[1:].view_as(own[i]) - own[i]
        parts = (*(part[i] for part in sent), packed[i], diagonal[i], nu[i], q[i])
        record.memory = Record.of(record.layout, tally[0] + half[i], gram, parts).memory


def factors_of(nodes: Sequence[Inner]) -> tuple[Tensor, Tensor, Tensor]:
    """A and M packed, M's diagonal and H = A⁻¹ W of inner nodes, stacked."""
    records = [node.record for node in nodes]
    packed, diagonal = stacked(records, "packed"), stacked(records, "diagonal")
    factor, _ = linalg.unpack(packed, diagonal)
    return packed, diagonal, linalg.whiten_(factor, stack([node.frame.transfer for node in nodes]).clone())


def lower_nodes(nodes: Sequence[Inner], above: Sequence[Tensor | None], z: Tensor) -> None:
    """ẑ (nodes, r, k) of inner nodes into z, from those of their parents (r, k), which are None for a root.

    A parent may be among the nodes, before its children: then it is a row of z.
    """
    records = [node.record for node in nodes]
    whole = whole_steps(z)
    if whole is not None:
        whole.records_down(records, [node.frame.transfer for node in nodes], above, z)
        return
    for i, (node, higher) in enumerate(zip(nodes, above, strict=True)):
        own = torch.zeros_like(z[:1]) if higher is None else higher[None].clone()
        z[i] = node_down(factors_of([node]), node.record["nu"], node.record["q"], own)[0]


def lower_leaves(leaves: Sequence[Leaf], frames: Sequence[Frame], above: Sequence[Tensor]) -> list[Tensor]:
    """w (n, k) and after it g (r, k) of leaves, from ẑ (r, k) of their parents, whose frames are given.

    f(x) = k(x, X_j) w_j + k(x, Z_p) g_j.
    """
    records, factors = [leaf.record for leaf in leaves], [frame.factor for frame in frames]
    whole = whole_steps(records[0].memory)
    if whole is not None:
        return whole.records_leaf_down(records, factors, above)
    found = []
    for record, factor, higher in zip(records, factors, above, strict=True):
        given = record["factor"], record["whitened"], record["a"].clone(), higher[None].clone()
        own, ambient = leaf_down(*given)
        found.append(torch.cat([own[0], linalg.unwhiten_(factor, ambient)[0]]))
    return found
