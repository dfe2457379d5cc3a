"""Regressors and classifiers whose observations come and go without a refit."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hck.conformal import LeftOutErrors
from hck.estimators.online import OnlineEstimator
from hck.estimators.parameters import Weights
from hck.estimators.ridge import RidgeEstimator
from hck.estimators.training import Fitted, check_sample_weight, check_size
from hck.estimators.updating import as_columns, built, left_out_values, start, start_anew, still_held
from hck.hierarchy import Blueprint, Forest, TreePredictor
from hck.hierarchy.blueprint import lay_out, resolve_jitter
from hck.online import OnlinePredictor, State
from hck.points import Points, VectorPoints
from hck.preparation.arrays import PointsLike


class OnlineRidge(OnlineEstimator, RidgeEstimator):
    """Kernel ridge regression with updates. Kernel, ridge, scaling and intercept stay those of the fit."""

    _unit_weight: float  # of an observation whose noise is alpha; models of earlier versions may lack it

    def _n_observed(self) -> int:
        return len(self._used)

    def _keep(self, fitted: Fitted) -> None:
        super()._keep(fitted)
        start_anew(self)
        self._unit_weight = self._unit()

    # Updates ----------------------------------------------------------------------------------------

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
        both = zip(states, self._noises(weight, len(b)), strict=True)
        self._go_on([state.add(joined, b, noise) for state, noise in both])

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

    def _first_versions(self) -> list[State]:
        if losses := getattr(self, "losses_", []):
            raise ValueError(
                f"updates are for loss='squared', not {losses[0]!r}: use `fit` with all observations"
            )
        if not hasattr(self, "_targets"):
            raise ValueError("this model was saved without its targets, by an earlier version: fit it again")
        b, weight = torch.from_numpy(self._targets), self._weight
        noises = self._noises(None if weight is None else torch.from_numpy(weight), len(b))
        sources = [_blueprint(member, built(self).jitter) for member in self.forest_.members]
        return [start(self, source, b, noise) for source, noise in zip(sources, noises, strict=True)]

    def _unit(self) -> float:
        """The weight of an observation whose noise is alpha: where alpha was chosen, the mean of the fit."""
        if (known := vars(self).get("_unit_weight")) is not None:
            return float(known)
        return float(self._weight.mean()) if isinstance(self.alpha, str) and self._weight is not None else 1.0

    def _noises(self, weight: Tensor | None, n: int) -> list[Tensor]:
        """For each tree the noise of n observations; ValueError if it could not say their weights."""
        share = torch.ones(n, dtype=torch.float64, device="cpu") if weight is None else self._unit() / weight
        noises, dtype = [alpha * share for alpha in self._alphas()], self._trained_points().dtype
        if weight is not None and not all((noise.to(dtype) > 0).all() for noise in noises):
            raise ValueError(
                f"updates of weighted observations need alpha above 0, but it is {min(self._alphas())}, and "
                f"weights are up to {weight.max():.1e}, so that they mean nothing: use `fit` with a larger "
                "alpha, or without sample_weight"
            )
        return noises

    def _alphas(self) -> list[float]:
        """The ridge of each tree."""
        blend, count = [each for each in self.selection_.blend if each.weight > 0], len(self.forest_.members)
        if not blend:
            return [self.selection_.alpha] * count
        # models of earlier versions have as many trees of each
        return [each.alpha for each in blend for _ in range(each.n_trees or count // len(blend))]

    def _go_on(self, states: list[State]) -> None:
        super()._go_on(states)
        self._unit_weight = self._unit()
        self._left_out_errors = None  # which are found when they are asked for
        self.forest_ = Forest([OnlinePredictor(state) for state in states], self.forest_.weights)

    def _compared(self, states: list[State]) -> tuple[list[State], list[float] | None]:
        return states, self.forest_.weights

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
        """Weights of observations with this noise; None if none was ever given one."""
        alpha = self._alphas()[0]
        if self._weight is None and bool((noise == alpha).all()):
            return None
        return alpha * self._unit() / noise.double().cpu().numpy()

    def _every_point(self) -> Points:
        return self._online[0].harvested[0].points if hasattr(self, "_online") else super()._every_point()

    def _left_out_values(self) -> np.ndarray:
        if not hasattr(self, "_online") or self._left_out is None:
            return super()._left_out_values()  # or an error: nothing was left out in `fit`
        every = np.arange(len(self._online[0]))
        return left_out_values(self._online, self.forest_.weights, every)[0].numpy() + self.intercept_

    # Without versions -------------------------------------------------------------------------------

    def _settled_parts(self) -> dict[str, Any]:
        data = self._online[0].harvested[1]
        members = [OnlinePredictor(state).settle() for state in self._online]
        return {
            "forest_": Forest([*members], self.forest_.weights),
            "selection_": replace(self.selection_, held=still_held(self, self._online)),
            "trees_": [member.tree for member in members],
            "_targets": data.b.double().cpu().numpy(),
            "_weight": self._weights_of(data.noise),
            "_used": np.arange(len(data)),
            "_left_out": None if self._left_out is None else self._left_out_values(),
            "_left_out_errors": self._errors(),
        }


def _blueprint(member: Any, jitter: float | None) -> Blueprint:
    """What a fitted function of a tree was computed from."""
    if not isinstance(member, TreePredictor):
        raise ValueError("updates need approximation='hierarchical'")
    points, tree, landmarks = member.points, member.tree, member.landmarks
    points = points if member.order is None else points.take(member.order)
    resolved = resolve_jitter(jitter, member.kernel, points)
    layout = lay_out(tree, points, landmarks.rank, member.budget)
    return Blueprint(member.kernel, points, landmarks, resolved, layout, member.budget)
