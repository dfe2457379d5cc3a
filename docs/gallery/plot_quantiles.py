"""
Quantiles that do not cross
===========================

How late will the train be, at worst? With ``loss="quantile"`` a model predicts quantiles in the place of
means, several at once, and those of a higher level are never below those of a lower one.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

from hck import HCKRegressor
from hck.plotting import style

FAST = "HCK_FAST" in os.environ  # smaller, for tests

# %%
# Delays are never negative, mostly short, and long sometimes, above all in the rush hours.

rng = np.random.default_rng(0)
hour = rng.uniform(5, 24, 200 if FAST else 3000)
busy = np.exp(-((hour - 8) ** 2) / 2) + 0.8 * np.exp(-((hour - 17.5) ** 2) / 4)
delay = rng.gamma(1.5, 1 + 4 * busy)

levels = [0.1, 0.25, 0.5, 0.75, 0.9]
model = HCKRegressor(
    "matern52", loss="quantile", quantile=levels, lengthscale=2.0, alpha=0.5, rank=32, random_state=0
)
model.fit(hour[:, None], delay)
below = delay[:, None] < model.predict(hour[:, None])
print("asked:", levels, " share of the delays below:", below.mean(0).round(3))

# %%
# Half of all delays are within the darker band, four of five within both.

line = np.linspace(5, 24, 400)
low, lower, median, upper, high = model.predict(line[:, None]).T
with style():
    fig, ax = plt.subplots(figsize=(5.2, 4))
    ax.scatter(hour, delay, s=5, color="grey", alpha=0.5, linewidth=0, label="observed")
    ax.fill_between(line, low, high, color="#0072B2", alpha=0.2, linewidth=0, label="10 % to 90 %")
    ax.fill_between(line, lower, upper, color="#0072B2", alpha=0.35, linewidth=0, label="25 % to 75 %")
    ax.plot(line, median, color="black", label="median")
    ax.set(xlabel="hour of the day", ylabel="delay (minutes)", title="how late, by the hour")
    ax.set(xlim=(5, 24), ylim=(0, 25), xticks=range(6, 25, 3))
    ax.legend(loc="upper right")
