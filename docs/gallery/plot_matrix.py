"""
The matrix of the kernel
========================

What does a hierarchically compositional kernel change? Its matrix is the exact one in blocks on the
diagonal, one for each leaf, and of low rank between them, up the tree.
"""

import matplotlib.pyplot as plt
import numpy as np

from hck.hierarchy import HierarchicalKernel
from hck.kernels import Matern
from hck.plotting import plot_blocks, style

# %%
# Points on a line, from left to right, few enough to look at every entry.

X = np.sort(np.random.default_rng(0).uniform(size=(512, 1)), axis=0)
kernel = Matern(0.15, nu=1.5)
hierarchical = HierarchicalKernel.build(kernel, X, rank=16, leaf_size=64, partition="kd", generator=0)
order = hierarchical.tree.order
exact = kernel(X[order], X[order])
near = hierarchical.to_dense()[order][:, order].numpy()
print(f"relative error {np.linalg.norm(exact - near) / np.linalg.norm(exact):.4f}")

# %%
# The difference is exactly 0 in the leaves. Elsewhere it is largest beside cuts, where points of two leaves
# are close.

with style():
    fig, axes = plt.subplots(2, 2, figsize=(5.2, 5))
    plot_blocks(hierarchical.tree, rank=16, ax=axes[0, 0])
    axes[0, 0].get_legend().remove()
    axes[0, 0].set(title="blocks: leaves are orange", xlabel="", ylabel="")
    pictures = {"exact": exact, "hierarchical, rank 16": near, "difference": abs(near - exact)}
    for ax, (name, matrix) in zip(axes.flat[1:], pictures.items(), strict=True):
        top = 1 if name != "difference" else float(matrix.max())
        image = ax.imshow(
            matrix, cmap="cividis" if top == 1 else "magma_r", vmin=0, vmax=top, interpolation="nearest"
        )
        fig.colorbar(image, ax=ax, shrink=0.75, ticks=[0, round(top / 2, 2), round(top, 2)])
        ax.set(title=name)
    for ax in axes.flat:
        ax.set(xticks=[], yticks=[])
        ax.grid(visible=False)
