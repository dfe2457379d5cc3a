"""One method on one data set, in a process of its own; and the file of all results."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits

import hck
from beside.methods import METHODS
from beside.problems import Problem, problem
from hck import metrics

Record = dict[str, Any]
SCRIPT = Path(__file__).parent.parent / "tabular.py"
_DISTRIBUTION = {"sklearn": "scikit-learn"}
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def key(record: Record) -> tuple[Any, ...]:
    """What is not run again."""
    return tuple(record[name] for name in ("method", "data", "seed", "max_rows", "device"))


def measure(job: Record) -> Record:
    """Train and predict, here."""
    method = METHODS[job["method"]]
    torch.set_num_threads(job["threads"])
    with threadpool_limits(job["threads"]):
        p = problem(job["data"], job["seed"], job["max_rows"], job["threads"], job["device"])
        if method.compiles:
            method.train(p.first(1000))
        start, work = time.perf_counter(), time.process_time()
        predict = method.train(p)
        fitted, work = time.perf_counter(), time.process_time() - work
        predicted = predict(p.X_test)
        ended = time.perf_counter()
    seconds = {"fit": fitted - start, "fit_cpu": work, "predict": ended - fitted}
    times = {f"{name}_seconds": round(value, 2) for name, value in seconds.items()}
    return {"rows": len(p.y), **scores(p, predicted), **times, "version": versions(method.package)}


def scores(p: Problem, predicted: np.ndarray) -> dict[str, float]:
    """RMSE, also over the standard deviation of targets to train on; or accuracy and log-loss."""
    if p.is_regression:
        rmse = metrics.rmse(p.y_test, predicted.ravel())
        found = {"rmse": rmse, "rmse_over_std": rmse / float(p.y.std())}
    else:
        p_class = predicted.astype(float)
        right = p_class.argmax(1) == p.y_test
        found = {"accuracy": float(right.mean())}
        found["log_loss"] = metrics.log_loss(
            p.y_test, p_class / p_class.sum(1, keepdims=True), range(p.classes)
        )
    return {name: float(f"{value:.6g}") for name, value in found.items()}


def versions(package: str) -> str:
    return hck.__version__ if package == "hck" else version(_DISTRIBUTION.get(package, package))


def in_a_process(job: Record, limit: float, script: Path = SCRIPT) -> Record:
    """A job's record, whatever becomes of it: state is "ok", "timeout" or "error"."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "record.json"
        command = [sys.executable, str(script), "--one", json.dumps(job), "--out", str(path)]
        environment = os.environ | dict.fromkeys(_THREADS, str(job["threads"]))
        process = subprocess.Popen(
            command, env=environment, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            _, said = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return {**job, "state": "timeout", "limit": limit}
        if path.exists():
            return {**job, "state": "ok", **json.loads(path.read_text())}
        last = (said.strip().splitlines() or ["it said nothing"])[-1]
        return {**job, "state": "error", "error": f"exit status {process.returncode}: {last[:200]}"}


def read(path: Path) -> list[Record]:
    """The records of earlier runs; a line that a stopped run left unfinished is skipped."""
    found = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return found


def append(path: Path, record: Record) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(record) + "\n")
