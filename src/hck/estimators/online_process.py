"""Gaussian processes whose observations come and go without a refit."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hck.approximations import TreeKernel
from hck.backend.moments import untangling
from hck.estimators.online import OnlineEstimator
from hck.estimators.parameters import Weights
from hck.estimators.process_draws import ProcessDraws
from hck.estimators.updating import as_columns, check_targets, start, still_held
from hck.hierarchy.likelihood import half_covariance
from hck.kernels.inputs import real_array
from hck.online import OnlineProcess, State
from hck.points import VectorPoints
from hck.preparation.arrays import PointsLike, TargetsLike
from hck.preparation.trend import Trend
from hck.preparation.units import Units
from hck.process import Mixture

_LITTLE = 1e-6  # of a trend's coefficients


class OnlineProcessEstimator(OnlineEstimator, ProcessDraws):
    """Gaussian processes with updates. Kernel and noise, and what the trend was scaled by, stay."""

    def _n_observed(self) -> int:
        return len(self.posterior_.members[0].y)

    # Updates ----------------------------------------------------------------------------------------

    def _let_go(self, gone: np.ndarray) -> None:
        if np.ndim(self.noise_):
            self.noise_ = np.delete(self.noise_, gone)

    def _right_sides(self, y: TargetsLike) -> Tensor:
        values = check_targets(self, y) if np.size(y) else np.zeros(0)
        return as_columns(self._in_units(values)[:, None])

    def _in_units(self, y: np.ndarray) -> np.ndarray:
        """One target (m,) in the units of the fit; ValueError for several, and for numbers that overflow."""
        y, units = y.reshape(len(y), -1) if y.size else y.reshape(0, 1), self._own_units()
        if y.shape[1] != 1:
            raise ValueError(f"y has {y.shape[1]} targets, but the model was fitted to one")
        made = y[:, 0] if units is None else units(y[:, 0])
        if len(made):
            self._check_size(made, alone=False)
        return made

    def _relabelled(self, state: State, positions: np.ndarray, values: Tensor) -> State:
        b = state.observed(positions).double().cpu()  # whose trend stays
        b[:, :1] = values - self._trend.explained(b[:, 1:]).reshape(-1, 1)
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
        points, b = self._placed(X), as_columns(self._trend.right_sides(X, self._in_units(y)))
        if not isinstance(points, VectorPoints):
            raise TypeError("points that are no vectors cannot come and go: use `fit` with all of them")
        self._trend.check_near(b[:, 1:].numpy())
        noise = known
        if noise is None:
            noise = torch.full((len(b),), float(self.noise_), dtype=torch.float64, device="cpu")
        else:
            self.noise_ = np.append(self.noise_, noise.numpy())
        self._go_on([state.add(points, b, noise) for state in states])

    # Versions ---------------------------------------------------------------------------------------

    def _first_versions(self) -> list[State]:
        members = self.posterior_.members
        if members[0].outputs > 1:
            raise ValueError(
                f"updates are for one target, but the model has {members[0].outputs}: fit a process for each"
            )
        states = []
        for member in members:
            if not isinstance(member.source, TreeKernel):
                raise ValueError("updates need approximation='hierarchical'")
            states.append(start(self, member.source.blueprint, member.y, member.noise))
        return states

    def _held(self) -> np.ndarray | None:
        return still_held(self, self._online) if hasattr(self, "_online") else super()._held()

    def _go_on(self, states: list[State]) -> None:
        members = [OnlineProcess(state) for state in states]
        change = self._other_trend(members[0])
        if change is not None:
            states = [state.recode(change) for state in states]
            members = [OnlineProcess(state) for state in states]
        super()._go_on(states)
        posterior = Mixture(members, self.posterior_.spread)  # type: ignore[arg-type]
        self.coefficients_ = raw_coefficients(posterior, self._trend, self._own_units())
        self.log_marginal_likelihood_value_ = posterior.log_likelihood
        self.posterior_ = posterior

    def _other_trend(self, process: OnlineProcess) -> Tensor | None:
        """Restate the trend, where that of the fit costs digits since points have come and gone.

        That is where its features are nearly alike by now, or where nearly all of y is what they explain.
        Returns what takes observations and trend to those that are so restated; None if there is no need.
        """
        trend, change = self._trend, None
        if not process.is_clear:
            moments = process.state.moments.cpu() / len(process.state)
            change = untangling(moments[1:, 1:])
        if change is not None:
            half = half_covariance(change.mT @ moments[1:, 1:] @ change)
            more = half @ (half.mT @ (change.mT @ moments[1:, 0]))  # ordinary least squares
            self._trend = trend.rebased(change.numpy()).plus(more.numpy())
        elif process.is_all_trend:
            more = process.coefficients[:, 0].cpu()
            if more.abs().max() < _LITTLE * np.abs(trend.rough).max():
                return None  # y is all trend, and these are rounding errors
            self._trend = trend.plus(more.numpy())
            change = torch.eye(len(more), dtype=more.dtype, device="cpu")
        else:
            return None
        whole = torch.block_diag(torch.ones_like(change[:1, :1]), change)
        whole[1:, 0] = torch.from_numpy(trend.rough - change.numpy() @ self._trend.rough)
        return whole

    def _compared(self, states: list[State]) -> tuple[list[State], list[float] | None]:
        # what is left when the trend is taken away
        return [state.recode(_subtracting(state)) for state in states], None

    # Without versions -------------------------------------------------------------------------------

    def _settled_parts(self) -> dict[str, Any]:
        chosen = getattr(self, "selection_", None)
        members = [member.settled for member in self.posterior_.members]  # type: ignore[attr-defined]
        return {
            "posterior_": Mixture(members, self.posterior_.spread),
            **({"selection_": replace(chosen, held=self._held())} if chosen is not None else {}),
            "trees_": [member.source.tree for member in members],
        }


def _subtracting(state: State) -> Tensor:
    """What takes observations and trend to what is left."""
    beta = OnlineProcess(state).coefficients
    return torch.cat([torch.ones(1, 1, dtype=beta.dtype, device=beta.device), -beta])


def raw_coefficients(posterior: Mixture, trend: Trend, units: Units | None) -> np.ndarray:
    """Coefficients of the trend, of features and targets as they were given."""
    found = trend.raw(posterior.coefficients.cpu().numpy().reshape(-1, *trend.rough.shape[1:]))
    return found if units is None else found * units.scale


def check_variances(variance: Weights, n: int) -> Tensor | None:
    """Variances of the noise of n observations, if they are given."""
    if variance is None:
        return None
    array = real_array(variance, "noise_variance").copy()
    if array.shape != (n,):
        raise ValueError(f"noise_variance must have shape ({n},), got {array.shape}")
    if not (np.isfinite(array).all() and (array > 0).all()):
        raise ValueError("noise_variance must be positive and finite")
    return torch.from_numpy(array)
