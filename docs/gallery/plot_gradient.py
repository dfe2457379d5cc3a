"""
Gradients, with error bars
==========================

How fast does something change? ``predict_gradient`` differentiates the prediction, in closed form, and a
Gaussian process knows how far off the slope may be.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

from hck import HCKGaussianProcessRegressor
from hck.plotting import PALETTE, style

FAST = "HCK_FAST" in os.environ  # smaller, for tests

# %%
# The height of a path, measured at places that get rarer to the right.

rng = np.random.default_rng(0)
x = 10 * rng.beta(1, 2.2, 80 if FAST else 500)
y = np.sin(1.5 * x) + 0.3 * x + 0.1 * rng.standard_normal(len(x))
process = HCKGaussianProcessRegressor("matern52", rank=64, max_iter=10 if FAST else 50, random_state=0)

# %%
# The band of the slope is what it should be: narrow where there are many measurements.

line = np.linspace(0, 9.5, 400)[:, None]
height = process.fit(x[:, None], y).predict(line, return_std=True)
slope = [each[:, 0] for each in process.predict_gradient(line, return_std=True)]
truth = np.sin(1.5 * line) + 0.3 * line, 1.5 * np.cos(1.5 * line) + 0.3
with style():
    fig, axes = plt.subplots(2, 1, figsize=(5.2, 5.6), sharex=True)
    for ax, (mean, std), true, name in zip(axes, (height, slope), truth, ("height", "slope"), strict=True):
        ax.fill_between(line[:, 0], mean - 2 * std, mean + 2 * std, color=PALETTE[5], alpha=0.4, lw=0)
        ax.plot(line, mean, color=PALETTE[0], label="predicted, ± 2 standard deviations")
        ax.plot(line, true, "--", color=PALETTE[1], linewidth=1.4, label="true")
        ax.set(ylabel=name)
    axes[0].scatter(x, y, s=6, color="black", linewidth=0, zorder=3, label="measured")
    axes[0].legend(loc="upper left")
    axes[0].set(title="a path, and how steep it is", xlim=(0, 9.5))
    axes[1].axhline(0, color="grey", linewidth=0.8)
    axes[1].set(xlabel="x")
