"""Estimators for data on disk."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from hck.backend.memory import resolve_budget
from hck.backend.progress import track
from hck.branches import Piece, Plan, Probes, assemble_forest
from hck.branches.plan import probe_every
from hck.errors import ModelFileError
from hck.estimators.branched import (
    BranchedRidge,
    Extent,
    branches_within,
    plan_ridge,
    refuse,
    settings_for,
    sizes_for,
)
from hck.estimators.classifier import HCKClassifier
from hck.estimators.parameters import Weights, assign, described
from hck.estimators.regressor import HCKRegressor
from hck.kernels import Kernel
from hck.outofcore.job import MESSAGES, MODEL, PLAN, POINTS, Job
from hck.outofcore.rows import as_rows
from hck.outofcore.store import Pieces, train
from hck.outofcore.training import Training
from hck.persistence.types import fits
from hck.points import are_alike
from hck.preparation.arrays import PointsLike, TargetsLike
from hck.preparation.coding import Coding, OneAgainstAll
from hck.preparation.survey import as_numbers
from hck.selection import Selection

_NOT_KEPT = ("device", "random_state")  # of parameters, in a model
_MAY_CHANGE = ("memory_budget", "verbose")  # while a run goes on


class DiskRidge(BranchedRidge):
    """Ridge regression whose tree is on disk, branch by branch."""

    folder: str | os.PathLike[str] | None

    def __init__(
        self,
        kernel: str | Kernel = "auto",
        *,
        lengthscale: ArrayLike | None = "auto",
        alpha: float | str = "auto",
        loss: str = "squared",
        scale: str | None = "auto",
        fit_time: float | str = "balanced",
        leave_one_out: bool = True,
        approximation: str = "hierarchical",
        n_trees: int | str = "auto",
        rank: int | str = "auto",
        leaf_size: int | None = None,
        partition: str = "random_projection",
        landmarks: str = "uniform",
        jitter: float | None = None,
        device: str | torch.device | None = None,
        dtype: str = "float64",
        memory_budget: float | str | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        assign(self, locals())

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: PointsLike, y: TargetsLike, sample_weight: Weights = None) -> Self:
        """Train, or go on with what was begun in the folder.

        Parameters
        ----------
        X, y : array-like or path-like
            See `hck.outofcore.as_rows`. For parquet files y may be the name of a column.
        sample_weight : None
            Weights are not possible here.

        Returns
        -------
        self
        """
        refuse(sample_weight, "weights")
        if self.folder is None:
            raise ValueError("folder=None: name a folder that the model, and what it is made of, can go to")
        if not isinstance(self.folder, str | os.PathLike):
            raise TypeError(f"folder must be a path, got {self.folder!r}")
        self._check_settings()
        table = Training.of(X, y, self._labels, bool(self.verbose))
        job = Job(Path(self.folder), self._resolve_device(None))
        kept = {name: value for name, value in self._given_plain().items() if name not in _MAY_CHANGE}
        data = {"X": table.rows.fingerprint(), "y": table.target.fingerprint()}
        with job.alone():
            job.claim({"class": type(self).__name__, **kept, **data}, type(self)()._given_plain())
            known = job.once(PLAN, lambda: self._settle(table))
            if not job.has(MODEL):
                self._work(job, known, table)
            job.forget(POINTS, MESSAGES)
        self._adopt(job, _checked(job, job.load(MODEL)))
        return self

    def _settle(self, table: Training) -> dict[str, Any]:
        """Look at all rows, and decide everything by a sample of them."""
        n, d = table.n, table.features
        _, size = sizes_for(self, Extent(n, d, table.target.width))
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        sample, targets = table.survey(size, seed)
        coding = targets.coding()

        def branches(chosen: Selection) -> int:
            extent = Extent(n, d, len(coding.intercept))
            number = branches_within(self, extent, settings_for(self, chosen))
            return min(number, 2 ** ((len(sample.x) // 64).bit_length() - 1) if len(sample.x) >= 128 else 2)

        plan, selection = plan_ridge(self, self._alone(), branches, sample)
        return {
            "class": type(self).__name__,
            "parameters": {k: v for k, v in self._given_plain().items() if k not in _NOT_KEPT},
            "plan": plan,
            "selection": selection,
            "coding": coding,
            "shape": (n, d),
            "names": table.rows.names,
            "is_vector": table.target.is_vector,
        }

    def _work(self, job: Job, known: dict[str, Any], table: Training) -> None:
        every = probe_every(table.n) if self.leave_one_out else None
        settings = replace(known["plan"].settings, memory_budget=self.memory_budget)
        plan = replace(known["plan"], settings=settings, every=every)
        spool = table.deal(job, plan, known["coding"])
        probes = train(job, plan, spool, bool(self.verbose))
        if probes is not None:
            known = {**known, "left_out": (probes.number, probes.observed, probes.predicted)}
        job.keep(MODEL, known)

    def _adopt(self, job: Job, known: dict[str, Any]) -> None:
        """Become what a finished job has found."""
        _check_class(known, type(self), job)
        # a model that was trained on a GPU may be opened without one
        self._known = known | {"plan": replace(known["plan"], device=str(job.device))}
        self._pieces = Pieces(job, resolve_budget(self.memory_budget, torch.device("cpu")) // 4)
        self.n_features_in_, self.selection_ = known["shape"][1], known["selection"]
        probes = Probes(*known["left_out"]) if "left_out" in known else None
        self._set_outcome(known["coding"], probes, one_target=known["is_vector"])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_known")

    def _evaluate(self, X: PointsLike) -> np.ndarray:
        check_is_fitted(self)
        rows, plan = as_rows(X).select(self._known["names"]), self._known["plan"]
        if rows.width != self.n_features_in_:
            raise ValueError(f"X has {rows.width} features, but {self.n_features_in_} are expected")
        out = np.zeros((rows.n, len(self.intercept_)))
        budget = resolve_budget(self.memory_budget, torch.device("cpu"))
        step = int(np.clip(budget // (32 * (rows.width + out.shape[1])), 1, max(1, rows.n)))
        blocks = rows.blocks(step)
        for first in track(range(0, rows.n, step), "Predict", bool(self.verbose)):
            x = as_numbers(next(blocks), rows.called, first)
            here = out[first : first + len(x)]
            for tree in range(len(plan.trunks)):
                for branch, mine in enumerate(plan.split(tree, x)):
                    if len(mine):
                        predictor = self._piece(tree, branch).predictor
                        here[mine] += predictor(plan.points(x[mine])).double().cpu().numpy()
        out /= len(plan.trunks)
        out += self.intercept_
        return out

    def _piece(self, tree: int, branch: int) -> Piece:
        """A branch that predicts, if it is one of this model."""
        piece, plan = self._pieces.get(tree, branch), self._known["plan"]
        mine = piece.predictor.columns == len(self.intercept_)
        if not (mine and are_alike(piece.predictor.points, plan.trunks[tree].landmarks.points)):
            raise ModelFileError(f"branch {branch} of tree {tree} in {self.folder} is none of this model")
        return piece

    @classmethod
    def open(
        cls,
        folder: str | os.PathLike[str],
        memory_budget: float | str | None = None,
        device: str | torch.device | None = None,
    ) -> Self:
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
        if not job.has(MODEL):
            raise FileNotFoundError(f"{folder} holds no finished model")
        known = _checked(job, job.load(MODEL))
        _check_class(known, cls, job)
        model = cls(**{**known["parameters"], "memory_budget": memory_budget, "device": device})
        model.folder = folder
        model._adopt(job, known)
        return model

    def to_local(self) -> Any:
        """The same model in memory, as a plain estimator, where it fits."""
        check_is_fitted(self)
        plan = self._known["plan"]
        pieces = [[self._piece(tree, k) for k in mine] for tree, mine in enumerate(plan.branches)]
        return self._as_plain(plan, assemble_forest(plan.trunks, pieces))


_MADE_OF = {
    **{"class": str, "parameters": dict[str, Any], "plan": Plan, "selection": Selection},
    **{"coding": Coding, "shape": tuple[int, int], "names": list[str] | None, "is_vector": bool},
}


def _check_class(known: dict[str, Any], kind: type, job: Job) -> None:
    """Raise ValueError unless a job has made an estimator of some kind."""
    if known["class"] != kind.__name__:
        raise ValueError(f"{job.folder} holds a {known['class']}, not a {kind.__name__}")


def _checked(job: Job, known: Any) -> dict[str, Any]:
    """What a finished job has found, if it is that; else a ModelFileError."""
    known = known if isinstance(known, dict) else {}
    wrong = [name for name, hint in _MADE_OF.items() if name not in known or not fits(known[name], hint)]
    if not wrong:
        columns, names = len(known["coding"].intercept), known["names"]
        d, probes = (
            known["plan"].n_features,
            known.get("left_out", (np.zeros(0), *2 * (np.zeros((0, columns)),))),
        )
        of_classes = known["class"] == "DiskHCKClassifier"
        kind = DiskHCKClassifier if of_classes else DiskHCKRegressor
        agreed = {
            "class": isinstance(known["coding"], OneAgainstAll) == of_classes,
            "parameters": {*known["parameters"]} <= {*kind._get_param_names()},
            "shape": known["shape"][1] == d and known["shape"][0] > 0,
            "names": names is None or len(names) == d,
            "is_vector": not known["is_vector"] or columns == 1 or of_classes,
            "left_out": fits(probes, tuple[np.ndarray, np.ndarray, np.ndarray])
            and probes[1].shape == probes[2].shape == (len(probes[0]), columns)
            and all(bool(np.isfinite(each).all()) for each in probes),
        }
        wrong = [name for name, holds in agreed.items() if not holds]
    if wrong:
        raise ModelFileError(f"{job.folder / MODEL} is damaged or forged: its {wrong[0]!r} is wrong")
    found: dict[str, Any] = known
    return found


@described
class DiskHCKRegressor(DiskRidge, HCKRegressor):
    """Kernel ridge regression on data that need not fit into memory.

    The same as `HCKRegressor` with one tree cut into branches, which are files in a folder: training reads X
    twice, row by row, and works on one branch at a time. What is chosen (``"auto"``) is chosen on 50,000 rows
    drawn at random. A run that was stopped goes on from what it has finished when it is started again.

    Parameters
    ----------
    {ridge}
    {branched_loss}
    quantile : float, default=0.5
        For ``loss="quantile"`` of the estimator in memory.
    {disk}

    Attributes
    ----------
    left_out_rows_ : ndarray of int, or None
        The rows that `loo_predict` predicts: all, or of millions every so-many-th.

    Notes
    -----
    {disk_notes}

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

    def __init__(
        self,
        kernel: str | Kernel = "auto",
        *,
        lengthscale: ArrayLike | None = "auto",
        alpha: float | str = "auto",
        loss: str = "squared",
        quantile: float = 0.5,
        scale: str | None = "auto",
        fit_time: float | str = "balanced",
        leave_one_out: bool = True,
        approximation: str = "hierarchical",
        n_trees: int | str = "auto",
        rank: int | str = "auto",
        leaf_size: int | None = None,
        partition: str = "random_projection",
        landmarks: str = "uniform",
        jitter: float | None = None,
        device: str | torch.device | None = None,
        dtype: str = "float64",
        memory_budget: float | str | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        assign(self, locals())


@described
class DiskHCKClassifier(DiskRidge, HCKClassifier):
    """Classification of data that need not fit into memory.

    The same as `HCKClassifier` with one tree cut into branches; see `DiskHCKRegressor`. Probabilities are
    calibrated on about 100,000 rows, each predicted from all others.

    Parameters
    ----------
    {ridge}
    {branched_loss}
    {disk}

    Attributes
    ----------
    left_out_rows_ : ndarray of int, or None
        The rows that `loo_decision_function` is for: all, or of millions every so-many-th.

    Notes
    -----
    {disk_notes}

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from hck.outofcore import DiskHCKClassifier
    >>> X = np.random.default_rng(0).uniform(size=(500, 2))
    >>> with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
    ...     model = DiskHCKClassifier(lengthscale=0.5, alpha=0.1, rank=16, n_trees=1, folder=folder)
    ...     print(model.fit(X, X[:, 0] > 0.5).predict([[0.1, 0.5], [0.9, 0.5]]))
    [False  True]
    """

    _plain = HCKClassifier
    _labels = True
