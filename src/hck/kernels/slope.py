"""Kernels differentiated by a point: what gradients of predictions, and their variances, are made of.

In closed form for kernels with a formula and what is made of them; for other functions by autograd of their
values. Where two points are one, the gradient of a kernel with a kink there (Laplace, Matérn-1/2) is taken as
0, the mean of its gradients on all sides.
"""

from functools import singledispatch

import torch
from torch import Tensor

from hck.backend.kernels import Profile, farthest, without_rounding
from hck.errors import NoGradientError
from hck.kernels.base import Kernel, Number, Pairs, Product, Scaled, Sum
from hck.kernels.distance import manhattan, rounded_squares
from hck.kernels.placement import divide
from hck.kernels.stationary import Stationary

_CLOSE = (
    1e-16  # a squared distance in lengthscales at which a formula of its root has its slope at 0, to 1e-8
)


@singledispatch
def slope_values(kernel: Kernel, pairs: Pairs) -> Tensor:
    """∂k(x, z)/∂x for pairs of x on the left and z on the right, 0 for padding.

    Shape (blocks, rows' width, d, columns' width).
    """
    x, z = pairs.coordinates(None)
    shape = *x.shape[:2], z.shape[1], 1, x.shape[2]
    with torch.enable_grad():
        moving = x[:, :, None, None].expand(shape).detach().clone().requires_grad_()
        values = kernel.evaluate(moving, z[:, None, :, None].expand(shape))
    return pairs.masked(_by_autograd(kernel, values, moving)[..., 0, :].mT)


@singledispatch
def slope_of_sum(kernel: Kernel, pairs: Pairs, weight: Tensor) -> Tensor:
    """Σ weight · ∂k(x, z)/∂x over the z of each block, for weights (blocks, columns' width, columns).

    Shape (blocks, rows' width, d, columns).
    """
    return _summed(slope_values(kernel, pairs), weight)


@singledispatch
def slope_variance(kernel: Kernel, x: Tensor) -> Tensor:
    """The prior variance of ∂f/∂x for f with this covariance: ∂²k(x, x')/∂x∂x' at x' = x.

    For points (*batch, n, d), in the same shape. NoGradientError if f has no gradient.
    """
    with torch.enable_grad():
        left, right = (x.unsqueeze(-2).detach().clone().requires_grad_() for _ in range(2))
        values = kernel.evaluate(left, right)
        slope = _by_autograd(kernel, values, left, again=True)
        if not slope.requires_grad:
            raise _no_derivative(kernel)
        columns = [_by_autograd(kernel, part, right, again=True).detach() for part in slope.unbind(-1)]
    return torch.stack([column[..., 0, m] for m, column in enumerate(columns)], -1)


@singledispatch
def own_slope(kernel: Kernel, x: Tensor) -> Tensor:
    """∂k(x, x')/∂x at x' = x, for points (*batch, n, d), in the same shape; 0 for kernels of differences."""
    with torch.enable_grad():
        moving = x.unsqueeze(-2).detach().clone().requires_grad_()
        values = kernel.evaluate(moving, x.unsqueeze(-2).detach())
    return _by_autograd(kernel, values, moving)[..., 0, :]


def check_slope(kernel: Kernel) -> None:
    """Raise NoGradientError if functions with this covariance are known to have no gradients."""
    if isinstance(kernel, Stationary) and not _has_slope(kernel):
        raise NoGradientError(
            f"a process with the kernel {kernel.label} has no gradient: its functions have kinks everywhere, "
            "so that the standard deviation of a gradient is infinite. Ask for the mean alone "
            "(return_std=False), or use a kernel whose functions are smooth: gaussian, matern32, matern52, "
            "rational_quadratic, inverse_multiquadric, periodic"
        )
    for part in ("left", "right", "kernel"):
        if isinstance(inner := getattr(kernel, part, None), Kernel):
            check_slope(inner)


def _summed(values: Tensor, weight: Tensor) -> Tensor:
    return (values.flatten(1, 2) @ weight).unflatten(1, values.shape[1:3])


def _has_slope(kernel: Stationary) -> bool:
    return kernel.formula.smooth and not kernel.formula.manhattan


def _by_autograd(kernel: Kernel, values: Tensor, point: Tensor, again: bool = False) -> Tensor:
    """The gradient of values by points; to be differentiated again, if it is asked for."""
    if not values.requires_grad:
        raise _no_derivative(kernel)
    with torch.enable_grad():
        total = values.sum()
        (found,) = torch.autograd.grad(total, point, None, again, again, materialize_grads=True)
    if not torch.isfinite(found).all():
        raise _no_derivative(kernel)
    return found


def _no_derivative(kernel: Kernel) -> NoGradientError:
    return NoGradientError(
        f"{kernel} cannot be differentiated by a point: a function as the kernel must be batched "
        "(CallableKernel(function, batched=True)), computed by torch, and have derivatives where points are "
        "equal; or use one of the kernels with names"
    )


# Kernels with a formula ------------------------------------------------------------------------------
#
# k = a f(s) with s = ‖p − q‖²/u² for points p and q that are placed: ∂k/∂p = −g (p − q)/u², with g = −2 a f'.


@slope_values.register
def _(kernel: Stationary, pairs: Pairs) -> Tensor:
    (x, _), (p, q) = pairs.coordinates(None), pairs.coordinates(kernel.placement)
    apart = p[..., None] - q.mT[:, None]  # (blocks, rows, k, columns)
    if kernel.formula.manhattan:
        s = manhattan(*(divide(each, kernel.unit) for each in (p, q)))
        by_place = apart.sign_().mul_(_derivative(kernel._isotropic(), s)[:, :, None]) / kernel.unit
    else:
        by_place = apart.mul_(_falls(kernel, pairs, p, q)[:, :, None]) / -(kernel.unit**2)
    return pairs.masked(_back(kernel, x, by_place))


