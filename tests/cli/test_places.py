"""Tables with gaps, and columns that are places or come back, on the command line."""

import json

import numpy as np
import pandas as pd

from hck import load
from hck.kernels.features import EARTH, Circle, Sphere


def write_places(n, seed, path):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {"lat": rng.uniform(-80, 80, n), "hour": rng.uniform(0, 24, n), "lon": rng.uniform(-180, 180, n)}
    )
    east = np.radians(frame.lon)
    frame["delay"] = np.cos(east) + np.sin(np.pi * frame.hour / 12)
    frame.to_csv(path, index=False)
    return frame


def test_places_are_kept_in_the_model(hck, tmp_path):
    write_places(300, 0, tmp_path / "300.csv")
    test = write_places(100, 1, tmp_path / "100.csv")
    options = ("--target", "delay", "--sphere", "lat,lon", "--circle", "hour=24", "--fit-time", "0.5")
    code, _, said = hck("fit", "300.csv", *options, "--out", "model", "--json")
    assert code == 0, said
    model = load("model")
    expected = ["lat_lon_x", "lat_lon_y", "lat_lon_z", "hour_sin", "hour_cos"]
    assert list(model.feature_names_in_) == expected
    assert hck("predict", "model", "100.csv", "--out", "p.csv")[0] == 0
    features = test.drop(columns="delay")
    steps = Sphere("lat", "lon", radius=EARTH), Circle("hour", period=24)
    for step in steps:
        features = step.fit_transform(features)
    found = pd.read_csv("p.csv")
    np.testing.assert_allclose(found.iloc[:, 0], model.predict(features), rtol=1e-6)
    out = hck("evaluate", "model", "100.csv", "--json")[1]
    assert json.loads(out)["rmse"] < 0.3


def test_places_of_arrays_have_numbers(hck, tmp_path):
    frame = write_places(120, 0, tmp_path / "table.csv")
    np.savez("table.npz", X=frame[["lat", "hour", "lon"]].to_numpy(), y=frame["delay"])
    options = ("--sphere", "0,2", "--circle", "0=24", "--fit-time", "0.2", "--out", "model")
    assert hck("fit", "table.npz", *options)[0] == 0
    assert load("model").n_features_in_ == 5
    assert hck("evaluate", "model", "table.npz")[0] == 0


def test_gaps(hck, files, table):
    frame = table(200, 3).drop(columns="kind")
    frame.loc[::7, "a"] = np.nan
    frame.loc[::9, "town"] = None
    frame.to_csv("gaps.csv", index=False)
    assert hck("fit", "gaps.csv", "--target", "price", "--fit-time", "0.2", "--out", "model")[0] == 0
    assert hck("predict", "model", "gaps.csv", "--out", "p.csv")[0] == 0
    assert np.isfinite(pd.read_csv("p.csv").iloc[:, 0]).all()
    frame.loc[3, "b"] = np.inf
    frame.to_csv("endless.csv", index=False)
    code, _, said = hck("predict", "model", "endless.csv", "--out", "q.csv")
    assert code == 1
    assert "column 'b' is infinite in 1 of 200 records" in said
