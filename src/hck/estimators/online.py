"""What estimators whose observations come and go without a refit share."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from hck.estimators.base import HCKEstimator
from hck.estimators.updating import Trees, check_loaded, check_updatable, drift, oldest, places_of
from hck.online import State
from hck.preparation.arrays import TargetsLike
from hck.settings import Settings


class OnlineEstimator(HCKEstimator):
    """An estimator with updates; `_online` has a version for each tree, once there was one."""

    _online: list[State]
    _first_new: int  # the number of the first observation that came after the fit
    _n_recent: int  # of a saved model: how many came after its fit
    _grown_by: int  # of a saved model: the leaf size by which its trees grow
    _built: Settings  # by which trees were, and new nodes are; models of earlier versions lack it

    def _validate_loaded(self) -> None:
        super()._validate_loaded()
        check_loaded(self, self._n_observed())

    # Updates ----------------------------------------------------------------------------------------

    def forget(self, indices: ArrayLike | None = None, *, keep: int | None = None) -> Self:
        """Forget observations, as if they had never been there.

        Parameters
        ----------
        indices : array-like of int, or a mask, default=None
            Which ones: observations are counted from 0 in the order in which they came, without points of
            weight 0 and without those that are forgotten already.
        keep : int, default=None
            In place of indices: forget all but so many of the newest (a sliding window).

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from hck import HCKRegressor
        >>> X = np.linspace(0, 1, 100)[:, None]
        >>> model = HCKRegressor("matern32", lengthscale=0.5, alpha=0.1, rank=16).fit(X, X[:, 0])
        >>> len(model.forget(keep=80).loo_predict())  # the newest stay
        80
        >>> len(model.forget([0, 3]).loo_predict())  # the first and the fourth of these go
        78
        """
        states = self._versions()
        gone = oldest(len(states[0]), indices, keep)
        if len(gone):
            self._let_go(gone)
            self._go_on([state.forget(gone) for state in states])
        return self

    def update(self, indices: ArrayLike, y: TargetsLike) -> Self:
        """Correct what was observed.

        Parameters
        ----------
        indices : array-like of int, or a mask
            As in `forget`.
        y : array-like of shape (n_indices,), or (n_indices, n_targets)
            In place of what there was.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from hck import HCKRegressor
        >>> X = np.linspace(0, 1, 100)[:, None]
        >>> model = HCKRegressor("matern32", lengthscale=0.5, alpha=0.1, rank=16).fit(X, X[:, 0])
        >>> before = model.predict(X[50:51])
        >>> model.update([50], [7.0]).predict(X[50:51]) > before
        array([ True])
        """
        states = self._versions()
        positions, order = places_of(indices, len(states[0]))
        values = self._right_sides(y)
        if len(values) != len(positions):
            raise ValueError(f"there are {len(positions)} indices, but y has {len(values)} values")
        if len(positions):
            self._go_on([self._relabelled(state, positions, values[order]) for state in states])
        return self

    @property
    def drift_(self) -> float:
        """How much worse new observations are predicted than old ones: a ratio of squared errors.

        Of the last thousand that came after the fit, and of a thousand from before, each predicted from all
        others. 1 if nothing came, infinite if nothing of the fit is left. Above about 1.2, or when there are
        twice as many observations as in the fit, another `fit` pays: kernel, ridge or noise, and scaling were
        chosen for other data.
        """
        check_is_fitted(self, "trees_")
        if not hasattr(self, "_online") and not getattr(self, "_n_recent", 0):
            return 1.0
        return drift(*self._compared(self._versions()), self._first_number())

    # Versions ---------------------------------------------------------------------------------------

    def _versions(self) -> list[State]:
        """The version of each tree; made of the fitted model when it is first asked for."""
        check_updatable(self)
        check_is_fitted(self, "trees_")
        return self._online if hasattr(self, "_online") else self._first_versions()

    def _first_number(self) -> int:
        """Of the observations that came after the fit."""
        if hasattr(self, "_online"):
            return self._first_new
        return self._n_observed() - int(getattr(self, "_n_recent", 0))

    def _first_versions(self) -> list[State]:
        """Of the fitted model; ValueError if it can have none."""
        raise NotImplementedError

    def _n_observed(self) -> int:
        """Observations of a model without versions."""
        raise NotImplementedError

    def _go_on(self, states: list[State]) -> None:
        """Set what belongs to other versions."""
        self._first_new = self._first_number()
        self.__dict__.pop("_n_recent", None)
        self._online, self.trees_ = states, Trees(states)  # type: ignore[assignment]

    def _let_go(self, gone: np.ndarray) -> None:
        """Forget what is kept beside the versions of observations at some positions."""

    def _right_sides(self, y: TargetsLike) -> Tensor:
        """What was observed as right-hand sides (m, columns); ValueError for bad values."""
        raise NotImplementedError

    def _relabelled(self, state: State, positions: np.ndarray, values: Tensor) -> State:
        """With other values (m, columns) at positions."""
        return state.relabel(positions, values)

    def _compared(self, states: list[State]) -> tuple[list[State], list[float] | None]:
        """Versions of what is left out to find a drift, and the weights of trees, None if these are equal."""
        raise NotImplementedError

    # Without versions -------------------------------------------------------------------------------

    def _settled(self) -> Self:
        if not hasattr(self, "_online"):
            return self
        made, states = object.__new__(type(self)), self._online
        found = {name: value for name, value in vars(self).items() if name not in ("_online", "_first_new")}
        made.__dict__ = {
            **found,
            **self._settled_parts(),
            "_grown_by": states[0].habit.leaf_size,
            "_n_recent": len(states[0]) - int(np.searchsorted(states[0].ledger.numbers, self._first_new)),
        }
        return made

    def _settled_parts(self) -> dict[str, Any]:
        """The attributes that `fit` would have set otherwise."""
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        settled = self._settled()
        return super().__getstate__() if settled is self else settled.__getstate__()
