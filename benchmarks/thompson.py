"""Thompson sampling over a million candidates: draws that are functions, and what they cost.

    python benchmarks/thompson.py [--quick] [--candidates 1000000] [--rounds 3] [--batch 4]

Hartmann's function of six variables is to be minimised, from noisy observations. In each round a Gaussian
process is conditioned on what was observed so far, `batch` functions are drawn from it, each is evaluated at
all candidates, and where each is least there is the next observation: what is not known yet is tried as often
as it may be the best. Candidates are new in each round, one half of them uniform, the other around the best
prediction. Beside it, as many observations at random.

Draws are functions (`draw_functions`), so that the least candidate can be improved by a search around it,
which evaluates the same draw again: `sample_y` at other points would be another function.

Seconds are of the processor, so that they say the same beside other work.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from scipy.optimize import minimize

from hck import HCKGaussianProcessRegressor

LEAST = -3.32237  # of the function
NOISE = 0.05  # a standard deviation
START = 300  # observations to start with

ALPHA = np.array([1.0, 1.2, 3.0, 3.2])
A = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def hartmann(X: np.ndarray) -> np.ndarray:
    """The function at points (n, 6) of the unit cube: shape (n,)."""
    inside = (A * (X[:, None] - P) ** 2).sum(2)
    return -np.exp(-inside) @ ALPHA


def propose(model: HCKGaussianProcessRegressor, candidates: np.ndarray, batch: int, seed: int) -> np.ndarray:
    """Where functions drawn from a model are least: shape (batch, 6)."""
    draws = model.draw_functions(batch, random_state=seed, n_waves=256)
    best = candidates[draws(candidates).argmin(0)]
    found = []
    for draw, start in zip(draws, best, strict=True):
        near = minimize(
            lambda x, draw=draw: float(draw(x[None])[0]),
            start,
            method="Nelder-Mead",
            bounds=[(0, 1)] * 6,
            options={"maxfev": 200},
        )
        found.append(near.x)
    return np.array(found)


def run(candidates: int, rounds: int, batch: int, seed: int = 0) -> list[dict]:
    """What each round has found, and the seconds that its parts took."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(START, 6))
    y = hartmann(X) + NOISE * rng.standard_normal(START)
    model = HCKGaussianProcessRegressor("matern52", leaf_size=256, rank=64, random_state=0)
    records = []
    for number in range(1, rounds + 1):
        times = [time.process_time()]
        model.fit(X, y)
        times.append(time.process_time())
        best = X[model.predict(X).argmin()]
        near = np.clip(best + 0.1 * rng.standard_normal((candidates // 2, 6)), 0, 1)
        among = np.concatenate([rng.uniform(size=(candidates - len(near), 6)), near])
        new = propose(model, among, batch, seed=number)
        times.append(time.process_time())
        X = np.concatenate([X, new])
        y = np.concatenate([y, hartmann(new) + NOISE * rng.standard_normal(len(new))])
        random = hartmann(rng.uniform(size=(len(X), 6)))
        records.append(
            {
                "round": number,
                "observations": len(X),
                "gap": float(hartmann(X).min() - LEAST),
                "gap_at_random": float(random.min() - LEAST),
                "fit_s": times[1] - times[0],
                "draws_s": times[2] - times[1],
                "us_per_value": 1e6 * (times[2] - times[1]) / (batch * candidates),
            }
        )
    return records


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--candidates", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=4, help="functions drawn in a round")
    parser.add_argument("--quick", action="store_true", help="a trial of the script, no measurement")
    given = parser.parse_args()
    candidates = 20_000 if given.quick else given.candidates
    records = run(candidates, given.rounds, given.batch)
    table = Table(title=f"{given.batch} draws at {candidates:,} candidates in each round")
    for name in records[0]:
        table.add_column(name.replace("_", " "), justify="right")
    for record in records:
        table.add_row(
            *(f"{value:,}" if isinstance(value, int) else f"{value:.3g}" for value in record.values())
        )
    Console().print(table)
    if not given.quick:
        path = Path(__file__).parent / "results" / "thompson.json"
        setting = {"candidates": candidates, "batch": given.batch, "threads": torch.get_num_threads()}
        path.write_text(json.dumps(setting | {"rounds": records}, indent=1) + "\n")


if __name__ == "__main__":
    main()
