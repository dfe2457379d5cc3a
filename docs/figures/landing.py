"""The picture of the first page: noisy points, the domains of one tree, and what is learned."""

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
    "matern52",
    lengthscale=0.2,
    alpha=0.3,
    rank=32,
    leaf_size=320,
    n_trees=8,
    random_state=0,
)
model.fit(X, y)
side = np.linspace(0, 1, 160)
grid = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)

look = {"cmap": "cividis", "vmin": -1.4, "vmax": 1.7}


def panel(title):
    """A picture of its own, so that on a phone one stands below the other."""
    _, ax = plt.subplots(figsize=(3.4, 3.6))
    ax.set_title(title)
    return ax


with style():
    noisy = panel("6,000 of 20,000 noisy points")
    noisy.scatter(*X[:6000].T, c=y[:6000], s=4, lw=0, **look)
    cut = panel("a tree cuts the domain")
    plot_partition(model.trees_[0], X[:6000], leaf=model.trees_[0].route(X[:6000]), ax=cut)
    cut.set_title("a tree cuts the domain")  # instead of what leaves there are
    learned = panel("eight trees predict")
    learned.imshow(
        model.predict(grid).reshape(160, 160),
        origin="lower",
        extent=(0, 1, 0, 1),
        **look,
    )
    for ax in (noisy, cut, learned):
        ax.set(
            xticks=[],
            yticks=[],
            xlabel="",
            ylabel="",
            aspect="equal",
            xlim=(0, 1),
            ylim=(0, 1),
        )
        ax.grid(visible=False)
