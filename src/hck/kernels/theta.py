"""Parameters of kernels as one vector of logarithms, by the names that scikit-learn's kernels have for it."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from hck.kernels.inputs import real_array


class HasTheta:
    """What has positive numbers as `parameters`."""

    @abstractmethod
    def parameters(self) -> dict[str, float | Tensor]:
        """The positive numbers, or tensors of them, by name."""

    @abstractmethod
    def with_parameters(self, values: Mapping[str, float | Tensor]) -> Self:
        """The same with other values for some of its `parameters`."""

    @property
    def theta(self) -> np.ndarray:
        """The logarithms of all `parameters`, in their order, as scikit-learn's kernels have them: (n_dims,).

        Examples
        --------
        >>> from hck.kernels import Gaussian
        >>> (2.0 * Gaussian([0.5, 1.0])).theta.round(3).tolist()
        [-0.693, 0.0, 0.693]
        """
        return np.concatenate([np.empty(0), *(np.log(each).ravel() for each in self._values().values())])

    @property
    def bounds(self) -> np.ndarray:
        """Where learning that starts here looks for `theta` if no bounds are given: shape (n_dims, 2).

        That is from a thousandth of the least to a thousand times the largest element of each parameter. A
        fitted process has those that were used in `theta_bounds_`.
        """
        rows = [np.tile(np.log(usual_range(each)), (each.size, 1)) for each in self._values().values()]
        return np.concatenate([np.empty((0, 2)), *rows])

    @property
    def n_dims(self) -> int:
        """The length of `theta`."""
        return len(self.theta)

    def clone_with_theta(self, theta: ArrayLike) -> Self:
        """The same with other parameters, given by their logarithms; a kernel itself never changes.

        Examples
        --------
        >>> from hck.kernels import Gaussian
        >>> kernel = 2.0 * Gaussian(0.5)
        >>> kernel.clone_with_theta(kernel.theta + [0.0, 1.0])
        5.43656 * Gaussian(lengthscale=0.5)
        """
        given, expected = real_array(theta), (self.n_dims,)
        if given.shape != expected:
            raise ValueError(f"theta must have shape {expected}, got {given.shape}")
        values: dict[str, float | Tensor] = {}
        for name, old in self._values().items():
            part, given = np.exp(given[: old.size]), given[old.size :]
            values[name] = torch.from_numpy(part) if old.ndim else float(part[0])
        return self.with_parameters(values)

    def _values(self) -> dict[str, np.ndarray]:
        return {name: plain(value) for name, value in self.parameters().items()}


def plain(value: float | Tensor) -> np.ndarray:
    """A parameter, of shape () or (d,), as an array in the CPU's memory."""
    return np.asarray(value.detach().cpu() if isinstance(value, Tensor) else value, dtype=float)


def usual_range(value: np.ndarray) -> tuple[float, float]:
    """The least and the largest number that a parameter may become, if nobody says otherwise."""
    return float(1e-3 * value.min()), float(1e3 * value.max())
