"""
A table as it comes
===================

Text, ordered categories, dates, and values that are missing: ``fit`` takes data frames without preparation.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from hck import HCKRegressor
from hck.plotting import PALETTE, style

FAST = "HCK_FAST" in os.environ  # smaller, for tests

# %%
# Prices of flats. One in ten areas was not filled in.

n = 300 if FAST else 3000
rng = np.random.default_rng(0)
states = ["poor", "fair", "good"]
area = rng.gamma(9, 9, n)
table = pd.DataFrame(
    {
        "area": np.where(rng.uniform(size=n) < 0.1, np.nan, area),
        "state": pd.Categorical(rng.choice(states, n), states, ordered=True),
        "town": rng.choice(["Ulm", "Jena", "Köln"], n),
        "sold": pd.Timestamp("2018-01-01") + pd.to_timedelta(rng.integers(0, 2500, n), "D"),
    }
)
season = 0.1 * np.cos(2 * np.pi * table["sold"].dt.day_of_year / 365)
price = area * (2 + 0.6 * table["state"].cat.codes + 1.2 * (table["town"] == "Köln")) * (1 + season)
price += 10 * rng.standard_normal(n)

train = np.arange(n) < 0.8 * n
model = HCKRegressor(fit_time="fast", random_state=0).fit(table[train], price[train])
print(f"R² on other flats: {model.score(table[~train], price[~train]):.3f}")
print("what the columns became:", *model.kernel_feature_names_)

# %%
# Flats whose area is unknown are predicted too, though less well.

with style():
    fig, ax = plt.subplots(figsize=(5, 4.6))
    predicted = model.predict(table[~train])
    gap = table["area"][~train].isna()
    looks = {"alpha": 0.7, "mec": "none", "ms": 4}
    ax.plot(price[~train][~gap], predicted[~gap], "o", color=PALETTE[0], label="area known", **looks)
    ax.plot(price[~train][gap], predicted[gap], "D", color=PALETTE[1], label="area missing", **looks)
    ax.axline((200, 200), slope=1, color="black", linewidth=1, linestyle="--")
    ax.set(xlabel="price (thousands)", ylabel="predicted", title="other flats")
    ax.legend(loc="upper left")
