"""A tree and its observations at one moment, and the next ones: observations come, go, or are corrected."""

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from hck.backend.moments import moments_of
from hck.hierarchy.blueprint import Blueprint
from hck.online.change import replaced, unbalanced
from hck.online.grow import Habit, every_path, harvest, plant, regrow
from hck.online.ledger import Ledger
from hck.online.node import Inner, Leaf, Node, Observed, Path, at, leaves_below, on_the_way, route
from hck.online.workshop import Workshop
from hck.partition.hyperplane import hyperplane_rules
from hck.points import VectorPoints, check_alike


@dataclass(frozen=True, eq=False)
class State:
    """One version of a factored K_h + noise with right-hand sides b: never changed, but the start of others.

    Observations have positions, 0, 1, …, in the order in which they came. Made by `State.of`. An update of m
    of them costs O(m n₀² + paths · r³), and shares all else with the version before.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from hck.hierarchy import Blueprint
    >>> from hck.online import Habit, State
    >>> from hck.points import as_points
    >>> from hck.settings import Settings
    >>> x = torch.linspace(0, 1, 100, dtype=torch.float64)[:, None]
    >>> blueprint = Blueprint.of("gaussian", x, Settings(rank=8), generator=0)
    >>> habit = Habit("random_projection", "uniform", leaf_size=16)
    >>> state = State.of(blueprint, 8, habit, torch.sin(6 * x), torch.full((100,), 0.1))
    >>> more = state.add(as_points([[2.0]]), torch.tensor([[1.0]]), torch.tensor([0.1]))
    >>> len(state), len(more), len(more.forget(np.arange(50)))  # the first is as it was
    (100, 101, 51)
    """

    workshop: Workshop
    habit: Habit
    root: Inner
    ledger: Ledger
    paths: dict[int, Path]  # of leaves, by their keys
    next_number: int
    next_key: int
    budget: int  # bytes that temporaries should stay within
    beliefs: dict[Path, Tensor] = field(default_factory=dict)  # ẑ of inner nodes, where it was asked for
    weights: dict[Path, Tensor] = field(default_factory=dict)  # w and g of leaves
    spreads: dict[Path, Tensor] = field(default_factory=dict)  # P of inner nodes

    @classmethod
    @torch.no_grad()
    def of(cls, blueprint: Blueprint, rank: int, habit: Habit, b: Tensor, noise: Tensor) -> "State":
        """From observations b (n, k) with noise (n,), in the original order of a blueprint's points.

        The rank is that of nodes which are still to come; those that are there have at most as much.
        """
        layout, points = blueprint.layout, blueprint.points
        if not isinstance(points, VectorPoints):
            raise TypeError("points that are no vectors cannot come and go: use `fit` with all of them")
        hyperplane_rules(layout.tree)  # or an error
        device = points.device
        workshop = Workshop(blueprint.kernel, blueprint.jitter, max(rank, blueprint.rank), device)
        n, came = layout.tree.n_points, layout.unsort(torch.arange(layout.tree.n_points, device=device))
        b, noise = b.to(device, points.dtype).clone(), _variances(noise, device, points.dtype).clone()
        data = Observed(points.take(came), np.arange(n), b, noise)  # type: ignore[arg-type]
        root = plant(workshop, data, layout.tree, blueprint.landmarks, None, 0)
        keys = layout.tree.leaf_of_point.cpu().numpy()
        ledger, count = Ledger.of(np.arange(n), keys), layout.tree.n_leaves
        if not isinstance(root, Inner):
            raise TypeError("a root is an inner node")
        return cls(workshop, habit, root, ledger, every_path(root), n, count, blueprint.budget)

    def __len__(self) -> int:
        return len(self.ledger)

    @property
    def columns(self) -> int:
        """How many right-hand sides there are."""
        return self.root.record.layout.k

    @property
    def log_determinant(self) -> float:
        """Of K_h + noise."""
        return 2 * self.root.record.half

    @property
    def gram(self) -> Tensor:
        """bᵀ (K_h + noise)⁻¹ b, in float64."""
        return self.root.record.gram

    @cached_property
    def moments(self) -> Tensor:
        """bᵀ b (k, k), in float64, of all observations: O(n)."""
        return moments_of(torch.cat([leaf.data.b for _, leaf in leaves_below(self.root)]))

    def observed(self, positions: np.ndarray) -> Tensor:
        """b (m, k) at some positions, ascending."""
        numbers = self.ledger.numbers[positions]
        out = self.root.record.memory.new_empty(len(positions), self.columns)
        for leaf, mine in self._by_leaf(positions).values():
            rows = torch.from_numpy(np.searchsorted(numbers, mine)).to(out.device)
            out[rows] = leaf.data.b[_rows(leaf, mine).to(out.device)]
        return out

    # The next version ---------------------------------------------------------------------------------

    @torch.no_grad()
    def add(self, points: VectorPoints, b: Tensor, noise: Tensor) -> "State":
        """With more observations, which come last."""
        check_alike(points, self.root.frame.landmarks)
        m, device = len(points), self.workshop.device
        wanted = (m, self.columns), (m,)
        if (b.shape, noise.shape) != wanted:
            raise ValueError(
                f"b and noise must have shapes {wanted[0]} and {wanted[1]}, got {tuple(b.shape)} and "
                f"{tuple(noise.shape)}"
            )
        numbers = np.arange(self.next_number, self.next_number + m)
        b, noise = b.to(device, points.dtype), _variances(noise, device, points.dtype)
        found = route(self.root, points)
        counts, order = list(map(len, found.values())), torch.cat(list(found.values()))
        data, keys = Observed(points, numbers, b, noise), np.empty(m, np.int64)
        parts = data.take(order).split(counts) if len(counts) > 1 else [data]
        old, more, large = dict[Path, Leaf](), list[Observed](), dict[Path, Observed]()
        for path, part in zip(found, parts, strict=True):
            leaf: Leaf = at(self.root, path)  # type: ignore[assignment]
            keys[part.number - self.next_number] = leaf.key
            if leaf.size + len(part) > self.habit.most:
                large[path] = Observed.join([leaf.data, part])
            else:
                old[path] = leaf
                more.append(part)
        made = self.workshop.append(list(old.values()), more, [self._parent(path).frame for path in old])
        fresh: dict[Path, Node | None] = dict(zip(old, made, strict=True))
        ledger = self.ledger.append(numbers, keys)
        after = replace(self._bare(), next_number=self.next_number + m, ledger=ledger)
        for path, grown in large.items():
            place = path if len(self._parent(path).children) == 2 else ()  # a leaf alone is the whole tree
            above = self._parent(path).frame if place else None
            fresh[place] = regrow(self.workshop, self._habit_now, grown, above, after.next_key)
            after = replace(after, next_key=after.next_key + len(grown))
        return after._with(fresh, list(found), restructured=bool(large))

    @torch.no_grad()
    def forget(self, positions: np.ndarray) -> "State":
        """Without the observations at some positions, ascending; at least one must stay."""
        gone, fresh = self._by_leaf(positions), dict[Path, Node | None]()
        data, keys = dict[Path, Observed](), list[int]()
        for path, (leaf, numbers) in gone.items():
            stay = ~np.isin(leaf.data.number, numbers)
            if not stay.any():
                fresh[path] = None
                continue
            rows = torch.from_numpy(np.flatnonzero(stay)).to(self.workshop.device)
            data[path] = leaf.data.take(rows)
            keys.append(leaf.key)
        frames = [self._parent(path).frame for path in data]
        made = self.workshop.leaves(list(data.values()), frames, keys)
        fresh.update(zip(data, made, strict=True))
        after = replace(self._bare(), ledger=self.ledger.without(positions))
        return after._with(fresh, list(data), restructured=self._shrinks(gone))

    @torch.no_grad()
    def relabel(self, positions: np.ndarray, b: Tensor) -> "State":
        """With other right-hand sides (m, k) at some positions, ascending."""
        fresh: dict[Path, Node | None] = {}
        numbers = self.ledger.numbers[positions]
        for path, (leaf, changed) in self._by_leaf(positions).items():
            values = leaf.data.b.clone()
            given = b[torch.from_numpy(np.searchsorted(numbers, changed))]
            values[_rows(leaf, changed).to(values.device)] = given.to(values)
            fresh[path] = self.workshop.relabel(leaf, values)
        return self._bare()._with(fresh, [], restructured=False)

    @torch.no_grad()
    def recode(self, change: Tensor) -> "State":
        """With b · change in place of b, for change of shape (k, others): O(n)."""
        change = change.to(self.root.record.memory)
        fresh: dict[Path, Node | None] = {
            path: self.workshop.relabel(leaf, leaf.data.b @ change) for path, leaf in leaves_below(self.root)
        }
        return self._bare()._with(fresh, [], restructured=False)

    def _bare(self) -> "State":
        """Without what is known of this version alone."""
        return replace(self, beliefs={}, weights={}, spreads={})

    def _parent(self, path: Path) -> Inner:
        return at(self.root, path[:-1])  # type: ignore[return-value]

    def _shrinks(self, gone: "dict[Path, tuple[Leaf, np.ndarray]]") -> bool:
        """Whether leaves become empty, or nodes so small that they become leaves."""
        if any(len(numbers) == leaf.size for leaf, numbers in gone.values()):
            return True
        lost = Counter[Path]()
        for path, (_, numbers) in gone.items():
            lost.update({path[:depth]: len(numbers) for depth in range(1, len(path))})
        nodes = on_the_way(self.root, list(gone))
        return any(nodes[path].size - number <= self.habit.few for path, number in lost.items())

    def _by_leaf(self, positions: np.ndarray) -> dict[Path, tuple[Leaf, np.ndarray]]:
        """Leaves, by their paths, with the numbers of those observations at some positions that they have."""
        if not len(positions):
            return {}
        numbers, keys = self.ledger.numbers[positions], self.ledger.keys[positions]
        order = np.argsort(keys, kind="stable")
        different, first = np.unique(keys[order], return_index=True)
        groups = np.split(numbers[order], first[1:])
        paths = [self.paths[key] for key in different.tolist()]
        leaves: list[Leaf] = [at(self.root, path) for path in paths]  # type: ignore[misc]
        return dict(zip(paths, zip(leaves, groups, strict=True), strict=True))

    @property
    def _habit_now(self) -> Habit:
        """Where all nodes have the same landmarks, new ones get them too."""
        how, given = self.habit.landmarks, self.root.frame.landmarks
        if (isinstance(how, str) and how != "same") or not len(given):  # a root above a single leaf has none
            return self.habit
        return replace(self.habit, landmarks=given)

    def _with(self, fresh: dict[Path, Node | None], touched: list[Path], restructured: bool) -> "State":
        """With other nodes in place, and in balance on the ways to leaves that are touched."""
        if not fresh:
            return self
        few = self.habit.few if restructured else 0
        root, key = replaced(self.workshop, self.root, fresh, few), self.next_key
        again: dict[Path, Node | None] = {}
        for path in unbalanced(root, None if restructured else touched):
            data = Observed.join([leaf.data for _, leaf in leaves_below(at(root, path))])
            above = at(root, path[:-1]).frame if path else None  # type: ignore[union-attr]
            again[path] = regrow(self.workshop, self._habit_now, data, above, key)
            key += len(data)
        if again:
            root, restructured = replaced(self.workshop, root, again), True
        if not restructured:
            return replace(self, root=root)
        leaves, before = dict(leaves_below(root)), {id(leaf) for _, leaf in leaves_below(self.root)}
        moved = {leaf.key: leaf.data.number for leaf in leaves.values() if id(leaf) not in before}
        paths = {leaf.key: path for path, leaf in leaves.items()}
        return replace(self, root=root, ledger=self.ledger.move(moved), paths=paths, next_key=key)

    # As others see it ---------------------------------------------------------------------------------

    @cached_property
    def harvested(self) -> tuple[Blueprint, Observed]:
        """A blueprint over the points in the order in which they came, and all observations in that order."""
        return harvest(self.workshop, self.root, self.ledger.numbers, self.budget)


def _variances(noise: Tensor, device: torch.device, dtype: torch.dtype) -> Tensor:
    """Variances (m,) of the noise of observations; ValueError for some that are infinite."""
    made = noise.to(device, dtype)
    if not bool(made.isfinite().all()):
        raise ValueError(
            f"the variance of the noise of some observations is too large for {str(dtype)[6:]}, up to "
            f"{noise.max():.1e}, by sample_weight or noise_variance: leave out what counts for nothing"
        )
    return made


def _rows(leaf: Leaf, numbers: np.ndarray) -> Tensor:
    """Where observations of some numbers are in their leaf."""
    order = np.argsort(leaf.data.number)
    return torch.from_numpy(order[np.searchsorted(leaf.data.number, numbers, sorter=order)])
