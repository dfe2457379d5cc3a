"""
Digits in the plane
===================

Kernel principal components find directions in which data vary, curved ones included. The first few of
scikit-learn's digits already keep most of them apart.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LinearSegmentedColormap, to_rgba
from sklearn.datasets import load_digits

from hck import HCKKernelPCA
from hck.plotting import PALETTE, style

# %%
# 1,797 pictures of 8 × 8 pixels.

digits = load_digits()
pca = HCKKernelPCA(2, lengthscale=25.0, approximation="nystrom", rank=256, random_state=0)
x = pca.fit_transform(digits.data)

# %%
# Each picture is a dot in the colour of its digit, which the components were not told. Some are shown as
# they are.

colours = [*PALETTE, "#000000", "#882255"]
rng = np.random.default_rng(1)
with style():
    fig, ax = plt.subplots(figsize=(5.2, 5.2))
    for k in range(10):
        mine = digits.target == k
        ax.scatter(*x[mine].T, s=9, color=colours[k], alpha=0.55, linewidth=0)
    shown = []
    for i in rng.permutation(len(x)):
        if all(np.linalg.norm(x[i] - x[j]) > 0.09 for j in shown):
            shown.append(i)
            side = 0.028
            box = x[i, 0] - side, x[i, 0] + side, x[i, 1] - side, x[i, 1] + side
            colour = colours[digits.target[i]]
            ink = LinearSegmentedColormap.from_list("", [to_rgba(colour, 0), to_rgba(colour, 1)])
            ax.imshow(digits.images[i], cmap=ink, extent=box, zorder=3, interpolation="nearest")
    ax.set(xlabel="first component", ylabel="second component", title="kernel principal components of digits")
    ax.set(aspect="equal", xlim=(-0.52, 0.56), ylim=(-0.48, 0.6))
    ax.grid(visible=False)
