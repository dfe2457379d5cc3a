"""
A Gaussian process, and functions drawn from it
===============================================

``HCKGaussianProcessRegressor`` says how sure it is, and draws functions that agree with the data. A draw is
a function: it can be evaluated anywhere, as often as one likes.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

from hck import HCKGaussianProcessRegressor
from hck.plotting import PALETTE, style

FAST = "HCK_FAST" in os.environ  # smaller, for tests

# %%
# Observations of a signal, with a gap. Lengthscale and noise are learned by the likelihood.

rng = np.random.default_rng(2)
x = rng.uniform(0, 10, 60 if FAST else 300)
x = x[(x < 5.5) | (x > 7.5)]
signal = np.sin(2 * x) + 0.4 * np.cos(5 * x)
y = signal + 0.15 * rng.standard_normal(len(x))

process = HCKGaussianProcessRegressor("matern52", rank=64, max_iter=10 if FAST else 50, random_state=0)

# %%
# In the gap the functions go their own ways; where there are data they agree.

line = np.linspace(0, 10, 600)[:, None]
mean, std = process.fit(x[:, None], y).predict(line, return_std=True)
draws = process.draw_functions(4, random_state=1)
scale = process.kernel_.parameters()["lengthscale"].item()
with style():
    fig, ax = plt.subplots(figsize=(5.2, 4))
    ax.fill_between(line[:, 0], mean - 2 * std, mean + 2 * std, color=PALETTE[5], alpha=0.3, lw=0)
    ax.plot(line, draws(line), color=PALETTE[1], linewidth=0.9, label=["functions drawn", *[""] * 3])
    ax.plot(line, mean, color=PALETTE[0], linewidth=2.2, label="mean, ± 2 standard deviations")
    ax.scatter(x, y, s=9, color="black", linewidth=0, zorder=3, label="observations")
    ax.set(xlabel="x", ylabel="y", xlim=(0, 10), ylim=(-2.6, 3.9))
    ax.set_title(f"learned: lengthscale {scale:.2f}, noise {process.noise_**0.5:.2f}")
    ax.legend(loc="upper center", ncols=2)
