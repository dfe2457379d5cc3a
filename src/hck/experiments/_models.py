"""What the experiments train: one kernel or another in the place of a base kernel, and how good it is."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from hck import HCKClassifier, HCKRegressor
from hck.backend.kinds import kind_of
from hck.datasets import Dataset, is_at_hand, load

Model = HCKRegressor | HCKClassifier
METHODS = ("nystrom", "fourier", "independent", "hierarchical")


def make(data: Dataset, method: str, rank: int, **options: Any) -> Model:
    """An estimator for a data set, with features as they are and nothing chosen."""
    kind = HCKRegressor if data.task == "regression" else HCKClassifier
    settings = {"scale": None, "leave_one_out": False, "n_trees": 1, "random_state": 0}
    return kind(approximation=method, rank=rank, **{**settings, **options})


def duration(work: Callable[[], object], device: str) -> float:
    """The seconds of some work: on a CPU those that its cores were busy, which others lengthen little."""
    kind = kind_of(device)
    clock, machine = time.process_time if kind.is_host else time.perf_counter, kind.machine()
    machine.synchronize()
    start = clock()
    work()
    machine.synchronize()
    return clock() - start


def trained(model: Model, data: Dataset, device: str) -> dict[str, float]:
    """Train and test a model: its error, the seconds of training, and the most memory on a GPU."""
    model.set_params(device=device)
    machine = kind_of(device).machine()
    machine.reset_peak()
    seconds = duration(lambda: model.fit(data.X_train, data.y_train), device)
    peak = machine.peak_bytes()
    return {"error": data.error(model.predict(data.X_test)), "seconds": seconds, "peak_bytes": peak}


_compiled: set[str] = set()


def timed(model: Model, data: Dataset, device: str) -> dict[str, float]:
    """The same, but not of the first time with whatever seed: that compiles what others are timed with."""
    given = model.get_params() | {"device": device, "random_state": None}
    what = str((data.name, len(data.y_train), given))
    if what not in _compiled:
        trained(model, data, device)
        _compiled.add(what)
    return trained(model, data, device)


def median_distance(X: np.ndarray, points: int = 1000) -> float:
    """Between training points: the scale of the features."""
    some = torch.from_numpy(np.asarray(X[:points], dtype=float))
    return float(torch.pdist(some).median())


def holdout(data: Dataset, most: int = 100_000, seed: int = 0) -> Dataset:
    """Four fifths of (some of) the training part to train on, and a fifth to choose parameters by."""
    order = np.random.default_rng(seed).permutation(len(data.y_train))[:most]
    held, kept = np.split(order, [len(order) // 5])
    X, y = data.X_train, data.y_train
    return replace(data, X_train=X[kept], y_train=y[kept], X_test=X[held], y_test=y[held])


def at_hand(names: tuple[str, ...], asked: tuple[str, ...]) -> list[str]:
    """Those of some data sets that were asked for, or all of them that need no download."""
    unknown = set(asked) - set(names)
    if unknown:
        raise ValueError(f"{sorted(unknown)[0]} is not one of {', '.join(names)}")
    return [name for name in (asked or names) if asked or is_at_hand(name)]


def halvings(n: int, least: int, most: int) -> list[int]:
    """Ranks n/2^j, rounded down, as the paper has them, from the least to the most."""
    found = [n >> j for j in range(n.bit_length())]
    return sorted(rank for rank in found if least <= rank <= most)


_cache: dict[str, Dataset] = {}


def dataset(name: str, quick: bool = False) -> Dataset:
    """A data set with the paper's preparation, kept while experiments run on it; small parts if `quick`."""
    if name not in _cache:
        _cache.clear()  # one at a time
        _cache[name] = load(name, verbose=False)
    return _cache[name].shrink(2000, 1000) if quick else _cache[name]
