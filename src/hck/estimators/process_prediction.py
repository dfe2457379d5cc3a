"""What a Gaussian process says of new points and of the training points: means, uncertainty, draws."""

from numbers import Integral

import numpy as np
import torch
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from hck import metrics
from hck.backend.memory import require_bytes
from hck.backend.random import as_random
from hck.estimators.parameters import Predictions, Seed
from hck.estimators.process_learning import ProcessLearning
from hck.kernels import Kernel
from hck.points import Points
from hck.preparation.arrays import PointsLike, count


class ProcessPrediction(ProcessLearning):
    """Predictions of Gaussian processes."""

    kernel_: Kernel

    def _trained_points(self) -> Points:
        return self.posterior_.members[0].mean.points

    # Predictions ------------------------------------------------------------------------------------

    def predict(
        self, X: PointsLike, return_std: bool = False, return_cov: bool = False, observed: bool = False
    ) -> Predictions:
        """Predict, with the uncertainty if asked for.

        Parameters
        ----------
        X : as in `fit`
        return_std : bool, default=False
            Whether to return standard deviations as well.
        return_cov : bool, default=False
            Whether to return covariances between all points as well; for some thousands of points at most.
        observed : bool, default=False
            Whether the uncertainty is that of new observations, with noise, or that of the function.

        Returns
        -------
        mean : ndarray of shape (n_samples,); a tensor on X's device if X is a tensor
        std : the same, if `return_std`
        cov : of shape (n_samples, n_samples), if `return_cov`
        """
        if return_std and return_cov:
            raise ValueError("ask for return_std or for return_cov, not for both")
        X = self._validate_new(X)
        posterior, features, verbose = self.posterior_, self._trend(X), bool(self.verbose)
        noise = self._noise_of_new() if observed and (return_std or return_cov) else 0.0
        if return_std:
            mean, variance = posterior.variance(X, features, verbose)
            mean = self._trend.restore(features, mean)
            return self._out(X, mean), self._out(X, (variance + noise).sqrt())
        if return_cov:
            mean, cov = posterior.covariance(X, features)
            cov.diagonal().add_(noise)
            return self._out(X, self._trend.restore(features, mean)), self._out(X, cov)
        return self._out(X, self._trend.restore(features, posterior.predict(X, features, verbose)))

    def _noise_of_new(self) -> float:
        if np.ndim(self.noise_):
            raise ValueError(
                "observed=True needs the noise of new observations, but `fit` was given one variance for "
                "each training point: add your own to the square of the latent standard deviation"
            )
        return self.posterior_.spread.noise * float(self.noise_)

    # Leave-one-out ----------------------------------------------------------------------------------

    def loo_predict(self, return_std: bool = False) -> Predictions:
        """Predict each training observation from all others, in closed form.

        Tree, landmarks and learned parameters stay as they are; the trend is estimated without the point.

        Parameters
        ----------
        return_std : bool, default=False
            Whether to return the standard deviations of the observations, noise included, as well.

        Returns
        -------
        mean : ndarray of shape (n_samples,)
        std : ndarray of shape (n_samples,), if `return_std`
        """
        check_is_fitted(self, "posterior_")
        left_out = self.posterior_.leave_one_out()
        mean = self._restore_training(left_out.mean)
        return (mean, left_out.variance.sqrt().cpu().numpy()) if return_std else mean

    def loo_metrics(self) -> dict[str, float]:
        """How good leave-one-out predictions are.

        Returns
        -------
        dict
            "rmse"; "lpd", the mean log predictive density; "crps"; and "coverage" of 95 % intervals.
        """
        mean, std = self.loo_predict(return_std=True)
        if not np.isfinite(std).all():
            raise ValueError(
                "some observations alone determine a part of the trend, so that the others cannot predict "
                "them: there are too few observations for this trend"
            )
        y = self._restore_training(self._training_data().y)
        return {
            "rmse": metrics.rmse(y, mean),
            "lpd": -metrics.nlpd(y, mean, std),
            "crps": metrics.crps(y, mean, std),
            "coverage": metrics.coverage(y, mean, std),
        }

    # Draws ------------------------------------------------------------------------------------------

    def sample_prior(self, X: PointsLike, n_samples: int = 1, random_state: Seed = 0) -> Predictions:
        """Draw functions from the process without observations and trend, at any number of points.

        The kernel is the one that was learned, or, before `fit`, the one to start with; the tree is one over
        these points. It takes O(n r²) once and O(n r) for each draw.

        Returns
        -------
        ndarray of shape (len(X), n_samples); a tensor on X's device if X is a tensor
        """
        self._validate_params()
        X = self._validate_new(X) if hasattr(self, "posterior_") else self._validate_points(X)
        _check_count(n_samples, count(X))
        points, rng = self._points(X), check_random_state(random_state)
        kernel = self.kernel_ if hasattr(self, "kernel_") else self._start_kernel(points, 1.0)
        source = self._approximation(kernel, points, rng.randint(2**31 - 1), self._shape, scouting=True)
        return self._out(X, source.draw(n_samples, int(rng.randint(2**31 - 1)), bool(self.verbose)))

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
        ndarray of shape (len(X), n_samples); a tensor on X's device if X is a tensor
        """
        X, seed = self._validate_new(X), int(check_random_state(random_state).randint(2**31 - 1))
        random = as_random(seed)
        _check_count(n_samples, count(X))
        features = self._trend(X)
        drawn = self.posterior_.sample(X, features, n_samples, random.child(0))
        drawn = self._trend.restore(features, drawn)
        if observed:
            error = random.child(1).normal(drawn.shape, drawn.dtype, drawn.device)
            drawn = drawn + self._noise_of_new() ** 0.5 * error
        return self._out(X, drawn)


def _check_count(n_samples: object, points: int) -> None:
    if not isinstance(n_samples, Integral) or n_samples < 1:
        raise ValueError(f"n_samples must be a whole number, at least 1, got {n_samples!r}")
    needed, what = 24.0 * int(n_samples) * points, f"drawing {n_samples} functions at {points} points"
    require_bytes(needed, torch.device("cpu"), what, "draw fewer of them at once")
