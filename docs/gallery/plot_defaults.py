"""
Defaults, beside gradient boosting
==================================

``HCKRegressor()`` scales the features and chooses kernel, metric, ridge and trees by itself. Here it learns
Friedman's function of ten features, five of which do nothing, from more and more observations.
"""

import os

import matplotlib.pyplot as plt
from sklearn.datasets import make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor

from hck import HCKRegressor
from hck.metrics import rmse
from hck.plotting import PALETTE, style

FAST = "HCK_FAST" in os.environ  # smaller, for tests

# %%
# The noise has a standard deviation of 1. What counts is the error with respect to the function itself, so
# the test data have none.

sizes = [100, 200] if FAST else [250, 500, 1000, 2000, 4000]
X, y = make_friedman1(max(sizes), noise=1.0, random_state=0)
X_test, truth = make_friedman1(2000, noise=0.0, random_state=1)

models = {
    "HCKRegressor": HCKRegressor(fit_time="fast", random_state=0),
    "gradient boosting": HistGradientBoostingRegressor(random_state=0),
}
errors = {
    name: [rmse(truth, model.fit(X[:n], y[:n]).predict(X_test)) for n in sizes]
    for name, model in models.items()
}

# %%
# A smooth function suits a kernel: with the same observations its error is less than half that of the
# trees. Where functions jump, boosting does better.

with style():
    fig, ax = plt.subplots(figsize=(5.2, 4))
    for (name, error), colour, marker in zip(errors.items(), PALETTE, "os", strict=False):
        ax.loglog(sizes, error, marker + "-", color=colour, markersize=7)
        ax.annotate(name, (sizes[0], error[0]), (4, 10), textcoords="offset points", color=colour)
    ax.set(xlabel="observations", ylabel="error (RMSE to the function)", title="Friedman's function")
    ax.set_xticks(sizes, [f"{n:,}" for n in sizes])
    ax.set_yticks([0.2, 0.5, 1, 2], ["0.2", "0.5", "1", "2"])
    ax.minorticks_off()

print("What was chosen:", models["HCKRegressor"].selection_, sep="\n")
