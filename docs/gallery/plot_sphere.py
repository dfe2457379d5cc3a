"""
Places on the globe
===================

Degrees are bad coordinates: 179° east is next to 179° west, and a degree is shorter in the north.
``Sphere`` puts places on a sphere, in kilometres, so that a kernel knows how far apart they are.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline

from hck import HCKRegressor
from hck.kernels.features import Sphere
from hck.plotting import style

FAST = "HCK_FAST" in os.environ  # smaller, for tests

# %%
# A field on the globe, made of bumps 1,500 km wide, is observed at random places.

rng = np.random.default_rng(3)
lat = np.degrees(np.arcsin(rng.uniform(-1, 1, 200 if FAST else 800)))
where = np.c_[lat, rng.uniform(-180, 180, len(lat))]
sphere = Sphere(0, 1).fit(where)
centres, heights = sphere.transform(where[:80]), rng.standard_normal(80)


def field(where):
    apart = np.linalg.norm(sphere.transform(where)[:, None] - centres, axis=2)
    return np.exp(-((apart / 1500) ** 2) / 2) @ heights


seen = field(where) + 0.1 * rng.standard_normal(len(where))

# %%
# The lengthscale is about the same for both, and the ridge is chosen. By degrees the left and the right
# edge of the map know nothing of each other, and the poles are torn apart: that is where the errors are.

settings = {"kernel": "matern52", "n_trees": 8, "rank": 128, "random_state": 0}
by_distance = make_pipeline(sphere, HCKRegressor(lengthscale=2200.0, **settings))
by_degrees = HCKRegressor(lengthscale=20.0, **settings)
lat, lon = np.meshgrid(np.linspace(-90, 90, 121), np.linspace(-180, 180, 241), indexing="ij")
grid, area = np.c_[lat.ravel(), lon.ravel()], np.cos(np.radians(lat)).ravel()
truth = field(grid)
maps = [(f"the field, and {len(where)} places", truth, 2)]
for name, model in (("by distance", by_distance), ("by degrees", by_degrees)):
    error = model.fit(where, seen).predict(grid) - truth
    maps.append((f"{name}: error {np.average(error**2, weights=area) ** 0.5:.3f}", error, 0.5))

with style():
    fig, axes = plt.subplots(3, 1, figsize=(4.8, 7.6), subplot_kw={"projection": "mollweide"})
    for ax, (title, values, top) in zip(axes, maps, strict=True):
        image = ax.pcolormesh(*np.radians([lon, lat]), values.reshape(lat.shape), cmap="RdYlBu_r")
        image.set(clim=(-top, top), rasterized=True)
        ax.set(title=title, xticks=[], yticks=[])
        fig.colorbar(image, ax=ax, shrink=0.8, extend="both", ticks=[-top, 0, top])
    axes[0].plot(*np.radians(where.T[::-1]), ".", color="black", markersize=2)
