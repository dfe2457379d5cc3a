"""
Counts, with a Poisson loss
===========================

Counts are never negative, and the larger they are the more they vary. With ``loss="poisson"`` the
prediction is the exponential of a function in the space of the kernel, and small counts are taken as
seriously as large ones.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

from hck import HCKRegressor
from hck.plotting import PALETTE, style

FAST = "HCK_FAST" in os.environ  # smaller, for tests

# %%
# Bicycles that pass a bridge in ten minutes: hardly any at night, a hundred in the morning.


def rate(t):
    return 90 * np.exp(-((t - 8) ** 2) / 2) + 60 * np.exp(-((t - 17.5) ** 2) / 5) + 0.4


rng = np.random.default_rng(0)
t = np.sort(rng.uniform(0, 24, 150 if FAST else 1000))
count = rng.poisson(rate(t))
models = {
    loss: HCKRegressor("matern52", loss=loss, lengthscale=1.5, rank=64, random_state=0)
    for loss in ("squared", "poisson")
}
for model in models.values():
    model.fit(t[:, None], count)  # the ridge is chosen, each by its own loss

# %%
# On a logarithmic axis, with zeros at the bottom, one sees the night. Squares have no reason to care for
# it: their prediction swings, and falls below 0, where the line breaks off.

line = np.linspace(0, 24, 500)
with style():
    fig, ax = plt.subplots(figsize=(5.2, 4))
    ax.scatter(t, np.maximum(count, 0.25), s=8, color="grey", alpha=0.6, linewidth=0, label="observed")
    ax.plot(line, rate(line), color="black", linestyle="--", linewidth=1.4, label="true mean")
    for (loss, model), colour in zip(models.items(), (PALETTE[1], PALETTE[0]), strict=True):
        predicted = model.predict(line[:, None])
        ax.plot(line, np.where(predicted > 0, predicted, np.nan), color=colour, label=f"loss={loss!r}")
    ax.set(
        yscale="log", xlabel="hour of the day", ylabel="bicycles in ten minutes", title="bicycles on a bridge"
    )
    ax.set(xlim=(0, 24), ylim=(0.2, 1500), xticks=range(0, 25, 4))
    ax.set_yticks([0.25, 1, 10, 100], ["0", "1", "10", "100"])
    ax.legend(loc="upper center", ncols=2)
