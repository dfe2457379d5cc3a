"""
Hours go round
==============

A quarter to midnight is close to a quarter past, though 23.75 is far from 0.25. ``Circle`` puts what comes
back on a circle.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline

from hck import HCKGaussianProcessRegressor
from hck.kernels.features import Circle
from hck.plotting import PALETTE, style

FAST = "HCK_FAST" in os.environ  # smaller, for tests

# %%
# The load of a network by the hour of the day. Nobody measured around midnight, when it is highest.


def load(t):
    return 3 + 1.6 * np.cos(np.pi * t / 12) + 0.5 * np.cos(np.pi * (t - 1) / 4)


rng = np.random.default_rng(1)
hour = rng.uniform(1.5, 22, 40 if FAST else 200)
y = load(hour) + 0.3 * rng.standard_normal(len(hour))

# %%
# A Gaussian process without ``Circle`` sees two ends that are far apart, and is unsure of both. On a circle
# the gap is one of three and a half hours, with data on both sides.

process = HCKGaussianProcessRegressor(
    "matern52", lengthscale=3.0, noise=0.1, optimizer=None, rank=64, random_state=0
)
models = {"without Circle": process, "with Circle": make_pipeline(Circle(0, period=24), process)}
line, turn = np.linspace(0, 24, 400), np.pi / 12
with style():
    fig, ax = plt.subplots(figsize=(5, 5.5), subplot_kw={"projection": "polar"})
    ax.set(theta_zero_location="N", theta_direction=-1)
    for (name, model), colour in zip(models.items(), (PALETTE[1], PALETTE[0]), strict=True):
        mean, std = model.fit(hour[:, None], y).predict(line[:, None], return_std=True)
        ax.plot(line * turn, mean, color=colour, linewidth=2.2, label=name)
        ax.fill_between(line * turn, mean - 2 * std, mean + 2 * std, color=colour, alpha=0.2, lw=0)
    ax.plot(line * turn, load(line), "--", color="black", linewidth=1.3, label="true")
    ax.scatter(hour * turn, y, s=9, color=PALETTE[7], linewidth=0, label="measured")
    ax.set_xticks(np.arange(0, 24, 3) * turn, [f"{h}:00" for h in range(0, 24, 3)])
    ax.set(rlim=(0, 6), rticks=[2, 4, 6], rlabel_position=110)
    ax.set_title("load by the hour")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.06), ncols=2)
