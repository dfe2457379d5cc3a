"""hck compile"""

import os
import signal
import sys
import time
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import Any

from hck.cli import _options as option
from hck.cli._common import busy, check_device, say

_DTYPES = ("float64", "float32")


def compile_(*, device: option.Device = "cpu", quiet: option.Quiet = False) -> None:
    """Compile the inner loops now, so that no first fit waits for it.

    For containers, machines of a cluster, and before anything is timed: what is
    compiled is kept on disk. Each type of number has a process of its own.

    [bold]hck compile[/bold]
    """
    begin, context, device = time.perf_counter(), get_context("spawn"), check_device(device)
    given = [(dtype, device) for dtype in _DTYPES]
    with busy("compiling", quiet):
        processes = [context.Process(target=_alone, args=each) for each in given]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        for process, each in zip(processes, given, strict=True):
            if process.exitcode:  # say why, or find memory for one at a time
                compile_for(*each)
    say(f"compiled what was not, in {time.perf_counter() - begin:.0f} s")


def _alone(dtype: str, device: str) -> None:
    """The same, in a process that ends with its parent, and without a word."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    Thread(target=_end_with_parent, daemon=True).start()
    try:
        compile_for(dtype, device)
    except Exception:
        sys.exit(1)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def compile_for(dtype: str, device: str) -> None:
    """Use what most people use, once, on few points, with one type of number."""
    import warnings

    import numpy as np

    from hck import (
        HCKClassifier,
        HCKGaussianProcessClassifier,
        HCKGaussianProcessRegressor,
        HCKRegressor,
    )

    warnings.simplefilter("ignore")
    X = np.random.default_rng(0).uniform(size=(2500, 3))
    y = X[:, 0] + X[:, 1] ** 2
    shared: dict[str, Any] = {"dtype": dtype, "device": device, "random_state": 0}
    HCKRegressor(**shared).fit(X, y)
    X, y = X[:600], y[:600]
    small: dict[str, Any] = shared | {"rank": 16, "leaf_size": 100, "jitter": 1e-4}
    model = HCKRegressor(n_trees=2, **small).fit(X, y)
    model.predict(X)
    model.partial_fit(X[:1], y[:1]).predict(X)
    HCKRegressor(lengthscale=0.5, alpha=0.01, partition="pca", **small).fit(X, y)
    HCKClassifier(**shared).fit(X, y > y.mean()).predict_proba(X)
    HCKGaussianProcessRegressor(max_iter=1, **small).fit(X, y).predict(X, return_std=True)
    HCKGaussianProcessClassifier(max_iter=1, **small).fit(X, y > y.mean()).predict_proba(X)
