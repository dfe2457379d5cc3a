"""The hierarchically compositional kernel on a set of training points."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hck.backend import linalg
from hck.backend.random import RandomLike
from hck.hierarchy.blueprint import Blueprint, build_matrix
from hck.hierarchy.factor import Factor
from hck.hierarchy.matrix import HierarchicalMatrix, Stored, sweep
from hck.hierarchy.predictor import Room, TreePredictor, visits
from hck.hierarchy.smooth import Weights
from hck.kernels import Kernel
from hck.kernels.registry import KernelLike
from hck.partition import Landmarks, Tree
from hck.points import DensePoints, Points, PointsLike, as_points_like, as_tensor, cross
from hck.settings import LandmarksLike, MemoryBudget, PartitionLike, Settings


@dataclass
class HierarchicalKernel:
    """The matrix K_h of the hierarchical kernel on training points, and all that can be done with it.

    Made by `HierarchicalKernel.build`. Rows and columns are in the original order of the points.

    Examples
    --------
    >>> import torch
    >>> from hck.hierarchy import HierarchicalKernel
    >>> from hck.kernels import Gaussian
    >>> x = torch.linspace(0, 1, 1000, dtype=torch.float64)[:, None]
    >>> hierarchical = HierarchicalKernel.build(Gaussian(0.1), x, rank=20)
    >>> factor = hierarchical.factor(0.01)
    >>> w = factor.solve(torch.sin(6 * x[:, 0]))
    >>> (hierarchical @ w + 0.01 * w - torch.sin(6 * x[:, 0])).abs().max() < 1e-9
    tensor(True)
    """

    blueprint: Blueprint  # the base kernel, the points in the tree's order, the tree and the landmarks
    landmark_factor: Tensor  # C (slots, r, r) of K(Z, Z) + jitter·I for the landmarks Z of each inner node
    matrix: HierarchicalMatrix  # K_h

    @classmethod
    def build(
        cls,
        kernel: KernelLike,
        x: PointsLike,
        rank: int,
        leaf_size: int | None = None,
        partition: PartitionLike = "random_projection",
        landmarks: LandmarksLike = "uniform",
        jitter: float | None = None,
        memory_budget: MemoryBudget = None,
        generator: RandomLike = None,
        verbose: bool = False,
    ) -> "HierarchicalKernel":
        """Partition the points, choose landmarks, and compute the structured matrix.

        Parameters
        ----------
        kernel : Kernel, or what `hck.kernels.make_kernel` takes
        x : Points, array-like of shape (n, d), sparse matrix, or, for a function as the kernel, any sequence
            A tensor stays on its device and keeps its dtype; all else is float64 on the CPU.
        rank : int
            r, the number of landmarks of an inner node.
        leaf_size : int or None
            n₀; see `hck.partition.make_tree`, also for `partition`. Pass the `tree` of another
            HierarchicalKernel as `partition` to keep it.
        landmarks : see `hck.partition.choose_landmarks`
        jitter : float or None
            λ' ≥ 0, added to the landmarks' kernel matrices. None: 1e-8 in float64, 1e-4 in float32, times
            the mean of k(x, x) over a few points.
        memory_budget : int, float, str or None
            For temporaries; see `hck.backend.memory.resolve_budget`.
        generator : torch.Generator or int, optional
        verbose : bool, default=False
            Show progress.
        """
        if isinstance(x, np.ndarray | torch.Tensor | DensePoints):
            array = x.x if isinstance(x, DensePoints) else x if isinstance(x, torch.Tensor) else as_tensor(x)
            if array.is_floating_point() and not torch.isfinite(array).all():
                raise ValueError("the points contain NaN or infinity")
        settings = Settings(rank, leaf_size, partition, landmarks, jitter, memory_budget, verbose)
        return cls.of(Blueprint.of(kernel, x, settings, generator))

    @classmethod
    def of(cls, blueprint: Blueprint) -> "HierarchicalKernel":
        """The structured matrix of a blueprint."""
        matrix, factor = linalg.without_waiting(lambda: build_matrix(blueprint), blueprint.points.device)
        return cls(blueprint, factor, matrix)

    def __matmul__(self, b: Tensor) -> Tensor:
        """K_h b (Algorithm 1)."""
        return self.matrix @ b

    def to_dense(self) -> Tensor:
        """K_h, (n, n). For small n."""
        return self.matrix.to_dense()

    def diagonal(self) -> Tensor:
        """The diagonal of K_h, which is that of the base kernel."""
        return self.matrix.diagonal()

    @property
    def kernel(self) -> Kernel:
        """The base kernel."""
        return self.blueprint.kernel

    @property
    def points(self) -> Points:
        """The training points in the tree's order."""
        return self.blueprint.points

    @property
    def tree(self) -> Tree:
        """The partition of the points."""
        return self.blueprint.layout.tree

    @property
    def landmarks(self) -> Landmarks:
        """Of the inner nodes."""
        return self.blueprint.landmarks

    @property
    def jitter(self) -> float:
        """λ', that was added to the landmarks' kernel matrices."""
        return self.blueprint.jitter

    @property
    def budget(self) -> int:
        """Bytes that temporaries should stay within."""
        return self.blueprint.budget

    def factor(self, noise: float | Tensor, overwrite: bool = False, verbose: bool = False) -> Factor:
        """Factor K_h + noise (Algorithm 2).

        Parameters
        ----------
        noise : float or Tensor of shape (n,)
            λ, or a variance for each point.
        overwrite : bool, default=False
            Save memory: this object can then neither multiply nor be factored again.
        verbose : bool, default=False
            Show progress.
        """
        source, padded = Stored(self.matrix, overwrite, self.budget, verbose), self.blueprint.pad_noise(noise)
        if not overwrite:
            return linalg.without_waiting(lambda: Factor(source, padded), padded.device)
        with torch.no_grad():
            return Factor(source, padded)

    @torch.no_grad()
    def extend(self, w: Tensor) -> TreePredictor:
        """x ↦ wᵀ k_h(X, x) for new points x (Algorithm 3)."""
        padded = self.matrix.layout.pad(w, self.matrix.transfer)
        return self.predictor(Weights(padded, self._heard(self.matrix.collect(padded))))

    @torch.no_grad()
    def solution(self, factor: Factor, b: Tensor) -> TreePredictor:
        """x ↦ wᵀ k_h(X, x) for the solution w of (K_h + noise) w = b, given a factor: ridge regression."""
        padded = self.matrix.layout.pad(b, self.landmark_factor)
        return self.predictor(factor.solve_padded(padded))

    def predictor(self, weights: Weights) -> TreePredictor:
        """The function of weights and of what the leaves hear of them, which is overwritten."""
        source = self.blueprint.part(self.matrix.layout)
        for level, (first, stop) in enumerate(source.layout.levels):
            source.factors[level] = self.landmark_factor[first:stop]
        source.put_landmark_weights(weights.ambient)
        return TreePredictor.of(source, weights)

    @torch.no_grad()
    def cross(self, x: PointsLike) -> Tensor:
        """k_h(X, x) for new points: shape (n, number of new points). For few of them."""
        tree, points, layout, rank = self.tree, self.points, self.matrix.layout, self.landmarks.rank
        x = as_points_like(x, points)
        message = torch.zeros(tree.n_leaves, rank, len(x), dtype=x.dtype, device=x.device)
        near = torch.zeros(tree.n_points + 1, len(x), dtype=x.dtype, device=x.device)
        for visit in visits(tree, layout.leaves, x, Room(rank, self.budget)):
            parent = tree.leaf_parent[visit.leaf]
            column = visit.new.index[:, None, :]
            keep = (visit.new.mask[:, None, :] & visit.own.mask[:, :, None]).nonzero(as_tuple=True)
            values = cross(self.kernel, points, visit.own, x, visit.new)
            rows = visit.own.index[:, :, None].expand_as(values)[keep]
            near[rows, column.expand_as(values)[keep]] = values[keep]
            far = cross(self.kernel, self.landmarks.points, self.landmarks.blocks[parent], x, visit.new)
            phi = linalg.whiten_(self.landmark_factor, far, parent)  # (leaves, r, width)
            for leaf, columns, block in zip(visit.leaf, visit.new.index, phi, strict=True):
                message[leaf][:, columns[columns >= 0]] = block[:, columns >= 0]
        heard = self._heard(message)
        for batch, basis in zip(layout.leaves, self.matrix.basis, strict=True):
            near[batch.index] += basis @ heard[batch.groups]
        return layout.unpad(near)

    def _heard(self, message: Tensor) -> Tensor:
        """What each leaf hears of the messages of all others: (leaves, r, columns)."""
        own = sweep(self.matrix.layout, self.matrix.transfer, None, message)
        return own[self.tree.leaf_parent] - message

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes, the training points not counted."""
        return self.matrix.nbytes + self.landmark_factor.nbytes
