"""The kernels that have names, each with its formula.

A new kernel is a function of the distance and a class here, in ``__all__``, a line in ``docs/kernels.md``,
and its name in `hck.cli._options`. The function is written with `exp`, `log` and `sqrt` (see
`hck.backend.kernels.Formula`); torch, the CPU's compiled code and the GPU's are made from it.
``@named("my_kernel")`` makes it known to `make_kernel`, the estimators, saved models, and the tests that all
kernels go through. A class may say more:

- ``arguments``: what the constructor takes and saved models keep, if that is more than a lengthscale;
- ``learned``: which of these are positive numbers to be learned;
- ``shape``: the number that a formula f(s, shape) takes;
- ``amplitude``: k(x, x), if it is not 1;
- ``placement`` and ``unit``: where points are put so that the kernel is isotropic, and the lengthscale there;
- ``stretch``: what features are multiplied by where distances are measured, if not by 1 over lengthscales;
- ``slope``: −2 f', for gradients in closed form if points are placed linearly (else autograd's);
- ``draw_frequencies`` and ``log_spectral_density``, for Fourier features and for draws that are functions;
- ``label``: what reports call it.
"""

import math

import torch
from numpy.typing import ArrayLike
from torch import Tensor, exp, log

from hck.backend.caches import cached_property
from hck.backend.kernels import Formula, Numbers, requiring_gradient
from hck.backend.random import Random
from hck.kernels import mixture
from hck.kernels.base import Kernel, Number, Pairs, Scaled
from hck.kernels.distance import sqrt
from hck.kernels.inputs import Positive, positive
from hck.kernels.placement import OnCircles
from hck.kernels.registry import named
from hck.kernels.stationary import Stationary, normal, shown

__all__ = ["Gaussian", "InverseMultiquadric", "Laplace", "Matern", "Periodic", "RationalQuadratic"]


def gaussian(s: Numbers) -> Numbers:
    return exp(-0.5 * s)


@named("gaussian")
class Gaussian(Stationary):
    """exp(−‖x − x'‖² / 2σ²).

    Examples
    --------
    >>> from hck.kernels import Gaussian
    >>> Gaussian(0.5)([[0.0]], [[0.0], [0.25], [0.5]]).round(3)
    array([[1.   , 0.882, 0.607]])
    """

    formula = Formula(gaussian, smooth=True)

    @property
    def slope(self) -> Kernel:
        return self

    def draw_frequencies(self, d: int, count: int, random: Random) -> Tensor:
        """Normal."""
        return normal(d, count, random)

    def log_spectral_density(self, omega: Tensor) -> Tensor:
        return -omega.square().sum(0) / 2


def laplace(s: Numbers) -> Numbers:
    return exp(-s)


@named("laplace")
class Laplace(Stationary):
    """exp(−‖x − x'‖₁ / σ).

    Examples
    --------
    >>> from hck.kernels import Laplace
    >>> Laplace([0.5, 2.0])([[0.0, 0.0]], [[0.0, 0.0], [0.5, 0.0], [0.0, 0.5]]).round(3)
    array([[1.   , 0.368, 0.779]])
    """

    formula = Formula(laplace, manhattan=True)

    def draw_frequencies(self, d: int, count: int, random: Random) -> Tensor:
        """Cauchy in each coordinate."""
        return normal(d, count, random.child(0)) / normal(d, count, random.child(1))

    def log_spectral_density(self, omega: Tensor) -> Tensor:
        return -torch.log1p(omega.square()).sum(0)


def inverse_multiquadric(s: Numbers) -> Numbers:
    return 1 / sqrt(1 + s)


@named("inverse_multiquadric")
class InverseMultiquadric(Stationary):
    """σ² / √(‖x − x'‖² + σ²), so that k(x, x) = σ.

    With one lengthscale per feature: σ̄ / √(1 + Σ (x_i − x'_i)²/σ_i²), σ̄ their geometric mean, which is
    the same thing where they are equal. A metric has no part in σ̄.

    Examples
    --------
    >>> from hck.kernels import InverseMultiquadric
    >>> InverseMultiquadric(0.5)([[0.0]], [[0.0], [0.25], [0.5]]).round(3)
    array([[0.5  , 0.447, 0.354]])
    """

    formula = Formula(inverse_multiquadric, smooth=True)

    @property
    def amplitude(self) -> Number:
        if isinstance(self.lengthscale, Tensor):
            return self.lengthscale.double().log().mean().exp()
        return self.lengthscale


