"""
Four ways to stand in for a kernel
==================================

``approximation=`` changes what stands in for the kernel, at the same rank and in the same estimator. On a
line with many observations of something rough one sees what each of them is good at.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

from hck import HCKRegressor
from hck.metrics import rmse
from hck.plotting import PALETTE, style

FAST = "HCK_FAST" in os.environ  # smaller, for tests

# %%
# A signal that gets faster from left to right.


def signal(x):
    return np.sin(12 * np.exp(1.6 * x)) * (1.2 - 0.5 * x)


rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 1, 300 if FAST else 2000))
y = signal(x) + 0.2 * rng.standard_normal(len(x))
line = np.linspace(0, 1, 1500)

# %%
# With 24 landmarks or features, Nyström and Fourier features describe functions of 24 parameters, which are
# too few for the fast part. The hierarchical kernel has landmarks in every node of a tree, and is all but
# exact.

kinds = {
    "exact": "exact",
    "hierarchical": "hierarchical",
    "nystrom": "Nyström",
    "fourier": "Fourier features",
}
with style():
    fig, axes = plt.subplots(4, 1, figsize=(5.2, 7), sharex=True, sharey=True)
    for ax, (kind, name), colour in zip(axes, kinds.items(), PALETTE[:4], strict=True):
        model = HCKRegressor(
            "matern32", approximation=kind, lengthscale=0.1, alpha=0.1, rank=24, random_state=0
        )
        predicted = model.fit(x[:, None], y).predict(line[:, None])
        ax.plot(x, y, ".", color="grey", markersize=1.5, alpha=0.6)
        ax.plot(line, predicted, color=colour, linewidth=1.5)
        ax.set(title=f"{name}: error {rmse(signal(line), predicted):.3f}", ylabel="y")
    axes[-1].set(xlabel="x", xlim=(0, 1), ylim=(-1.9, 1.9))
