"""
Larger than memory
==================

``DiskHCKRegressor`` reads X and y from files, works on one branch of the tree after another, and keeps
within a memory budget that does not depend on the number of rows. A run that was stopped goes on where it
was.
"""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np

from hck.outofcore import DiskHCKRegressor
from hck.plotting import style

FAST = "HCK_FAST" in os.environ  # smaller, for tests

# %%
# Files of places and noisy measurements. They could as well be HDF5, zarr or parquet, and of any size.


def waves(X):
    r = np.linalg.norm(X - [0.4, 0.6], axis=1)
    return np.sin(50 * r) * np.exp(-3 * r)


home = TemporaryDirectory(ignore_cleanup_errors=True)
folder = Path(home.name)
rng = np.random.default_rng(0)
X = rng.uniform(size=(5_000 if FAST else 200_000, 2))
y = waves(X) + rng.standard_normal(len(X))
np.save(folder / "X.npy", X)
np.save(folder / "y.npy", y)

# %%
# Each of the four trees would have more than n · rank numbers in memory, 100 MB; the budget is 32 MiB.

side = np.linspace(0, 1, 50 if FAST else 300)
grid = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)
sizes = {"rank": 64, "n_trees": 4, "memory_budget": "32MiB", "folder": folder / "run"}
model = DiskHCKRegressor("matern52", lengthscale=0.1, alpha=1.0, random_state=0, **sizes)
learned = model.fit(folder / "X.npy", folder / "y.npy").predict(grid)
home.cleanup()

with style():
    fig, axes = plt.subplots(2, 1, figsize=(4.8, 8.4))
    looks = {"cmap": "RdYlBu_r", "vmin": -1, "vmax": 1}
    axes[0].scatter(*X[:4000].T, c=y[:4000], s=6, linewidth=0, **looks)
    image = axes[1].imshow(learned.reshape(len(side), -1), origin="lower", extent=(0, 1, 0, 1), **looks)
    axes[0].set(title=f"4,000 of {len(y):,} measurements")
    axes[1].set(title="what was learned of all")
    for ax in axes:
        ax.set(aspect="equal", xlim=(0, 1), ylim=(0, 1), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
        ax.grid(visible=False)
    fig.colorbar(image, ax=axes, location="bottom", shrink=0.7, aspect=30, extend="both", label="value")
