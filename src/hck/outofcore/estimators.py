"""Estimators for data on disk."""

from collections import OrderedDict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from hck.backend.memory import resolve_budget
from hck.backend.progress import track
from hck.branches import assemble_forest
from hck.estimators import HCKClassifier, HCKRegressor
from hck.estimators.branched import (
    LeftOut,
    Piece,
    alone,
    as_plain,
    branches_within,
    calibrate,
    check_settings,
    parameters_of,
    plan_ridge,
    refuse,
    sizes_for,
    with_parameters,
)
from hck.estimators.ridge import RidgeEstimator
from hck.outofcore import fit as steps
from hck.outofcore.job import Job
from hck.outofcore.rows import Rows, as_pair, as_rows, check_numbers
from hck.outofcore.spool import Spool
from hck.outofcore.targets import Labels, Numbers, Targets
from hck.selection import Selection

_PLAN, _MODEL = "plan", "model"
_NOT_KEPT = ("device", "random_state")  # of parameters, in a model
_MAY_CHANGE = ("memory_budget", "verbose")  # while a run goes on


class DiskRidge(RidgeEstimator):
    """Ridge regression whose tree is on disk, branch by branch."""

    folder: Any
    _plain: type[RidgeEstimator]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags

    def _fit(self, X: Any, y: Any, targets: Targets) -> None:
        if self.folder is None:
            raise ValueError("folder=None: name a folder that the model, and what it is made of, can go to")
        check_settings(self)
        rows, target = as_pair(X, y)
        job = Job(Path(self.folder), self._resolve_device(None))
        kept = {name: value for name, value in parameters_of(self).items() if name not in _MAY_CHANGE}
        data = {"X": rows.fingerprint(), "y": target.fingerprint()}
        with job.alone():
            job.claim({"class": type(self).__name__, **kept, **data}, _PLAN)
            known = job.once(_PLAN, lambda: self._settle(rows, target, targets))
            if not job.has(_MODEL):
                self._work(job, known, rows, target, targets)
            job.forget("points", "messages")
        self._adopt(job, job.load(_MODEL))

    def _settle(self, rows: Rows, target: Rows, targets: Targets) -> dict[str, Any]:
        """Look at all rows, and decide everything by a sample of them."""
        _, size = sizes_for(self, rows.n, rows.width, target.width)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        x, y, moments = steps.survey(rows, target, targets, size, seed, bool(self.verbose))
        coding = targets.coding()
        columns = len(coding.intercept)

        def branches(chosen: Selection) -> int:
            number = branches_within(self, rows.n, rows.width, columns, chosen.leaf_size, chosen.rank)
            return min(number, 2 ** ((len(x) // 64).bit_length() - 1) if len(x) >= 128 else 2)

        y = y if y.shape[1] > 1 else y[:, 0]
        plan, selection = plan_ridge(self, alone(self), branches, x, y, moments)
        return {
            "class": type(self).__name__,
            "parameters": {k: v for k, v in parameters_of(self).items() if k not in _NOT_KEPT},
            "plan": plan,
            "selection": selection,
            "coding": coding,
            "shape": (rows.n, rows.width),
            "names": rows.names,
            "is_vector": target.is_vector,
        }

    def _work(
        self, job: Job, known: dict[str, Any], rows: Rows, target: Rows, targets: Targets
    ) -> None:  # fmt: skip
        plan, coding, show = known["plan"], known["coding"], bool(self.verbose)
        plan.memory_budget = self.memory_budget
        first = check_numbers(next(rows.blocks(1)), 0, rows.called)
        branches = [len(each) for each in plan.branches]
        spool = Spool(job.folder / "points", branches, rows.width, len(coding.intercept), first.dtype)
        steps.deal(rows, target, targets, coding, plan, spool, show)
        steps.train(job, plan, spool, rows.n, self.leave_one_out, show)
        if self.leave_one_out:
            found = steps.left_out(job, plan, rows.n)
            known = {**known, "left_out": (found.number, found.observed, found.values)}
        job.keep(_MODEL, known)

    def _adopt(self, job: Job, known: dict[str, Any]) -> None:
        """Become what a finished job has found."""
        if known["class"] != type(self).__name__:
            raise ValueError(f"{job.folder} holds a {known['class']}, not a {type(self).__name__}")
        # a model that was trained on a GPU may be opened without one
        self._known = known | {"plan": replace(known["plan"], device=str(job.device))}
        self._pieces = _Pieces(job, resolve_budget(self.memory_budget, torch.device("cpu")) // 4)
        self.n_features_in_, intercept = known["shape"][1], known["coding"].intercept
        left_out = _left_out(known)
        self._set_fitted(
            intercept_=intercept,
            selection_=known["selection"],
            left_out_rows_=None if left_out is None else left_out.number,
            _left_out=None if left_out is None else left_out.values + intercept,
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_known")

    def _evaluate(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        rows, plan = as_rows(X).select(self._known["names"]), self._known["plan"]
        if rows.width != self.n_features_in_:
            raise ValueError(f"X has {rows.width} features, but {self.n_features_in_} are expected")
        out = np.zeros((rows.n, len(self.intercept_)))
        budget = resolve_budget(self.memory_budget, torch.device("cpu"))
        step = int(np.clip(budget // (32 * (rows.width + out.shape[1])), 1, max(1, rows.n)))
        blocks = rows.blocks(step)
        for first in track(range(0, rows.n, step), "Predict", bool(self.verbose)):
            x = check_numbers(next(blocks), first, rows.called)
            here = out[first : first + len(x)]
            for tree in range(len(plan.trunks)):
                for branch, mine in enumerate(plan.split(tree, x)):
                    if len(mine):
                        extension = self._pieces.get(tree, branch).extension
                        here[mine] += extension(plan.points(x[mine])).double().cpu().numpy()
        out /= len(plan.trunks)
        out += self.intercept_
        return out

    @classmethod
    def open(cls, folder: Any, memory_budget: Any = None, device: Any = None) -> Any:
        """The model of a folder in which `fit` has finished.

        Parameters
        ----------
        folder : path-like
        memory_budget : int, float, str or None
            That predictions may take.
        device : str, torch.device or None
        """
        place = cls(device=device)._resolve_device(None)
        job = Job(Path(folder), place)
        if not job.has(_MODEL):
            raise FileNotFoundError(f"{folder} holds no finished model")
        known = job.load(_MODEL)
        model = cls(**{**known["parameters"], "memory_budget": memory_budget, "device": device})
        model.folder = folder
        model._adopt(job, known)
        return model

    def to_local(self) -> Any:
        """The same model in memory, as a plain estimator, where it fits."""
        check_is_fitted(self)
        plan = self._known["plan"]
        pieces = [
            [self._pieces.get(tree, k) for k in branches] for tree, branches in enumerate(plan.branches)
        ]
        rows = [[piece.rows for piece in each if piece.rows is not None] for each in pieces]
        members = assemble_forest(plan.trunks, [[piece.extension for piece in each] for each in pieces], rows)
        return as_plain(self, plan, members)


def _left_out(known: dict[str, Any]) -> LeftOut | None:
    """Of what a finished job has found."""
    return LeftOut(*known["left_out"]) if "left_out" in known else None


class _Pieces:
    """Branches that were read last, as many as memory allows."""

    def __init__(self, job: Job, budget: int) -> None:
        self.job, self.budget, self.used = job, budget, 0
        self.kept: OrderedDict[tuple[int, int], Piece] = OrderedDict()

    def get(self, tree: int, branch: int) -> Piece:
        key = tree, branch
        if key in self.kept:
            self.kept.move_to_end(key)
            return self.kept[key]
        piece: Piece = self.job.load(steps.piece_name(tree, branch))
        self.used += self._size(piece)
        while self.used > self.budget and self.kept:
            self.used -= self._size(self.kept.popitem(last=False)[1])
        self.kept[key] = piece
        return piece

    @staticmethod
    def _size(piece: Piece) -> int:
        own, blocks = piece.extension, piece.extension.landmarks.blocks.index
        rows = 0 if piece.rows is None else 2 * piece.rows.nbytes  # and the order of the tree
        return own.nbytes + own.points.nbytes + blocks.nbytes + rows


@with_parameters(folder=None)
class DiskHCKRegressor(DiskRidge, HCKRegressor):
    """Kernel ridge regression on data that need not fit into memory.

    The same as `HCKRegressor` with one tree cut into branches, which are files in a folder: training reads X
    twice, row by row, and works on one branch at a time. What is chosen (``"auto"``) is chosen on 50,000 rows
    drawn at random. A run that was stopped goes on from what it has finished when it is started again.

    Parameters
    ----------
    folder : path-like
        Where the model goes, and what it is made of while it is trained: about three times the size of X for
        each tree and each class of several.
    memory_budget : int, float, str or None
        Bytes, or text such as ``"2GiB"``. The tree is cut into as many branches as this needs.
    others : as in `HCKRegressor`
        `partition` is one of ``"random_projection"``, ``"pca"`` and ``"kd"``. With ``fit_time="best"`` the
        best candidate is used, and none are averaged.

    Attributes
    ----------
    left_out_rows_ : ndarray of int, or None
        The rows that `loo_predict` predicts: all, or of millions every so-many-th.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from hck.outofcore import DiskHCKRegressor
    >>> X = np.random.default_rng(0).uniform(size=(5000, 2))
    >>> y = np.sin(6 * X[:, 0]) + X[:, 1] ** 2
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/X.npy", X)
    ...     model = DiskHCKRegressor(lengthscale=0.3, alpha=1e-3, rank=32, folder=f"{folder}/model")
    ...     model.fit(f"{folder}/X.npy", y).score(X, y) > 0.999
    True
    """

    _plain = HCKRegressor

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: None = None) -> "DiskHCKRegressor":
        """Train, or go on with what was begun in the folder.

        Parameters
        ----------
        X, y : array-like or path-like
            See `hck.outofcore.as_rows`. For parquet files y may be the name of a column.
        """
        refuse(sample_weight, "weights")
        self._fit(X, y, Numbers())
        return self

    def _adopt(self, job: Job, known: dict[str, Any]) -> None:
        super()._adopt(job, known)
        self._one_target = known["is_vector"]


@with_parameters(folder=None)
class DiskHCKClassifier(DiskRidge, HCKClassifier):
    """Classification of data that need not fit into memory.

    The same as `HCKClassifier` with one tree cut into branches; see `DiskHCKRegressor`. Probabilities are
    calibrated on about 100,000 rows, each predicted from all others.

    Parameters
    ----------
    folder, memory_budget, others : as in `DiskHCKRegressor`
    """

    _plain = HCKClassifier

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: None = None) -> "DiskHCKClassifier":
        """Train, or go on with what was begun in the folder.

        Parameters
        ----------
        X, y : array-like or path-like
            See `hck.outofcore.as_rows`. For parquet files y may be the name of a column.
        """
        refuse(sample_weight, "weights")
        self._fit(X, y, Labels())
        return self

    def _adopt(self, job: Job, known: dict[str, Any]) -> None:
        super()._adopt(job, known)
        self.classes_ = known["coding"].classes
        self.calibration_ = calibrate(known["coding"], _left_out(known))
