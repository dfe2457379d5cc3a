"""Tables as they come: categories, missing values and places, without preparation.

    HCK_DATA=FOLDER python benchmarks/as_they_come.py [--only categories,missing,places] [--rows 100000]

categories  diamonds, with ordered categories and with plain text, and adult: hck beside LightGBM.
missing     1, 10 and 30 % of the numbers removed at random, in training and in test: hck as it is, hck with
            means put in by hand, LightGBM.
places      flights3m: raw degrees, days and minutes, or on spheres and circles.

Errors are relative root mean squares (diamonds: dollars; flights: minutes) or, for classes, parts that are
wrong, on data that were not seen. Times are those of the processor.
"""

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from datasets import load
from hck import HCKClassifier, HCKRegressor
from hck.kernels.features import Circle, Sphere

PARTS = (0.01, 0.1, 0.3)


def hck(fit_time: str, y: np.ndarray) -> Any:
    kind = HCKRegressor if y.dtype.kind == "f" else HCKClassifier
    return kind(fit_time=fit_time, random_state=0)


def lightgbm(y: np.ndarray) -> Any:
    from lightgbm import LGBMClassifier, LGBMRegressor

    kind = LGBMRegressor if y.dtype.kind == "f" else LGBMClassifier
    return kind(random_state=0, verbosity=-1, n_jobs=2)


def measure(name: str, method: str, model: Any, train: tuple[Any, np.ndarray], test: Any) -> None:
    start = time.process_time()
    model.fit(*train)
    seconds = time.process_time() - start
    y, predicted = test[1], model.predict(test[0])
    numbers = y.dtype.kind == "f"
    error = np.sqrt(np.mean((predicted - y) ** 2)) if numbers else np.mean(predicted != y)
    found = {"data": name, "method": method, "error": float(error), "fit_cpu_seconds": round(seconds, 1)}
    if numbers:
        found["relative"] = float(error / y.std())
    print(json.dumps(found), flush=True)


def categories(fit_time: str) -> None:
    for name in ("diamonds", "adult"):
        data = load(name, prepare=False)
        train, test = (data.X_train, data.y_train), (data.X_test, data.y_test)
        if name == "diamonds":
            train, test = (train[0], train[1].astype(float)), (test[0], test[1].astype(float))
            text = [
                table.astype(dict.fromkeys(("cut", "color", "clarity"), object)) for table, _ in (train, test)
            ]
            both = (text[0], train[1]), (text[1], test[1])
            measure(f"{name}, text", "hck", hck(fit_time, train[1]), *both)
        measure(name, "hck", hck(fit_time, train[1]), train, test)
        measure(name, "LightGBM", lightgbm(train[1]), train, test)


def missing(fit_time: str) -> None:
    for name in ("kin8nm", "cadata", "adult"):
        data = load(name, prepare=False)
        tables = [pd.DataFrame(each) for each in (data.X_train, data.X_test)]
        numeric = [c for c in tables[0].columns if pd.api.types.is_numeric_dtype(tables[0][c].dtype)]
        for part in PARTS:
            rng, gaps = np.random.default_rng(0), []
            for table in tables:
                table = table.astype(dict.fromkeys(numeric, float))
                gaps.append(
                    table.mask(pd.DataFrame(rng.random(table.shape) < part, table.index, table.columns))
                )
            if name == "adult":  # categories may be missing as they are
                filled = [g.fillna(dict(gaps[0][numeric].mean())) for g in gaps]
            else:
                filled = [g.fillna(gaps[0].mean()) for g in gaps]
            y, y_test = data.y_train, data.y_test
            for method, (a, b), make in (
                ("hck", gaps, lambda y: hck(fit_time, y)),
                ("hck, means by hand", filled, lambda y: hck(fit_time, y)),
                ("LightGBM", gaps, lightgbm),
            ):
                a, b = (t.set_axis([str(c) for c in t.columns], axis=1) for t in (a, b))
                measure(f"{name}, {part:.0%} missing", method, make(y), (a, y), (b, y_test))


def places(fit_time: str, rows: int) -> None:
    raw = np.load(Path(os.environ["HCK_DATA"]) / "flights3m.npz")  # degrees, which `load` would prepare
    some = np.random.default_rng(0).permutation(len(raw["y"]))[: 2 * rows]
    X, y, where = raw["X"][some].astype(float), raw["y"][some].astype(float), raw["airport_latlon"]
    origin, goal = (where[X[:, i].astype(int)] for i in (4, 5))
    table = pd.DataFrame(
        {
            "day": 30.4 * (X[:, 0] - 1) + X[:, 1],
            "minute": X[:, 2],
            "distance": X[:, 3],
            **{"lat": origin[:, 0], "lon": origin[:, 1], "to_lat": goal[:, 0], "to_lon": goal[:, 1]},
        }
    )
    spheres = Sphere("to_lat", "to_lon").fit_transform(Sphere("lat", "lon").fit_transform(table))
    minutes = Circle("minute", period=1440)
    ways = {
        "raw": table,
        "spheres": spheres,
        "spheres, minutes on a circle": minutes.fit_transform(spheres),
        "minutes on a circle": minutes.fit_transform(table),
        "spheres, minutes and days on circles": Circle("day", period=365).fit_transform(
            minutes.fit_transform(spheres)
        ),
    }
    for method, X in ways.items():
        model = HCKRegressor(fit_time=fit_time, random_state=0)
        train, test = (X[:rows], y[:rows]), (X[rows:], y[rows:])
        measure(f"flights3m, {rows:,} rows", f"hck, {method}", model, train, test)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="categories,missing,places")
    parser.add_argument("--fit-time", default="balanced")
    parser.add_argument("--rows", type=int, default=100_000)
    given = parser.parse_args()
    asked = given.only.split(",")
    if "categories" in asked:
        categories(given.fit_time)
    if "places" in asked:
        places(given.fit_time, given.rows)
    if "missing" in asked:
        missing(given.fit_time)


if __name__ == "__main__":
    main()
