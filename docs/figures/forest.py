import matplotlib.pyplot as plt
import numpy as np

from hck import HCKRegressor
from hck.plotting import style

X = np.random.default_rng(0).uniform(size=(2000, 2))
y = np.sin(7 * X[:, 0]) * np.cos(5 * X[:, 1])
side = np.linspace(0, 1, 120)
grid = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)
truth = np.sin(7 * grid[:, 0]) * np.cos(5 * grid[:, 1])
settings = {
    "lengthscale": 0.3,
    "alpha": 0.01,
    "rank": 4,
    "leaf_size": 64,
    "random_state": 2,
}
with style():
    fig, axes = plt.subplots(1, 2, figsize=(5.2, 2.9))
    for ax, n_trees, name in zip(axes, (1, 8), ("one tree", "eight trees"), strict=True):
        model = HCKRegressor("matern32", n_trees=n_trees, **settings).fit(X, y)
        error = np.abs(model.predict(grid) - truth).reshape(120, 120)
        ax.imshow(
            error,
            origin="lower",
            extent=(0, 1, 0, 1),
            vmin=0,
            vmax=0.03,
            cmap="cividis",
        )
        ax.set(title=f"{name}: mean error {error.mean():.4f}", xticks=[], yticks=[])
        ax.grid(visible=False)
