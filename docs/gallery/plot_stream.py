"""
A stream, with a sliding window
===============================

Observations come, and what they say about the world grows old. ``partial_fit`` adds new ones and ``forget``
drops the oldest, each at the cost of a few nodes of the tree, not of a fit.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

from hck import HCKRegressor
from hck.metrics import rmse
from hck.plotting import PALETTE, style

FAST = "HCK_FAST" in os.environ  # smaller, for tests

# %%
# At first the world stands still. Then it turns, slowly, and stands still again.

batch, steps, window = (50, 12, 300) if FAST else (250, 60, 2000)
rng = np.random.default_rng(0)
angle = np.interp(np.linspace(0, 1, steps), [0, 0.3, 0.7, 1], [0, 0, 2, 2])


def observe(step):
    X = rng.uniform(size=(batch, 2))
    clean = np.sin(7 * X[:, 0] + angle[step]) * np.cos(5 * X[:, 1] - angle[step])
    return X, clean, clean + 0.1 * rng.standard_normal(batch)


settings = {"lengthscale": 0.4, "alpha": 0.05, "rank": 32, "random_state": 0}
models = {name: HCKRegressor("matern52", **settings) for name in ("first fit", "all of the past", "window")}
errors = {name: [] for name in models}
for step in range(steps):
    X, clean, y = observe(step)
    for name, model in models.items():
        if step:
            errors[name].append(rmse(clean, model.predict(X)))
        if step == 0 or name != "first fit":
            model.partial_fit(X, y)
    models["window"].forget(keep=window)

# %%
# While all is quiet, more data are better. Once it turns, only the window keeps up.

with style():
    fig, ax = plt.subplots(figsize=(5.2, 4))
    moving = batch * np.flatnonzero(np.diff(angle))
    ax.axvspan(moving[0], moving[-1] + batch, color="#D8DEE4", alpha=0.6, lw=0, label="the world turns")
    for (name, error), colour, dash in zip(errors.items(), PALETTE[:3], ("--", "-.", "-"), strict=True):
        ax.plot(batch * np.arange(1, steps), error, dash, color=colour, label=name)
    ax.set(yscale="log", xlabel="observations so far", ylabel="error on the next ones")
    ax.set_title(f"a window of {window:,}")
    ax.set_yticks([0.02, 0.05, 0.1, 0.2, 0.5], ["0.02", "0.05", "0.1", "0.2", "0.5"])
    ax.minorticks_off()
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.legend()
