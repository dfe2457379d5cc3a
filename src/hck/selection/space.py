"""The logarithms of a kernel's parameters and of the noise, as one vector."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from hck.backend.checks import require
from hck.kernels import Kernel
from hck.kernels.inputs import real_array
from hck.kernels.theta import plain, usual_range

NOISE = "noise"


@dataclass(frozen=True)
class Parameter:
    """A parameter that is learned: some consecutive elements of theta."""

    name: str
    value: np.ndarray  # (), or (d,)
    low: float
    high: float
    prior: tuple[float, float] | None  # median, and standard deviation of the logarithm

    def validate(self) -> None:
        require(self.value.dtype.kind == "f" and self.value.ndim < 2, "value must be a number, or one each")
        require(bool(np.isfinite(self.value).all() and (self.value > 0).all()), "value must be positive")
        require(0 < self.low <= self.high < math.inf, "low and high must be positive, and in order")
        _check_prior(self.name, self.prior)


@dataclass(frozen=True)
class Space:
    """What can be learned: theta is the vector of logarithms of all parameters that are not fixed.

    Made by `Space.of`.

    Examples
    --------
    >>> from hck.kernels import Gaussian
    >>> from hck.selection import Space
    >>> space = Space.of(2.0 * Gaussian([0.5, 1.0]), noise=0.1, bounds={"scale": "fixed"})
    >>> space.names, space.start.round(2)
    (['lengthscale[0]', 'lengthscale[1]', 'noise'], array([-0.69,  0.  , -2.3 ]))
    """

    kernel: Kernel  # with the values at the start
    noise: float | None  # its variance at the start; None if it is known for each observation
    blocks: tuple[Parameter, ...]  # what is learned, in the order of theta

    def validate(self) -> None:
        """Raise ValueError unless the blocks are parameters of the kernel, in its shapes."""
        known = self.kernel.parameters()
        known = known if self.noise is None else {**known, NOISE: self.noise}
        require(self.noise is None or 0 <= self.noise < math.inf, "noise must be finite, not negative")
        for each in self.blocks:
            require(each.name in known, f"blocks have {each.name!r}, which is no parameter of the kernel")
            require(
                np.shape(plain(known[each.name])) == each.value.shape, "blocks must have the kernel's shapes"
            )

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        noise: float | None,
        bounds: Mapping[str, ArrayLike] | None = None,
        priors: Mapping[str, ArrayLike] | None = None,
        scale: float = 1.0,
    ) -> "Space":
        """The parameters of a kernel, and the noise unless it is None.

        Parameters
        ----------
        bounds : mapping, optional
            For parameters by name, (low, high), or ``"fixed"``. By default a thousandth to a thousand times
            the start; for the noise a millionth to ten times `scale`.
        priors : mapping, optional
            For parameters by name, (median, spread): the logarithm is normal, with this standard deviation.
        scale : float
            The variance of the observations.
        """
        bounds, priors = dict(bounds or {}), dict(priors or {})
        values = {name: plain(value) for name, value in kernel.parameters().items()}
        if noise is not None:
            values[NOISE] = np.asarray(float(noise))
        for what, given in (("bounds", bounds), ("priors", priors)):
            unknown = set(given) - set(values)
            if unknown:
                raise ValueError(
                    f"{what} are given for {sorted(unknown)[0]!r}, which is not a parameter here; "
                    f"there are: {', '.join(values) or 'none'}"
                )
        blocks = []
        for name, value in values.items():
            if isinstance(bounds.get(name), str):
                if bounds[name] != "fixed":
                    raise ValueError(
                        f"bounds of {name!r} must be (low, high) or 'fixed', got {bounds[name]!r}"
                    )
                continue
            usual = usual_range(value)
            if name == NOISE:
                usual = (min(1e-6 * scale, float(value)), max(10 * scale, float(value)))
            low, high = _check_bounds(name, bounds.get(name, usual), value)
            blocks.append(Parameter(name, value, low, high, _check_prior(name, priors.get(name))))
        return cls(kernel, noise, tuple(blocks))

    # theta ------------------------------------------------------------------------------------------

    @property
    def start(self) -> np.ndarray:
        """theta at the start."""
        return np.concatenate([np.log(each.value).ravel() for each in self.blocks] or [np.empty(0)])

    @property
    def bounds(self) -> np.ndarray:
        """Shape (parameters, 2): the least and the largest value of each element of theta."""
        rows = [np.tile(np.log([each.low, each.high]), (each.value.size, 1)) for each in self.blocks]
        return np.concatenate(rows or [np.empty((0, 2))])

    @property
    def names(self) -> list[str]:
        """A name for each element of theta."""
        found = []
        for each in self.blocks:
            numbered = [f"{each.name}[{i}]" for i in range(each.value.size)]
            found += numbered if each.value.ndim else [each.name]
        return found

    def split(self, theta: ArrayLike) -> dict[str, np.ndarray]:
        """The parts of a vector like theta, by parameter."""
        theta = real_array(theta)
        if theta.shape != self.start.shape:
            sizes = ", ".join(f"{each.value.size} of {each.name}" for each in self.blocks)
            raise ValueError(f"theta must have shape {self.start.shape} ({sizes}), got {theta.shape}")
        found, at = {}, 0
        for each in self.blocks:
            found[each.name] = theta[at : at + each.value.size].reshape(each.value.shape)
            at += each.value.size
        return found

    def at(self, theta: ArrayLike) -> tuple[Kernel, float | None]:
        """The kernel and the noise at theta, as plain numbers."""
        values = {name: np.exp(part) for name, part in self.split(theta).items()}
        noise = float(values.pop(NOISE)) if NOISE in values else self.noise
        plain = {name: float(v) if v.ndim == 0 else v for name, v in values.items()}
        return self.kernel.with_parameters(plain), noise

    def tensors_at(
        self, theta: ArrayLike, device: torch.device, dtype: torch.dtype
    ) -> tuple[Kernel, Tensor | None, list[Tensor]]:
        """The kernel and the noise at theta, and the tensors in them, one for each parameter."""
        tensors = {
            name: torch.tensor(np.exp(part), dtype=dtype, device=device).requires_grad_()
            for name, part in self.split(theta).items()
        }
        kernel = self.kernel.with_parameters({k: v for k, v in tensors.items() if k != NOISE})
        noise = tensors.get(NOISE)
        if noise is None and self.noise is not None:
            noise = torch.tensor(self.noise, dtype=dtype, device=device)
        return kernel.to(device, dtype), noise, list(tensors.values())

    def log_gradient(self, theta: ArrayLike, gradient: Sequence[Tensor]) -> np.ndarray:
        """The gradient with respect to theta, given that with respect to each of the tensors."""
        flat = [np.atleast_1d(part.detach().double().cpu().numpy()) for part in gradient]
        return np.exp(np.asarray(theta, dtype=float)) * np.concatenate(flat or [np.empty(0)])

    def log_prior(self, theta: ArrayLike) -> tuple[float, np.ndarray]:
        """The logarithm of the priors' density of theta, up to a constant, and its gradient."""
        value, parts, gradient = 0.0, self.split(theta), []
        for each in self.blocks:
            part = parts[each.name].ravel()
            if each.prior is None:
                gradient.append(np.zeros_like(part))
                continue
            median, spread = each.prior
            z = (part - math.log(median)) / spread
            value -= float(z @ z) / 2
            gradient.append(-z / spread)
        return value, np.concatenate(gradient or [np.empty(0)])


def _pair(given: ArrayLike) -> np.ndarray:
    """Two numbers; nothing if they are not."""
    try:
        return real_array(given)
    except (TypeError, ValueError):
        return np.empty(0)


def _check_bounds(name: str, bounds: ArrayLike, value: np.ndarray) -> tuple[float, float]:
    pair = _pair(bounds)
    if pair.shape != (2,) or not 0 < pair[0] < pair[1] < math.inf:
        raise ValueError(f"bounds of {name!r} must be two positive numbers, low < high, got {bounds!r}")
    low, high = map(float, pair)
    if not ((value >= low) & (value <= high)).all():
        raise ValueError(
            f"the bounds of {name!r}, {low:g} to {high:g}, exclude its start, "
            f"{value if value.ndim else float(value):}: move the one or the other"
        )
    return low, high


def _check_prior(name: str, prior: ArrayLike | None) -> tuple[float, float] | None:
    if prior is None:
        return None
    pair = _pair(prior)
    if pair.shape != (2,) or not (np.isfinite(pair).all() and (pair > 0).all()):
        raise ValueError(
            f"the prior of {name!r} must be (median, spread), the standard deviation of the logarithm, both "
            f"positive; got {prior!r}"
        )
    return float(pair[0]), float(pair[1])
