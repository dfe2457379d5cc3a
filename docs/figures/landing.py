"""The picture of the first page: noisy points, what is learned from them, and the domains of one tree."""

import matplotlib.pyplot as plt
import numpy as np

from hck import HCKRegressor
from hck.plotting import plot_partition, style

rng = np.random.default_rng(0)
X = rng.uniform(size=(20_000, 2))


def surface(X):
    x, y = X.T
    r = np.hypot(x - 0.35, y - 0.6)
    return np.sin(24 * r) * np.exp(-2 * r) + np.cos(9 * x * y)


y = surface(X) + 0.5 * rng.standard_normal(len(X))
model = HCKRegressor(
    "matern52", lengthscale=0.2, alpha=0.3, rank=32, leaf_size=320, n_trees=8, random_state=0
)
model.fit(X, y)
side = np.linspace(0, 1, 160)
grid = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)

with style():
    fig, axes = plt.subplots(1, 3, figsize=(11, 3.9))
    look = {"cmap": "cividis", "vmin": -1.4, "vmax": 1.7}
    axes[0].scatter(*X[:6000].T, c=y[:6000], s=5, lw=0, **look)
    axes[0].set_title("20,000 noisy points")
    plot_partition(model.trees_[0], X[:6000], leaf=model.trees_[0].route(X[:6000]), ax=axes[1])
    axes[1].set_title("a tree cuts the domain")
    axes[2].imshow(model.predict(grid).reshape(160, 160), origin="lower", extent=(0, 1, 0, 1), **look)
    axes[2].set_title("eight trees predict")
    for ax in axes:
        ax.set(xticks=[], yticks=[], xlabel="", ylabel="", aspect="equal", xlim=(0, 1), ylim=(0, 1))
        ax.grid(visible=False)
