"""
Where to look next: Thompson sampling
=====================================

To find the minimum of a function that is expensive to evaluate, draw functions from what is known of it,
and look where each of them is least. What may be best is tried as often as it may be so.
"""

import matplotlib.pyplot as plt
import numpy as np

from hck import HCKGaussianProcessRegressor
from hck.plotting import PALETTE, style

# %%
# An unknown function with two deep valleys, and six noisy evaluations at random to begin with.


def unknown(x):
    return np.sin(3 * x) + 0.12 * (x - 5) ** 2


rng = np.random.default_rng(0)
line = np.linspace(0, 8, 800)[:, None]
x = rng.uniform(0, 8, 6)
y = unknown(x) + 0.1 * rng.standard_normal(len(x))
process = HCKGaussianProcessRegressor(
    "matern52", lengthscale=0.6, noise=0.01, optimizer=None, rank=64, random_state=0
)

# %%
# In each round four functions are drawn, and evaluations made where they are least. The upper picture is
# the first round; in the fifth, below, all of them look into the deeper valley.

with style():
    fig, axes = plt.subplots(2, 1, figsize=(5.2, 6.8), sharex=True, sharey=True)
    for k in range(5):
        process.fit(x[:, None], y)
        draws = process.draw_functions(4, random_state=k)(line)
        best = line[draws.argmin(0), 0]
        if k in (0, 4):
            ax = axes[k // 4]
            mean, std = process.predict(line, return_std=True)
            ax.fill_between(line[:, 0], mean - 2 * std, mean + 2 * std, color=PALETTE[5], alpha=0.25, lw=0)
            ax.plot(line, unknown(line), "--", color="black", linewidth=1.4, label="unknown function")
            ax.plot(line, draws, color=PALETTE[0], linewidth=0.9, label=["functions drawn", *[""] * 3])
            ax.scatter(x, y, s=24, color="black", zorder=3, label="evaluations")
            ax.scatter(
                best, draws.min(0), s=70, marker="*", color=PALETTE[1], zorder=4, label="where to look next"
            )
            ax.set(ylabel="value", title=f"round {k + 1}, after {len(x)} evaluations")
        x = np.append(x, best)
        y = np.append(y, unknown(best) + 0.1 * rng.standard_normal(4))
    axes[0].legend(loc="upper center", ncols=2)
    axes[1].set(xlabel="x", xlim=(0, 8), ylim=(-1.8, 6))
