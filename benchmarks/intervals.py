"""How many held-out observations are inside intervals and sets of some levels, and how large these are.

    HCK_DATA=FOLDER python benchmarks/intervals.py [--rows 4000] [--draws 1] [--fit-time fast] [--sets NAME …]

For each data set: trained on so many rows, and measured on all others, at most 10,000; means over several
draws of rows. Beside the coverage of
intervals of 50 %, 90 % and 95 % stand, at 90 %, that in the third of the places where they are widest, the
same for intervals that are equally wide everywhere, and the ratio of mean widths. For classes: the coverage
of sets of 90 % and 95 %, their mean size, and accuracy.
"""

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np

from hck import HCKClassifier, HCKRegressor

REGRESSION = (
    *("ailerons", "bank32nh", "cadata", "cpu_act", "elevators", "flights3m", "fried", "house8L", "kin8nm"),
    *("mv", "pol", "puma32H"),
)
CLASSES = ("covtype", "ijcnn1", "letter", "mnist", "pendigits")
RESULTS = Path(__file__).parent / "results" / "intervals.json"


def rows_of(name: str, count: int, seed: int) -> list[np.ndarray]:
    """Points and targets to train with, and others: at most 10,000 of these."""
    with np.load(Path(os.environ["HCK_DATA"]) / f"{name}.npz") as arrays:
        x, y = (arrays[part] if part in arrays else arrays[f"{part}_train"] for part in ("X", "y"))
    order = np.random.default_rng(seed).permutation(len(y))[: count + 10_000]
    x, y = x[order].astype(float), y[order]
    count = min(count, len(y) // 2)
    return [x[:count], y[:count], x[count:], y[count:]]


def regression(data: list[np.ndarray], fit_time: str) -> dict[str, float]:
    """Coverage, and widths beside those of one width for all."""
    x, y, new, observed = data
    y, observed = y.astype(float), observed.astype(float)
    model = HCKRegressor(fit_time=fit_time, random_state=0).fit(x, y)
    found: dict[str, float] = {}
    for level in (0.5, 0.9, 0.95):
        mean, lower, upper = model.predict(new, interval=level)
        held = (lower <= observed) & (observed <= upper)
        found[f"inside {level:.0%}"] = float(held.mean())
        if level == 0.9:
            errors = np.sort(np.abs(y - model.loo_predict()))
            alike = errors[int(np.ceil((len(y) + 1) * level)) - 1]
            width = upper - lower
            widest = width >= np.quantile(width, 2 / 3)
            found["widest third"] = float(held[widest].mean())
            found["the same, one width"] = float((np.abs(observed - mean) <= alike)[widest].mean())
            found["width over one width"] = float(width.mean() / (2 * alike))
    return found


def classification(data: list[np.ndarray], fit_time: str) -> dict[str, float]:
    """Coverage, and sizes."""
    x, y, new, observed = data
    model = HCKClassifier(fit_time=fit_time, random_state=0).fit(x, y)
    code = np.searchsorted(model.classes_, observed)
    found = {"accuracy": float(model.score(new, observed))}
    for coverage in (0.9, 0.95):
        sets = model.predict_set(new, coverage)
        found[f"inside {coverage:.0%}"] = float(sets[np.arange(len(code)), code].mean())
        found[f"size {coverage:.0%}"] = float(sets.sum(1).mean())
    return found


def main() -> None:
    """Measure, print, and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--fit-time", default="fast")
    parser.add_argument("--sets", nargs="*", default=[*REGRESSION, *CLASSES])
    options = parser.parse_args()
    results = {}
    for name in options.sets:
        start = time.process_time()
        measure = classification if name in CLASSES else regression
        draws = [measure(rows_of(name, options.rows, i), options.fit_time) for i in range(options.draws)]
        results[name] = {key: round(float(np.mean([each[key] for each in draws])), 3) for key in draws[0]}
        results[name] |= {f"each, {key}": [round(each[key], 3) for each in draws] for key in ("inside 90%",)}
        print(f"{name:10}", results[name], f"{time.process_time() - start:.0f} s", flush=True)
    if {*options.sets} == {*REGRESSION, *CLASSES}:
        told = {"rows": options.rows, "draws": options.draws, "fit_time": options.fit_time, "sets": results}
        RESULTS.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
