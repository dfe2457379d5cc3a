"""Saves a small model of each kind, and what it predicts: `python make.py`, with the version to be kept.

The folders beside this file were made so when format 1 was new. They stay as they are; `test_format1.py`
loads them.
"""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd

from hck import HCKClassifier, HCKGaussianProcessRegressor, HCKKernelPCA, HCKRegressor
from hck.approximations import Iterative
from hck.kernels import Gaussian, Laplace, Matern
from hck.outofcore import DiskHCKClassifier, DiskHCKRegressor

HERE = Path(__file__).parent
RNG = np.random.default_rng(0)
X, NEW = RNG.uniform(size=(40, 2)).round(3), RNG.uniform(size=(5, 2)).round(3)
Y = (np.sin(4 * X[:, 0]) + X[:, 1]).round(3)
LABELS = np.array(["low", "middle", "high"])[np.digitize(Y, [0.8, 1.3])]
TABLE = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": np.where(Y > 1, "red", "blue")})
ROWS = pd.DataFrame({"a": NEW[:, 0], "b": NEW[:, 1], "c": ["red", "blue", "green", "red", "blue"]})
GIVEN = {"rank": 4, "leaf_size": 10, "random_state": 0}
RIDGE = {**GIVEN, "lengthscale": 0.5, "alpha": 0.02}
SUM = 2.0 * Matern([1.0, 0.5], nu=2.5) + Gaussian(0.3) * Laplace(3.0)


def models():
    """By name: an estimator that is fitted."""
    yield "regressor", HCKRegressor(**RIDGE, n_trees=2).fit(X, np.stack([Y, -Y], 1))
    yield "sum", HCKRegressor(SUM, alpha=0.02, **GIVEN, partition="kmeans").fit(X, Y)
    yield "chosen", HCKRegressor(fit_time=0.05, rank=4, n_trees=1, random_state=0).fit(X, Y)
    yield "table", HCKRegressor(**RIDGE).fit(TABLE, Y)
    yield "classifier", HCKClassifier("laplace", **RIDGE).fit(X, LABELS)
    for name in ("compositional", "exact", "nystrom", "fourier", "tapered"):
        yield name, HCKRegressor("gaussian", **RIDGE, approximation=name).fit(X, Y)
    iterative = Iterative(tolerance=1e-8, n_trees=1)
    yield "iterative", HCKRegressor("gaussian", **RIDGE, approximation=iterative).fit(X, Y)
    process = {**GIVEN, "noise": 0.01, "trend": "linear"}
    yield "process", HCKGaussianProcessRegressor(**process, max_iter=2).fit(X, Y)
    process = {**process, "optimizer": None, "approximation": "nystrom"}
    yield "process-nystrom", HCKGaussianProcessRegressor(**process).fit(X, Y)
    yield "components", HCKKernelPCA(2, rank=8, random_state=0, fit_inverse_transform=True).fit(X)


def predictions(name, model):
    """What is compared."""
    if name == "components":
        return model.transform(NEW)
    if name.startswith("process"):
        return np.stack(model.predict(NEW, return_std=True))
    if hasattr(model, "predict_proba"):
        return model.predict_proba(NEW)
    return model.predict(ROWS if name == "table" else NEW)


def main():
    expected = {}
    for name, model in models():
        model.save(HERE / name, force=True)
        expected[name] = predictions(name, model)
    for name, cls, y in (
        ("disk-regressor", DiskHCKRegressor, Y),
        ("disk-classifier", DiskHCKClassifier, LABELS),
    ):
        shutil.rmtree(HERE / name, ignore_errors=True)
        model = cls(**RIDGE, scale="standard", folder=HERE / name).fit(X, y)
        expected[name] = predictions(name, model)
        shutil.rmtree(HERE / name / "plan")
    np.savez(HERE / "expected.npz", **expected)


if __name__ == "__main__":
    main()
