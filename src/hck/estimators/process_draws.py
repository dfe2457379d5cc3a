"""Draws from a Gaussian process, at given points or as functions."""

from collections.abc import Iterator

import torch
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from hck.backend.checks import is_whole
from hck.backend.memory import require_bytes
from hck.backend.plain import plainly
from hck.backend.random import as_random
from hck.estimators.parameters import Predictions, Seed
from hck.estimators.process_prediction import ProcessPrediction
from hck.preparation.arrays import PointsLike, count
from hck.process import MixtureFunctions


class ProcessDraws(ProcessPrediction):
    """Draws from Gaussian processes."""

    def sample_y(self, X: PointsLike, n_samples: int = 1, random_state: Seed = 0) -> Predictions:
        """Draw functions at given points, as scikit-learn's process does: `sample_posterior`, without noise.

        Before `fit` they are drawn by `sample_prior`. Another call draws other functions, or the same ones
        anew: `draw_functions` has functions that can be evaluated again, at other points.

        Parameters
        ----------
        X : as in `fit`
        n_samples : int, default=1
        random_state : int, RandomState instance or None, default=0

        Returns
        -------
        ndarray of shape (len(X), n_samples) or (len(X), n_targets, n_samples); a tensor if X is one

        Examples
        --------
        >>> import numpy as np
        >>> from hck import HCKGaussianProcessRegressor
        >>> X = np.linspace(0, 1, 60)[:, None]
        >>> process = HCKGaussianProcessRegressor("matern52", lengthscale=0.3, noise=0.01, optimizer=None)
        >>> _ = process.fit(X, np.sin(6 * X[:, 0]))
        >>> process.sample_y([[0.1], [0.2], [0.3]], n_samples=4, random_state=0).shape
        (3, 4)
        """
        draw = self.sample_posterior if hasattr(self, "posterior_") else self.sample_prior
        return draw(X, n_samples, random_state)

    def sample_prior(self, X: PointsLike, n_samples: int = 1, random_state: Seed = 0) -> Predictions:
        """Draw functions from the process without observations and trend, at any number of points.

        The kernel is the one that was learned, or, before `fit`, the one to start with; the tree is one over
        these points. It takes O(n r²) once and O(n r) for each draw.

        Returns
        -------
        ndarray of shape (len(X), n_samples) or (len(X), n_targets, n_samples); a tensor on X's device if X is
        a tensor

        Examples
        --------
        >>> import numpy as np
        >>> from hck import HCKGaussianProcessRegressor
        >>> X = np.linspace(0, 1, 60)[:, None]
        >>> process = HCKGaussianProcessRegressor("matern52", lengthscale=0.3, noise=0.01, optimizer=None)
        >>> process.sample_prior(X, n_samples=4, random_state=0).shape
        (60, 4)
        """
        self._validate_params()
        X = self._validate_new(X) if hasattr(self, "posterior_") else self._validate_points(X)
        points, rng = self._points(X), check_random_state(random_state)
        points = self._own_scaling()(points, points.dtype)
        _check_count(n_samples, len(points), self._n_targets(), points.device)
        kernel = self.kernel_ if hasattr(self, "kernel_") else self._start_kernel(points, 1.0)
        source = self._approximation(kernel, points, rng.randint(2**31 - 1), self._shape, scouting=True)
        number, seed = n_samples * self._n_targets(), int(rng.randint(2**31 - 1))
        drawn = source.draw(number, seed, bool(self.verbose))
        if self._n_targets() > 1:
            drawn = drawn.reshape(len(drawn), -1, n_samples)
        return self._out(X, self._stretch(drawn, 1, axis=-2))

    def sample_posterior(
        self,
        X: PointsLike,
        n_samples: int = 1,
        random_state: Seed = 0,
        observed: bool = False,
    ) -> Predictions:
        """Draw functions given the observations, jointly at any number of points (Matheron's rule).

        With the tapered and the exact kernel (by iteration) at some thousands of points at most.

        Parameters
        ----------
        X : as in `fit`
        n_samples : int, default=1
        random_state : int, RandomState instance or None, default=0
        observed : bool, default=False
            Whether to add noise, as new observations have it.

        Returns
        -------
        ndarray of shape (len(X), n_samples) or (len(X), n_targets, n_samples); a tensor on X's device if X is
        a tensor

        Examples
        --------
        >>> import numpy as np
        >>> from hck import HCKGaussianProcessRegressor
        >>> X = np.linspace(0, 1, 60)[:, None]
        >>> process = HCKGaussianProcessRegressor("matern52", lengthscale=0.3, noise=0.01, optimizer=None)
        >>> _ = process.fit(X, np.sin(6 * X[:, 0]))
        >>> process.sample_posterior([[0.1], [0.2], [0.3]], n_samples=4, random_state=0).shape
        (3, 4)
        """
        X, seed = self._validate_new(X), int(check_random_state(random_state).randint(2**31 - 1))
        random = as_random(seed)
        _check_count(n_samples, count(X), self._n_targets(), self._trained_points().device)
        features = self._trend(X)
        drawn = self.posterior_.sample(self._placed(X), features, n_samples, random.child(0))
        if observed:
            error = random.child(1).normal(drawn.shape, drawn.dtype, drawn.device)
            drawn = drawn + self._noise_of_new() ** 0.5 * error
        return self._out(X, self._restore(features, drawn, axis=-2))

    def draw_functions(
        self, n_samples: int = 1, random_state: Seed = 0, n_waves: int = 512
    ) -> "DrawnFunctions":
        """Draw functions given the observations that can be evaluated anywhere, and again.

        At the training points their law is that of the process. In between, what the values there and the
        landmarks leave open is a sum of `n_waves` random waves: its mean and covariance, over draws, are
        those of the process exactly, and it is the more Gaussian the more waves there are. With features
        (``approximation="nystrom"`` or ``"fourier"``) the functions are exact.

        It takes O(n r) for each function once, and O(n₀ + r + n_waves) for each of its values.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState instance or None, default=0
        n_waves : int, default=512

        Returns
        -------
        DrawnFunctions
            ``draws(X)`` has the shape of `sample_y`; ``draws[i](X)``, without the axis of draws, is that of
            one.

        Notes
        -----
        With trees the kernel is a Gaussian, Laplace or Matérn kernel, or made of such by products, sums and
        multiples, and points have coordinates. The functions do not depend on what happens to the estimator
        afterwards; they can be pickled.

        Examples
        --------
        >>> import numpy as np
        >>> from hck import HCKGaussianProcessRegressor
        >>> X = np.linspace(0, 1, 50)[:, None]
        >>> model = HCKGaussianProcessRegressor(random_state=0).fit(X, np.sin(6 * X[:, 0]))
        >>> draws = model.draw_functions(3)
        >>> new = np.array([[0.11], [0.52]])
        >>> draws(new).shape
        (2, 3)
        >>> bool(np.allclose(draws[1](new[1:]), draws(new)[1:, 1]))
        True
        """
        check_is_fitted(self, "posterior_")
        for name, value in (("n_samples", n_samples), ("n_waves", n_waves)):
            _check_whole(name, value)
        n, device = len(self.posterior_.members[0].y), self._trained_points().device
        _check_count(n_samples, n, self._n_targets(), device)
        seed = int(check_random_state(random_state).randint(2**31 - 1))
        return DrawnFunctions(self, self.posterior_.functions(int(n_samples), as_random(seed), int(n_waves)))

    def _n_targets(self) -> int:
        return self.posterior_.members[0].outputs if hasattr(self, "posterior_") else 1


