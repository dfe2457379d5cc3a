"""Gaussian process classification of many points: seconds, accuracy and −log p.

    python benchmarks/classes.py [--sizes 10000,100000,1000000] [--rank 64]

Points are uniform in eight dimensions, and labels are drawn with probabilities that are known, so that the
best possible −log p is, too. Parameters are learned on 20,000 points at most. Seconds are of processors.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from hck import HCKGaussianProcessClassifier, metrics


def labelled(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points, labels and the probabilities of the second class."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n, 8))
    f = (
        4 * np.sin(4 * x[:, 0] * x[:, 1])
        + 3 * x[:, 2] ** 2 * np.cos(3 * x[:, 3])
        - 2 * np.sin(5 * x[:, 6])
        - 1
    )
    p = 1 / (1 + np.exp(-f))
    return x, (rng.uniform(size=n) < p).astype(int), p


def measure(n: int, rank: int, steps: int) -> dict[str, Any]:
    (X, y, _), (X_test, y_test, p) = labelled(n, 0), labelled(20_000, 1)
    start, clock = time.process_time(), time.perf_counter()
    model = HCKGaussianProcessClassifier(rank=rank, max_iter=steps, random_state=0).fit(X, y)
    seconds, wall = time.process_time() - start, time.perf_counter() - clock
    proba = model.predict_proba(X_test)
    return {
        "n": n,
        "rank": rank,
        "cpu_seconds": round(seconds, 1),
        "wall_seconds": round(wall, 1),
        "predict_cpu_seconds": round(time.process_time() - start - seconds, 1),
        "log_loss": round(metrics.log_loss(y_test, proba), 5),
        "best_log_loss": round(metrics.log_loss(y_test, p), 5),
        "accuracy": round(float(np.mean(proba.argmax(1) == y_test)), 5),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="10000,100000,1000000")
    parser.add_argument("--rank", type=int, default=64)
    parser.add_argument("--max-iter", type=int, default=40)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "classes.json")
    options = parser.parse_args()
    measure(1000, 16, 2)  # compiles
    found = []
    for size in options.sizes.split(","):
        found.append(measure(int(size), options.rank, options.max_iter))
        print(found[-1], flush=True)
    options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
