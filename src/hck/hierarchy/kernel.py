"""The hierarchically compositional kernel on a set of training points."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hck.backend import linalg
from hck.hierarchy.blueprint import Blueprint, build_matrix
from hck.hierarchy.extend import TreePredictor, cross_matrix, extension, landmark_weights
from hck.hierarchy.factor import Factor
from hck.hierarchy.matrix import HierarchicalMatrix, sweep
from hck.hierarchy.source import Stored
from hck.kernels import Kernel
from hck.partition import Landmarks, Tree
from hck.points import DensePoints, Points
from hck.settings import Settings


@dataclass
class HierarchicalKernel:
    """The matrix K_h of the hierarchical kernel on training points, and all that can be done with it.

    Made by `HierarchicalKernel.build`. Rows and columns are in the original order of the points.

    Attributes
    ----------
    blueprint : Blueprint
        The base kernel, the points in the tree's order, the tree and the landmarks.
    landmark_factor : Tensor of shape (slots, r, r)
        Factors of K(Z, Z) + jitter·I for the landmarks Z of each inner node.
    matrix : HierarchicalMatrix
        K_h.

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

    blueprint: Blueprint
    landmark_factor: Tensor
    matrix: HierarchicalMatrix

    @classmethod
    def build(
        cls,
        kernel: Any,
        x: Any,
        rank: int,
        leaf_size: int | None = None,
        partition: Any = "random_projection",
        landmarks: Any = "uniform",
        jitter: float | None = None,
        memory_budget: int | float | str | None = None,
        generator: torch.Generator | None = None,
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
        generator : torch.Generator, optional
            On the device of the points.
        verbose : bool, default=False
            Show progress.
        """
        if isinstance(x, np.ndarray | torch.Tensor | DensePoints):
            array = x.x if isinstance(x, DensePoints) else torch.as_tensor(x)
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
        return self.blueprint.kernel

    @property
    def points(self) -> Points:
        """The training points in the tree's order."""
        return self.blueprint.points

    @property
    def tree(self) -> Tree:
        return self.blueprint.layout.tree

    @property
    def landmarks(self) -> Landmarks:
        return self.blueprint.landmarks

    @property
    def jitter(self) -> float:
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
        source, padded = Stored(self.matrix, overwrite), self.blueprint.pad_noise(noise)

        def work() -> Factor:
            return Factor(source, padded, self.budget, verbose=verbose)

        if not overwrite:
            return linalg.without_waiting(work, padded.device)
        with torch.no_grad():
            return work()

    @torch.no_grad()
    def extend(self, w: Tensor) -> TreePredictor:
        """x ↦ wᵀ k_h(X, x) for new points x (Algorithm 3)."""
        layout, matrix = self.matrix.layout, self.matrix
        padded = layout.pad(w, matrix.transfer)
        message = matrix.collect(padded)
        ambient = sweep(layout, matrix.transfer, None, message)[self.tree.leaf_parent] - message
        return self._extension(padded, ambient)

    @torch.no_grad()
    def solution(self, factor: Factor, b: Tensor) -> TreePredictor:
        """x ↦ wᵀ k_h(X, x) for the solution w of (K_h + noise) w = b: ridge regression.

        Parameters
        ----------
        factor : Factor
            Of this matrix; it may have been overwritten.
        b : Tensor of shape (n,) or (n, columns)
        """
        padded = self.matrix.layout.pad(b, self.landmark_factor)
        return self._extension(*factor.solve_padded(padded))

    def _extension(self, w: Tensor, ambient: Tensor) -> TreePredictor:
        """From weights and what the leaves hear of them, in the tree's order."""
        source = self.blueprint.part(self.matrix.layout)
        for level, (first, stop) in enumerate(source.layout.levels):
            source.factors[level] = self.landmark_factor[first:stop]
        landmark_weights(source, ambient)
        return extension(self.blueprint, w, ambient)

    def cross(self, x: Any) -> Tensor:
        """k_h(X, x) for new points: shape (n, number of new points). For few of them."""
        return cross_matrix(self, x)

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes, the training points not counted."""
        return self.matrix.nbytes + self.landmark_factor.nbytes