class DrawnFunctions:
    """Functions drawn from a fitted Gaussian process; made by `HCKGaussianProcessRegressor.draw_functions`.

    The same point always has the same values, whatever it is evaluated together with, but for rounding.
    """

    def __init__(self, model: ProcessDraws, drawn: MixtureFunctions) -> None:
        self._model, self._drawn = model, drawn

    def __len__(self) -> int:
        return len(self._drawn.which)

    def __call__(self, X: PointsLike) -> Predictions:
        """All of them at points: shape (len(X), n_samples) or (len(X), n_targets, n_samples)."""
        return _values(self._model, self._drawn, X)

    def __getitem__(self, number: int) -> "DrawnFunction":
        """One of them."""
        if not is_whole(number) or not -len(self) <= number < len(self):
            raise IndexError(f"there are {len(self)} functions, numbered from 0, got {number!r}")
        return DrawnFunction(self._model, self._drawn.take(int(number) % len(self)))

    def __iter__(self) -> "Iterator[DrawnFunction]":
        return (self[number] for number in range(len(self)))


class DrawnFunction:
    """One function that was drawn: values have the shape of `predict`."""

    def __init__(self, model: ProcessDraws, drawn: MixtureFunctions) -> None:
        self._model, self._drawn = model, drawn

    def __call__(self, X: PointsLike) -> Predictions:
        """Values at points: shape (len(X),) or (len(X), n_targets)."""
        return _values(self._model, self._drawn, X)[..., 0]


def _values(model: ProcessDraws, drawn: MixtureFunctions, X: PointsLike) -> Predictions:
    with plainly():
        X = model._validate_new(X)
        _check_count(len(drawn.which), count(X), model._n_targets(), model._trained_points().device)
        features = model._trend(X)
        return model._out(X, model._restore(features, drawn(model._placed(X), features), axis=-2))


def _check_whole(name: str, value: object) -> None:
    if not is_whole(value) or value < 1:
        raise ValueError(f"{name} must be a whole number, at least 1, got {value!r}")


def _check_count(n_samples: object, points: int, targets: int, device: torch.device) -> None:
    _check_whole("n_samples", n_samples)
    needed = 24.0 * int(n_samples) * points * targets  # type: ignore[call-overload]  # which is whole
    what = f"drawing {n_samples} functions at {points} points"
    for place in {device, torch.device("cpu")}:  # where they are drawn, and where they go
        require_bytes(needed, place, what, "draw fewer of them at once")
