"""Kernels that a tree makes, behind the protocol: hierarchical, compositional, independent, exact."""

from dataclasses import replace

import torch
from torch import Tensor

from hck.approximations.base import Approximation
from hck.approximations.tree_solution import TreeFactorization, TreeSolution
from hck.backend import linalg
from hck.backend.caches import cached_property
from hck.backend.random import RandomLike, as_random
from hck.branches.ridge import bytes_needed, ridge
from hck.hierarchy import Blueprint, HierarchicalKernel
from hck.hierarchy.factor import Factor
from hck.hierarchy.forest import Predictor
from hck.hierarchy.sample import sample_prior
from hck.kernels import Kernel, make_kernel
from hck.kernels.registry import KernelLike
from hck.partition import Tree, make_tree
from hck.points import Points, PointsLike, VectorPoints, as_points
from hck.settings import Option, Settings

TREE_KERNELS = ("hierarchical", "compositional", "independent", "exact")


def make_blueprint(
    kernel: KernelLike, x: PointsLike, settings: Settings, generator: RandomLike = None
) -> Blueprint:
    """The blueprint of a kernel that a tree makes; `settings.approximation` says of which kind.

    - ``"hierarchical"``: exact within leaves, and across them by the landmarks of their common ancestors;
    - ``"compositional"``: the same leaves, but all of them children of the root, so that there is one set of
      landmarks (the paper's Section 2.1);
    - ``"independent"``: exact within leaves, and 0 across them;
    - ``"exact"``: the base kernel itself; there is one leaf.

    With ``leaf_size=None`` leaves hold between r and 2r points, whatever the kind.
    """
    kind, kernel = settings.approximation, make_kernel(kernel)
    if kind not in TREE_KERNELS:
        raise ValueError(f"unknown kind {kind!r}; known: {', '.join(TREE_KERNELS)}")
    points = as_points(x, objects=kernel.takes_objects)
    if kind == "exact":
        partition = "random_projection" if isinstance(points, VectorPoints) else "kernel"
        settings = replace(settings, leaf_size=max(1, len(points)), partition=partition, landmarks="uniform")
    elif kind != "hierarchical":
        generator = as_random(generator)
        kernel = kernel.to(points.device, points.dtype)
        tree = make_tree(
            settings.partition, points, kernel, settings.rank, settings.leaf_size, generator.child(0)
        )
        landmarks = "none" if kind == "independent" else settings.landmarks
        settings = replace(settings, partition=tree.flat(), landmarks=landmarks)
    return Blueprint.of(kernel, points, settings, generator)


class TreeKernel(Approximation):
    """A kernel that a tree makes, of a blueprint; made by `TreeKernel.of`.

    Examples
    --------
    >>> import torch
    >>> from hck.approximations import TreeKernel
    >>> x = torch.linspace(0, 1, 100, dtype=torch.float64)[:, None]
    >>> made = TreeKernel.of("hierarchical", "matern32", x, rank=10, generator=0)
    >>> made.tree.n_leaves
    8
    >>> made.cross([[0.5]]).shape  # kernel values of all points with a new one
    torch.Size([100, 1])
    """

    can_ignore = True

    def __init__(self, blueprint: Blueprint) -> None:
        self.blueprint = blueprint

    @classmethod
    def of(
        cls,
        kind: str,
        kernel: KernelLike,
        x: PointsLike,
        rank: int,
        generator: RandomLike = None,
        **options: Option,
    ) -> "TreeKernel":
        """Of a kind (see `make_blueprint`), with more of the options of `hck.settings.Settings`."""
        return cls(make_blueprint(kernel, x, Settings(rank, approximation=kind, **options), generator))

    @classmethod
    def from_settings(
        cls, kernel: Kernel, points: Points, settings: Settings, generator: RandomLike
    ) -> "TreeKernel":
        """Of a kernel, on training points, with the tree and landmarks of the settings."""
        return cls(make_blueprint(kernel, points, settings, generator))

    @property
    def kernel(self) -> Kernel:  # type: ignore[override]
        return self.blueprint.kernel

    @cached_property
    def points(self) -> Points:
        layout = self.blueprint.layout
        return self.blueprint.points.take(layout.unsort(torch.arange(len(self), device=layout.tree.device)))

    @property
    def tree(self) -> Tree:
        return self.blueprint.layout.tree

    def __getstate__(self) -> dict[str, object]:
        return {"blueprint": self.blueprint}

    def __len__(self) -> int:
        return len(self.blueprint.points)

    @property
    def dtype(self) -> torch.dtype:
        return self.blueprint.points.dtype

    @property
    def device(self) -> torch.device:
        return self.blueprint.points.device

    @cached_property
    def matrix(self) -> HierarchicalKernel:
        """All blocks, computed when they are first needed."""
        return HierarchicalKernel.of(self.blueprint)

    def product(self, b: Tensor) -> Tensor:
        return self.matrix @ b

    def cross(self, x: PointsLike) -> Tensor:
        return self.matrix.cross(x)

    def extend(self, weights: Tensor) -> Predictor:
        return self.matrix.extend(self.columns(weights))

    def with_kernel(self, kernel: Kernel, jitter: float | None = None) -> "TreeKernel":
        return TreeKernel(self.blueprint.with_kernel(kernel, jitter))

    @property
    def nbytes(self) -> int:
        return self.matrix.nbytes

    def draw(self, count: int, generator: RandomLike, verbose: bool = False) -> Tensor:
        return sample_prior(self.blueprint, count, generator, verbose)

    def factor(self, noise: float | Tensor) -> TreeFactorization:
        nothing = torch.zeros(len(self), 0, dtype=self.dtype, device=self.device)
        return self.solve(noise, nothing).factorization

    def solve(self, noise: float | Tensor, b: Tensor) -> TreeSolution:
        """(K_h + noise)⁻¹ b; the right-hand sides go up the tree together with the factorization."""
        source = self.blueprint
        variance = source.pad_noise(noise)
        counted = variance[:-1].isfinite()
        if not counted.all():
            source = source.part(source.layout.among(counted))
        padded = source.layout.pad(b, variance)
        factor = linalg.without_waiting(lambda: Factor(source, variance, padded), variance.device)
        return TreeSolution(TreeFactorization(self, variance, factor), factor.filtered)

    # Within the memory budget ------------------------------------------------------------------------

    def factor_bytes(self, columns: int = 1) -> int:
        """What a factorization, and solutions of so many columns, take."""
        return bytes_needed(self.blueprint, columns, 0)[0]

    def can_leave_out(self, columns: int = 1) -> bool:
        return self.factor_bytes(columns) <= self.blueprint.budget

    def ridge(
        self, noise: float | Tensor, b: Tensor, left_out: bool = False
    ) -> tuple[Predictor, Tensor | None]:
        if left_out and self.can_leave_out(b.shape[1] if b.ndim == 2 else 1):
            return super().ridge(noise, b, left_out)
        return ridge(self.blueprint, noise, b), None  # which need not keep the factor
