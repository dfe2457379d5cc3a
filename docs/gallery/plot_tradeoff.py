"""
Error against time
==================

Rank, leaf size and the number of trees trade accuracy for time. Which of them pays?
"""

import os
import time

import matplotlib.pyplot as plt
import numpy as np

from hck import HCKRegressor
from hck.metrics import rmse
from hck.plotting import plot_tradeoff, style

FAST = "HCK_FAST" in os.environ  # smaller, for tests

# %%
# A function of four variables that wriggles, and noise. Kernel and ridge are the same for all.

n = 500 if FAST else 20_000
rng = np.random.default_rng(0)
X = rng.uniform(size=(2 * n, 4))
truth = np.sin(9 * X[:, 0] * X[:, 1]) + np.cos(12 * X[:, 2]) * X[:, 3]
y = truth + 0.1 * rng.standard_normal(2 * n)

shapes = {
    "one tree": {"n_trees": 1},
    "one tree, leaves of 8 r": {"n_trees": 1, "leaf_size": 8},
    "eight trees": {"n_trees": 8},
    "Nyström": {"approximation": "nystrom"},
}
ranks = {"Nyström": [64, 128, 256, 512]}
runs = []
HCKRegressor("matern52", lengthscale=0.4, alpha=0.01, rank=8).fit(X[:99], y[:99])  # the first fit compiles
for name, shape in shapes.items():
    for rank in [8, 16] if FAST else ranks.get(name, [16, 32, 64, 128]):
        sized = shape | ({"leaf_size": shape["leaf_size"] * rank} if "leaf_size" in shape else {})
        model = HCKRegressor("matern52", lengthscale=0.4, alpha=0.01, rank=rank, random_state=0, **sized)
        start = time.perf_counter()
        model.fit(X[:n], y[:n])
        seconds = time.perf_counter() - start
        runs.append({"method": name, "rank": rank, "seconds": seconds})
        runs[-1]["error"] = rmse(truth[n:], model.predict(X[n:]))

# %%
# Along each line the rank doubles. Larger leaves cost little and help most; several trees go on from there.

with style():
    fig, ax = plt.subplots(figsize=(5.2, 4))
    plot_tradeoff(runs, x="seconds", ax=ax)
    ax.set(xlabel="seconds to fit", ylabel="error (RMSE to the function)", title=f"{n:,} observations")
