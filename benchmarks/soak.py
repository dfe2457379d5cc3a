"""A long run of everything at random, checked against dense answers.

    python benchmarks/soak.py [--minutes 10] [--seed 0] [--only NAME]

Every case draws an estimator, data and parameters, and checks one promise: predictions equal dense algebra, a
refit that fails or is interrupted leaves the model as it was, a saved model predicts the same, threads that
predict while others fit see nothing of it, wrong input is refused by a named error. In the end the memory,
the open files and the threads of the process are compared with those after the first tenth. Exits with 1
where anything is wrong; a failure prints the case's seed, which `--seed S --cases 1 --only NAME` repeats.
"""

import argparse
import gc
import os
import pickle
import signal
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch
from rich.console import Console
from rich.table import Table
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import hck
from hck import (
    HCKClassifier,
    HCKGaussianProcessClassifier,
    HCKGaussianProcessRegressor,
    HCKKernelPCA,
    HCKRegressor,
)
from hck.hierarchy.dense import dense_cross, dense_matrix
from hck.kernels import make_kernel
from hck.partition import known_partitions
from hck.points import as_points

KERNELS = ("gaussian", "laplace", "matern12", "matern32", "matern52", "inverse_multiquadric")
Rng = np.random.Generator
Model = HCKRegressor | HCKClassifier | HCKGaussianProcessRegressor | HCKGaussianProcessClassifier


# ---- what is drawn


