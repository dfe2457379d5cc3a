"""The exact kernel at any size: how many iterations each preconditioner takes, and how accurate it is.

    HCK_DATA=FOLDER python benchmarks/exact.py [--data cadata,ijcnn1] [--device cuda] [--max-iter 300]
    python benchmarks/exact.py --quick     # small parts of the data: a trial of the script, no measurement

Solves (K + αI) w = y for a Gaussian kernel by conjugate gradients down to a relative residual of 1e-6,
without preconditioner and with those of several approximations. All iterations run side by side and share
their products with K, so that what a method takes alone is computed: its iterations, times a product with one
column and its own solve, plus its factorization. A single tree has leaves of one to two ranks, several have
leaves of eight; of several, the mean of the inverses is the preconditioner. Beside it stands the accuracy of
the approximations themselves as models, and that of the exact kernel (the black curve of the paper's Figure
7).
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from datasets import load
from hck.approximations import Exact, Factorization, make_approximation
from hck.approximations.conjugate_gradients import Stopping, conjugate_gradients
from hck.approximations.exact import ExactPredictor
from hck.datasets import Dataset
from hck.kernels import Gaussian
from hck.points import as_points
from peers import choose, machine

# lengthscale and alpha; ranks
SETTINGS = {
    "cadata": (0.2, 0.1, (129, 516)),
    "ijcnn1": (0.2, 0.1, (136, 546)),
    "covtype.binary": (0.1, 0.01, (226, 907)),
}
TOLERANCE = 1e-6


class Lockstep:
    """Several preconditioners, each for a column of its own, and the residuals of each."""

    def __init__(self, guides: list[list[Factorization]], b: torch.Tensor) -> None:
        self.guides, self.b = guides, b
        self.residuals: list[list[float]] = []
        self.seconds = [0.0] * len(guides)

    def __call__(self, rest: torch.Tensor) -> torch.Tensor:
        self.residuals.append((rest.norm(dim=0) / self.b.norm(dim=0)).tolist())
        out = rest.clone()
        for k, members in enumerate(self.guides):
            start = clock(rest.device)
            if members:
                out[:, k] = sum(member.solve(rest[:, k]) for member in members) / len(members)
            self.seconds[k] += clock(rest.device) - start
        return out

    def iterations(self, k: int) -> int | None:
        """After how many the residual is small enough, if ever."""
        found = [step for step, left in enumerate(self.residuals) if left[k] <= TOLERANCE]
        return found[0] if found else None


def clock(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def measure(name: str, data: Dataset, options: argparse.Namespace) -> dict[str, Any]:
    device = torch.device(options.device)
    scale, alpha, ranks = SETTINGS[name]
    y = target(data)
    mean = float(y.mean())
    points = as_points(torch.from_numpy(data.X_train).to(device, torch.float64))
    b = torch.from_numpy(y - mean).to(device)[:, None]
    kernel = Gaussian(scale)
    exact = Exact(kernel, points, memory_budget=options.memory_budget, verbose=True)
    guides, found = [], []
    for kind, trees in options.preconditioners:
        for rank in (options.ranks or ranks) if trees else (None,):
            record = {"preconditioner": kind, "trees": trees, "rank": rank}
            start = clock(device)
            generator = torch.Generator(device).manual_seed(0)
            members = [
                make_approximation(
                    kind, kernel, points, rank, leaf_size=8 * rank if trees > 1 else None, generator=generator
                ).factor(alpha)
                for _ in range(trees)
            ]
            record["seconds"] = clock(device) - start
            if members:
                predicted = sum(member.predictor(b)(data.X_test)[:, 0].cpu().numpy() for member in members)
                record["error"] = data.error(label(data, predicted / trees + mean))
            guides.append(members)
            found.append(record)
    right = b.expand(-1, len(guides)).contiguous()
    exact @ right  # keeps what fits into memory
    lone = timed(lambda: exact @ b, device)
    together = Lockstep(guides, right)
    solved = conjugate_gradients(
        lambda p: exact @ p + alpha * p, right, together, Stopping(TOLERANCE, options.max_iter, verbose=True)
    )
    if solved.converged:  # else it has seen the last one
        together(last_residual(exact, alpha, right, solved.x))
    for k, record in enumerate(found):
        record["iterations"] = together.iterations(k)
        record["residuals"] = [left[k] for left in together.residuals]
        each = together.seconds[k] / len(together.residuals)
        steps = record["iterations"] or len(together.residuals) - 1
        record["seconds"] += steps * (lone + each)
        record["seconds_per_iteration"] = lone + each
    best = min(range(len(found)), key=lambda k: together.residuals[-1][k])
    start = clock(device)
    predictor = ExactPredictor(kernel, points, solved.x[:, best : best + 1], [])
    predicted = predictor(data.X_test)[:, 0].cpu().numpy() + mean
    return {
        "n": len(points),
        "lengthscale": scale,
        "alpha": alpha,
        "measure": data.measure,
        "product_seconds": lone,
        "exact_error": data.error(label(data, predicted)),
        "exact_residual": together.residuals[-1][best],
        "predict_seconds": clock(device) - start,
        "preconditioners": found,
    }


def last_residual(exact: Exact, alpha: float, b: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """b − (K + αI) x, computed afresh: what iterations record is updated, and rounding adds up."""
    return b - exact @ x - alpha * x


def timed(work: Callable[[], Any], device: torch.device) -> float:
    start = clock(device)
    work()
    return clock(device) - start


def target(data: Dataset) -> np.ndarray:
    """Numbers to fit: the targets, or ±1 for the two classes."""
    if data.task == "regression":
        return data.y_train
    return np.where(data.y_train == np.unique(data.y_train)[1], 1.0, -1.0)


def label(data: Dataset, values: np.ndarray) -> np.ndarray:
    return values if data.task == "regression" else np.unique(data.y_train)[(values > 0).astype(int)]


def show(name: str, entry: dict[str, Any], console: Console) -> None:
    table = Table(
        title=f"{name}, n = {entry['n']:,}: exact kernel {entry['measure']} {entry['exact_error']:.4f} "
        f"(residual {entry['exact_residual']:.1e}), a product {entry['product_seconds']:.2f} s"
    )
    for heading in ("preconditioner", "number", "rank", "iterations", "seconds", "its own error as a model"):
        table.add_column(heading, justify="left" if heading == "preconditioner" else "right")
    for r in entry["preconditioners"]:
        reached = r["iterations"] or f"{r['residuals'][-1]:.1e} after {len(r['residuals']) - 1}"
        error = f"{r['error']:.4f}" if "error" in r else ""
        table.add_row(
            r["preconditioner"],
            str(r["trees"] or ""),
            str(r["rank"] or ""),
            str(reached),
            f"{r['seconds']:.1f}",
            error,
        )
    console.print(table)


def counted(text: str) -> tuple[str, int]:
    """A preconditioner, and how many of them."""
    number, _, kind = text.rpartition(" ")
    return kind, 0 if kind == "none" else int(number or 1)


def merge(entry: dict[str, Any], earlier: dict[str, Any] | None) -> dict[str, Any]:
    """A run together with preconditioners of an earlier one with the same settings."""
    same = earlier and all(earlier[key] == entry[key] for key in ("n", "lengthscale", "alpha"))
    if not earlier or not same:
        return entry

    def name(record: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(record[key] for key in ("preconditioner", "trees", "rank"))

    now = {name(record) for record in entry["preconditioners"]}
    kept = [record for record in earlier["preconditioners"] if name(record) not in now]
    best = min(entry, earlier, key=lambda run: run["exact_residual"])
    exact = {key: best[key] for key in ("exact_error", "exact_residual")}
    return entry | exact | {"preconditioners": kept + entry["preconditioners"]}


def main() -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--data", default="cadata,ijcnn1", help="of " + ", ".join(SETTINGS))
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument(
        "--preconditioners",
        default="none,hierarchical,8 hierarchical,nystrom,fourier",
        help="with a number: the mean of several",
    )
    parser.add_argument("--ranks", type=lambda text: [int(rank) for rank in text.split(",")])
    parser.add_argument("--max-iter", type=int, default=300)
    parser.add_argument("--memory-budget", default=None, help="for tiles of K that are kept, e.g. 8GiB")
    parser.add_argument("--quick", action="store_true", help="small parts of the data")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    options.threads = torch.get_num_threads()
    options.preconditioners = [counted(text) for text in options.preconditioners.split(",")]
    path = options.out / f"exact-{options.device}.json"
    results = json.loads(path.read_text()) if path.exists() else {"data": {}}
    results["machine"] = machine(options)
    console = Console(width=120)
    for name in choose(parser, "--data", options.data, SETTINGS):
        data = load(name)
        entry = measure(name, data.shrink(2000, 1000) if options.quick else data, options)
        if not options.quick:
            entry = results["data"][name] = merge(entry, results["data"].get(name))
        show(name, entry, console)
        if not options.quick:
            options.out.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
