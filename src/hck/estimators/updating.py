"""What updates of all estimators share: which observations they mean, and where a fitted model goes on."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.utils import check_array
from torch import Tensor

from hck.backend.checks import is_whole, require
from hck.backend.memory import require_bytes
from hck.estimators.base import HCKEstimator
from hck.hierarchy import Blueprint
from hck.hierarchy.leave_one_out import leave_one_out
from hck.online import Habit, State
from hck.online.read import inverse_diagonal
from hck.partition import Cutter, Landmarks, Tree, known_landmarks, known_partitions
from hck.partition.hyperplane import HyperplaneCutter
from hck.preparation.arrays import TargetsLike, to_host
from hck.preparation.coding import as_targets, refuse_sparse
from hck.selection.candidate import Shape
from hck.settings import Settings

_FEW = 1000  # observations whose left-out loss is compared
_OF_UPDATES = ("_online", "_first_new", "_n_recent", "_grown_by", "_unit_weight", "_built")  # attributes


def positions_of(indices: ArrayLike, n: int) -> np.ndarray:
    """Positions of observations, ascending, from indices, a mask or a range; ValueError for all else."""
    given = _indices(indices)
    if given.dtype == bool:
        if given.shape != (n,):
            raise ValueError(f"a mask of observations must have shape ({n},), got {given.shape}")
        return np.flatnonzero(given)
    if given.size == 0:
        return np.zeros(0, np.int64)
    given = np.atleast_1d(given)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise ValueError(f"indices must be whole numbers in one dimension, got {given.dtype}, {given.shape}")
    wrong = (given < -n) | (given >= n)
    if wrong.any():
        raise ValueError(f"there are {n} observations: index {given[wrong][0]} is out of range")
    found = np.unique(np.where(given < 0, given + n, given))
    if len(found) < len(given):
        raise ValueError("indices name an observation twice")
    return found


def places_of(indices: ArrayLike, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions, ascending, and where each of them is among the indices."""
    found, given = positions_of(indices, n), np.atleast_1d(_indices(indices))
    if given.dtype == bool:
        return found, np.arange(len(found))
    return found, np.argsort(np.where(given < 0, given + n, given)) if given.size else found


def _indices(given: ArrayLike) -> np.ndarray:
    """As an array, of large integers in place of small ones, which could not count all observations."""
    found = np.asarray(given)
    return found.astype(np.int64) if found.dtype.kind in "iu" and found.dtype.itemsize < 8 else found


def oldest(n: int, indices: ArrayLike | None, keep: int | None) -> np.ndarray:
    """The positions that `forget` means: those that are named, or all but the newest `keep`."""
    if (indices is None) == (keep is None):
        raise ValueError("say which observations to forget: give either indices or keep")
    if keep is not None and (not is_whole(keep) or keep < 1):
        raise ValueError(f"keep must be a whole number, at least 1, got {keep!r}")
    found = positions_of(indices, n) if keep is None else np.arange(max(0, n - int(keep)))  # type: ignore[arg-type]
    if len(found) == n:
        raise ValueError(f"all {n} observations cannot be forgotten: at least one must stay")
    return found


def check_targets(model: HCKEstimator, y: TargetsLike) -> np.ndarray:
    """Targets (m,) or (m, targets) in place of others, as float64; ValueError for bad ones."""
    refuse_sparse(y)
    values = np.atleast_1d(as_targets(to_host(y)))
    return check_array(values, ensure_2d=False, ensure_min_samples=0, input_name="y", estimator=model)


def check_updatable(model: HCKEstimator) -> None:
    """Raise ValueError for a model that cannot be updated, whatever it was fitted to."""
    if not model._updatable:
        raise ValueError(f"{type(model).__name__} has no updates: train in memory, on one machine")
    given = vars(model).get("_built", model)  # what is set after a fit is for the next one
    if given.approximation != "hierarchical":
        raise ValueError(
            f"approximation={given.approximation!r} has no updates: use approximation='hierarchical', or "
            "`fit` with all observations"
        )
    names, partition = known_partitions(by_hyperplanes=True), given.partition
    cuts = (
        partition in names if isinstance(partition, str) else isinstance(partition, HyperplaneCutter | Tree)
    )
    if not cuts:
        raise ValueError(
            f"updates need a tree that is cut by hyperplanes, but partition={partition!r}: use one of "
            f"{', '.join(map(repr, names))}"
        )


def start_anew(model: Any) -> None:
    """Know nothing of updates any more, but by what trees are built: there was another fit."""
    for name in _OF_UPDATES:
        model.__dict__.pop(name, None)
    model._built = built(model)


