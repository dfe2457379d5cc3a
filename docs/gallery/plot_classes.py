"""
Classes, and how sure to be of them
===================================

``HCKClassifier`` predicts probabilities. Whether these are right can be checked: of all new points that
were given 70 %, 70 % should be of the class.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from hck import HCKClassifier
from hck.plotting import PALETTE, plot_reliability, style

FAST = "HCK_FAST" in os.environ  # smaller, for tests

# %%
# Two moons that overlap, so that nobody can be right all the time.

X, y = make_moons(200 if FAST else 3000, noise=0.35, random_state=0)
X_new, y_new = make_moons(5000, noise=0.35, random_state=1)
model = HCKClassifier(
    "matern52", loss="logistic", lengthscale=1.0, alpha=1.0, rank=64, n_trees=8, random_state=0
).fit(X, y)
print(f"accuracy on new points: {model.score(X_new, y_new):.3f}")

# %%
# The line in the map is where both classes are equally likely. Probabilities of new points lie on the
# diagonal.

across, up = np.meshgrid(np.linspace(-2, 3, 150), np.linspace(-1.7, 2.2, 120))
p = model.predict_proba(np.c_[across.ravel(), up.ravel()])[:, 1].reshape(across.shape)
with style():
    fig, axes = plt.subplots(2, 1, figsize=(5, 7.8))
    ax = axes[0]
    image = ax.contourf(across, up, p, np.linspace(0, 1, 11), cmap="RdBu", alpha=0.8)
    ax.contour(across, up, p, [0.5], colors="black", linewidths=1.5)
    for k, (colour, marker) in enumerate(((PALETTE[1], "o"), (PALETTE[0], "s"))):
        some = X[:400][y[:400] == k]
        ax.scatter(*some.T, s=16, c=colour, marker=marker, edgecolor="white", lw=0.5, label=f"class {k}")
    ax.set(
        title="probability of class 1", xlabel="feature 0", ylabel="feature 1", xlim=(-2, 3), ylim=(-1.7, 2.2)
    )
    ax.legend(loc="upper right")
    ax.grid(visible=False)
    fig.colorbar(image, ax=ax, ticks=[0, 0.25, 0.5, 0.75, 1])
    plot_reliability(y_new, model.predict_proba(X_new), ax=axes[1])
    axes[1].set(title=f"{len(y_new):,} new points", aspect="equal")
