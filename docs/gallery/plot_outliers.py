"""
Outliers
========

A squared error lets a few wild observations pull the prediction towards them. ``loss="huber"`` counts large
errors by their size, no longer by its square, and ``loss="absolute"`` predicts the median.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

from hck import HCKRegressor
from hck.metrics import rmse
from hck.plotting import PALETTE, style

FAST = "HCK_FAST" in os.environ  # smaller, for tests

# %%
# One in eight observations is far too high, as if an instrument had failed now and then.

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 1, 100 if FAST else 400))
y = np.sin(8 * x) + 0.1 * rng.standard_normal(len(x))
broken = rng.uniform(size=len(x)) < 1 / 8
y[broken] += rng.uniform(2, 6, broken.sum())

line = np.linspace(0, 1, 300)
truth = np.sin(8 * line)
predicted = {}
for loss in ("squared", "huber", "absolute"):
    model = HCKRegressor("matern52", loss=loss, lengthscale=0.3, alpha=0.1, rank=64, random_state=0)
    predicted[loss] = model.fit(x[:, None], y).predict(line[:, None])

# %%
# The curve of squares lies above all healthy observations.

with style():
    fig, ax = plt.subplots(figsize=(5.2, 4))
    ax.scatter(x[~broken], y[~broken], s=8, color="grey", linewidth=0, label="healthy")
    ax.scatter(x[broken], y[broken], s=22, color="grey", marker="x", linewidth=1, label="broken")
    ax.plot(line, truth, color="black", linewidth=5, alpha=0.25, label="true")
    for (loss, values), colour in zip(predicted.items(), (PALETTE[1], PALETTE[2], PALETTE[0]), strict=True):
        ax.plot(line, values, color=colour, label=f"{loss}, error {rmse(truth, values):.2f}")
    ax.set(xlabel="x", ylabel="y", xlim=(0, 1), ylim=(-1.6, 9.5), title="one of eight observations is wrong")
    ax.legend(loc="upper center", ncols=2)
