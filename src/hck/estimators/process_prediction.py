"""What a Gaussian process says of new points and of the training points: means and uncertainty."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hck import metrics
from hck.estimators.parameters import Predictions
from hck.estimators.process_learning import ProcessLearning
from hck.kernels import Kernel
from hck.points import Points
from hck.preparation.arrays import PointsLike


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

        By default it is that of the function f(x), without noise: new observations vary by `noise_` more, and
        ``observed=True`` adds that. (scikit-learn's process is the same with `alpha`, and has the noise in it
        with a `WhiteKernel`.)

        Parameters
        ----------
        X : as in `fit`
        return_std : bool, default=False
            Whether to return standard deviations as well: of the function, unless `observed`.
        return_cov : bool, default=False
            Whether to return covariances between all points as well, of the function unless `observed`; for
            some thousands of points at most.
        observed : bool, default=False
            Whether the uncertainty is that of new observations, with noise, or that of the function.

        Returns
        -------
        mean : ndarray of shape (n_samples,) or (n_samples, n_targets); a tensor on X's device if X is one
        std : the same, if `return_std`
        cov : of shape (n_samples, n_samples) or (n_samples, n_samples, n_targets), if `return_cov`
        """
        if return_std and return_cov:
            raise ValueError("ask for return_std or for return_cov, not for both")
        X = self._validate_new(X)
        posterior, features, verbose = self.posterior_, self._trend(X), bool(self.verbose)
        noise = self._noise_of_new() if observed and (return_std or return_cov) else 0.0
        if return_std:
            mean, variance = posterior.variance(X, features, verbose)
            std = self._stretch((variance + noise).sqrt(), 1)
            return self._out(X, self._restore(features, mean)), self._out(X, std)
        if return_cov:
            mean, cov = posterior.covariance(X, features)
            cov.diagonal(dim1=0, dim2=1).add_(noise)
            return self._out(X, self._restore(features, mean)), self._out(X, self._stretch(cov, 2))
        return self._out(X, self._restore(features, posterior.predict(X, features, verbose)))

    def _noise_of_new(self) -> float:
        if np.ndim(self.noise_):
            raise ValueError(
                "observed=True needs the noise of new observations, but `fit` was given one variance for "
                "each training point: add your own to the square of the latent standard deviation"
            )
        return float(self.noise_)

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
        mean : ndarray of shape (n_samples,) or (n_samples, n_targets)
        std : the same, if `return_std`
        """
        check_is_fitted(self, "posterior_")
        left_out = self.posterior_.leave_one_out()
        mean = self._restore_training(left_out.mean)
        return (mean, self._stretch(left_out.variance.sqrt(), 1).cpu().numpy()) if return_std else mean

    def loo_metrics(self) -> dict[str, Any]:
        """How good leave-one-out predictions are.

        Returns
        -------
        dict
            "rmse"; "lpd", the mean log predictive density; "crps"; and "coverage" of 95 % intervals: numbers
            or, of several targets, arrays with one for each.
        """
        mean, std = self.loo_predict(return_std=True)
        if not np.isfinite(std).all():
            raise ValueError(
                "some observations alone determine a part of the trend, so that the others cannot predict "
                "them: there are too few observations for this trend"
            )
        y = self.y_train_
        if y.ndim == 1:
            return _scores(y, mean, std)
        each = [_scores(*columns) for columns in zip(y.T, mean.T, std.T, strict=True)]
        return {name: np.array([scores[name] for scores in each]) for name in each[0]}


def _scores(y: np.ndarray, mean: np.ndarray, std: np.ndarray) -> dict[str, float]:
    return {
        "rmse": metrics.rmse(y, mean),
        "lpd": -metrics.nlpd(y, mean, std),
        "crps": metrics.crps(y, mean, std),
        "coverage": metrics.coverage(y, mean, std),
    }
