"""What the parts share: the parameters of hck, scores of its predictions, and cells of tables."""

import argparse
from typing import Any

import numpy as np
from rich.table import Table

from hck import HCKGaussianProcessRegressor, metrics

Options = argparse.Namespace
Record = dict[str, Any]
FEW = 2000  # points that an exact process can learn from on a CPU
Prediction = tuple[np.ndarray, np.ndarray]  # mean and standard deviation of observations

# What hck is set to where the command line does not say
USUAL = {
    "rank": 256,
    "leaf_size": 1024,
    "n_trees": 1,
    "optimizer": "auto",
    "max_iter": 100,
    "learn_size": None,
}
SETTINGS = {
    "recover": USUAL | {"optimizer": "lbfgs"},  # steps of Adam are too few for a flat maximum
    "uci": USUAL,
    "flights": USUAL | {"rank": 128, "leaf_size": None, "learn_size": 20_000},
}
QUICK = {"rank": 32, "leaf_size": 128, "max_iter": 80}


def setting(options: Options, part: str) -> Record:
    """The parameters of hck for a part of the benchmark."""
    given = {name: getattr(options, name) for name in USUAL if getattr(options, name) is not None}
    return SETTINGS[part] | (QUICK if options.quick else {}) | given


def make_process(options: Options, part: str, **changes: Any) -> HCKGaussianProcessRegressor:
    return HCKGaussianProcessRegressor(
        "matern32", device=options.device, random_state=0, **(setting(options, part) | changes)
    )


def observe(model: HCKGaussianProcessRegressor, X: np.ndarray) -> Prediction:
    """What a process says of new observations."""
    return model.predict(X, return_std=True, observed=True)


def warm_up(model: HCKGaussianProcessRegressor, X: np.ndarray, y: np.ndarray) -> None:
    """Let it compile what it needs."""
    observe(model.fit(X, y), X[:1000])


def score(y: np.ndarray, mean: np.ndarray, std: np.ndarray) -> dict[str, float]:
    return {
        "rmse": metrics.rmse(y, mean),
        "nlpd": metrics.nlpd(y, mean, std),
        "crps": metrics.crps(y, mean, std),
        "coverage": metrics.coverage(y, mean, std),
        "half": metrics.coverage(y, mean, std, 0.5),
    }


def add_columns(table: Table, *headings: str) -> None:
    for i, heading in enumerate(headings):
        table.add_column(heading, justify="right" if i else "left")


def mark(holds: bool | None) -> str:
    return {None: "", True: "✓", False: "✗"}[holds]
