"""Forests: predictors averaged, or kernels averaged?

    HCK_DATA=FOLDER python benchmarks/forests.py [--data cadata,ijcnn1] [--quick]

A forest can average the predictors of its trees, which is what `n_trees` does, or the kernels themselves: the
function x ↦ Σ_t k_t(x, X) w / T, with w from ((K₁ + … + K_T)/T + αI) w = y. The sum of hierarchical matrices
is not a hierarchical matrix of the same rank, so this system is solved by conjugate gradients, with the
factor of one tree as the preconditioner, down to a relative residual of 1e-6. Both forests have the same
trees.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from scipy.sparse.linalg import LinearOperator, cg

from hck.datasets import load
from hck.hierarchy import HierarchicalKernel
from hck.kernels import Gaussian
from hck.metrics import relative_error
from peers import choose, machine

# lengthscale and alpha of the Gaussian kernel
SETTINGS = {"cadata": (0.2, 0.1), "ijcnn1": (0.5, 0.1)}
RANKS = (32, 128)
TREES = (1, 2, 4, 8)


def error(name: str, y: np.ndarray, found: np.ndarray) -> float:
    """The relative error, or the share of wrong classes."""
    return float(np.mean((found > 0) != (y > 0))) if name == "ijcnn1" else relative_error(y, found)


def measure(name: str, parts: tuple[np.ndarray, ...], rank: int, ratio: int, most: int) -> list[dict]:
    X, y, X_new, y_new = parts
    scale, alpha = SETTINGS[name]
    mean = y.mean()
    b = torch.from_numpy(y - mean)
    kernels, factors, predictors, found = [], [], [], []
    trees_time = 0.0
    for t in range(most):
        start = time.perf_counter()
        made = HierarchicalKernel.build(
            Gaussian(scale), X, rank, ratio * rank, generator=torch.Generator().manual_seed(t)
        )
        factors.append(made.factor(alpha))
        predictors.append(made.extend(factors[-1].solve(b)))
        trees_time += time.perf_counter() - start
        kernels.append(made)
        if t + 1 not in TREES:
            continue
        apart = sum(f(X_new)[:, 0].numpy() for f in predictors) / len(predictors) + mean
        record = {"data": name, "rank": rank, "leaf_size": ratio * rank, "trees": t + 1}
        found.append(
            record | {"averaged": "predictors", "error": error(name, y_new, apart), "seconds": trees_time}
        )
        if t == 0:
            continue
        start = time.perf_counter()
        w, steps = solve(kernels, factors[0], b, alpha)
        together = sum(k.extend(w)(X_new)[:, 0].numpy() for k in kernels) / len(kernels) + mean
        seconds = (
            time.perf_counter() - start + trees_time * (t + 2) / (2 * (t + 1))
        )  # one factor, all kernels
        found.append(
            record
            | {
                "averaged": "kernels",
                "error": error(name, y_new, together),
                "seconds": seconds,
                "steps": steps,
            }
        )
    return found


def solve(
    kernels: list[HierarchicalKernel], factor, b: torch.Tensor, alpha: float
) -> tuple[torch.Tensor, int]:  # fmt: skip
    """w with the mean of the kernels, and how many steps it took."""
    n, steps = len(b), 0

    def product(v: np.ndarray) -> np.ndarray:
        v = torch.from_numpy(v)
        return (sum(k @ v for k in kernels) / len(kernels) + alpha * v).numpy()

    def count(_: np.ndarray) -> None:
        nonlocal steps
        steps += 1

    matrix = LinearOperator((n, n), matvec=product, dtype=np.float64)
    inverse = LinearOperator(
        (n, n), matvec=lambda v: factor.solve(torch.from_numpy(v)).numpy(), dtype=np.float64
    )
    w, info = cg(matrix, b.numpy(), rtol=1e-6, maxiter=2000, M=inverse, callback=count)
    return torch.from_numpy(w), -steps if info else steps


def show(found: list[dict], console: Console) -> None:
    for name in dict.fromkeys(record["data"] for record in found):
        table = Table(title=f"{name}: error on the test part")
        for heading in ("rank", "leaf size", "trees", "averaged", "error", "seconds", "steps"):
            table.add_column(heading, justify="left" if heading == "averaged" else "right")
        for r in (record for record in found if record["data"] == name):
            values = (
                r["rank"],
                r["leaf_size"],
                r["trees"],
                r["averaged"],
                f"{r['error']:.4f}",
                f"{r['seconds']:.1f}",
            )
            table.add_row(*map(str, (*values, r.get("steps", ""))))
        console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default=",".join(SETTINGS), help="data sets (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="small problems: a trial of the script")
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "results", help="folder of the results"
    )
    options = parser.parse_args()
    options.device, options.threads = "cpu", torch.get_num_threads()
    console, found = Console(width=110, highlight=False), []
    for name in choose(parser, "--data", options.data, SETTINGS):
        data, some = load(name), slice(2000 if options.quick else None)
        parts = (data.X_train, data.y_train, data.X_test, data.y_test)
        parts = tuple(np.asarray(part, dtype=float)[some] for part in parts)
        for rank in RANKS[: 1 if options.quick else None]:
            found += measure(name, parts, rank, 4, 2 if options.quick else max(TREES))
    show(found, console)
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"forests{'-quick' if options.quick else ''}.json"
    path.write_text(json.dumps({"machine": machine(options), "found": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
