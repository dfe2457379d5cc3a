"""
A partition of the plane, and how it shows
==========================================

A tree cuts the domain into leaves. Inside a leaf the kernel is exact; between leaves it goes through a few
landmarks. With very few of them one sees the leaves' edges in the errors, which several trees average out.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

from hck import HCKRegressor
from hck.metrics import rmse
from hck.plotting import plot_partition, style

FAST = "HCK_FAST" in os.environ  # smaller, for tests

# %%
# The rank is far smaller than one would choose, so that there is something to see.


def surface(X):
    return np.sin(7 * X[:, 0]) * np.cos(5 * X[:, 1]) + np.exp(-40 * ((X - 0.6) ** 2).sum(1))


rng = np.random.default_rng(0)
X = rng.uniform(size=(300 if FAST else 3000, 2))
y = surface(X) + 0.1 * rng.standard_normal(len(X))
settings = {"lengthscale": 0.4, "alpha": 0.05, "rank": 6, "leaf_size": 100, "random_state": 2}
one, many = (HCKRegressor("matern52", n_trees=m, **settings).fit(X, y) for m in (1, 16))

# %%
# Both errors are in the same colours.

side = np.linspace(0, 1, 40 if FAST else 300)
grid = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)
truth = surface(grid)

with style():
    fig, axes = plt.subplots(2, 2, figsize=(5.2, 6), sharex=True, sharey=True)
    plot_partition(one.tree_, X, ax=axes[0, 0])
    axes[0, 0].set(title=f"{one.tree_.n_leaves} leaves", xlabel="", ylabel="")
    looks = {"origin": "lower", "extent": (0, 1, 0, 1)}
    axes[0, 1].imshow(truth.reshape(len(side), -1), cmap="cividis", **looks)
    axes[0, 1].set(title="the function")
    for ax, model, name in zip(axes[1], (one, many), ("one tree", "sixteen trees"), strict=True):
        error = model.predict(grid) - truth
        image = ax.imshow(error.reshape(len(side), -1), cmap="RdBu", vmin=-0.2, vmax=0.2, **looks)
        ax.set(title=f"{name}: error {rmse(error, 0 * error):.3f}")
    for ax in axes.flat:
        ax.set(aspect="equal", xticks=[0, 0.5], yticks=[0, 0.5, 1])
        ax.grid(visible=False)
    bar = fig.colorbar(image, ax=axes, location="bottom", shrink=0.6, aspect=30, extend="both")
    bar.set_ticks([-0.2, 0, 0.2])