def built(model: Any) -> Settings:
    """How trees were built in the fit, and new nodes will be, whatever parameters are set to since.

    Only of models of earlier versions parameters have to say it.
    """
    known: Settings | None = vars(model).get("_built")
    if known is not None:
        return known
    chosen = getattr(model, "selection_", None)  # which the first models lack
    given = model._settings(Shape(int(model.rank), model.leaf_size, 1) if chosen is None else chosen.shape)
    partition = "random_projection" if isinstance(given.partition, Tree) else given.partition
    landmarks = given.landmarks
    if not isinstance(landmarks, str):  # those of nodes, which new nodes do not have, or of all of them
        landmarks = "uniform" if isinstance(landmarks, list | Landmarks) else "same"
    return replace(given, partition=partition, landmarks=landmarks)


def check_loaded(model: HCKEstimator, n: int) -> None:
    """Raise ValueError unless what a file says of earlier updates is possible for n observations."""
    names = "_n_recent", "_grown_by", "_unit_weight", "_built"
    recent, size, weight, how = (vars(model).get(name) for name in names)
    require(recent is None or 0 <= recent <= n, f"_n_recent must be at most {n}, got {recent}")
    require(size is None or size >= 1, f"_grown_by must be at least 1, got {size}")
    require(weight is None or 0 < weight < np.inf, f"_unit_weight must be positive, got {weight}")
    if how is not None:
        cuts = how.partition
        known = cuts in known_partitions() if isinstance(cuts, str) else isinstance(cuts, Cutter)
        known = known and how.landmarks in known_landmarks()
        require(known, f"_built has partition {cuts!r} and landmarks {how.landmarks!r}")


def start(model: HCKEstimator, source: Blueprint, b: Tensor, noise: Tensor) -> State:
    """The first version, of a tree that was fitted."""
    how, tree = built(model), source.layout.tree.host
    rank = int(how.rank)
    largest = max(int(tree.size[tree.leaves].max()), rank)
    size = getattr(model, "_grown_by", None) or how.leaf_size or largest
    habit = Habit(how.partition, how.landmarks, int(size))
    numbers = tree.n_points * (largest + rank) + 5 * tree.n_leaves * rank**2
    what = f"what updates of {tree.n_points} points change"
    require_bytes(numbers * noise.element_size(), source.points.device, what, "lower rank or leaf_size")
    return State.of(source, rank, habit, b, noise)


def still_held(model: Any, states: Sequence[State]) -> np.ndarray | None:
    """Observations that shaped no metric: of those of the fit the same as then, and all that came later."""
    held = getattr(getattr(model, "selection_", None), "held", None)  # models of earlier versions lack it
    if held is None:
        return None
    numbers = states[0].ledger.numbers
    return np.flatnonzero(np.isin(numbers, held) | (numbers >= model._first_new))


class Trees(Sequence[Tree]):
    """The trees of some versions, made when one is asked for."""

    def __init__(self, states: Sequence[State]) -> None:
        self._states = states

    def __len__(self) -> int:
        return len(self._states)

    def __getitem__(self, which: Any) -> Any:
        if isinstance(which, slice):
            return [self[i] for i in range(len(self))[which]]
        return self._states[which].harvested[0].layout.tree

    def __iter__(self) -> Iterator[Tree]:
        return (self[i] for i in range(len(self)))


def left_out_values(
    states: Sequence[State], shares: list[float] | None, positions: np.ndarray
) -> tuple[Tensor, Tensor]:
    """Observations at positions predicted from all others, the mean over trees, and themselves: (m, k)."""
    shares = [1 / len(states)] * len(states) if shares is None else shares
    seen = states[0].observed(positions)
    total = torch.zeros_like(seen, dtype=torch.float64)
    for state, share in zip(states, shares, strict=True):
        diagonal, solved, b = inverse_diagonal(state, positions)
        total += share * leave_one_out(b, solved, diagonal).mean.double()
    return total.cpu(), seen.double().cpu()


def drift(states: Sequence[State], shares: list[float] | None, first_new: int) -> float:
    """The left-out squared error of the newest observations over that of those before `first_new`.

    1 if there are no newer ones, infinite if none of those before is left.
    """
    n = len(states[0])
    old = int(np.searchsorted(states[0].ledger.numbers, first_new))
    if not 0 < old < n:
        return 1.0 if old else float("inf")
    before = np.unique(np.linspace(0, old - 1, min(old, _FEW)).astype(np.int64))
    losses = []
    for some in (np.arange(max(old, n - _FEW), n), before):
        predicted, seen = left_out_values(states, shares, some)
        losses.append(float((predicted - seen).square().mean()))
    return losses[0] / losses[1] if losses[1] > 0 else (1.0 if losses[0] == 0 else float("inf"))


def as_columns(values: np.ndarray) -> Tensor:
    """Numbers (m, k), in double precision."""
    return torch.tensor(values, dtype=torch.float64, device="cpu")
