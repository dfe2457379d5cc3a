"""hck compile"""

import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

from hck.cli import _options as option
from hck.cli._common import busy, check_device, say

_DTYPES = ("float64", "float32")


def compile_(*, device: option.Device = "cpu", quiet: option.Quiet = False) -> None:
    """Compile the inner loops for this processor now, so that no first fit waits for it.

    For containers, machines of a cluster, and before anything is timed: what is
    compiled is kept on disk. Each type of number has a process of its own.

    [bold]hck compile[/bold]
    """
    begin, work = time.perf_counter(), partial(compile_for, device=check_device(device))
    with busy("compiling", quiet), ProcessPoolExecutor(len(_DTYPES), get_context("spawn")) as processes:
        list(processes.map(work, _DTYPES))
    if not quiet:
        say(f"compiled, in {time.perf_counter() - begin:.0f} s")


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
    y, shared = X[:, 0] + X[:, 1] ** 2, {"dtype": dtype, "device": device, "random_state": 0}
    HCKRegressor(**shared).fit(X, y)
    X, y = X[:600], y[:600]
    small = shared | {"rank": 16, "leaf_size": 100, "jitter": 1e-4}
    model = HCKRegressor(n_trees=2, **small).fit(X, y)
    model.predict(X)
    model.partial_fit(X[:1], y[:1]).predict(X)
    HCKRegressor(lengthscale=0.5, alpha=0.01, partition="pca", **small).fit(X, y)
    HCKClassifier(**shared).fit(X, y > y.mean()).predict_proba(X)
    HCKGaussianProcessRegressor(max_iter=1, **small).fit(X, y).predict(X, return_std=True)
    HCKGaussianProcessClassifier(max_iter=1, **small).fit(X, y > y.mean()).predict_proba(X)
