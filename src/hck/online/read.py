"""What a version says: the down-sweep, as far as somebody asks for it.

A prediction at x needs what lies on x's way from the root, and what is found on the way stays with the
version until the next one comes.
"""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from hck.backend import linalg
from hck.backend.parallel import parallel_map
from hck.online.node import Inner, Leaf, Path, apart, at, on_the_way, route, stack
from hck.online.state import State
from hck.online.steps import factors_of, lower_leaves, lower_nodes
from hck.online.workshop import Sets
from hck.points import VectorPoints, cross, self_values

_AT_ONCE = 64  # nodes in a stack
_VALUES = 2**21  # kernel values computed at once


@torch.no_grad()
def predict(state: State, x: VectorPoints) -> Tensor:
    """k_h(x, X) (K_h + noise)⁻¹ b at new points: shape (points, k)."""
    found = route(state.root, x)
    weights = leaf_weights(state, list(found))
    out = room_like(state, len(x), state.columns)

    def evaluate(some: list[tuple[Path, Tensor]]) -> None:
        known = [(_leaf(state, path).data.points, _parent(state, path).frame.landmarks) for path, _ in some]
        every, new = Sets.joined(known), _blocks([rows for _, rows in some], x)
        values = cross(state.workshop.kernel, new.points, new.blocks, every.points, every.blocks)
        value = values @ _padded([weights[path] for path, _ in some], values.shape[2])
        for (_, rows), each in zip(some, value, strict=True):
            out[rows] = each[: len(rows)]

    for _ in parallel_map(evaluate, list(_stacks(state, found)), x.device):
        pass
    return out


def room_like(state: State, *shape: int) -> Tensor:
    """Room for numbers like those of a version."""
    return state.root.record.memory.new_empty(shape)


def leaf_weights(state: State, paths: list[Path]) -> dict[Path, Tensor]:
    """w_j (n, k) and after it g_j (r, k) of leaves: f(x) = k(x, X_j) w_j + k(x, Z_p) g_j."""
    missing = [path for path in paths if path not in state.weights]
    believe(state, missing)

    def work(some: list[Path]) -> list[Tensor]:
        leaves, frames = [_leaf(state, path) for path in some], [_parent(state, path).frame for path in some]
        return lower_leaves(leaves, frames, [state.beliefs[path[:-1]] for path in some])

    stacks = [missing[i : i + _AT_ONCE] for i in range(0, len(missing), _AT_ONCE)]
    found = parallel_map(work, stacks, state.workshop.device)
    state.weights.update(zip(missing, (each for some in found for each in some), strict=True))
    return state.weights


def believe(state: State, paths: list[Path]) -> None:
    """Find ẑ (r, k) of all inner nodes on the way to some leaves."""
    known, nodes = state.beliefs, on_the_way(state.root, paths)
    missing = {path: node for path, node in nodes.items() if path not in known}
    if not missing:
        return
    z = room_like(state, len(missing), state.workshop.rank, state.columns)
    found = dict(zip(missing, z.unbind(), strict=True))
    above = [found.get(path[:-1], known.get(path[:-1])) if path else None for path in missing]
    lower_nodes(list(missing.values()), above, z)
    known.update(found)


def spread(state: State, paths: list[Path]) -> None:
    """Find P = A⁻ᵀ (I + H (M P_p M − M) Hᵀ) A⁻¹ of all inner nodes on the way to some leaves."""

    def work(nodes: list[Inner], above: Tensor | None) -> list[Tensor]:
        packed, diagonal, h = factors_of(nodes)
        factor, m = linalg.unpack(packed, diagonal)
        before = m if above is None else above  # the root has H = 0
        inner = h @ (m @ before @ m - m) @ h.mT
        inner.diagonal(dim1=-2, dim2=-1).add_(1)
        half = linalg.unwhiten_(factor, inner)
        whole = linalg.unwhiten_(factor, half.mT)
        return apart((whole + whole.mT) / 2)

    known, level = state.spreads, dict[int, list[tuple[Path, Inner]]]()
    for path, node in on_the_way(state.root, paths).items():
        if path not in known:
            level.setdefault(len(path), []).append((path, node))
    for depth, missing in level.items():
        for i in range(0, len(missing), _AT_ONCE):
            some = missing[i : i + _AT_ONCE]
            above = stack([known[path[:-1]] for path, _ in some]) if depth else None
            found = work([node for _, node in some], above)
            known.update(zip((path for path, _ in some), found, strict=True))


