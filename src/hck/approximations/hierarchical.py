"""Kernels that a tree makes, behind the protocol: hierarchical, compositional, independent, exact."""

from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor

from hck.approximations.base import Approximation
from hck.approximations.factorization import Factorization, Solution
from hck.backend import linalg
from hck.hierarchy import Blueprint, HierarchicalKernel
from hck.hierarchy.extend import TreePredictor
from hck.hierarchy.factor import Factor
from hck.hierarchy.forest import Predictor
from hck.hierarchy.gradient import likelihood_gradient
from hck.hierarchy.likelihood import quadratic_form
from hck.hierarchy.ridge import bytes_needed, ridge
from hck.hierarchy.sample import sample_prior
from hck.hierarchy.smooth import Filtered, filter_up
from hck.hierarchy.solve import descend
from hck.hierarchy.uncertainty import Uncertainty
from hck.kernels import Kernel, make_kernel
from hck.partition import Tree, make_tree
from hck.points import Points, VectorPoints, as_points, as_points_like
from hck.settings import Settings

KINDS = ("hierarchical", "compositional", "independent", "exact")


def make_blueprint(
    kernel: Any, x: Any, settings: Settings, generator: torch.Generator | None = None
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
    if kind not in KINDS:
        raise ValueError(f"unknown kind {kind!r}; known: {', '.join(KINDS)}")
    points = as_points(x, objects=kernel.takes_objects)
    if kind == "exact":
        partition = "random_projection" if isinstance(points, VectorPoints) else "kernel"
        settings = replace(settings, leaf_size=max(1, len(points)), partition=partition, landmarks="uniform")
    elif kind != "hierarchical":
        generator = torch.Generator(points.device).manual_seed(0) if generator is None else generator
        kernel = kernel.to(points.device, points.dtype)
        tree = make_tree(settings.partition, points, kernel, settings.rank, settings.leaf_size, generator)
        landmarks = "none" if kind == "independent" else settings.landmarks
        settings = replace(settings, partition=tree.flat(), landmarks=landmarks)
    return Blueprint.of(kernel, points, settings, generator)


class TreeKernel(Approximation):
    """A kernel that a tree makes.

    Made by `TreeKernel.of`.

    Attributes
    ----------
    blueprint : Blueprint
    """

    def __init__(self, blueprint: Blueprint) -> None:
        self.blueprint = blueprint

    @classmethod
    def of(
        cls, kind: str, kernel: Any, x: Any, rank: int, generator: torch.Generator | None = None, **more: Any
    ) -> "TreeKernel":
        """Of a kind (see `make_blueprint`), with more options of `HierarchicalKernel.build`."""
        return cls(make_blueprint(kernel, x, Settings(rank, approximation=kind, **more), generator))

    @property
    def kernel(self) -> Kernel:  # type: ignore[override]
        return self.blueprint.kernel

    @cached_property
    def points(self) -> Points:  # type: ignore[override]
        layout = self.blueprint.layout
        return self.blueprint.points.take(
            layout.unsort(torch.arange(layout.tree.n_points, device=layout.tree.device))
        )

    @property
    def tree(self) -> Tree:
        return self.blueprint.layout.tree

    def __getstate__(self) -> dict[str, Any]:
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

    def __matmul__(self, b: Tensor) -> Tensor:
        out = self.matrix @ self.columns(b)
        return out if b.ndim == 2 else out[:, 0]

    def cross(self, x: Any) -> Tensor:
        return self.matrix.cross(x)

    def extend(self, weights: Tensor) -> Predictor:
        return self.matrix.extend(self.columns(weights))

    def with_kernel(self, kernel: Kernel, jitter: float | None = None) -> "TreeKernel":
        return TreeKernel(self.blueprint.with_kernel(kernel, jitter))

    @property
    def nbytes(self) -> int:
        return self.matrix.nbytes

    def draw(self, count: int, generator: torch.Generator, verbose: bool = False) -> Tensor:
        return sample_prior(self.blueprint, count, generator, verbose)

    def factor(self, noise: float | Tensor) -> "TreeFactorization":
        nothing = torch.zeros(len(self), 0, dtype=self.dtype, device=self.device)
        return self.solve(noise, nothing).factor

    def solve(self, noise: float | Tensor, b: Tensor) -> "TreeSolution":
        """(K_h + noise)⁻¹ b; the right-hand sides go up the tree together with the factorization."""
        source = self.blueprint
        variance = source.pad_noise(noise)
        padded = source.layout.pad(b, variance)
        sweep = partial(Factor, source, variance, source.budget, padded, verbose=source.verbose)
        factor = linalg.without_waiting(sweep, variance.device)
        return TreeSolution(TreeFactorization(self, variance, factor), factor.filtered)

    # Within the memory budget ------------------------------------------------------------------------

    @property
    def factor_bytes(self) -> int:
        """What a factorization takes."""
        return bytes_needed(self.blueprint, 1, 0)[0]

    @property
    def fits(self) -> bool:
        """Whether a factorization fits into the memory budget."""
        return self.factor_bytes <= self.blueprint.budget

    def can_leave_out(self, columns: int = 1) -> bool:
        return bytes_needed(self.blueprint, columns, 0)[0] <= self.blueprint.budget

    def ridge(
        self, noise: float | Tensor, b: Tensor, left_out: bool = False
    ) -> tuple[Predictor, Tensor | None]:  # fmt: skip
        if not (left_out and self.can_leave_out(b.shape[1] if b.ndim == 2 else 1)):
            return ridge(self.blueprint, noise, b), None  # which need not keep the factor
        solution = self.solve(noise, b)
        return solution.predictor, solution.left_out()


class TreeFactorization(Factorization):
    """K_h + noise by a sweep up the tree.

    Parameters
    ----------
    noise : Tensor of shape (n + 1,)
        Variances in the tree's order, and a 0.
    factor : Factor
    """

    approximation: TreeKernel

    def __init__(self, approximation: TreeKernel, noise: Tensor, factor: Factor) -> None:
        self.approximation, self.noise, self.factor = approximation, noise, factor
        self.log_determinant = factor.log_determinant

    def solve(self, b: Tensor) -> Tensor:
        return self.factor.solve(torch.as_tensor(b, dtype=self.factor.dtype, device=self.factor.device))

    def solution(self, b: Tensor) -> "TreeSolution":
        return TreeSolution(self, filter_up(self.factor, self.factor.layout.pad(b, self.noise)))

    def inverse_diagonal(self) -> Tensor:
        return self.factor.inverse_diagonal()

    @cached_property
    def uncertainty(self) -> Uncertainty:
        """Prepared when it is first asked for, so that means alone do not pay for it."""
        source = self.approximation.blueprint
        return linalg.without_waiting(lambda: Uncertainty(source, self.factor), self.factor.device)

    def variance(self, x: Any, verbose: bool = False) -> Tensor:
        return self.uncertainty.variance(x, verbose)

    def covariance(self, x: Any) -> Tensor:
        return self.uncertainty.covariance(x)

    def sample(self, x: Any, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """At any number of points, in O((n + points) r) for each draw.

        Matheron's rule: a draw of f at old and new points together, corrected by what is expected at the new
        points of the difference between observations, of 0, and the draw.
        """
        source, layout, n = self.approximation.blueprint, self.factor.layout, len(self.approximation)
        x, show = as_points_like(x, source.points), source.verbose
        joint = source.join(x)
        drawn = linalg.without_waiting(lambda: sample_prior(joint, count, generator, show), x.device)
        old, new = drawn[:n], drawn[n:]  # the old in the tree's order
        error = torch.randn(old.shape, generator=generator, dtype=old.dtype, device=old.device)
        error = -old - self.noise[:-1, None].sqrt() * error
        padded = torch.cat([error, error.new_zeros(1, count)])
        correction = TreeSolution(self, filter_up(self.factor, padded)).predictor
        return new + correction(x), layout.unsort(error)


class TreeSolution(Solution):
    """(K_h + noise)⁻¹ b for right-hand sides that have gone up the tree."""

    factor: TreeFactorization

    def __init__(self, factor: TreeFactorization, filtered: Filtered) -> None:
        super().__init__(factor, factor.factor.layout.unpad(filtered.b))
        self.filtered = filtered

    @cached_property
    def weights(self) -> Tensor:
        return self.factor.factor.layout.unsort(self.predictor.weights)

    @cached_property
    def predictor(self) -> TreePredictor:
        return descend(self.factor.approximation.blueprint, self.factor.factor, self.filtered)

    def combine(self, change: Tensor) -> "TreeSolution":
        return TreeSolution(self.factor, self.filtered.map(lambda x: x @ change.to(x)))

    def gram(self) -> Tensor:
        return quadratic_form(self.factor.factor, self.filtered)

    @cached_property
    def _gradient(self) -> tuple[list[Tensor], Tensor]:
        """By the kernel's tensors and by the noise, which come from one sweep."""
        source = self.factor.approximation.blueprint
        return likelihood_gradient(source, self.factor.factor, self.filtered)

    def kernel_gradient(self) -> list[Tensor]:
        return self._gradient[0]

    def noise_gradient(self) -> Tensor:
        return self._gradient[1]
