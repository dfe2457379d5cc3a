"""Estimators for data on disk."""

from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from hck.branches import assemble
from hck.estimators import HCKClassifier, HCKRegressor
from hck.estimators._branched import Piece, Plan, check_settings, plan_ridge, sizes_for, with_parameters
from hck.estimators._ridge import RidgeEstimator
from hck.hierarchy import Forest
from hck.memory import resolve_budget
from hck.outofcore import fit as steps
from hck.outofcore.job import Job
from hck.outofcore.rows import as_pair, as_rows, check_numbers
from hck.outofcore.spool import Spool
from hck.outofcore.targets import Classes, Numbers, Targets
from hck.progress import track
from hck.selection.loss import Calibration

_MODEL = "model"
_NOT_SETTINGS = ("folder", "memory_budget", "verbose", "device")  # that may differ when a run goes on


class DiskRidge(RidgeEstimator):
    """Ridge regression whose tree is on disk, branch by branch."""

    folder: Any
    _plain: type[RidgeEstimator]

    def _fit(self, X: Any, y: Any, targets: Targets) -> Plan:
        if self.folder is None:
            raise ValueError("folder=None: name a folder that the model, and what it is made of, can go to")
        check_settings(self)
        rows, target = as_pair(X, y)
        parameters = {k: v for k, v in self.get_params(deep=False).items() if k not in _NOT_SETTINGS}
        job = Job(Path(self.folder), {**parameters, "X": rows.fingerprint(), "y": target.fingerprint()})
        known = job.once("plan", lambda: self._settle(rows, target, targets))
        plan: Plan = known["plan"]
        plan.memory_budget, plan.device = self.memory_budget, str(self._resolve_device(None))
        if not job.has(_MODEL):
            self._work(job, known, rows, target)
        self._adopt(job)
        return plan

    def _settle(self, rows: Any, target: Any, targets: Targets) -> dict[str, Any]:
        """Look at all rows, and decide everything by a sample of them."""
        n_branches, size = sizes_for(self, rows.n, rows.width, target.width)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        found = steps.survey(rows, target, targets, size, seed, bool(self.verbose))
        given = {name: value for name, value in self.get_params(deep=False).items() if name != "folder"}
        y = found.y if found.y.shape[1] > 1 else found.y[:, 0]
        plan, selection = plan_ridge(self, self._plain(**given), n_branches, found.x, y)
        classes = targets.classes if isinstance(targets, Classes) else None
        return {
            "plan": plan,
            "selection": selection,
            "intercept": np.atleast_1d(targets.intercept()),
            "classes": classes,
            "shape": (rows.n, rows.width),
            "one_target": target.width == 1,
        }

    def _work(self, job: Job, known: dict[str, Any], rows: Any, target: Any) -> None:
        plan, intercept, show = known["plan"], known["intercept"], bool(self.verbose)
        targets = Numbers() if known["classes"] is None else Classes(known["classes"])
        spool = Spool(
            *(job.folder / "points", len(plan.trunks), plan.n_branches, rows.width, len(intercept)),
            "f8" if self.dtype == "float64" else "f4",
        )
        steps.deal(rows, target, lambda y: targets.code(y) - intercept, plan, spool, show)
        steps.train(job, plan, spool, rows.n, self.leave_one_out, show)
        if self.leave_one_out:
            numbers, observed, predicted = steps.left_out(job, plan, rows.n)
            known = {**known, "left_out": (numbers, observed + intercept, predicted + intercept)}
        job.keep(_MODEL, known)
        steps.tidy(job, spool)

    def _adopt(self, job: Job) -> None:
        """Become what a finished job has found."""
        known = job.load(_MODEL)
        self._job, self._known = job.folder, known
        self._pieces = _Pieces(job, resolve_budget(self.memory_budget, torch.device("cpu")) // 4)
        self.n_features_in_ = known["shape"][1]
        numbers, observed, predicted = known.get("left_out", (None, None, None))
        self._set_fitted(
            intercept_=known["intercept"],
            selection_=known["selection"],
            loo_rows_=numbers,
            loo_observed_=observed,
            loo_predicted_=predicted,
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_known")

    def _left_out_values(self) -> np.ndarray:
        check_is_fitted(self)
        raise ValueError(
            "predictions of left-out rows are not kept for all of them: see loo_rows_, loo_observed_ and "
            "loo_predicted_, which leave_one_out=True brings"
        )

    def _evaluate(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        rows, plan = as_rows(X), self._known["plan"]
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
        return out / len(plan.trunks) + self.intercept_

    @classmethod
    def open(cls, folder: Any, memory_budget: Any = None) -> Any:
        """The model of a folder in which `fit` has finished.

        Parameters
        ----------
        folder : path-like
        memory_budget : int, float, str or None
            That predictions may take.
        """
        job = Job.__new__(Job)
        job.folder = Path(folder)
        if not job.has(_MODEL):
            raise FileNotFoundError(f"{folder} holds no finished model")
        model = cls(folder=folder, memory_budget=memory_budget)  # type: ignore[call-arg]
        model._adopt(job)
        return model

    def to_local(self) -> Any:
        """The same model in memory, as a plain estimator, where it fits."""
        check_is_fitted(self)
        known, plan = self._known, self._known["plan"]
        every = range(plan.n_branches)
        members: list[Any] = []
        for tree, trunk in enumerate(plan.trunks):
            pieces = [self._pieces.get(tree, branch) for branch in every]
            rows = [piece.rows for piece in pieces if piece.rows is not None]
            members.append(assemble(trunk, [piece.extension for piece in pieces], rows))
        given = {name: value for name, value in self.get_params(deep=False).items() if name != "folder"}
        local = self._plain(**given)
        local._set_fitted(
            trees_=[member.tree for member in members],
            forest_=Forest(members),
            intercept_=known["intercept"],
            selection_=known["selection"],
            residuals_=[],
            n_features_in_=self.n_features_in_,
            _scaling=plan.scaling,
            _left_out=None,
            _used=np.arange(0),
            _weight=None,
            _objects=False,
            _categories=None,
            **self._more(),
        )
        return local

    def _more(self) -> dict[str, Any]:
        """What a plain estimator of this kind has beside that."""
        return {}


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
        piece = self.job.load(steps.piece_name(tree, branch))
        self.used += self._size(piece)
        while self.used > self.budget and self.kept:
            self.used -= self._size(self.kept.popitem(last=False)[1])
        self.kept[key] = piece
        return piece

    @staticmethod
    def _size(piece: Piece) -> int:
        return piece.extension.nbytes + piece.extension.points.nbytes


@with_parameters(folder=None)
class DiskHCKRegressor(DiskRidge, HCKRegressor):
    """Kernel ridge regression on data that need not fit into memory.

    The same as `HCKRegressor` with one tree cut into branches, which are files in a folder: training reads X
    twice, row by row, and works on one branch at a time. What is chosen (``"auto"``) is chosen on 50,000 rows
    drawn at random. A run that was stopped goes on from what it has finished when it is started again.

    Parameters
    ----------
    folder : path-like
        Where the model goes, and what it is made of while it is trained: about twice the size of X.
    memory_budget : int, float, str or None
        Bytes, or text such as ``"2GiB"``. The tree is cut into as many branches as this needs.
    others : as in `HCKRegressor`
        `partition` is one of ``"random_projection"``, ``"pca"`` and ``"kd"``.

    Attributes
    ----------
    loo_rows_, loo_observed_, loo_predicted_ : ndarray
        About 100,000 rows of X, their targets, and what all other rows predict for them.

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
        _no_weights(sample_weight)
        self._fit(X, y, Numbers())
        self._one_target = self._known["one_target"]
        return self

    def _adopt(self, job: Job) -> None:
        super()._adopt(job)
        self._one_target = self._known["one_target"]

    def _more(self) -> dict[str, Any]:
        return {"_one_target": self._one_target}


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
        _no_weights(sample_weight)
        self._fit(X, y, Classes())
        return self

    def _adopt(self, job: Job) -> None:
        super()._adopt(job)
        self.classes_, self.calibration_ = self._known["classes"], None
        if self.loo_rows_ is not None:
            code = self.loo_observed_.argmax(1) if len(self.classes_) > 2 else self.loo_observed_[:, 0] > 0
            self.calibration_ = Calibration.fit(self.loo_predicted_, code.astype(int), None)

    def _more(self) -> dict[str, Any]:
        return {"classes_": self.classes_, "calibration_": self.calibration_}


def _no_weights(sample_weight: Any) -> None:
    if sample_weight is not None:
        raise ValueError("weights are not supported for data on disk")
