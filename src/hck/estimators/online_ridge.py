"""Regressors and classifiers whose observations come and go without a refit."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from hck.conformal import LeftOutErrors
from hck.estimators.parameters import Weights
from hck.estimators.ridge import RidgeEstimator
from hck.estimators.training import Fitted, check_sample_weight, check_size
from hck.estimators.updating import (
    Trees,
    as_columns,
    check_loaded,
    check_updatable,
    drift,
    left_out_values,
    oldest,
    places_of,
    start,
    start_anew,
    still_held,
)
from hck.hierarchy import Blueprint, Forest, TreePredictor
from hck.hierarchy.blueprint import lay_out, resolve_jitter
from hck.online import OnlinePredictor, State
from hck.points import Points, VectorPoints
from hck.preparation.arrays import PointsLike, TargetsLike


class OnlineRidge(RidgeEstimator):
    """Kernel ridge regression with updates; `_online` has a version for each tree, once there was one.

    Kernel, ridge, scaling and intercept stay those of the fit.
    """

    _online: list[State]
    _first_new: int  # the number of the first observation that came after the fit
    _n_recent: int  # of a saved model: how many came after its fit
    _grown_by: int  # of a saved model: the leaf size by which its trees grow
    _unit_weight: float  # of an observation whose noise is alpha

    def _validate_loaded(self) -> None:
        super()._validate_loaded()
        check_loaded(self, len(self._used))

    def _keep(self, fitted: Fitted) -> None:
        super()._keep(fitted)
        start_anew(self)

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
        b = self._right_sides(y)
        if len(b) != len(positions):
            raise ValueError(f"there are {len(positions)} indices, but y has {len(b)} values")
        if len(positions):
            self._go_on([state.relabel(positions, b[order]) for state in states])
        return self

    def _add(self, X: PointsLike, b: Tensor, sample_weight: Weights) -> None:
        """With more observations: validated points and right-hand sides (m, columns)."""
        states = self._versions()
        weight = check_sample_weight(sample_weight, len(b))
        points = [self._placed(part) for part in self._parts(X)]
        joined = points[0].join(points[1:]) if len(points) > 1 else points[0]
        if weight is not None and (weight == 0).any():
            kept = weight.nonzero().squeeze(1)
            joined, b, weight = joined.take(kept.to(joined.device)), b[kept], weight[kept]
        if not isinstance(joined, VectorPoints) or len(joined) == 0:
            return
        share = torch.ones(len(b), dtype=torch.float64, device="cpu")
        share = share if weight is None else self._unit_weight / weight
        both = zip(states, self._alphas(), strict=True)
        self._go_on([state.add(joined, b, alpha * share) for state, alpha in both])

    def _right_sides(self, y: TargetsLike) -> Tensor:
        """Targets as right-hand sides (m, columns), without the intercept; ValueError for bad ones."""
        raise NotImplementedError

    def _centred(self, targets: np.ndarray) -> Tensor:
        """Targets (m, columns) without the intercept of the fit."""
        wanted = len(self.intercept_)
        if targets.shape[1] != wanted:
            raise ValueError(f"y has {targets.shape[1]} targets, but the model was fitted to {wanted}")
        made = as_columns(targets - self.intercept_)
        if len(made):
            check_size(made)
        return made

    # Versions ---------------------------------------------------------------------------------------

    def _versions(self) -> list[State]:
        """The version of each tree; made of the fitted model when it is first asked for."""
        check_is_fitted(self, "trees_")
        check_updatable(self)
        if hasattr(self, "_online"):
            return self._online
        if losses := getattr(self, "losses_", []):
            raise ValueError(
                f"updates are for loss='squared', not {losses[0]!r}: use `fit` with all observations"
            )
        if not hasattr(self, "_targets"):
            raise ValueError("this model was saved without its targets, by an earlier version: fit it again")
        b, weight = torch.from_numpy(self._targets), self._weight
        chosen = isinstance(self.alpha, str)
        mean = float(weight.mean()) if chosen and weight is not None else 1.0
        self._unit_weight = getattr(self, "_unit_weight", mean)
        share = torch.ones(len(b), dtype=torch.float64, device="cpu")
        share = share if weight is None else self._unit_weight / torch.from_numpy(weight)
        shape = self.selection_.rank, self.selection_.leaf_size
        self._first_new = len(b) - self.__dict__.pop("_n_recent", 0)
        states = []
        for member, alpha in zip(self.forest_.members, self._alphas(), strict=True):
            source = _blueprint(member, self.jitter)
            states.append(start(self, source, shape, b, alpha * share))
        return states

    def _alphas(self) -> list[float]:
        """The ridge of each tree."""
        blend, count = [each for each in self.selection_.blend if each.weight > 0], len(self.forest_.members)
        if not blend:
            return [self.selection_.alpha] * count
        # models of earlier versions have as many trees of each
        return [each.alpha for each in blend for _ in range(each.n_trees or count // len(blend))]

    def _go_on(self, states: list[State]) -> None:
        """Set what belongs to other versions."""
        self._online, self.trees_ = states, Trees(states)  # type: ignore[assignment]
        self._left_out_errors = None  # which are found when they are asked for
        self.forest_ = Forest([OnlinePredictor(state) for state in states], self.forest_.weights)

    @property
    def drift_(self) -> float:
        """How much worse new observations are predicted than old ones: a ratio of squared errors.

        Of the last thousand that came after the fit, and of a thousand from before, each predicted from all
        others. 1 if nothing came. Above about 1.2, or when there are twice as many observations as in the
        fit, another `fit` pays: kernel, ridge and scaling were chosen for other data.
        """
        check_is_fitted(self, "trees_")
        if not hasattr(self, "_online"):
            return 1.0
        return drift(self._online, self.forest_.weights, self._first_new)

    def _errors(self) -> LeftOutErrors | None:
        found = super()._errors()
        if found is not None or not hasattr(self, "_online") or self._left_out is None:
            return found
        data = self._online[0].harvested[1]
        targets = data.b.double().cpu().numpy() + self.intercept_
        found = self._errors_of(targets, self._left_out_values(), self._weights_of(data.noise))
        self._left_out_errors = found
        return found

    def _errors_of(
        self, targets: np.ndarray, left_out: np.ndarray, weight: np.ndarray | None
    ) -> LeftOutErrors:
        """Errors of targets (n, columns), with the intercept, that all others predict."""
        raise NotImplementedError

    def _weights_of(self, noise: Tensor) -> np.ndarray | None:
        """Weights of observations with this noise; None if all are alike."""
        each = noise.double().cpu().numpy()
        even = self._weight is None and bool((each == each[0]).all())
        return None if even else self._alphas()[0] * self._unit_weight / each

    def _every_point(self) -> Points:
        return self._online[0].harvested[0].points if hasattr(self, "_online") else super()._every_point()

    def _left_out_values(self) -> np.ndarray:
        if not hasattr(self, "_online"):
            return super()._left_out_values()
        every = np.arange(len(self._online[0]))
        return left_out_values(self._online, self.forest_.weights, every)[0].numpy() + self.intercept_

    # Without versions -------------------------------------------------------------------------------

    def _settled(self) -> Self:
        if not hasattr(self, "_online"):
            return self
        states, made = self._online, object.__new__(type(self))
        data = states[0].harvested[1]
        members = [OnlinePredictor(state).settle() for state in states]
        found = {name: value for name, value in vars(self).items() if name not in ("_online", "_first_new")}
        made.__dict__ = {
            **found,
            "forest_": Forest([*members], self.forest_.weights),
            "selection_": replace(self.selection_, held=still_held(self, states)),
            "trees_": [member.tree for member in members],
            "_targets": data.b.double().cpu().numpy(),
            "_weight": self._weights_of(data.noise),
            "_used": np.arange(len(data)),
            "_left_out": None if self._left_out is None else self._left_out_values(),
            "_left_out_errors": self._errors(),
            "_grown_by": states[0].habit.leaf_size,
            "_n_recent": len(data) - int(np.searchsorted(states[0].ledger.numbers, self._first_new)),
        }
        return made

    def __getstate__(self) -> dict[str, Any]:
        settled = self._settled()
        return super().__getstate__() if settled is self else settled.__getstate__()


def _blueprint(member: Any, jitter: float | None) -> Blueprint:
    """What a fitted function of a tree was computed from."""
    if not isinstance(member, TreePredictor):
        raise ValueError("updates need approximation='hierarchical'")
    points, tree, landmarks = member.points, member.tree, member.landmarks
    points = points if member.order is None else points.take(member.order)
    resolved = resolve_jitter(jitter, member.kernel, points)
    layout = lay_out(tree, points, landmarks.rank, member.budget)
    return Blueprint(member.kernel, points, landmarks, resolved, layout, member.budget)
