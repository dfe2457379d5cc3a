"""Solutions with a kernel that a tree makes: sweeps up and down."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from hck.approximations.factorization import Factorization, Solution, normal
from hck.backend import linalg
from hck.backend.caches import cached_property
from hck.backend.random import Random, RandomLike, as_random
from hck.hierarchy.factor import Factor
from hck.hierarchy.gradient import likelihood_gradient
from hck.hierarchy.likelihood import quadratic_form
from hck.hierarchy.predictor import TreePredictor, descend
from hck.hierarchy.sample import TreePaths, sample_functions, sample_prior
from hck.hierarchy.smooth import Filtered, filter_up
from hck.hierarchy.uncertainty import Uncertainty
from hck.points import PointsLike, as_points_like

if TYPE_CHECKING:
    from hck.approximations.hierarchical import TreeKernel


class TreeFactorization(Factorization):
    """K_h + noise by a sweep up the tree; the noise (n + 1,) is in the tree's order, and a 0.

    Points of infinite noise do not count: the factor has leaves without them.
    """

    approximation: "TreeKernel"

    def __init__(self, approximation: "TreeKernel", noise: Tensor, factor: Factor) -> None:
        self.approximation, self.noise, self.factor = approximation, noise, factor
        self.log_determinant = factor.log_determinant

    def solve_columns(self, b: Tensor) -> Tensor:
        return self.factor.solve(b)

    def solution(self, b: Tensor) -> "TreeSolution":
        return TreeSolution(self, filter_up(self.factor, self.factor.layout.pad(b, self.noise)))

    def inverse_diagonal(self) -> Tensor:
        return self.factor.inverse_diagonal()

    @cached_property
    def uncertainty(self) -> Uncertainty:
        """Prepared when it is first asked for, so that means alone do not pay for it."""
        source = self.approximation.blueprint
        return linalg.without_waiting(lambda: Uncertainty(source, self.factor), self.factor.device)

    def variance(self, x: PointsLike, verbose: bool = False) -> Tensor:
        return self.uncertainty.variance(x, verbose)

    def slope_variance(self, x: PointsLike, verbose: bool = False) -> Tensor:
        return self.uncertainty.slope_variance(x, verbose)

    def covariance(self, x: PointsLike) -> Tensor:
        return self.uncertainty.covariance(x)

    def sample(self, x: PointsLike, count: int, generator: RandomLike) -> tuple[Tensor, Tensor]:
        """At any number of points, in O((n + points) r) for each draw.

        Matheron's rule: a draw of f at old and new points together, corrected by what is expected at the new
        points of the difference between observations, of 0, and the draw.
        """
        source, n = self.approximation.blueprint, len(self.approximation)
        x, show = as_points_like(x, source.points), source.verbose
        joint = source.join(x)
        random = as_random(generator)
        drawn = linalg.without_waiting(lambda: sample_prior(joint, count, random.child(0), show), x.device)
        old, new = drawn[:n], drawn[n:]  # the old in the tree's order
        correction, error = self._correction(old, random.child(1))
        return new + correction(x), error

    def functions(self, count: int, generator: RandomLike, n_waves: int) -> tuple[TreePaths, Tensor]:
        """By the same rule, of draws that can be evaluated anywhere; see `sample_functions`."""
        source, random = self.approximation.blueprint, as_random(generator)

        def work() -> tuple[TreePaths, Tensor]:
            paths, old = sample_functions(source, count, random.child(0), n_waves)
            correction, error = self._correction(old, random.child(1))
            return paths.plus(correction), error

        return linalg.without_waiting(work, source.points.device)

    def _correction(self, old: Tensor, random: Random) -> tuple[TreePredictor, Tensor]:
        """What is expected of the difference between observations of 0 and draws (n, count), and it."""
        n, count = old.shape
        error = -old - self.noise[:-1, None].sqrt() * normal(n, count, old, random)
        padded = torch.cat([error, error.new_zeros(1, count)])
        return TreeSolution(self, filter_up(self.factor, padded)).predictor, self.factor.layout.unsort(error)


class TreeSolution(Solution):
    """(K_h + noise)⁻¹ b for right-hand sides that have gone up the tree."""

    factorization: TreeFactorization

    def __init__(self, factorization: TreeFactorization, filtered: Filtered) -> None:
        super().__init__(factorization, factorization.factor.layout.unpad(filtered.b))
        self.filtered = filtered

    @cached_property
    def weights(self) -> Tensor:
        return self.factorization.factor.layout.unsort(self.predictor.weights)

    @cached_property
    def predictor(self) -> TreePredictor:
        return descend(self.factorization.approximation.blueprint, self.factorization.factor, self.filtered)

    def combine(self, change: Tensor) -> "TreeSolution":
        return TreeSolution(self.factorization, self.filtered.map(lambda x: x @ change.to(x)))

    def fitted(self) -> Tensor:
        """Leaf by leaf, without the blocks of K_h."""
        layout = self.factorization.factor.layout
        return layout.unsort(self.predictor.at_points(layout.leaves))

    def gram(self) -> Tensor:
        return quadratic_form(self.factorization.factor, self.filtered)

    @cached_property
    def _gradient(self) -> tuple[list[Tensor], Tensor]:
        """By the kernel's tensors and by the noise, which come from one sweep."""
        source = self.factorization.approximation.blueprint
        return likelihood_gradient(source, self.factorization.factor, self.filtered)

    def kernel_gradient(self) -> list[Tensor]:
        return self._gradient[0]

    def noise_gradient(self) -> Tensor:
        return self._gradient[1]
