"""
Intervals that hold what they promise
=====================================

``predict(X, interval=0.9)`` gives intervals that should hold nine of ten new observations, whatever the
noise is like. ``fit`` predicts every observation from all others, and the intervals come from these errors.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

from hck import HCKRegressor
from hck.plotting import PALETTE, style

FAST = "HCK_FAST" in os.environ  # smaller, for tests

# %%
# The noise grows from left to right, and the model is not told.


def observe(x):
    return np.sin(4 * x) + 0.5 * x + (0.05 + 0.25 * x**2) * rng.standard_normal(len(x))


rng = np.random.default_rng(0)
x, new = rng.uniform(0, 2, 300 if FAST else 6000), rng.uniform(0, 2, 10_000)
model = HCKRegressor("matern52", lengthscale=0.5, alpha=0.3, rank=64, n_trees=4, random_state=0)
model.fit(x[:, None], observe(x))

y = observe(new)
mean, low, high = model.predict(new[:, None], interval=0.9)
inside = (low <= y) & (y <= high)

# %%
# Intervals are wide where the noise is large, and the share of new observations inside is nearly the same
# all along the line.

line = np.linspace(0, 2, 400)
with style():
    fig, ax = plt.subplots(figsize=(5.2, 4))
    mean, low, high = model.predict(line[:, None], interval=0.9)
    ax.fill_between(line, low, high, color=PALETTE[5], alpha=0.35, linewidth=0, label="90 % interval")
    ax.plot(line, mean, color=PALETTE[0], label="prediction")
    shown = slice(0, 600)
    for kind, colour, marker in ((True, "grey", "o"), (False, PALETTE[1], "X")):
        mine = inside[shown] == kind
        label = "new observation, " + ("inside" if kind else "outside")
        ax.plot(
            new[shown][mine], y[shown][mine], marker, color=colour, ms=3 + (not kind), mec="none", label=label
        )
    for left in (0.0, 0.5, 1.0, 1.5):
        share = inside[(left <= new) & (new < left + 0.5)].mean()
        ax.text(left + 0.25, -2.9, f"{share:.0%}", ha="center", weight="bold")
    ax.set(xlabel="x", ylabel="y", xlim=(0, 2), ylim=(-3.2, 3.7))
    ax.set_title("share of new observations inside, by quarter")
    ax.legend(loc="upper left", ncols=2)
