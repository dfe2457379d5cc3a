"""What a Gaussian process says of new points and of the training points: means and uncertainty."""

from typing import Any

import numpy as np
from scipy.special import ndtri
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from hck import metrics
from hck.conformal import LeftOutErrors, check_level
from hck.estimators.intervals import around
from hck.estimators.parameters import Predictions
from hck.estimators.process_learning import ProcessLearning
from hck.estimators.slopes import by_columns, check_slopes
from hck.kernels import Kernel
from hck.points import Points, features_of
from hck.preparation.arrays import PointsLike


class ProcessPrediction(ProcessLearning):
    """Predictions of Gaussian processes."""

    kernel_: Kernel

    def _trained_points(self) -> Points:
        return self.posterior_.members[0].mean.points

    # Predictions ------------------------------------------------------------------------------------

    def predict(
        self,
        X: PointsLike,
        return_std: bool = False,
        return_cov: bool = False,
        observed: bool = False,
        interval: float | None = None,
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
        interval : float, default=None
            The share of new observations, such as 0.9, that intervals around the mean should hold; of several
            targets, each for itself. They reach as many standard deviations of observations to both sides as
            left-out training observations ask for (docs/uncertainty.md), so that they hold as many where
            errors are not Gaussian. Where these are too few for a level, intervals are a Gaussian's, or reach
            to the largest of them.

        Returns
        -------
        mean : ndarray of shape (n_samples,) or (n_samples, n_targets); a tensor on X's device if X is one
        std : the same, if `return_std`
        cov : of shape (n_samples, n_samples) or (n_samples, n_samples, n_targets), if `return_cov`
        lower, upper : like mean, if `interval` is given

        Examples
        --------
        >>> import numpy as np
        >>> from hck import HCKGaussianProcessRegressor
        >>> X = np.linspace(0, 1, 60)[:, None]
        >>> process = HCKGaussianProcessRegressor("matern52", lengthscale=0.3, noise=0.01, optimizer=None)
        >>> _ = process.fit(X, np.sin(6 * X[:, 0]))
        >>> mean, std = process.predict([[0.5], [9.0]], return_std=True)  # of the function
        >>> _, wider = process.predict([[0.5], [9.0]], return_std=True, observed=True)  # of observations
        >>> bool(std[0] < std[1]), (std < wider)
        (True, array([ True,  True]))
        >>> mean, lower, upper = process.predict([[0.5], [9.0]], interval=0.9)  # of observations
        >>> bool(lower[0] < np.sin(3.0) < upper[0])
        True
        """
        if bool(return_std) + bool(return_cov) + (interval is not None) > 1:
            raise ValueError("ask for one of return_std, return_cov and interval, not for several")
        if interval is not None:
            reach = self._reach(interval)
            mean, std = self.predict(X, return_std=True, observed=True)
            return around(mean, std * (std.new_tensor(reach) if isinstance(std, Tensor) else reach))
        X = self._validate_new(X)
        posterior, features, verbose = self.posterior_, self._trend(X), bool(self.verbose)
        points = self._placed(X)
        noise = self._noise_of_new() if observed and (return_std or return_cov) else 0.0
        if return_std:
            mean, variance = posterior.variance(points, features, verbose)
            std = self._stretch((variance + noise).sqrt(), 1)
            return self._out(X, self._restore(features, mean)), self._out(X, std)
        if return_cov:
            mean, cov = posterior.covariance(points, features)
            cov.diagonal(dim1=0, dim2=1).add_(noise)
            return self._out(X, self._restore(features, mean)), self._out(X, self._stretch(cov, 2))
        return self._out(X, self._restore(features, posterior.predict(points, features, verbose)))

    def _reach(self, level: float) -> np.ndarray:
        """How many standard deviations of observations intervals reach to both sides: () or (targets,)."""
        check_is_fitted(self, "posterior_")
        check_level(level)
        sizes, gaussian = self.posterior_.standardised, np.asarray(ndtri((1 + level) / 2))
        if sizes is None:
            return gaussian
        each = sizes.double().cpu().numpy().reshape(len(sizes), -1)
        found = LeftOutErrors(each, held=self._held()).threshold(level)
        largest = np.where(np.isfinite(each), each, 0.0).max(0)
        found = np.where(np.isfinite(found), found, np.maximum(largest, gaussian))
        return found[0] if sizes.ndim == 1 else found

    def _held(self) -> np.ndarray | None:
        """Observations that did not shape the metric, if others did."""
        return getattr(getattr(self, "selection_", None), "held", None)  # earlier versions lack it

    def predict_gradient(self, X: PointsLike, return_std: bool = False) -> Predictions:
        """The gradient of the function by x, trend included, in closed form, in the units that X and y have.

        With several trees, the mean over trees; their disagreement is part of the standard deviation. It is
        the gradient of the leaf that a point is in: across a cut, where predictions may jump, it says
        nothing. A standard deviation costs as much as those of n_features predictions.

        Parameters
        ----------
        X : as in `fit`, but dense
        return_std : bool, default=False
            Whether to return the standard deviation of each component as well. Kernels whose functions have
            kinks everywhere (laplace, matern12) have none: it is infinite.

        Returns
        -------
        mean : ndarray of shape (n_samples, n_features) or (n_samples, n_features, n_targets)
            A tensor on X's device if X is a tensor. NaN for columns that are categories.
        std : the same, if `return_std`

        Raises
        ------
        NoGradientError
            If there is no gradient: see `return_std`; for sparse points and objects; for trends that are
            functions, and for functions as kernels that torch cannot differentiate.

        Examples
        --------
        >>> import numpy as np
        >>> from hck import HCKGaussianProcessRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(size=(1000, 1))
        >>> y = np.sin(6 * X[:, 0]) + 0.1 * rng.standard_normal(1000)
        >>> model = HCKGaussianProcessRegressor("gaussian", rank=64, random_state=0).fit(X, y)
        >>> slope, std = model.predict_gradient([[0.5]], return_std=True)
        >>> bool(abs(slope[0, 0] - 6 * np.cos(3.0)) < 4 * std[0, 0])
        True
        """
        X = self._validate_new(X)
        check_slopes(self)
        posterior, trend, verbose = self.posterior_, self._trend, bool(self.verbose)
        points, scaling = self._placed(X), self._own_scaling()
        along = trend.slope(features_of(points))
        inside = scaling.forth(along, points.x)  # by features as the kernel sees them

        def restored(slopes: Tensor) -> Predictions:
            return self._out(X, by_columns(self, self._stretch(slopes, 1)))

        def restored_mean(slopes: Tensor) -> Predictions:
            return restored(trend.restore_slope(along, scaling.back(slopes, points.x)))

        if not return_std:
            return restored_mean(posterior.slope(points, inside, verbose))
        mean, variance = posterior.slope_variance(points, inside, verbose)
        return restored_mean(mean), restored(scaling.back(variance.sqrt(), points.x))

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

        Tree, landmarks and learned parameters stay as they are, and so does a mean that is taken as known
        (``trend="mean"``); other trends are estimated without the point.

        Parameters
        ----------
        return_std : bool, default=False
            Whether to return the standard deviations of the observations, noise included, as well.

        Returns
        -------
        mean : ndarray of shape (n_samples,) or (n_samples, n_targets)
        std : the same, if `return_std`

        Examples
        --------
        >>> import numpy as np
        >>> from hck import HCKGaussianProcessRegressor
        >>> X = np.linspace(0, 1, 60)[:, None]
        >>> process = HCKGaussianProcessRegressor("matern52", lengthscale=0.3, noise=0.01, optimizer=None)
        >>> _ = process.fit(X, np.sin(6 * X[:, 0]))
        >>> mean, std = process.loo_predict(return_std=True)
        >>> float(np.mean(np.abs(mean - np.sin(6 * X[:, 0])) < 2 * std)) > 0.9
        True
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

        Examples
        --------
        >>> import numpy as np
        >>> from hck import HCKGaussianProcessRegressor
        >>> X = np.linspace(0, 1, 60)[:, None]
        >>> process = HCKGaussianProcessRegressor("matern52", lengthscale=0.3, noise=0.01, optimizer=None)
        >>> _ = process.fit(X, np.sin(6 * X[:, 0]))
        >>> list(process.loo_metrics())
        ['rmse', 'lpd', 'crps', 'coverage']
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