@slope_of_sum.register
def _(kernel: Stationary, pairs: Pairs, weight: Tensor) -> Tensor:
    if kernel.formula.manhattan:
        return _summed(slope_values(kernel, pairs), weight)
    (x, _), (p, q) = pairs.coordinates(None), pairs.coordinates(kernel.placement)
    falls = _falls(kernel, pairs, p, q)
    centre = q.mean(-2, keepdim=True)  # differences do not depend on the origin, but their rounding does
    p, q = p - centre, q - centre
    moments = (q[..., None] * weight[:, :, None]).flatten(2)  # (blocks, columns, k · columns of weights)
    mass, pull = falls @ weight, (falls @ moments).unflatten(2, (q.shape[2], -1))
    return _back(kernel, x, (pull - p[..., None] * mass[:, :, None]) / kernel.unit**2)


@slope_variance.register
def _(kernel: Stationary, x: Tensor) -> Tensor:
    check_slope(kernel)
    speed = torch.ones_like(x) if kernel.placement is None else kernel.placement.squared_speed(x)
    return speed * (_steepest(kernel) / _number(kernel.unit) ** 2)


@own_slope.register
def _(kernel: Stationary, x: Tensor) -> Tensor:
    return torch.zeros_like(x)


def _falls(kernel: Stationary, pairs: Pairs, p: Tensor, q: Tensor) -> Tensor:
    """−2 a f' between pairs of points, 0 for padding."""
    known = kernel.slopes(pairs)
    if known is not None:
        return known
    s = without_rounding(*rounded_squares(*(divide(each, kernel.unit) for each in (p, q))))
    return pairs.masked(_derivative(kernel._isotropic(), s).mul_(-2))


def _steepest(kernel: Stationary) -> float:
    """−2 a f'(0)."""
    close = torch.full((1, 1), _CLOSE, dtype=torch.float64, device="cpu")
    if kernel.slope is not None:
        return float(kernel.slope.diagonal(close)[0])
    profile = kernel._isotropic()
    numbers = (_number(each) for each in (profile.lengthscale, profile.amplitude, profile.shape))
    return -2 * float(_derivative(Profile(profile.formula, *numbers), close))


def _derivative(profile: Profile, s: Tensor) -> Tensor:
    """a f' at distances s, of any shape."""
    with torch.enable_grad():
        s = s.detach().clamp(max=farthest(s.dtype)).requires_grad_()
        total = profile.formula(s, profile.shape).sum()
    (found,) = torch.autograd.grad(total, s)
    amplitude = profile.amplitude
    return found * (amplitude.detach().to(found) if isinstance(amplitude, Tensor) else amplitude)


def _back(kernel: Stationary, x: Tensor, by_place: Tensor) -> Tensor:
    """Gradients by x (…, d, columns), given those by where the kernel places x (…, k, columns)."""
    return by_place if kernel.placement is None else kernel.placement.back(x, by_place)


def _number(value: Number) -> float:
    return float(value.detach()) if isinstance(value, Tensor) else value


# Kernels made of kernels -----------------------------------------------------------------------------


@slope_values.register
def _(kernel: Sum, pairs: Pairs) -> Tensor:
    return slope_values(kernel.left, pairs) + slope_values(kernel.right, pairs)


@slope_of_sum.register
def _(kernel: Sum, pairs: Pairs, weight: Tensor) -> Tensor:
    return slope_of_sum(kernel.left, pairs, weight) + slope_of_sum(kernel.right, pairs, weight)


@slope_variance.register
def _(kernel: Sum, x: Tensor) -> Tensor:
    return slope_variance(kernel.left, x) + slope_variance(kernel.right, x)


@own_slope.register
def _(kernel: Sum, x: Tensor) -> Tensor:
    return own_slope(kernel.left, x) + own_slope(kernel.right, x)


@slope_values.register
def _(kernel: Product, pairs: Pairs) -> Tensor:
    left = slope_values(kernel.left, pairs) * pairs.of(kernel.right)[:, :, None]
    return left.add_(slope_values(kernel.right, pairs) * pairs.of(kernel.left)[:, :, None])


@slope_variance.register
def _(kernel: Product, x: Tensor) -> Tensor:
    left, right = kernel.left, kernel.right
    both = slope_variance(left, x) * right.diagonal(x)[..., None]
    both = both + slope_variance(right, x) * left.diagonal(x)[..., None]
    return both + 2 * own_slope(left, x) * own_slope(right, x)


@own_slope.register
def _(kernel: Product, x: Tensor) -> Tensor:
    left, right = kernel.left, kernel.right
    return (
        own_slope(left, x) * right.diagonal(x)[..., None] + own_slope(right, x) * left.diagonal(x)[..., None]
    )


@slope_values.register
def _(kernel: Scaled, pairs: Pairs) -> Tensor:
    return slope_values(kernel.kernel, pairs) * kernel.scale


@slope_of_sum.register
def _(kernel: Scaled, pairs: Pairs, weight: Tensor) -> Tensor:
    return slope_of_sum(kernel.kernel, pairs, weight) * kernel.scale


@slope_variance.register
def _(kernel: Scaled, x: Tensor) -> Tensor:
    return slope_variance(kernel.kernel, x) * kernel.scale


@own_slope.register
def _(kernel: Scaled, x: Tensor) -> Tensor:
    return own_slope(kernel.kernel, x) * kernel.scale
