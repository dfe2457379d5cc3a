"""Observations that come and go: time of an update, accuracy beside a refit, and streams beside river.

    python benchmarks/online.py [--n 1000000] [--updates 10000] [--streams 10000] [--skip speed|streams]

speed      n points in 8 dimensions, rank 64: the first update, which makes what others change; one point and
           a prediction near it; 1,000 points at once; 10,000 updates, then the error beside that of a fit to
           the same points with the same parameters; memory before and after
streams    made here, like the well-known one of electricity prices: labels that depend on each other, daily
           and weekly rhythms, and rules that drift; accuracy of predictions before each label is learned, and
           time for a point, beside learners of river (pip install river)

Times are in seconds of this process, so that others who are busy count less.
"""

import argparse
import json
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hck import HCKClassifier, HCKRegressor
from hck.estimators.stream import StreamingClassifier

BARS = {"one point": 3e-3, "1,000 points": 0.3, "error over that of a refit": 1.02}


def timed(work: Callable[[], Any]) -> tuple[float, float]:
    """Seconds of the processor, and of the clock."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


def hills(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A smooth function of 8 features with some noise."""
    x = rng.uniform(size=(n, 8))
    y = np.sin(6 * x[:, 0]) * np.cos(4 * x[:, 1]) + x[:, 2] * x[:, 3] + np.abs(x[:, 4] - 0.5)
    return x, y + 0.1 * rng.standard_normal(n)


def resident() -> float:
    """The largest memory so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def speed(n: int, updates: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    x, y = hills(n + 2 * updates + 20_000, rng)
    given = {"kernel": "matern32", "lengthscale": 1.0, "alpha": 0.01, "rank": 64, "n_trees": 1, "scale": None}
    model = HCKRegressor(**given, leave_one_out=False, random_state=0)
    found: dict[str, Any] = {"fit": timed(lambda: model.fit(x[:n], y[:n]))}
    found["first update"] = timed(lambda: model.partial_fit(x[n : n + 1], y[n : n + 1]))
    at = n + 1

    def one() -> None:
        nonlocal at
        model.partial_fit(x[at : at + 1], y[at : at + 1])
        model.predict(x[at : at + 1] + 1e-3)
        at += 1

    for _ in range(5):
        one()
    each = [timed(one) for _ in range(200)]
    found["one point"] = tuple(np.median(each, 0).tolist())

    def many() -> None:
        nonlocal at
        model.partial_fit(x[at : at + 1000], y[at : at + 1000])
        at += 1000

    found["the first 1,000 points"] = timed(many)  # which need new memory
    found["1,000 points"] = tuple(np.median([timed(many) for _ in range(9)], 0).tolist())
    before = resident()
    for _ in range(updates // 1000):  # a window that slides: as many go as come
        many()
        model.forget(keep=n)
    found["memory before and after"] = before, resident()
    test, truth = x[-20_000:], y[-20_000:]
    error = float(np.sqrt(np.mean((model.predict(test) - truth) ** 2)))
    refit = HCKRegressor(**given, leave_one_out=False, random_state=0).fit(x[at - n : at], y[at - n : at])
    other = float(np.sqrt(np.mean((refit.predict(test) - truth) ** 2)))
    found |= {"error": error, "error of a refit": other, "error over that of a refit": error / other}
    return found


def prices(n: int, seed: int = 0) -> Iterator[tuple[dict[str, float], bool]]:
    """Whether a price goes up: demand with rhythms, supply that drifts, labels that depend on the last."""
    rng, level, last = np.random.default_rng(seed), 0.0, 0.0
    for i in range(n):
        hour, day = i / 48 % 1, i / 336 % 1
        level = 0.995 * level + 0.1 * rng.standard_normal()
        demand = np.sin(2 * np.pi * hour) + 0.5 * np.cos(2 * np.pi * day) + level
        supply = 0.8 * np.sin(2 * np.pi * (hour + i / n)) + 0.3 * rng.standard_normal()  # which drifts
        price = 0.6 * last + np.tanh(demand * demand - supply) + 0.2 * rng.standard_normal()
        shown = {"hour": hour, "day": day, "demand": demand, "supply": supply, "last": last}
        yield shown, bool(price > last)
        last = price


def prequential(model: Any, n: int) -> dict[str, float]:
    """Accuracy of what is said before a label is learned, and milliseconds for an observation."""
    right, start = 0, time.process_time()
    for x, y in prices(n):
        right += model.predict_one(x) == y
        model.learn_one(x, y)
    return {"accuracy": right / n, "ms": (time.process_time() - start) / n * 1e3}


def streams(n: int) -> dict[str, dict[str, float]]:
    inner = HCKClassifier(fit_time="fast", n_trees=1, rank=64, random_state=0)
    models: dict[str, Any] = {
        "hck": StreamingClassifier(inner),
        "hck, the last 2,000": StreamingClassifier(inner, window=2000),
    }
    try:
        from river import forest, linear_model, naive_bayes, neighbors, preprocessing, tree
    except ImportError:
        print("river is not there: pip install river")
    else:
        scaler = preprocessing.StandardScaler
        models |= {
            "river: adaptive random forest": forest.ARFClassifier(seed=0),
            "river: Hoeffding adaptive tree": tree.HoeffdingAdaptiveTreeClassifier(seed=0),
            "river: nearest neighbours": scaler() | neighbors.KNNClassifier(),
            "river: logistic regression": scaler() | linear_model.LogisticRegression(),
            "river: naive Bayes": naive_bayes.GaussianNB(),
        }
    return {name: prequential(model, n) for name, model in models.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--updates", type=int, default=10_000)
    parser.add_argument("--streams", type=int, default=10_000, help="observations of a stream")
    parser.add_argument("--skip", choices=["speed", "streams"], action="append", default=[])
    parser.add_argument("--out", type=Path, help="a JSON file for the figures")
    options = parser.parse_args()
    found: dict[str, Any] = {}
    if "speed" not in options.skip:
        found["speed"] = speed(options.n, options.updates)
        for name, value in found["speed"].items():
            shown = value if isinstance(value, float) else " / ".join(f"{each:.4g}" for each in value)
            print(f"{name:28s} {shown}" + (f"   (at most {BARS[name]})" if name in BARS else ""))
    if "streams" not in options.skip:
        found["streams"] = streams(options.streams)
        for name, value in found["streams"].items():
            print(f"{name:32s} accuracy {value['accuracy']:.4f}   {value['ms']:.2f} ms for an observation")
    if options.out is not None:
        options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
