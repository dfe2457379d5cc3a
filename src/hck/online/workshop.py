"""Where nodes are made: the up-sweep's steps, for some leaves and nodes at a time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import torch
from torch import Tensor

from hck.backend import linalg
from hck.backend.blocks import Blocks, consecutive
from hck.backend.parallel import at_a_time, parallel_map
from hck.backend.records import Record, leaf_layout, node_layout
from hck.backend.steps import Growth, Inbox, LeafInput, NodeInput, as_tensor, whole_steps
from hck.hierarchy.steps import leaf_up
from hck.kernels import Kernel
from hck.online.node import Frame, Inner, Leaf, Node, Observed, Path, apart, stack
from hck.online.steps import raise_nodes
from hck.points import KernelBlocks, VectorPoints, cross

Made = TypeVar("Made")
Draft: TypeAlias = "tuple[Frame, tuple[Node, ...]]"  # of an inner node

_FEW, _MANY = 16, 64  # leaves or nodes in a stack, so that all cores have some and none is large
_CUT = 5  # the depth below which subtrees are parts of the work
_LEAST_LEFT = 1e-8  # of a new point's variance, given the leaf's: below, a leaf is factored anew


@dataclass(frozen=True)
class Sets:
    """Several sets of points as blocks of one, padded to a width."""

    points: VectorPoints
    blocks: Blocks

    @classmethod
    def of(cls, sets: Sequence[VectorPoints], width: int | None = None) -> "Sets":
        """By default as wide as the largest is."""
        return cls.joined([(each,) for each in sets], width)

    @classmethod
    def joined(cls, groups: Sequence[tuple[VectorPoints, ...]], width: int | None = None) -> "Sets":
        """Sets that each are several, one after another."""
        sizes = [sum(map(len, group)) for group in groups]
        first, *more = (points for group in groups for points in group)
        width = max(sizes) if width is None else width
        points = first.join(more) if more else first  # type: ignore[arg-type]
        if len(groups) == 1 and sizes[0] == width:
            return cls(points, Blocks(torch.arange(width, device=first.device)[None], full=True))  # type: ignore[arg-type]
        count = torch.tensor(sizes, dtype=torch.long, device=first.device)
        blocks = consecutive(count.cumsum(0) - count, count, width, min(sizes) == width)
        return cls(points, blocks)  # type: ignore[arg-type]

    def values(self, kernel: Kernel, others: "Sets", upper: bool = False) -> KernelBlocks | Tensor:
        """Kernel values with other sets, block by block, to be computed; 0 where there are no points."""
        if not len(self.points) or not len(others.points):
            shape = len(self.blocks), self.blocks.index.shape[1], others.blocks.index.shape[1]
            return torch.zeros(shape, dtype=self.points.dtype, device=self.points.device)
        return KernelBlocks(kernel, self.points, self.blocks, others.points, others.blocks, upper)


@dataclass(frozen=True, eq=False)
class Workshop:
    """Makes leaves and inner nodes of one kernel, jitter and rank."""

    kernel: Kernel
    jitter: float
    rank: int
    device: torch.device

    # Frames -----------------------------------------------------------------------------------------

    def landmark_factors(self, sets: Sequence[VectorPoints]) -> list[Tensor]:
        """C (1, r, r) of each set of landmarks: C Cᵀ = K(Z, Z) + jitter I."""

        def work(some: Sequence[VectorPoints]) -> list[Tensor]:
            z = Sets.of(some, self.rank)
            values = as_tensor(z.values(self.kernel, z, upper=True))
            jitter = values.new_full((), self.jitter)
            # a padded landmark has a zero row and 1 on the diagonal
            jitter = jitter if z.blocks.full else jitter.where(z.blocks.mask, 1)
            values.diagonal(dim1=-2, dim2=-1).add_(jitter)
            return apart(linalg.factor_(values, "the landmark matrix K(Z, Z) + jitter I"))

        return self._each(work, sets)

    def transfers(self, own: Sequence[tuple[VectorPoints, Tensor]], above: Sequence[Frame]) -> list[Tensor]:
        """W = C⁻¹ K(Z, Z_p) C_p⁻ᵀ of nodes, of their landmarks and C, below those of other frames."""

        def work(some: Sequence[tuple[tuple[VectorPoints, Tensor], Frame]]) -> list[Tensor]:
            z = Sets.of([landmarks for (landmarks, _), _ in some], self.rank)
            z_above = Sets.of([frame.landmarks for _, frame in some], self.rank)
            factor = stack([c for (_, c), _ in some])
            factor_above = stack([frame.factor for _, frame in some])
            which = torch.arange(len(some), device=factor.device)
            given = NodeInput(z_above.values(self.kernel, z), factor, factor_above, which)
            return apart(given.transfer().contiguous())

        return self._each(work, list(zip(own, above, strict=True)))

    # Leaves -----------------------------------------------------------------------------------------

    def leaves(self, data: Sequence[Observed], frames: Sequence[Frame], keys: Sequence[int]) -> list[Leaf]:
        """Leaves below inner nodes of these frames."""

        def work(some: Sequence[tuple[Observed, Frame, int]]) -> list[Leaf]:
            x = Sets.of([observed.points for observed, _, _ in some])
            first, (count, width) = some[0][0], x.blocks.index.shape
            k, where = first.b.shape[1], torch.arange(count, device=self.device)
            noise, b = first.noise.new_ones(count, width), first.b.new_zeros(count, width, k)
            for i, (observed, _, _) in enumerate(some):
                noise[i, : len(observed)], b[i, : len(observed)] = observed.noise, observed.b
            z = Sets.of([frame.landmarks for _, frame, _ in some], self.rank)
            landmark = stack([frame.factor for _, frame, _ in some])
            own, far = x.values(self.kernel, x, upper=True), z.values(self.kernel, x)
            box = Inbox.empty(count, self.rank, first.b)
            factor, y, a, half = leaf_up(LeafInput(own, far, landmark, where), noise, b, box, where)
            wide, made = a.double(), []
            halves, grams = half.double(), wide.mT @ wide
            for i, (observed, _, key) in enumerate(some):
                n = len(observed)  # behind which is padding
                sent = box.information[i], box.mean[i]
                parts = *sent, factor[i, :n, :n], y[i, :n], a[i, :n]
                record = Record.of(leaf_layout(b.dtype, n, self.rank, k), halves[i], grams[i], parts)
                made.append(Leaf(key, observed, record))
            return made

        return self._alike(work, list(zip(data, frames, keys, strict=True)), [(len(each),) for each in data])

    def append(self, leaves: Sequence[Leaf], more: Sequence[Observed], frames: Sequence[Frame]) -> list[Leaf]:
        """Leaves with more points: their factors grow by some rows, in O(n²), where there is code for it.

        ::

            φ = C⁻¹ k(Z, x);  u = L⁻¹ k(X, x) − Y φ;  l lᵀ = k(x, x) − φᵀφ + noise − uᵀu
            L ← [[L, 0], [uᵀ, l]];  Y gets the rows l⁻¹ (φᵀ − uᵀ Y), and a those of l⁻¹ (b − uᵀ a)
        """

        def work(some: Sequence[tuple[Leaf, Observed, Frame]]) -> list[Leaf]:
            data = [Observed.join([leaf.data, observed]) for leaf, observed, _ in some]
            whole, keys = whole_steps(some[0][0].record.memory), [leaf.key for leaf, _, _ in some]
            if whole is None:
                return self.leaves(data, [frame for _, _, frame in some], keys)
            dtype, k = data[0].b.dtype, data[0].b.shape[1]
            old = [leaf.record for leaf, _, _ in some]
            made = [Record(leaf_layout(dtype, len(each), self.rank, k), self.device) for each in data]
            good = whole.records_append(old, made, [frame.factor for _, _, frame in some], self._growth(some))
            every = zip(keys, data, made, strict=True)
            grown = [Leaf(*each) for each, fine in zip(every, good, strict=True) if fine]
            lost = [i for i, fine in enumerate(good) if not fine]
            if not lost:
                return grown
            anew = self.leaves([data[i] for i in lost], [some[i][2] for i in lost], [keys[i] for i in lost])
            found = {leaf.key: leaf for leaf in grown + anew}
            return [found[key] for key in keys]

        given = list(zip(leaves, more, frames, strict=True))
        return self._alike(work, given, [(len(part), leaf.size) for leaf, part, _ in given])

    def _growth(self, some: Sequence[tuple[Leaf, Observed, Frame]]) -> Growth:
        """What leaves get."""
        new = Sets.of([observed.points for _, observed, _ in some])
        wide = max(leaf.size + len(observed) for leaf, observed, _ in some) + self.rank
        known = [(leaf.data.points, observed.points, frame.landmarks) for leaf, observed, frame in some]
        every = Sets.joined(known, wide)
        values = cross(self.kernel, every.points, every.blocks, new.points, new.blocks)
        noise, b = (
            torch.nn.utils.rnn.pad_sequence([getattr(observed, name) for _, observed, _ in some], True)
            for name in ("noise", "b")
        )
        return Growth(values, noise, b, _LEAST_LEFT)

    def relabel(self, leaf: Leaf, b: Tensor) -> Leaf:
        """A leaf with other observations (n, k) at its points."""
        record = leaf.record
        a = linalg.whiten_(record["factor"], b[None].clone())
        wide, mean = a[0].double(), -(record["whitened"].mT @ a)
        parts = record["information"], mean, record["factor"], record["whitened"], a
        layout = leaf_layout(b.dtype, leaf.size, self.rank, b.shape[1])
        made = Record.of(layout, record.tally[0], wide.mT @ wide, parts)
        return Leaf(leaf.key, Observed(leaf.data.points, leaf.data.number, b, leaf.data.noise), made)

    # Inner nodes ------------------------------------------------------------------------------------

    def draft(self, frame: Frame, children: tuple[Node, ...]) -> Inner:
        """An inner node of which nothing is computed yet."""
        layout = children[0].record.layout
        record = Record(node_layout(layout.dtype, self.rank, layout.k), self.device)
        return Inner(frame, children, record, sum(child.size for child in children))

    def fill(self, drafts: dict[Path, Inner]) -> None:
        """Compute what is to be known of drafts, by their paths; other children than these are there.

        Where there is code for it, a way from a leaf to the root is computed in one go, and so are subtrees,
        each node right after its children, while what these send is still in the cache.
        """
        if not drafts:
            return
        if whole_steps(next(iter(drafts.values())).record.memory) is None:
            for depth in sorted({len(path) for path in drafts}, reverse=True):
                self._each(raise_nodes, [node for path, node in drafts.items() if len(path) == depth])
            return
        parts: dict[Path, list[Inner]] = {}
        for path in sorted(drafts, key=lambda path: (*path, 2)):  # children come before their parents
            below = len(drafts) > _MANY and len(path) >= _CUT
            parts.setdefault(path[:_CUT] if below else (), []).append(drafts[path])
        top = parts.pop((), [])
        for _ in parallel_map(raise_nodes, list(parts.values()), self.device):
            pass
        raise_nodes(top)

    def nodes(self, drafts: Sequence[Draft]) -> list[Inner]:
        """Inner nodes of frames and children, all of which are made."""
        return self._each(raise_nodes, [self.draft(*draft) for draft in drafts])

    def _each(self, work: Callable[[Sequence[Any]], list[Made]], items: Sequence[Any]) -> list[Made]:
        """Stacks of items on all cores: a few for each of them."""
        size = min(_MANY, max(_FEW, -(-len(items) // (4 * at_a_time(self.device)))))
        if len(items) <= size:
            return work(items) if items else []
        stacks = [items[i : i + size] for i in range(0, len(items), size)]
        return [made for some in parallel_map(work, stacks, self.device) for made in some]

    def _alike(
        self, work: Callable[[Sequence[Any]], list[Made]], items: Sequence[Any], sizes: Sequence[tuple]
    ) -> list[Made]:
        """The same, with items of similar sizes together."""
        order = sorted(range(len(items)), key=sizes.__getitem__)
        made = dict(zip(order, self._each(work, [items[i] for i in order]), strict=True))
        return [made[i] for i in range(len(items))]
