"""Losses of classes beside each other and LightGBM: −log p, accuracy, seconds; and scikit-learn's SVC.

    HCK_DATA=FOLDER python benchmarks/losses.py [--data ijcnn1,a9a] [--fit-time fast] [--max-rows 50000]
    HCK_DATA=FOLDER python benchmarks/losses.py --svm       # ijcnn1, with SVC at the best of a small grid
    HCK_DATA=FOLDER python benchmarks/losses.py --softmax   # factorizations and seconds of three ways to fit

Seconds are of processors, so that others may work on the same machine.
"""

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC
from torch import Tensor

from beside.problems import problem
from datasets import load
from defaults import models
from hck import HCKClassifier, metrics
from hck.approximations import Approximation, make_approximation
from hck.kernels import Matern
from hck.losses import Effort, Logistic, Problem, minimise

LOSSES = ("squared", "logistic", "auto")
SUBSET = 6000  # rows on which SVC is tuned


def compare(name: str, fit_time: str, max_rows: int | None) -> list[dict[str, Any]]:
    """A record for each loss, and for LightGBM at each of three settings."""
    X, y, X_test, y_test = parts(name, max_rows)
    ours = {loss: partial(HCKClassifier, loss=loss, fit_time=fit_time, random_state=0) for loss in LOSSES}
    others = models("lightgbm", False, argparse.Namespace(threads=1))
    found = []
    for called, make in (ours | others).items():
        start = time.process_time()
        model = make().fit(X, y)
        record = {"data": name, "loss": called, "n": len(y), "fit_time": fit_time if called in ours else None}
        record["seconds"] = round(time.process_time() - start, 1)
        found.append(record | scored(model, X_test, y_test))
        print(found[-1], flush=True)
    return found


def parts(name: str, max_rows: int | None) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """X and y to train on, and to test on, as they came; some rows at random, in their order."""
    data = load(name, prepare=False)
    some = np.sort(np.random.default_rng(0).permutation(len(data.y_train))[:max_rows])
    X = data.X_train.iloc[some] if hasattr(data.X_train, "iloc") else data.X_train[some]
    return X, data.y_train[some], data.X_test, data.y_test


def scored(model: Any, X: Any, y: np.ndarray) -> dict[str, Any]:
    proba = model.predict_proba(X)
    known = {
        "log_loss": round(metrics.log_loss(y, proba, model.classes_), 5),
        "accuracy": round(float(np.mean(model.classes_[proba.argmax(1)] == y)), 5),
    }
    if isinstance(model, HCKClassifier):
        known |= {"n_iter": model.n_iter_, "minimised": [each.name for each in model.losses_][:1]}
    return known


# A support vector machine of scikit-learn's ------------------------------------------------------------


def svm(max_rows: int | None) -> list[dict[str, Any]]:
    """ijcnn1: SVC with an RBF kernel, the best of a grid by all rows or by some, and ours.

    The last two have the kernel of SVC by some rows, and a ridge of 1 / (2 C): what is left is the fit.
    """
    X, y, X_test, y_test = parts("ijcnn1", max_rows)
    grid = {"gamma": [0.5, 1.0, 2.0, 4.0], "C": [4.0, 16.0, 64.0]}
    found: list[dict[str, Any]] = []

    def measure(called: str, make: Callable[[], Any], before: float = 0.0) -> None:
        start = time.process_time()
        model = make().fit(X, y)
        seconds = time.process_time() - start
        accuracy = float(np.mean(model.predict(X_test) == y_test))
        found.append({"method": called, "tuning": round(before, 1), "seconds": round(seconds, 1)})
        found[-1]["accuracy"] = round(accuracy, 5)
        print(found[-1], flush=True)

    for rows in (len(y), SUBSET):
        few, start = np.random.default_rng(0).permutation(len(y))[:rows], time.process_time()
        best = GridSearchCV(SVC(cache_size=500), grid, cv=3, refit=False).fit(X[few], y[few]).best_params_
        tuning = time.process_time() - start
        measure(f"SVC, {best} by {rows:,} rows", partial(SVC, cache_size=500, **best), tuning)
    HCKClassifier(loss="squared_hinge", fit_time="fast").fit(X[:500], y[:500])  # and compile
    for fit_time, seed in product((6, "fast", "balanced"), range(3)):
        ours = partial(HCKClassifier, loss="squared_hinge", fit_time=fit_time, random_state=seed)
        measure(f"hck, fit_time={fit_time}, seed {seed}", ours)
    given = {"lengthscale": (2 * best["gamma"]) ** -0.5, "alpha": 1 / (2 * best["C"]), "leave_one_out": False}
    for trees, leaf in ((1, 512), (4, 1024)):
        ours = partial(
            HCKClassifier, "gaussian", loss="squared_hinge", n_trees=trees, rank=leaf // 8, leaf_size=leaf
        )
        measure(f"hck, given kernel, {trees} × {leaf}", partial(ours, random_state=0, **given))
    return found