def draw_data(rng: Rng, least: int = 2, most: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points, targets and new points; some have repeated rows, constant columns or other scales."""
    n, d = int(rng.integers(least, most)), int(rng.integers(1, 8))
    x = rng.standard_normal((n + 20, d)) * 10 ** rng.uniform(-2, 2)
    if rng.random() < 0.2:
        x = np.round(x, 1)
    if rng.random() < 0.1:
        x[:, 0] = 3.0
    y = np.sin(x.sum(1)) + rng.standard_normal(n + 20) * 0.1
    return np.ascontiguousarray(x[:n]), y[:n] * 10 ** rng.uniform(-3, 3), np.ascontiguousarray(x[n:])


def draw_tree(rng: Rng, x: np.ndarray) -> dict[str, object]:
    """Parameters of a tree with a given kernel, so that nothing is chosen."""
    spread = float(np.median(np.abs(x - x.mean(0)).sum(1))) or 1.0
    return {
        "kernel": str(rng.choice(KERNELS)),
        "lengthscale": spread * 10 ** rng.uniform(-1, 1),
        "rank": int(rng.integers(1, 40)),
        "leaf_size": int(rng.integers(1, 100)) if rng.random() < 0.5 else None,
        "partition": str(rng.choice(known_partitions())),
        "landmarks": str(rng.choice(["uniform", "farthest"])),
        "jitter": 1e-6,
        "random_state": int(rng.integers(2**31)),
    }


def draw_model(rng: Rng) -> tuple[Model, np.ndarray, np.ndarray, np.ndarray]:
    """A fitted estimator, what it learned from, and new points."""
    x, y, new = draw_data(rng, least=10)
    shape = draw_tree(rng, x)
    ridge = {"alpha": 10 ** rng.uniform(-3, 1), "n_trees": int(rng.integers(1, 4))}
    which = rng.choice(["regressor", "loss", "classifier", "process", "process of classes"])
    if "class" in which:
        y = np.array(["a", "b", "c"])[rng.integers(0, 3, len(y))]
        y[:3] = ["a", "b", "c"]
    if which == "regressor":
        model = HCKRegressor(scale=None, **ridge, **shape)
    elif which == "loss":
        y = y / np.abs(y).max()
        model = HCKRegressor(loss=str(rng.choice(["absolute", "huber", "quantile"])), **ridge, **shape)
    elif which == "classifier":
        model = HCKClassifier(loss=str(rng.choice(["squared", "logistic"])), **ridge, **shape)
    elif which == "process":
        y = y if rng.random() < 0.7 else np.stack([y, np.cos(x[:, 0])], 1)
        model = HCKGaussianProcessRegressor(noise=10 ** rng.uniform(-3, 1), optimizer=None, **shape)
    else:
        model = HCKGaussianProcessClassifier(optimizer=None, **shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of ridges and kernels that do not suit
        return model.fit(x, y), x, y, new


def outputs(model: Model, x: np.ndarray) -> np.ndarray:
    """All that a model says of points."""
    if isinstance(model, HCKGaussianProcessRegressor):
        return np.stack(model.predict(x, return_std=True), 1)
    return model.predict_proba(x) if hasattr(model, "classes_") else model.predict(x)


def close(a: np.ndarray, b: np.ndarray, tolerance: float, what: str) -> None:
    scale = float(np.abs(b).max()) or 1.0
    gap = float(np.abs(a - b).max()) / scale
    if not gap <= tolerance:
        raise AssertionError(f"{what}: {gap:.3g} apart, {tolerance:g} allowed")


def same(a: np.ndarray, b: np.ndarray, what: str) -> None:
    if not np.array_equal(a, b, equal_nan=True):
        raise AssertionError(f"{what}: {np.abs(a - b).max():.3g} apart")


# ---- the cases


def ridge_is_dense_algebra(rng: Rng) -> None:
    x, y, new = draw_data(rng)
    shape, alpha = draw_tree(rng, x), 10 ** rng.uniform(-3, 1)
    model = HCKRegressor(alpha=alpha, n_trees=int(rng.integers(1, 4)), scale=None, **shape).fit(x, y)
    kernel, points = make_kernel(shape["kernel"], shape["lengthscale"]), as_points(x)
    expected = np.zeros(len(new))
    for member in model.forest_.members:
        K = dense_matrix(kernel, points, member.tree, member.landmarks, 1e-6)
        k = dense_cross(kernel, points, member.tree, member.landmarks, 1e-6, as_points(new))
        w = np.linalg.solve(K.numpy() + alpha * np.eye(len(y)), y - y.mean())
        expected += (k.numpy().T @ w + y.mean()) / len(model.forest_.members)
    close(model.predict(new), expected, 1e-6, "predictions and dense algebra")


def process_is_dense_algebra(rng: Rng) -> None:
    x, y, new = draw_data(rng)
    shape, noise = draw_tree(rng, x), 10 ** rng.uniform(-3, 1)
    model = HCKGaussianProcessRegressor(
        noise=noise, optimizer=None, trend="zero", **{**shape, "leaf_size": len(x)}
    ).fit(x, y)
    kernel = model.kernel_
    K, k = (kernel(torch.from_numpy(x), torch.from_numpy(b)).numpy() for b in (x, new))
    A = K + model.noise_ * np.eye(len(y))
    mean, std = model.predict(new, return_std=True)
    tolerance = max(1e-6, 1e-15 * np.linalg.cond(A))  # of digits that the condition takes away
    close(mean, k.T @ np.linalg.solve(A, y), tolerance, "a process's mean")
    own = np.diag(kernel(torch.from_numpy(new), torch.from_numpy(new)).numpy())
    variance = own - np.einsum("ij,ij->j", k, np.linalg.solve(A, k))
    close(
        std**2, variance.clip(0), 1e-6 * float(own.max() / max(variance.max(), 1e-12)), "a process's variance"
    )


def weights_are_repetitions(rng: Rng) -> None:
    x, y, new = draw_data(rng, most=150)
    times = rng.integers(1, 4, len(y))
    one_leaf = {**draw_tree(rng, x), "leaf_size": 1000, "rank": 5}
    alpha = 10 ** rng.uniform(-2, 1)
    weighted = HCKRegressor(alpha=alpha, n_trees=1, scale=None, **one_leaf).fit(
        x, y, sample_weight=times.astype(float)
    )
    repeated = HCKRegressor(alpha=alpha, n_trees=1, scale=None, **one_leaf).fit(
        np.repeat(x, times, 0), np.repeat(y, times)
    )
    close(weighted.predict(new), repeated.predict(new), 1e-5, "weights and repeated points")


def overwritten_x_changes_nothing(rng: Rng) -> None:
    model, x, _, new = draw_model(rng)
    before = outputs(model, new)
    x.fill(rng.standard_normal())
    same(outputs(model, new), before, "after X was overwritten")


def failed_refit_changes_nothing(rng: Rng) -> None:
    model, x, y, new = draw_model(rng)
    before = outputs(model, new)
    wrong = np.hstack([x, x]) if rng.random() < 0.5 else x.copy()
    wrong[rng.integers(len(x)), rng.integers(x.shape[1])] = rng.choice([-np.inf, np.inf])
    try:
        model.fit(wrong, y)
    except ValueError:
        pass
    else:
        raise AssertionError("points that are not finite were learned from")
    same(outputs(model, new), before, "after a refit that failed")


def interrupted_refit_changes_nothing(rng: Rng) -> None:
    model, x, y, new = draw_model(rng)
    before = outputs(model, new)
    other, again = np.repeat(x, 10, 0), np.repeat(y, 10, 0)
    other = other + rng.standard_normal(other.shape)
    old = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 10 ** rng.uniform(-4, -1))
    try:
        model.fit(other, again)
        finished = True
    except KeyboardInterrupt:
        finished = False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    if not finished:
        same(outputs(model, new), before, "after a refit that was interrupted")


def what_comes_and_goes_leaves_nothing(rng: Rng) -> None:
    x, y, new = draw_data(rng, least=20)
    shape, name = draw_tree(rng, x), str(rng.choice(known_partitions(by_hyperplanes=True)))
    shape |= {"partition": name, "leaf_size": len(x) + 50}  # which no leaf outgrows
    if rng.random() < 0.5:
        model = HCKRegressor(alpha=10 ** rng.uniform(-2, 1), n_trees=2, scale=None, **shape)
    else:
        model = HCKGaussianProcessRegressor(noise=10 ** rng.uniform(-2, 1), optimizer=None, **shape)
    model.fit(x, y)
    before = outputs(model, new)
    for _ in range(int(rng.integers(1, 4))):
        more = int(rng.integers(1, 10))
        model.partial_fit(rng.standard_normal((more, x.shape[1])), rng.standard_normal(more))
        model.forget(np.arange(len(x), len(x) + more))
        some = rng.choice(len(x), 3, replace=False)
        model.update(some, rng.standard_normal(3)).update(some, y[some])
    close(outputs(model, new), before, 1e-6, "after observations that came and went")


def saved_models_are_the_same(rng: Rng) -> None:
    model, _, _, new = draw_model(rng)
    before = outputs(model, new)
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(int(rng.integers(1, 4))):
            model.save(Path(folder) / "model", force=True)
        same(outputs(hck.load(Path(folder) / "model"), new), before, "a loaded model")
    same(outputs(pickle.loads(pickle.dumps(model)), new), before, "a pickled model")


def refits_are_the_same(rng: Rng) -> None:
    model, x, y, new = draw_model(rng)
    same(outputs(clone(model).fit(x, y), new), outputs(model, new), "a second fit")


def sparse_is_dense(rng: Rng) -> None:
    model, x, y, new = draw_model(rng)
    one_leaf = {"leaf_size": len(x), "rank": 5}  # rounding may turn cuts, but not a single leaf
    dense = clone(model).set_params(**one_leaf).fit(x, y)
    sparse = clone(model).set_params(**one_leaf).fit(sp.csr_matrix(x), y)
    close(outputs(sparse, sp.csr_matrix(new)), outputs(dense, new), 1e-6, "sparse and dense points")


def threads_see_nothing_of_each_other(rng: Rng) -> None:
    model, _, _, new = draw_model(rng)
    before, others = (
        outputs(model, new),
        [draw_model(np.random.default_rng(s)) for s in rng.integers(2**31, size=2)],
    )
    with ThreadPoolExecutor(4) as pool:
        reads = [pool.submit(outputs, model, new) for _ in range(6)]
        fits = [pool.submit(lambda m=m, a=a, b=b: clone(m).fit(a, b)) for m, a, b, _ in others]
        for read in reads:
            same(read.result(), before, "a prediction beside a fit")
        for fit, (fitted, _, _, points) in zip(fits, others, strict=True):
            same(outputs(fit.result(), points), outputs(fitted, points), "a fit beside a fit")


def components_are_dense_algebra(rng: Rng) -> None:
    x, _, _ = draw_data(rng, least=20)
    shape = {**draw_tree(rng, x), "leaf_size": len(x), "rank": 5}
    model = HCKKernelPCA(2, **shape).fit(x)
    points = torch.from_numpy(x)
    K = make_kernel(shape["kernel"], shape["lengthscale"])(points, points).numpy()
    centred = K - K.mean(0) - K.mean(1)[:, None] + K.mean()
    values = np.linalg.eigvalsh(centred)[::-1][:2]
    gap = float(np.abs(np.asarray(model.eigenvalues_) - values).max())
    assert gap <= 1e-6 * len(x), f"eigenvalues: {gap:.3g} apart"


def small_data_choose_themselves(rng: Rng) -> None:
    x, y, new = draw_data(rng, least=5, most=120)
    if rng.random() < 0.5:
        found = HCKRegressor(fit_time="fast", random_state=0).fit(x, y).predict(new)
    else:
        found = (
            HCKClassifier(fit_time="fast", random_state=0)
            .fit(x, (y > np.median(y)).astype(int))
            .predict_proba(new)
        )
    assert np.isfinite(found).all(), "a prediction is not finite"


def wrong_input_is_refused(rng: Rng) -> None:
    model, x, y, new = draw_model(rng)
    d = x.shape[1]
    wrong = [
        lambda: model.predict(new[:, :0]),
        lambda: model.predict(np.hstack([new, new])),
        lambda: model.predict(np.full((2, d), np.inf)),
        lambda: model.predict(new.astype("M8[s]")),
        lambda: model.predict(new[0]),
        lambda: model.predict("points"),
        lambda: model.predict(None),
        lambda: model.predict(new.astype(complex) + 1j),
        lambda: clone(model).fit(x, y[:-1]),
        lambda: clone(model).fit(x[:0], y[:0]),
        lambda: clone(model).set_params(rank=-1).fit(x, y),
        lambda: clone(model).set_params(rank="many").fit(x, y),
        lambda: clone(model).set_params(kernel="round").fit(x, y),
        lambda: clone(model).set_params(lengthscale=-1.0).fit(x, y),
        lambda: clone(model).set_params(lengthscale=np.nan).fit(x, y),
        lambda: clone(model).set_params(partition="halves").fit(x, y),
        lambda: clone(model).set_params(dtype="float16").fit(x, y),
        lambda: clone(model).set_params(device="toaster").fit(x, y),
        lambda: clone(model).set_params(memory_budget="1 banana").fit(x, y),
    ]
    before = outputs(model, new)
    for number in rng.choice(len(wrong), 4, replace=False):
        try:
            wrong[number]()
        except (ValueError, TypeError):
            continue
        raise AssertionError(f"wrong input number {number} was accepted")
    same(outputs(model, new), before, "after wrong input")


CASES: dict[str, Callable[[Rng], None]] = {
    case.__name__: case
    for case in (
        ridge_is_dense_algebra,
        process_is_dense_algebra,
        weights_are_repetitions,
        overwritten_x_changes_nothing,
        failed_refit_changes_nothing,
        interrupted_refit_changes_nothing,
        what_comes_and_goes_leaves_nothing,
        saved_models_are_the_same,
        refits_are_the_same,
        sparse_is_dense,
        threads_see_nothing_of_each_other,
        components_are_dense_algebra,
        small_data_choose_themselves,
        wrong_input_is_refused,
    )
}


# ---- the run


def resources() -> dict[str, int]:
    """Memory in MiB, open files and threads of this process (Linux)."""
    gc.collect()
    status = Path("/proc/self/status").read_text()
    found = {
        line.split(":")[0]: line.split()[1] for line in status.splitlines() if line[:5] in ("VmRSS", "Threa")
    }
    return {
        "memory (MiB)": int(found["VmRSS"]) // 1024,
        "open files": len(os.listdir("/proc/self/fd")),
        "threads": int(found["Threads"]),
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--cases", type=int, default=None, help="stop after as many cases")
    parser.add_argument("--seed", type=int, default=0, help="of the first case; each next one's is one more")
    parser.add_argument("--only", choices=list(CASES), help="one kind of case alone")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    console, counts, wrong, first = Console(), Counter(), [], None
    start, seed = time.perf_counter(), options.seed
    names = [options.only] if options.only else list(CASES)
    while time.perf_counter() - start < 60 * options.minutes and sum(counts.values()) != options.cases:
        rng = np.random.default_rng(seed)
        name = names[int(np.random.default_rng(seed).integers(len(names)))]  # `only` is to draw the same case
        try:
            CASES[name](rng)
        except Exception as error:
            wrong.append((name, seed, f"{type(error).__name__}: {error}"))
            console.print(f"{name}, seed {seed}: {traceback.format_exc()}", markup=False, highlight=False)
        counts[name] += 1
        seed += 1
        if first is None and time.perf_counter() - start > 6 * options.minutes:
            first = resources()
    report(console, counts, wrong, first, time.perf_counter() - start)
    return 1 if wrong else 0


def report(console: Console, counts: Counter, wrong: list, first: dict | None, seconds: float) -> None:
    table = Table("case", "times", "wrong")
    for name in CASES:
        table.add_row(name, str(counts[name]), str(sum(w[0] == name for w in wrong)))
    table.add_row("all", str(sum(counts.values())), str(len(wrong)))
    console.print(table)
    last = resources()
    console.print(f"{seconds:.0f} s, {threading.active_count()} Python threads at the end")
    for what, value in last.items():
        begin = "" if first is None else f"{first[what]} after a tenth of the time, "
        console.print(f"{what}: {begin}{value} in the end")


if __name__ == "__main__":
    sys.exit(main())
