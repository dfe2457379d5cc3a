"""Where nodes are made: the up-sweep's steps, for some leaves and nodes at a time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import torch
from torch import Tensor

from hck.backend import linalg
from hck.backend.blocks import Blocks, consecutive
from hck.backend.parallel import parallel_map
from hck.backend.steps import Inbox, LeafInput, NodeInput, as_tensor
from hck.hierarchy.steps import chain_up, leaf_up, node_up
from hck.kernels import Kernel
from hck.online.node import Frame, Inner, Leaf, Node, Observed, apart, stack
from hck.points import KernelBlocks, VectorPoints, cross

Made = TypeVar("Made")
Draft: TypeAlias = "tuple[Frame, tuple[Node, ...]]"  # of an inner node

_AT_ONCE = 16  # leaves or nodes in a stack: few, so that all cores have some
_LEAST_LEFT = 1e-8  # of a new point's variance, given the leaf's: below, a leaf is factored anew


@dataclass(frozen=True)
class Sets:
    """Several sets of points as blocks of one, padded to a width."""

    points: VectorPoints
    blocks: Blocks

    @classmethod
    def of(cls, sets: Sequence[VectorPoints], width: int | None = None) -> "Sets":
        """By default as wide as the largest is."""
        sizes, first = [len(each) for each in sets], sets[0]
        width = max(sizes) if width is None else width
        if len(sets) == 1 and sizes[0] == width:
            return cls(first, Blocks(torch.arange(width, device=first.device)[None], full=True))
        points = first if len(sets) == 1 else first.join(list(sets[1:]))
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
            made = []
            halves = half.tolist()
            for i, ((observed, _, key), sent) in enumerate(zip(some, _rows(box), strict=True)):
                n = len(observed)  # behind which is padding
                parts = factor[i : i + 1, :n, :n], y[i : i + 1, :n], a[i : i + 1, :n]
                made.append(_leaf(key, observed, parts, sent, halves[i]))
            return made

        order = sorted(range(len(data)), key=lambda i: len(data[i]))  # those of similar size together
        made = self._each(work, [(data[i], frames[i], keys[i]) for i in order])
        placed = dict(zip(order, made, strict=True))
        return [placed[i] for i in range(len(data))]

    def append(self, leaves: Sequence[Leaf], more: Sequence[Observed], frames: Sequence[Frame]) -> list[Leaf]:
        """Leaves with more points: their factors grow by some rows, in O(n²).

        ::

            φ = C⁻¹ k(Z, x);  u = L⁻¹ k(X, x) − Y φ;  l lᵀ = k(x, x) − φᵀφ + noise − uᵀu
            L ← [[L, 0], [uᵀ, l]];  Y gets the rows l⁻¹ (φᵀ − uᵀ Y), and a those of l⁻¹ (b − uᵀ a)
        """
        found: dict[int, Leaf] = {}
        groups: dict[tuple[int, int], list[int]] = {}  # of leaves that are alike, so that nothing is padded
        for i, (leaf, observed) in enumerate(zip(leaves, more, strict=True)):
            groups.setdefault((leaf.size, len(observed)), []).append(i)

        def work(which: Sequence[int]) -> list[Leaf]:
            return self._append([(leaves[i], more[i], frames[i]) for i in which])

        for alike in groups.values():
            found.update(zip(alike, self._each(work, alike), strict=True))
        return [found[i] for i in range(len(leaves))]

    def _append(self, some: Sequence[tuple[Leaf, Observed, Frame]]) -> list[Leaf]:
        """The same for leaves of one size that get as many points."""
        n, m = some[0][0].size, len(some[0][1])
        new = Sets.of([observed.points for _, observed, _ in some])
        everything = [leaf.data.points.join([more.points, frame.landmarks]) for leaf, more, frame in some]
        known = Sets.of(everything, n + m + self.rank)  # type: ignore[arg-type]
        values = cross(self.kernel, known.points, known.blocks, new.points, new.blocks)
        near, own, far = values.split([n, m, self.rank], 1)
        factor, a = stack([leaf.factor for leaf, _, _ in some]), stack([leaf.a for leaf, _, _ in some])
        y = stack([leaf.whitened for leaf, _, _ in some])
        phi = linalg.whiten_(stack([frame.factor for _, _, frame in some]), far.contiguous())
        u = torch.baddbmm(linalg.whiten_(factor, near.contiguous()), y, phi, alpha=-1)
        left = torch.baddbmm(own, phi.mT, phi, alpha=-1)
        left.diagonal(dim1=-2, dim2=-1).add_(torch.stack([observed.noise for _, observed, _ in some]))
        before = left.diagonal(dim1=-2, dim2=-1).clone()
        left = torch.baddbmm(left, u.mT, u, alpha=-1)
        if not (left.diagonal(dim1=-2, dim2=-1) > _LEAST_LEFT * before).all():
            data = [Observed.join([leaf.data, observed]) for leaf, observed, _ in some]
            return self.leaves(data, [frame for _, _, frame in some], [leaf.key for leaf, _, _ in some])
        corner = linalg.factor_(left.contiguous(), "the leaf matrix D + alpha I")
        b = torch.stack([observed.b for _, observed, _ in some])
        rows = linalg.whiten_(corner, torch.baddbmm(phi.mT, u.mT, y, alpha=-1).contiguous())
        sides = linalg.whiten_(corner, torch.baddbmm(b, u.mT, a, alpha=-1))
        halves = linalg.half_log_determinant(corner).tolist()
        grown = linalg.extend(factor, u, corner), torch.cat([y, rows], 1), torch.cat([a, sides], 1)
        made = []
        for i, (leaf, observed, _) in enumerate(some):
            here, one = slice(i, i + 1), rows[i : i + 1]
            information = torch.baddbmm(leaf.sent.information, one.mT, one, alpha=-1)
            sent = Inbox(information, torch.baddbmm(leaf.sent.mean, one.mT, sides[here], alpha=-1))
            parts = grown[0][here], grown[1][here], grown[2][here]
            together = Observed.join([leaf.data, observed])
            made.append(_leaf(leaf.key, together, parts, sent, leaf.half + halves[i]))
        return made

    def relabel(self, leaf: Leaf, b: Tensor) -> Leaf:
        """A leaf with other observations (n, k) at its points."""
        a = linalg.whiten_(leaf.factor, b[None].clone())
        data = Observed(leaf.data.points, leaf.data.number, b, leaf.data.noise)
        sent = Inbox(leaf.sent.information, -(leaf.whitened.mT @ a))
        return _leaf(leaf.key, data, (leaf.factor, leaf.whitened, a), sent, leaf.half)

    # Inner nodes ------------------------------------------------------------------------------------

    def nodes(self, drafts: Sequence[Draft]) -> list[Inner]:
        """Inner nodes of frames and children, all of which are made."""

        def work(some: Sequence[Draft]) -> list[Inner]:
            inbox = self._heard([children for _, children in some])
            which = torch.arange(len(some), device=inbox.mean.device)
            given = NodeInput(stack([frame.transfer for frame, _ in some]), None, None, which)
            box = Inbox.empty(len(some), self.rank, inbox.mean[0])
            parts = _parts(node_up(inbox, given, box), box)
            return [_inner(draft, part) for draft, part in zip(some, parts, strict=True)]

        return self._each(work, drafts)

    def chain(self, fresh: Node, above: Sequence[tuple[Inner, int]]) -> list[Inner]:
        """The nodes on the way from a node that is new to the root, each with its number among the children.

        In one go, since a single update does little else.
        """
        others = [tuple(c for i, c in enumerate(node.children) if i != new) for node, new in above]
        inbox = self._heard([(fresh, *others[0]), *others[1:], ()])
        done = chain_up(inbox, stack([node.frame.transfer for node, _ in above]))
        box = _sent(done)
        made: list[Inner] = []
        for (node, new), part in zip(above, _parts(done, box), strict=True):
            children = [*node.children]
            children[new] = made[-1] if made else fresh
            made.append(_inner((node.frame, tuple(children)), part))
        return made

    def _heard(self, children: "Sequence[tuple[Node, ...]]") -> Inbox:
        """What each of some nodes hears of its children, of which it may have none."""
        some = next(child for each in children for child in each).sent.mean
        inbox = Inbox.empty(len(children), self.rank, some[0])
        for information, mean, each in zip(inbox.information, inbox.mean, children, strict=True):
            for child in each:
                information += child.sent.information[0]
                mean += child.sent.mean[0]
        return inbox

    def _each(self, work: Callable[[Sequence[Any]], list[Made]], items: Sequence[Any]) -> list[Made]:
        """Stacks of a few items on all cores."""
        if len(items) <= _AT_ONCE:
            return work(items) if items else []
        stacks = [items[i : i + _AT_ONCE] for i in range(0, len(items), _AT_ONCE)]
        return [made for some in parallel_map(work, stacks, self.device) for made in some]


def _leaf(
    key: int, data: Observed, parts: tuple[Tensor, Tensor, Tensor], sent: Inbox, half: float
) -> Leaf:  # fmt: skip
    factor, whitened, a = map(_own, parts)
    wide = a[0].double()
    return Leaf(key, data, factor, whitened, a, sent, half, wide.mT @ wide)


def _sent(made: tuple[Tensor, ...]) -> Inbox:
    """What nodes send, from what `node_up` returns for them: −Θ = I − M and −t = −M q."""
    packed, diagonal, _, _, q, _ = made
    m = linalg.unpack(packed, diagonal)[1].neg_()
    mean = m @ q
    m.diagonal(dim1=-2, dim2=-1).add_(1)
    return Inbox(m, mean)


Part: TypeAlias = "tuple[tuple[Tensor, ...], Inbox, Tensor, float]"  # of what becomes of an inner node


def _parts(made: tuple[Tensor, ...], box: Inbox) -> list[Part]:
    """Node by node: what `node_up` returns, what is sent, the share of the gram, half the log-determinant.

    The gram of all below is Σ aᵀa − Σ (νᵀν − qᵀ M q), and M q is −t, with its sign changed.
    """
    *tensors, half = made
    nu, q = tensors[3].double(), tensors[4].double()
    own = torch.baddbmm(nu.mT @ nu, q.mT, box.mean.double())
    return list(zip(zip(*map(apart, tensors), strict=True), _rows(box), own, half.tolist(), strict=True))


def _inner(draft: Draft, part: Part) -> Inner:
    (frame, children), ((packed, diagonal, h, nu, q), sent, own, half) = draft, part
    size, below = sum(child.size for child in children), sum(child.half for child in children)
    gram = _sum([child.gram for child in children]).sub_(own)
    return Inner(frame, children, (packed, diagonal, h), nu, q, sent, size, half + below, gram)


def _own(part: Tensor) -> Tensor:
    """A part of a stack in memory of its own."""
    whole = part.is_contiguous() and part.untyped_storage().nbytes() == part.numel() * part.element_size()
    return part if whole else part.clone(memory_format=torch.contiguous_format)


def _rows(box: Inbox) -> list[Inbox]:
    parts = zip(apart(box.information), apart(box.mean), strict=True)
    return [Inbox(information, mean) for information, mean in parts]


def _sum(parts: list[Tensor]) -> Tensor:
    return parts[0] + parts[1] if len(parts) == 2 else parts[0].clone()