# Three ways to fit a softmax ---------------------------------------------------------------------------


class Fixed(Logistic):
    """Böhning's bound (1992), ½ everywhere: one factorization for all steps."""

    def curvature(self, f: Tensor, y: Tensor) -> Tensor:
        return torch.full_like(f[:, 0], 0.5)


def softmax(name: str, max_rows: int | None) -> list[dict[str, Any]]:
    """Factorizations and seconds until the gradient is 1e-5 of where it began."""
    p, found = problem(name, 0, max_rows), []
    X = torch.tensor(np.asarray(p.X, dtype=float))
    X = (X - X.mean(0)) / X.std(0).clamp_min(1e-9)
    source = make_approximation("hierarchical", Matern(2.0), X, rank=32, leaf_size=256, generator=0)
    y, enough = torch.from_numpy(p.y).long(), Effort(100, 1e-5)
    start = time.process_time()
    source.factor(0.1)
    once = time.process_time() - start
    for alpha in (0.3, 0.03):
        for way, kind in (("bound at each step", Logistic), ("bound for all steps", Fixed)):
            start = time.process_time()
            known = minimise(source, Problem.of(kind(p.classes), y), alpha, effort=enough).certificate
            seconds, made = time.process_time() - start, known.n_iter
            if kind is Fixed:  # which the general code makes anew at each step
                seconds, made = seconds - (made - 1) * once, 1
            found.append(_record(name, alpha, way, known.n_iter, made, seconds, known.objective[-1]))
        start = time.process_time()
        steps, value = class_by_class(source, Problem.of(Logistic(p.classes), y), alpha, enough)
        seconds = time.process_time() - start
        found.append(_record(name, alpha, "class by class", steps, steps * p.classes, seconds, value))
    return found


def _record(name: str, alpha: float, way: str, steps: int, made: int, seconds: float, value: float) -> dict:
    record = {"data": name, "alpha": alpha, "way": way, "steps": steps, "factorizations": made}
    record |= {"seconds": round(seconds, 1), "objective": round(value, 4)}
    print(record, flush=True)
    return record


def class_by_class(source: Approximation, whole: Problem, alpha: float, how: Effort) -> tuple[int, float]:
    """A step of Newton's for one class after the other: rounds, and the objective."""
    n, classes = len(whole.y), whole.loss.columns
    w, f = (torch.zeros(n, classes, dtype=torch.float64) for _ in range(2))
    unit = float(whole.slope(f).norm())
    turn = 0
    while turn < how.max_iter:
        turn += 1
        for k in range(classes):
            p = (f + whole.intercept).softmax(1)[:, k]
            h = (p * (1 - p)).clamp_min(1e-6 * float((p * (1 - p)).mean()))
            rest = whole.slope(f)[:, k] + alpha * w[:, k]
            d = source.factor(alpha / h).solve(-rest / h)
            move, step = -(rest + alpha * d) / h, 1.0
            before = objective(whole, alpha, w, f)
            while True:
                w[:, k] += step * d
                f[:, k] += step * move
                if objective(whole, alpha, w, f) <= before or step < 1e-6:
                    break
                w[:, k] -= step * d
                f[:, k] -= step * move
                step /= 2
        if float((whole.slope(f) + alpha * w).norm()) <= (how.tolerance or 0) * unit:
            break
    return turn, objective(whole, alpha, w, f)


def objective(problem: Problem, alpha: float, w: Tensor, f: Tensor) -> float:
    return problem.value(f) + alpha * float((w * f).sum()) / 2


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="ijcnn1,a9a,adult,covtype.binary")
    parser.add_argument("--fit-time", default="fast")
    parser.add_argument("--max-rows", type=int)
    parser.add_argument("--svm", action="store_true")
    parser.add_argument("--softmax", action="store_true")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "losses.json")
    options = parser.parse_args()
    if options.svm:
        found = {"svm": svm(options.max_rows)}
    elif options.softmax:
        found = {"softmax": softmax("pendigits", options.max_rows) + softmax("letter", options.max_rows)}
    else:
        names = options.data.split(",")
        found = {name: compare(name, options.fit_time, options.max_rows) for name in names}
    known = json.loads(options.out.read_text()) if options.out.exists() else {}
    options.out.write_text(json.dumps(known | found, indent=1) + "\n")


if __name__ == "__main__":
    main()
