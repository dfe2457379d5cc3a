"""Gaussian processes whose observations come and go without a refit."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from hck.approximations import TreeKernel
from hck.estimators.parameters import Weights
from hck.estimators.process_draws import ProcessDraws
from hck.estimators.updating import (
    Trees,
    as_columns,
    check_loaded,
    check_targets,
    check_updatable,
    drift,
    oldest,
    places_of,
    start,
    still_held,
)
from hck.kernels.inputs import real_array
from hck.online import OnlineProcess, State
from hck.points import VectorPoints
from hck.preparation.arrays import PointsLike, TargetsLike
from hck.preparation.trend import Trend
from hck.preparation.units import Units
from hck.process import Mixture


class OnlineProcessEstimator(ProcessDraws):
    """Gaussian processes with updates; `_online` has a version for each tree, once there was one.

    Kernel and noise, and what the trend was scaled by, stay those of the fit.
    """

    _online: list[State]
    _first_new: int  # the number of the first observation that came after the fit
    _n_recent: int  # of a saved model: how many came after its fit
    _grown_by: int  # of a saved model: the leaf size by which its trees grow

    def _validate_loaded(self) -> None:
        super()._validate_loaded()
        check_loaded(self, len(self.posterior_.members[0].y))

    # Updates ----------------------------------------------------------------------------------------

    def forget(self, indices: ArrayLike | None = None, *, keep: int | None = None) -> Self:
        """Forget observations, as if they had never been there.

        Parameters
        ----------
        indices : array-like of int, or a mask, default=None
            Which ones: observations are counted from 0 in the order in which they came, without those that
            are forgotten already.
        keep : int, default=None
            In place of indices: forget all but so many of the newest (a sliding window).

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from hck import HCKGaussianProcessRegressor
        >>> X = np.linspace(0, 1, 60)[:, None]
        >>> process = HCKGaussianProcessRegressor("matern52", lengthscale=0.3, noise=0.01, optimizer=None)
        >>> _ = process.fit(X, np.sin(6 * X[:, 0]))
        >>> len(process.forget(keep=50).loo_predict())
        50
        """
        states = self._versions()
        gone = oldest(len(states[0]), indices, keep)
        if len(gone):
            noise = np.delete(self.noise_, gone) if np.ndim(self.noise_) else self.noise_
            self._go_on([state.forget(gone) for state in states], noise)
        return self

    def update(self, indices: ArrayLike, y: TargetsLike) -> Self:
        """Correct what was observed.

        Parameters
        ----------
        indices : array-like of int, or a mask
            As in `forget`.
        y : array-like of shape (n_indices,)
            In place of what there was.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from hck import HCKGaussianProcessRegressor
        >>> X = np.linspace(0, 1, 60)[:, None]
        >>> process = HCKGaussianProcessRegressor("matern52", lengthscale=0.3, noise=0.01, optimizer=None)
        >>> _ = process.fit(X, np.sin(6 * X[:, 0]))
        >>> process.update([30], [7.0]).predict(X[30:31]) > np.sin(6 * X[30, 0])
        array([ True])
        """
        states = self._versions()
        positions, order = places_of(indices, len(states[0]))
        values = np.zeros(0)
        if np.size(y):
            values = check_targets(self, y)
        if values.shape != (len(positions),):
            raise ValueError(f"there are {len(positions)} indices, but y has the shape {values.shape}")
        if len(positions):
            self._go_on([self._relabelled(state, positions, values[order]) for state in states], self.noise_)
        return self

    def _relabelled(self, state: State, positions: np.ndarray, values: np.ndarray) -> State:
        """With other observations at positions; their trend stays."""
        b, units = state.observed(positions).double().cpu(), self._own_units()
        values = values if units is None else units(values)
        self._check_size(values, alone=False)
        b[:, 0] = torch.from_numpy(values) - b[:, 1:] @ torch.from_numpy(self._trend.rough)
        return state.relabel(positions, b)

    def _add(self, X: PointsLike, y: np.ndarray, noise_variance: Weights) -> None:
        """With more observations, which are validated."""
        states, known = self._versions(), check_variances(noise_variance, len(y))
        each = np.ndim(self.noise_) > 0
        if each != (known is not None):
            had = "was given" if each else "was given no"
            raise ValueError(
                f"`fit` {had} noise_variance: it must be given for all observations, or for none"
            )
        units, y = self._own_units(), y.reshape(len(y), -1)
        if y.shape[1] != 1:
            raise ValueError(f"y has {y.shape[1]} targets, but the model was fitted to one")
        y = y[:, 0] if units is None else units(y[:, 0])
        self._check_size(y, alone=False)
        points, b = self._placed(X), as_columns(self._trend.right_sides(X, y))
        if not isinstance(points, VectorPoints):
            raise TypeError("points that are no vectors cannot come and go: use `fit` with all of them")
        noise, after = known, self.noise_
        if noise is None:
            noise = torch.full((len(b),), float(self.noise_), dtype=torch.float64, device="cpu")
        else:
            after = np.append(self.noise_, noise.numpy())
        self._go_on([state.add(points, b, noise) for state in states], after)

    # Versions ---------------------------------------------------------------------------------------

    def _versions(self) -> list[State]:
        """The version of each tree; made of the fitted model when it is first asked for."""
        check_is_fitted(self, "posterior_")
        check_updatable(self)
        if hasattr(self, "_online"):
            return self._online
        members = self.posterior_.members
        if members[0].outputs > 1:
            raise ValueError(
                f"updates are for one target, but the model has {members[0].outputs}: fit a process for each"
            )
        self._first_new = len(members[0].y) - self.__dict__.pop("_n_recent", 0)
        states = []
        for member in members:
            if not isinstance(member.source, TreeKernel):
                raise ValueError("updates need approximation='hierarchical'")
            shape = self._tree_shape()
            states.append(start(self, member.source.blueprint, shape, member.y, member.noise))
        return states

    def _tree_shape(self) -> tuple[int, int | None]:
        """Rank and leaf size of the trees."""
        chosen = getattr(self, "selection_", None)  # which models of earlier versions lack
        return (int(self.rank), self.leaf_size) if chosen is None else (chosen.rank, chosen.leaf_size)

    def _held(self) -> np.ndarray | None:
        return still_held(self, self._online) if hasattr(self, "_online") else super()._held()

    def _go_on(self, states: list[State], noise: float | np.ndarray) -> None:
        """Set what belongs to other versions."""
        members = [OnlineProcess(state) for state in states]
        posterior = Mixture(members, self.posterior_.spread)  # type: ignore[arg-type]
        self.coefficients_ = raw_coefficients(posterior, self._trend, self._own_units())
        self.log_marginal_likelihood_value_ = posterior.log_likelihood
        self._online, self.trees_ = states, Trees(states)  # type: ignore[assignment]
        self.posterior_, self.noise_ = posterior, noise

    @property
    def drift_(self) -> float:
        """How much worse new observations are predicted than old ones: a ratio of squared errors.

        Of the last thousand that came after the fit, and of a thousand from before, each predicted from all
        others. 1 if nothing came. Above about 1.2, or when there are twice as many observations as in the
        fit, another `fit` pays: kernel and noise were learned from other data.
        """
        check_is_fitted(self, "posterior_")
        if not hasattr(self, "_online"):
            return 1.0
        # of what is left when the trend is taken away
        rest = [state.recode(_subtracting(state)) for state in self._online]
        return drift(rest, None, self._first_new)

    # Without versions -------------------------------------------------------------------------------

    def _settled(self) -> Self:
        if not hasattr(self, "_online"):
            return self
        made, states = object.__new__(type(self)), self._online
        chosen = getattr(self, "selection_", None)
        found = {name: value for name, value in vars(self).items() if name not in ("_online", "_first_new")}
        members = [member.settled for member in self.posterior_.members]  # type: ignore[attr-defined]
        made.__dict__ = {
            **found,
            "posterior_": Mixture(members, self.posterior_.spread),
            **({"selection_": replace(chosen, held=self._held())} if chosen is not None else {}),
            "trees_": [member.source.tree for member in members],
            "_grown_by": states[0].habit.leaf_size,
            "_n_recent": len(states[0]) - int(np.searchsorted(states[0].ledger.numbers, self._first_new)),
        }
        return made

    def __getstate__(self) -> dict[str, Any]:
        settled = self._settled()
        return super().__getstate__() if settled is self else settled.__getstate__()


def _subtracting(state: State) -> Tensor:
    """What takes observations and trend to what is left."""
    beta = OnlineProcess(state).coefficients
    return torch.cat([torch.ones(1, 1, dtype=beta.dtype, device=beta.device), -beta])


def raw_coefficients(posterior: Mixture, trend: Trend, units: Units | None) -> np.ndarray:
    """Coefficients of the trend, of features and targets as they were given."""
    found = trend.raw(posterior.coefficients.cpu().numpy().reshape(trend.rough.shape))
    return found if units is None else found * units.scale


def check_variances(variance: Weights, n: int) -> Tensor | None:
    """Variances of the noise of n observations, if they are given."""
    if variance is None:
        return None
    array = real_array(variance).copy()
    if array.shape != (n,):
        raise ValueError(f"noise_variance must have shape ({n},), got {array.shape}")
    if not (np.isfinite(array).all() and (array > 0).all()):
        raise ValueError("noise_variance must be positive and finite")
    return torch.from_numpy(array)
