import matplotlib.pyplot as plt
import numpy as np

from hck import HCKRegressor

X = np.random.default_rng(0).uniform(size=(2000, 2))
y = np.sin(7 * X[:, 0]) * np.cos(5 * X[:, 1])
side = np.linspace(0, 1, 120)
grid = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)
truth = np.sin(7 * grid[:, 0]) * np.cos(5 * grid[:, 1])
settings = {"lengthscale": 0.3, "alpha": 0.01, "rank": 4, "leaf_size": 64, "random_state": 2}
fig, axes = plt.subplots(1, 2, figsize=(7, 3.7))
for ax, n_trees in zip(axes, (1, 8), strict=True):
    model = HCKRegressor("matern32", n_trees=n_trees, **settings).fit(X, y)
    error = np.abs(model.predict(grid) - truth).reshape(120, 120)
    ax.imshow(error, origin="lower", extent=(0, 1, 0, 1), vmax=0.1, cmap="cividis")
    ax.set(title=f"rank 4, n_trees={n_trees}: mean error {error.mean():.4f}", xticks=[], yticks=[])
