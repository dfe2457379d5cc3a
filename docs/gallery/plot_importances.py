"""
A metric that is learned
========================

Where some features count more than others, or only together, ``fit`` learns by which metric to measure
distances. ``feature_importances_`` and ``plot_metric`` tell what it has found.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

from hck import HCKRegressor
from hck.plotting import plot_importances, plot_metric, style

FAST = "HCK_FAST" in os.environ  # smaller, for tests

# %%
# Six measurements. Two of them count by their difference alone, one by itself, and three do nothing.

rng = np.random.default_rng(0)
X = rng.standard_normal((300 if FAST else 4000, 6))
y = np.sin(2 * (X[:, 0] - X[:, 1])) + 0.5 * np.cos(2 * X[:, 2]) + 0.1 * rng.standard_normal(len(X))
names = ["inlet", "outlet", "pressure", "hour", "weight", "colour"]
model = HCKRegressor(fit_time="fast", random_state=0).fit(X, y)

# %%
# In the matrix of the metric the entry between inlet and outlet is negative: moving both by the same amount
# changes nothing.

with style():
    fig, axes = plt.subplots(2, 1, figsize=(5, 6.8), height_ratios=[1, 1.7])
    plot_importances(model, names, ax=axes[0])
    plot_metric(model, names, ax=axes[1])
    axes[0].set(title="how much each feature counts")
    axes[1].set(title="the matrix of the metric")
