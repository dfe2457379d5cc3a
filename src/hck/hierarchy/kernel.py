"""The hierarchically compositional kernel on a set of training points."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from hck import linalg
from hck.blocks import Batch, Blocks
from hck.hierarchy.build import build_matrix
from hck.hierarchy.extend import Extension, cross_matrix
from hck.hierarchy.factor import Factor
from hck.hierarchy.matrix import HierarchicalMatrix, sweep
from hck.kernels import Kernel, make_kernel
from hck.memory import resolve_budget
from hck.objects import looks_like_objects
from hck.parallel import for_each
from hck.partition import Landmarks, Tree, choose_landmarks, make_tree
from hck.points import Points, as_points, cross

# λ' on the landmark matrices when none is given, relative to k(x, x): it bounds their condition, and with
# it the rounding.
DEFAULT_JITTER = {torch.float64: 1e-8, torch.float32: 1e-4}


@dataclass
class HierarchicalKernel:
    """The matrix K_h of the hierarchical kernel on training points, and all that can be done with it.

    Made by `HierarchicalKernel.build`. Rows and columns are in the original order of the points.

    Attributes
    ----------
    kernel : Kernel
        The base kernel.
    points : Points
        The training points in the tree's order.
    tree : Tree
    landmarks : Landmarks
    jitter : float
    landmark_factor : Tensor of shape (slots, r, r)
        C, the Cholesky factor of K(Z, Z) + jitter·I for the landmarks Z of each inner node.
    matrix : HierarchicalMatrix
        K_h.
    budget : int
        Bytes that temporaries should stay within.

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

    kernel: Kernel
    points: Points
    tree: Tree
    landmarks: Landmarks
    jitter: float
    landmark_factor: Tensor
    matrix: HierarchicalMatrix
    budget: int

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
            For temporaries; see `hck.memory.resolve_budget`.
        generator : torch.Generator, optional
            On the device of the points.
        verbose : bool, default=False
            Show progress.
        """
        kernel = make_kernel(kernel)
        objects = kernel.takes_objects and not isinstance(x, Points) and looks_like_objects(x)
        points = as_points(x, objects=objects)
        if len(points) == 0:
            raise ValueError("there are no points")
        for name, value in (("rank", rank), ("leaf_size", leaf_size)):
            if value is not None and (value < 1 or value != int(value)):
                raise ValueError(f"{name} must be a whole number, at least 1, got {value}")
        if jitter is not None and not jitter >= 0:
            raise ValueError(f"jitter must not be negative, got {jitter}")
        generator = torch.Generator(points.device).manual_seed(0) if generator is None else generator
        tree = make_tree(partition, points, kernel, rank, leaf_size, generator)
        points = points.take(tree.order)
        chosen = choose_landmarks(landmarks, points, tree, rank, kernel, generator)
        budget = resolve_budget(memory_budget, points.device)
        if jitter is None:
            jitter = DEFAULT_JITTER[points.dtype] * _mean_variance(kernel, points)
        matrix, factor = build_matrix(kernel, points, tree, chosen, jitter, budget, verbose)
        return cls(kernel, points, tree, chosen, jitter, factor, matrix, budget)

    def __matmul__(self, b: Tensor) -> Tensor:
        """K_h b (Algorithm 1)."""
        return self.matrix @ b

    def to_dense(self) -> Tensor:
        """K_h, (n, n). For small n."""
        return self.matrix.to_dense()

    def diagonal(self) -> Tensor:
        """The diagonal of K_h, which is that of the base kernel."""
        return self.matrix.diagonal()

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
        noise = torch.as_tensor(noise, dtype=self.matrix.dtype, device=self.tree.device)
        if noise.ndim and noise.shape != (self.tree.n_points,):
            raise ValueError(
                f"noise must be a number or have shape ({self.tree.n_points},), got {tuple(noise.shape)}"
            )
        if not (noise >= 0).all():
            raise ValueError("noise must be numbers, none negative")
        return Factor(self.matrix, noise.expand(self.tree.n_points), self.budget, overwrite, verbose)

    def extend(self, w: Tensor) -> Extension:
        """x ↦ wᵀ k_h(X, x) for new points x (Algorithm 3)."""
        layout, matrix = self.matrix.layout, self.matrix
        padded = layout.pad(w, matrix.transfer)
        message = matrix.collect(padded)
        ambient = sweep(layout, matrix.transfer, None, message)[self.tree.leaf_parent] - message
        return self._extension(padded, ambient)

    def solution(self, factor: Factor, b: Tensor) -> Extension:
        """x ↦ wᵀ k_h(X, x) for the solution w of (K_h + noise) w = b: ridge regression.

        Parameters
        ----------
        factor : Factor
            Of this matrix; it may have been overwritten.
        b : Tensor of shape (n,) or (n, columns)
        """
        padded = self.matrix.layout.pad(b, self.landmark_factor)
        return self._extension(*factor.solve_padded(padded))

    def _extension(self, w: Tensor, ambient: Tensor) -> Extension:
        """From weights and what the leaves hear of them, in the tree's order."""
        landmark_weights = torch.empty_like(ambient)

        def unwhiten(batch: Batch) -> None:
            factor = self.landmark_factor[self.matrix.layout.parents(batch)]
            landmark_weights[batch.groups] = linalg.unwhiten(factor, ambient[batch.groups])

        for_each(unwhiten, self.matrix.layout.leaves, self.tree.device)
        return Extension(
            self.kernel, self.tree, self.points, self.landmarks, w[:-1], landmark_weights, self.budget
        )

    def cross(self, x: Any) -> Tensor:
        """k_h(X, x) for new points: shape (n, number of new points). For few of them."""
        return cross_matrix(self, x)

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes, the training points not counted."""
        return self.matrix.nbytes + self.landmark_factor.nbytes


def _mean_variance(kernel: Kernel, points: Points, most: int = 256) -> float:
    """The mean of k(x, x) over a few points."""
    index = torch.arange(0, len(points), max(1, len(points) // most), device=points.device)[:, None]
    single = Blocks(index, full=True)
    return float(cross(kernel, points, single, points, single).detach().mean())