def matern12(s: Numbers) -> Numbers:
    return exp(-sqrt(s))


def matern32(s: Numbers) -> Numbers:
    r = sqrt(3 * s)
    return (1 + r) * exp(-r)


def matern52(s: Numbers) -> Numbers:
    r = sqrt(5 * s)
    return (1 + r + r * r / 3) * exp(-r)


_MATERN = {
    0.5: Formula(matern12),
    1.5: Formula(matern32, smooth=True),
    2.5: Formula(matern52, smooth=True),
}


@named("matern12", nu=0.5)
@named("matern32", nu=1.5)
@named("matern52", nu=2.5)
class Matern(Stationary):
    """The Matérn kernel of half-integer smoothness ν, with r = ‖x − x'‖/σ.

    ν = 1/2: exp(−r);  ν = 3/2: (1 + √3 r) exp(−√3 r);  ν = 5/2: (1 + √5 r + 5r²/3) exp(−√5 r).

    Parameters
    ----------
    lengthscale : float, or array-like of shape (n_features,)
    nu : {0.5, 1.5, 2.5}
    metric : array-like of shape (n_features, k), default=None
        L: then r = ‖Lᵀ(x − x')‖/σ.

    Examples
    --------
    >>> from hck.kernels import Matern
    >>> Matern(0.5, nu=2.5)([[0.0]], [[0.0], [0.25], [0.5]]).round(3)
    array([[1.   , 0.829, 0.524]])
    """

    arguments = ("lengthscale", "nu", "metric")

    def __init__(
        self, lengthscale: Positive = 1.0, nu: float = 1.5, metric: ArrayLike | Tensor | None = None
    ) -> None:  # fmt: skip
        super().__init__(lengthscale, metric)
        if nu not in _MATERN:
            raise ValueError(f"nu must be 0.5, 1.5 or 2.5, got {nu!r}")
        self.nu = float(nu)
        self.formula = _MATERN[self.nu]

    @cached_property
    def slope(self) -> Kernel | None:
        """Of ν = 3/2: 3 exp(−√3 r), that is ν = 1/2 in another scale; of ν = 5/2: ν = 3/2 in another."""
        if self.nu == 0.5:
            return None
        factor, nu, amplitude = (3**-0.5, 0.5, 3.0) if self.nu == 1.5 else (0.6**0.5, 1.5, 5 / 3)
        scale = self.lengthscale.detach() if isinstance(self.lengthscale, Tensor) else self.lengthscale
        return Scaled(self.alongside(Matern(scale * factor, nu), factor), amplitude)

    def slopes(self, pairs: Pairs) -> Tensor | None:
        """Of ν = 1/2: exp(−r)/r. Where r is next to nothing it is left out, since squares of r go with it."""
        if self.nu != 0.5:
            return super().slopes(pairs)
        with torch.no_grad():
            values = pairs.of(self)
            r = values.log().neg_()
            return values.div_(r).masked_fill_(r < torch.finfo(r.dtype).eps ** 0.5, 0)

    def draw_frequencies(self, d: int, count: int, random: Random) -> Tensor:
        """Student's t with 2ν degrees of freedom, its chi-square a sum of squares of normal numbers."""
        omega, degrees = normal(d, count, random.child(0)), round(2 * self.nu)
        return omega * (degrees / normal(degrees, count, random.child(1)).square().sum(0)).sqrt()

    def log_spectral_density(self, omega: Tensor) -> Tensor:
        degrees = 2 * self.nu
        return -(degrees + len(omega)) / 2 * torch.log1p(omega.square().sum(0) / degrees)

    @property
    def label(self) -> str:
        return f"Matérn {round(2 * self.nu)}/2"


