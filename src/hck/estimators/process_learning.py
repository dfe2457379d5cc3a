"""What a Gaussian process learns, and the likelihood that it learns by."""

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from hck.approximations import Approximation
from hck.backend.memory import require_bytes, resolve_budget
from hck.estimators.base import FEW
from hck.estimators.process_choice import FEWEST, Chosen, ProcessChoice
from hck.estimators.training import check_size
from hck.kernels import Kernel, make_kernel
from hck.kernels.inputs import positive, real_array
from hck.partition import Tree, leaf_size_for
from hck.points import Points, VectorPoints
from hck.preparation.trend import Trend
from hck.preparation.units import Units
from hck.process import Mixture
from hck.selection import Learned, Learning, Observations, Selection, Space, evaluate, learn
from hck.selection.likelihood import standard_errors, start_lengthscales

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LARGEST = 300.0  # of a parameter's logarithm, in size: then it and its square are finite

Bounds: TypeAlias = dict[str, str | tuple[float, float]]  # of parameters by name; "fixed": not learned


class ProcessLearning(ProcessChoice):
    """Learning for Gaussian processes."""

    n_restarts: int
    log_marginal_likelihood_value_: float
    noise_: Any
    posterior_: Mixture
    theta_: np.ndarray
    _space: Space
    _trend: Trend
    _units: Units | None
    _of_classes: ClassVar[bool] = False  # whether observations are labels

    def _start_kernel(self, points: Points, spread: float) -> Kernel:
        scale = None if isinstance(self.lengthscale, str) else self.lengthscale
        if not isinstance(self.kernel, str):
            return make_kernel(self.kernel, scale)
        assert isinstance(points, VectorPoints)
        name, d = "matern32" if self.kernel == "auto" else self.kernel, points.n_features
        if scale is None:
            scale = start_lengthscales(points)
            scale = self._clip("lengthscale", scale if self.ard else np.exp(np.log(scale).mean()))
        elif self.ard and np.ndim(scale) == 0:
            scale = np.full(d, float(positive("lengthscale", scale)))
        return self._clip("scale", spread) * make_kernel(name, scale)

    def _check_size(self, y: np.ndarray, alone: bool = True) -> None:
        """Raise ValueError for targets of which variances overflow or, if there are no others, underflow."""
        precision = torch.finfo(self._dtype())
        least = 1e8 * precision.tiny**0.5 if alone else 0.0
        check_size(y, least, 1e-3 * precision.max**0.5)

    def _clip(self, name: str, value: float | np.ndarray) -> Any:
        """The default of a parameter, within the bounds that it has."""
        bounds = (self.bounds or {}).get(name)
        pair = np.asarray(bounds)
        if pair.shape == (2,) and pair.dtype.kind in "fiu":  # what is no number is refused later
            value = np.clip(value, *pair)
        return float(value) if np.ndim(value) == 0 else value

    def _settle_parameters(self, data: Observations, rng: np.random.RandomState) -> Chosen:
        """Kernel, noise and sizes: by a comparison of candidates, or by likelihood."""
        spread = float(data.y.reshape(len(data), -1).var(0, correction=0).mean()) or 1.0
        if self._compares(len(data), data.noise is not None):
            return self._choose(data, rng)
        start = self._starting_noise()
        start = self._clip("noise", 0.1 * spread) if start is None else start
        kernel = self._start_kernel(data.points, spread)
        space = Space.of(kernel, start if data.noise is None else None, self.bounds, self.priors, spread)
        few = len(data) < FEWEST and self._chooses()
        learned = self._learn_from_few(space, data, rng) if few else self._learn(space, data, rng)
        kernel, noise = space.at(learned.theta)
        shape = self._final_shape(data.points)
        seeds = rng.randint(2**31 - 1, size=1 if self._is_fixed() else int(shape.n_trees)).tolist()
        ridge = float(data.noise.mean()) if data.noise is not None else float(noise or 0.0)
        selection = Selection(kernel, ridge, **asdict(shape), approximation=str(self.approximation))
        return Chosen(kernel, noise, selection, seeds, space, learned.theta, learned.history)

    def _learn_from_few(self, space: Space, data: Observations, rng: np.random.RandomState) -> Learned:
        """Lengthscales in units of the features' widths, or one for each if that is worth so many more.

        It is where the likelihood grows by more than ½ log n for each (Schwarz, Annals of Statistics 6,
        1978): otherwise few observations would find features that matter among any.
        """
        together, each = (self._learn(space, data, rng, together) for together in (True, False))
        gain = (each.value - together.value) * data.columns.numel()
        more = len(space.start) - len(space.blocks)
        return each if gain > more / 2 * np.log(len(data)) else together

    def _learn(
        self, space: Space, data: Observations, rng: np.random.RandomState, together: bool = False
    ) -> Learned:
        """Parameters of the largest likelihood: fast steps on random trees first, then L-BFGS.

        With `together`, lengthscales keep their ratios, and the points are so few that L-BFGS is all.
        """
        if self.optimizer is None or not len(space.start):
            return Learned(space.start, np.nan, [], True)
        size = self._learning_size(data.points)
        if isinstance(self.partition, Tree) and size < len(data.y):
            raise ValueError(
                f"a tree given as partition needs learn_size=None: it does not fit {size} of the points"
            )

        def make(kernel: Kernel, points: Points, seed: int) -> Approximation:
            made = self._approximation(kernel, points, seed, self._shape, scouting=True)
            if not self._is_exact():  # of which a sample is learned from, whatever the budget
                self._check_memory(made, 2)  # the gradient takes as much again
            return made

        def run(how: str, steps: int, start: np.ndarray | None = None) -> Learned:
            more = Learning(
                *(how, steps, self.n_restarts, size, self.jitter, start, bool(self.verbose)),
                *(self._of_classes, together),
            )
            return learn(space, data, make, rng, more)

        if self.optimizer != "auto":
            return run(self.optimizer, self.max_iter)
        alone = size <= (self.leaf_size or leaf_size_for(size, self._shape.rank))
        if alone or together or (self._is_exact() and size <= FEW) or self.max_iter < 2:
            return run("lbfgs", self.max_iter)
        first = run("stochastic", self.max_iter // 2)
        then = run("lbfgs", self.max_iter - self.max_iter // 2, first.theta)
        return Learned(then.theta, then.value, first.history + then.history, then.converged)

    def _check_memory(self, approximation: Approximation, times: int = 1) -> None:
        """Raise MemoryError unless there is room for so many times a factorization."""
        device, budget = approximation.device, self.memory_budget
        allowed = None if budget is None else resolve_budget(budget, device)
        instead = "lower rank or leaf_size, use dtype='float32', or raise memory_budget"
        if times > 1:
            instead += ", or lower learn_size"
        what = f"a Gaussian process of {len(approximation):,} points"
        require_bytes(times * approximation.factor_bytes(), device, what, instead, allowed)

    # Likelihood -------------------------------------------------------------------------------------

    def log_marginal_likelihood(
        self, theta: ArrayLike | None = None, eval_gradient: bool = False, clone_kernel: bool = True
    ) -> Any:
        """The log-likelihood of all training data, at the best trend, of all targets together.

        With `normalize_y` it is that of the targets in units of their own, as for scikit-learn's process.

        Parameters
        ----------
        theta : array-like of shape (n_parameters,), default=None
            Logarithms of parameters, as in `theta_`: those of the kernel, in the order of ``kernel_.theta``,
            and that of the noise, without those that are fixed. None for those that were learned.
        eval_gradient : bool, default=False
            Whether to return the gradient with respect to theta as well.
        clone_kernel : bool, default=True
            As scikit-learn has it; here `kernel_` is never changed.

        Returns
        -------
        value : float
        gradient : ndarray of shape (n_parameters,), if `eval_gradient`

        Examples
        --------
        >>> import numpy as np
        >>> from hck import HCKGaussianProcessRegressor
        >>> X = np.linspace(0, 1, 60)[:, None]
        >>> process = HCKGaussianProcessRegressor("matern52", lengthscale=0.3, noise=0.01, optimizer=None)
        >>> _ = process.fit(X, np.sin(6 * X[:, 0]))
        >>> process.theta_names_
        ['lengthscale[0]', 'scale', 'noise']
        >>> value, gradient = process.log_marginal_likelihood(process.theta_, eval_gradient=True)
        >>> bool(gradient[-1] < 0)  # less noise would be likelier
        True
        """
        check_is_fitted(self, "posterior_")
        if theta is None and not eval_gradient:
            return self.log_marginal_likelihood_value_
        theta = self.theta_ if theta is None else _check_theta(theta)
        data = self._training_data()
        found = [
            evaluate(self._space, member.source, data, theta, self.jitter, eval_gradient)
            for member in self.posterior_.members
        ]
        value = float(np.mean([one for one, _ in found]))
        return (value, np.mean([slope for _, slope in found], 0)) if eval_gradient else value

    def standard_errors(self, step: float = 1e-3) -> dict[str, np.ndarray]:
        """Standard errors of the logarithms of the parameters: relative errors of the parameters, if small.

        From the observed Fisher information, that is minus the second derivatives of the log-likelihood of
        all training data at `theta_`, which are differences of its gradient: 2 · n_parameters evaluations.
        NaN where the likelihood has no maximum. At a bound they mean nothing.

        Parameters
        ----------
        step : float, default=1e-3
            For the differences.

        Returns
        -------
        dict
            For each parameter's name, an array of its shape.

        Examples
        --------
        >>> import numpy as np
        >>> from hck import HCKGaussianProcessRegressor
        >>> X = np.linspace(0, 1, 60)[:, None]
        >>> process = HCKGaussianProcessRegressor("matern52", lengthscale=0.3, noise=0.01, optimizer=None)
        >>> _ = process.fit(X, np.sin(6 * X[:, 0]))
        >>> list(process.standard_errors())
        ['lengthscale', 'scale', 'noise']
        """
        check_is_fitted(self, "posterior_")
        if not len(self.theta_):
            return {}
        slope = partial(self.log_marginal_likelihood, eval_gradient=True)
        return self._space.split(standard_errors(lambda theta: slope(theta)[1], self.theta_, step))

    def plot_history(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the objective at each step of learning; returns matplotlib's axes.

        Examples
        --------
        >>> import numpy as np
        >>> from hck import HCKGaussianProcessRegressor
        >>> X = np.linspace(0, 1, 60)[:, None]
        >>> process = HCKGaussianProcessRegressor("matern52", lengthscale=0.3, noise=0.01, max_iter=5)
        >>> _ = process.fit(X, np.sin(6 * X[:, 0]))
        >>> process.plot_history().get_xlabel()
        'step'
        """
        from hck.plotting import plot_learning  # which needs matplotlib

        check_is_fitted(self, "history_")
        return plot_learning(self, ax=ax)

    @property
    def theta_bounds_(self) -> np.ndarray:
        """The bounds of `theta_`: shape (n_parameters, 2)."""
        check_is_fitted(self, "theta_")
        return self._space.bounds

    # Training data ----------------------------------------------------------------------------------

    @property
    def X_train_(self) -> Any:
        """The training points, as the kernel sees them: an array, a CSR matrix or objects."""
        check_is_fitted(self, "posterior_")
        points = self.posterior_.members[0].source.points
        every = torch.arange(len(points), device=points.device)
        return points.numpy(every) if isinstance(points, VectorPoints) else points.x

    @property
    def y_train_(self) -> np.ndarray:
        """The targets, as `fit` was given them but for rounding: (n_samples,) or (n_samples, n_targets)."""
        check_is_fitted(self, "posterior_")
        return self._restore_training(self._training_data().y)

    @property
    def y_scale_(self) -> np.ndarray:
        """The units of targets: shape (n_targets,)."""
        check_is_fitted(self, "posterior_")
        units = self._own_units()
        return (
            np.ones(self.posterior_.members[0].outputs) if units is None else np.array(units.scale, ndmin=1)
        )

    def _restore_training(self, values: Tensor) -> np.ndarray:
        """Values at the training points with what the trend took away."""
        return self._restore(self.posterior_.members[0].features.double().cpu(), values).cpu().numpy()

    def _restore(self, features: Tensor, values: Tensor, axis: int = -1) -> Tensor:
        """Values with what the trend took away, in the units of y; targets, if several, are on this axis."""
        values, units = self._trend.restore(features, values), self._own_units()
        return values if units is None else units.restore(values, axis)

    def _stretch(self, values: Tensor, power: int, axis: int = -1) -> Tensor:
        """Differences (power 1) or variances (power 2) in the units of y."""
        units = self._own_units()
        return values if units is None else units.stretch(values, power, axis)

    def _own_units(self) -> Units | None:
        return getattr(self, "_units", None)  # which models of earlier versions lack

    def _training_data(self) -> Observations:
        """The observations; their points are those of the members."""
        first = self.posterior_.members[0]
        noise = first.noise if np.ndim(self.noise_) else None
        return Observations(first.source.points, first.observations, first.features, noise)


def _check_theta(theta: ArrayLike) -> np.ndarray:
    """Logarithms of parameters, or a ValueError."""
    given = real_array(theta)
    wrong = given[~(np.abs(given) < _LARGEST)]
    if wrong.size:
        raise ValueError(
            f"theta are logarithms of parameters, between -{_LARGEST:g} and {_LARGEST:g}, got {wrong[0]}"
        )
    return given
