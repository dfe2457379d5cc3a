"""What is minimised: Σ weight ℓ(intercept + f, y) + ½ α ‖f‖², with f = K̃ w and ‖f‖² = wᵀ K̃ w."""

from dataclasses import dataclass

import torch
from torch import Tensor

from hck.approximations import Factorization, Predictor
from hck.losses.base import Loss


@dataclass(frozen=True)
class Problem:
    """A loss of some observations, at all predictions around an intercept.

    Examples
    --------
    >>> import torch
    >>> from hck.losses import Absolute, Problem
    >>> problem = Problem.of(Absolute(), torch.tensor([1.0, 2.0, 9.0], dtype=torch.float64))
    >>> problem.intercept, problem.value(torch.zeros(3, 1))  # the median, and what it costs
    (tensor([2.], dtype=torch.float64), 8.0)
    """

    loss: Loss
    y: Tensor  # (n,): float64, or numbers of classes
    weight: Tensor | None  # (n,); None: 1
    intercept: Tensor  # (columns,)

    @classmethod
    def of(cls, loss: Loss, y: Tensor, weight: Tensor | None = None) -> "Problem":
        """With the best constant as the intercept; ValueError for a y that cannot be."""
        loss.check(y)
        share = torch.ones(len(y), dtype=torch.float64, device=y.device) if weight is None else weight
        return cls(loss, y, weight, loss.constant(y, share / share.sum()))

    def to(self, device: torch.device) -> "Problem":
        """The same on a device."""
        weight = None if self.weight is None else self.weight.to(device)
        return Problem(self.loss, self.y.to(device), weight, self.intercept.to(device))

    def take(self, rows: Tensor) -> "Problem":
        """Of some observations, around the same intercept."""
        weight = None if self.weight is None else self.weight[rows]
        return Problem(self.loss, self.y[rows], weight, self.intercept)

    @property
    def relative_weight(self) -> Tensor:
        """Weights over their mean: shape (n,), or (1,) where all are 1."""
        if self.weight is None:
            return torch.ones(1, dtype=torch.float64, device=self.y.device)
        return self.weight / self.weight.mean()

    def _weighted(self, each: Tensor) -> Tensor:
        if self.weight is None:
            return each
        return each * (self.weight if each.ndim == 1 else self.weight[:, None])

    def value(self, f: Tensor) -> float:
        """Σ weight ℓ, for f (n, columns)."""
        return float(self._weighted(self.loss.value(f + self.intercept, self.y)).sum())

    def slope(self, f: Tensor) -> Tensor:
        """Its gradient: shape (n, columns)."""
        return self._weighted(self.loss.slope(f + self.intercept, self.y))

    def curvature(self, f: Tensor) -> Tensor:
        """Its second derivative, or a bound of it: shape (n,)."""
        return self._weighted(self.loss.curvature(f + self.intercept, self.y))

    def bend(self, f: Tensor, change: Tensor) -> Tensor:
        """By how much the gradient at f changes with f: shape (n, columns)."""
        return self._weighted(self.loss.bend(f + self.intercept, self.y, change))


@dataclass(frozen=True)
class Certificate:
    """How near a minimum is.

    Attributes
    ----------
    n_iter : int
        Factorizations that were made.
    gradient : float
        ‖∇ Σ ℓ + α w‖ over that at w = 0; for losses that are not smooth the duality gap over the objective.
    objective : list of float
        After each step, and before the first.
    converged : bool

    Examples
    --------
    >>> import torch
    >>> from hck.approximations import make_approximation
    >>> from hck.losses import Logistic, Problem, minimise
    >>> x = torch.linspace(0, 1, 100, dtype=torch.float64)[:, None]
    >>> made = make_approximation("hierarchical", "gaussian", x, rank=10, generator=0)
    >>> found = minimise(made, Problem.of(Logistic(), (x[:, 0] > 0.3).long()), alpha=0.1)
    >>> found.certificate.converged, found.certificate.gradient < 1e-6
    (True, True)
    """

    n_iter: int
    gradient: float
    objective: list[float]
    converged: bool


@dataclass(frozen=True)
class Minimum:
    """Where Σ ℓ + ½ α ‖f‖² is least, with what follows from the last factorization.

    Examples
    --------
    >>> import torch
    >>> from hck.approximations import make_approximation
    >>> from hck.losses import Poisson, Problem, minimise
    >>> x = torch.linspace(0, 1, 100, dtype=torch.float64)[:, None]
    >>> made = make_approximation("hierarchical", "gaussian", x, rank=10, generator=0)
    >>> found = minimise(made, Problem.of(Poisson(), (10 * x[:, 0]).round()), alpha=0.1)
    >>> found.fitted.shape, found.left_out().shape
    (torch.Size([100, 1]), torch.Size([100, 1]))
    >>> bool((found.predictor()(x) - found.fitted).abs().max() < 1e-4)
    True
    """

    weights: Tensor  # w (n, columns)
    fitted: Tensor  # f = K̃ w (n, columns), without the intercept
    noise: Tensor  # (n,): α over the curvature; infinite where w was 0 in the last step
    factorization: Factorization  # of K̃ + noise
    certificate: Certificate

    @property
    def response(self) -> Tensor:
        """What least squares would have to observe to find the same, (n, columns): (K̃ + noise) w."""
        return self.fitted + self.noise.where(self._counted, 0.0)[:, None] * self.weights

    @property
    def _counted(self) -> Tensor:
        return self.noise.isfinite()

    def predictor(self) -> Predictor:
        """x ↦ k̃(x, X) w."""
        if self.weights[~self._counted].any():
            return self.factorization.approximation.extend(self.weights)
        return self.factorization.predictor(self.response)

    def left_out(self) -> Tensor:
        """f at each point without it, by one step of Newton's method from here: shape (n, columns)."""
        diagonal = self.factorization.inverse_diagonal().double()
        eps = torch.finfo(self.factorization.approximation.dtype).eps
        diagonal = diagonal.clamp_min(eps * float(diagonal.max()))
        known = (1 / diagonal - self.noise).clamp_min(0)  # the variance of f at a point by all others
        known = known.where(self._counted, 0.0)  # others would not miss them
        return self.fitted - known[:, None] * self.weights