def rational_quadratic(s: Numbers, alpha: Numbers) -> Numbers:
    x = s / (2 * alpha)
    u = 1 + x
    return exp(-alpha * (log(u) - ((u - 1) - x) / u))  # less what rounding has added to u


@named("rational_quadratic")
class RationalQuadratic(Stationary):
    """(1 + ‖x − x'‖² / 2ασ²)^(−α): Gaussian kernels of many lengthscales; one of them as α → ∞.

    Parameters
    ----------
    lengthscale : float, or array-like of shape (n_features,)
    alpha : float
        α > 0, no ridge: the less it is, the more lengthscales differ from σ. It can be learned.
    metric : array-like of shape (n_features, k), default=None
        L: then Lᵀx and Lᵀx' take the place of x and x'.

    Examples
    --------
    >>> from hck.kernels import RationalQuadratic
    >>> RationalQuadratic(0.5, alpha=2.0)([[0.0]], [[0.0], [0.25], [0.5]]).round(3)
    array([[1.   , 0.886, 0.64 ]])
    """

    formula = Formula(rational_quadratic, smooth=True)
    arguments = ("lengthscale", "alpha", "metric")
    learned = ("lengthscale", "alpha")

    def __init__(
        self, lengthscale: Positive = 1.0, alpha: Positive = 1.0, metric: ArrayLike | Tensor | None = None
    ) -> None:  # fmt: skip
        super().__init__(lengthscale, metric)
        self.alpha = positive("alpha", alpha)

    @property
    def shape(self) -> Number:
        return self.alpha

    @cached_property
    def slope(self) -> Kernel | None:
        """(1 + s/2α)^(−α−1), that is α + 1 in another scale."""
        if requiring_gradient(self.alpha):
            return None  # that by α is autograd's, which has all of them
        alpha = float(self.alpha)
        factor = (alpha / (alpha + 1)) ** 0.5
        scale = self.lengthscale.detach() if isinstance(self.lengthscale, Tensor) else self.lengthscale
        return self.alongside(RationalQuadratic(scale * factor, alpha + 1), factor)

    def draw_frequencies(self, d: int, count: int, random: Random) -> Tensor:
        """Normal, with a variance from a gamma distribution."""
        uniform = random.child(1).uniform((count,), torch.device("cpu")).numpy()
        scale = torch.from_numpy(mixture.precisions(float(self.alpha), uniform)).sqrt()
        return normal(d, count, random.child(0)) * scale

    def log_spectral_density(self, omega: Tensor) -> Tensor:
        size = omega.square().sum(0).sqrt().numpy()
        return torch.from_numpy(mixture.log_density(float(self.alpha), size, len(omega)))

    @property
    def label(self) -> str:
        return f"Rational quadratic (α = {shown(self.alpha)})"


@named("periodic")
class Periodic(Stationary):
    """exp(−2 Σ_m sin²(π (x_m − x'_m)/p_m) / σ_m²): the Gaussian kernel of points on circles.

    Near a point, the Gaussian kernel of lengthscale σp/2π.

    Parameters
    ----------
    lengthscale : float, or array-like of shape (n_features,)
        σ, in units of the circles' radius.
    period : float, or array-like of shape (n_features,)
        p > 0, for all features or for each. It can be learned, from a start that is close.

    Examples
    --------
    >>> from hck.kernels import Periodic
    >>> Periodic(1.0, period=0.5)([[0.0]], [[0.0], [0.25], [0.5]]).round(3)
    array([[1.   , 0.135, 1.   ]])
    """

    formula = Formula(gaussian, smooth=True)
    arguments = learned = ("lengthscale", "period")

    def __init__(self, lengthscale: Positive = 1.0, period: Positive = 1.0) -> None:
        super().__init__(lengthscale)
        self.period = positive("period", period, most_axes=1)

    @cached_property
    def placement(self) -> OnCircles:
        return OnCircles(self.period, self.lengthscale)

    def stretch(self) -> Tensor | None:
        near = self.lengthscale * self.period / (2 * math.pi)
        return 1 / near.detach() if isinstance(near, Tensor) and near.ndim else None

    @property
    def label(self) -> str:
        return f"Periodic (p = {shown(self.period)})"