@torch.no_grad()
def variance(state: State, x: VectorPoints) -> Tensor:
    """k(x, x) − k_h(x, X) (K_h + noise)⁻¹ k_h(X, x) at new points: shape (points,). Never negative.

    As `hck.hierarchy.uncertainty.Uncertainty` has it.
    """
    found, kernel, out = route(state.root, x), state.workshop.kernel, room_like(state, len(x))
    spread(state, list(found))

    def evaluate(item: tuple[Path, Tensor]) -> None:
        path, rows = item
        leaf, frame = _leaf(state, path), _parent(state, path).frame
        new, n = _blocks([rows], x), leaf.size
        every = Sets.joined([(leaf.data.points, frame.landmarks)], n + state.workshop.rank)
        values = cross(kernel, every.points, every.blocks, new.points, new.blocks)
        y = leaf.record["whitened"]
        phi = linalg.whiten_(frame.factor, values[:, n:])
        u = torch.baddbmm(linalg.whiten_(leaf.record["factor"], values[:, :n]), y, phi, alpha=-1)
        q = torch.baddbmm(phi, y.mT, u, alpha=-1)
        latent = q * (state.spreads[path[:-1]] @ q) - phi.square()
        out[rows] = (latent.sum(-2) - u.square().sum(-2) + self_values(kernel, new.points, new.blocks))[0]

    items = [(path, part) for path, rows in found.items() for part in rows.split(1024)]
    for _ in parallel_map(evaluate, items, x.device):
        pass
    return out.clamp_min(0)


@torch.no_grad()
def inverse_diagonal(state: State, positions: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
    """The diagonal of (K_h + noise)⁻¹ at positions (m,), ascending, and there w and b (m, k)."""
    numbers = state.ledger.numbers[positions]
    keys = np.unique(state.ledger.keys[positions]).tolist()
    paths = [state.paths[key] for key in keys]
    spread(state, paths)
    weights = leaf_weights(state, paths)

    def work(path: Path) -> tuple[np.ndarray, Tensor, Tensor, Tensor]:
        leaf = _leaf(state, path)
        factor = leaf.record["factor"]
        u = linalg.unwhiten_(factor, leaf.record["whitened"].clone())
        known = ((u @ state.spreads[path[:-1]]) * u).sum(-1)
        diagonal = linalg.inverse_diagonal(factor) - known
        return leaf.data.number, diagonal[0], weights[path][: leaf.size], leaf.data.b

    parts = list(parallel_map(work, paths, state.workshop.device))
    every = np.concatenate([number for number, *_ in parts])
    order = np.argsort(every)
    rows = torch.from_numpy(order[np.searchsorted(every, numbers, sorter=order)]).to(state.workshop.device)
    diagonal = torch.cat([part for _, part, _, _ in parts])[rows]
    w, b = torch.cat([part for _, _, part, _ in parts]), torch.cat([part for _, _, _, part in parts])
    return diagonal, w[rows], b[rows]


def _leaf(state: State, path: Path) -> Leaf:
    return at(state.root, path)  # type: ignore[return-value]


def _parent(state: State, path: Path) -> Inner:
    return at(state.root, path[:-1])  # type: ignore[return-value]


def _blocks(rows: list[Tensor], x: VectorPoints) -> Sets:
    """Some of the new points, group by group."""
    if len(rows) == 1 and len(rows[0]) == len(x):
        return Sets.of([x])
    return Sets.of([x.take(each) for each in rows])  # type: ignore[misc]


def _padded(parts: list[Tensor], width: int) -> Tensor:
    """The first rows of matrices (·, k) in one, with zeros where one is shorter."""
    if len(parts) == 1:
        return parts[0][None, :width]
    out = parts[0].new_zeros(len(parts), width, parts[0].shape[1])
    for row, part in zip(out, parts, strict=True):
        row[: len(part)] = part[:width]
    return out


def _stacks(state: State, found: dict[Path, Tensor]) -> Iterator[list[tuple[Path, Tensor]]]:
    """Leaves with their new points, those with similar numbers together, as much at once as is wise."""
    width = 2 * state.habit.most + state.workshop.rank
    most = max(1, _VALUES // width)
    items = [(path, part) for path, rows in found.items() for part in rows.split(most)]
    items.sort(key=lambda item: len(item[1]))
    first = 0
    while first < len(items):
        last = first + 1
        while last < len(items) and last - first < _AT_ONCE:
            if len(items[last][1]) * (last - first + 1) > most:
                break
            last += 1
        yield items[first:last]
        first = last
