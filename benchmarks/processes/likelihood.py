"""Time and memory of one log-likelihood."""

import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from hck.approximations import TreeKernel
from hck.branches.ridge import ridge
from hck.hierarchy.blueprint import Blueprint
from hck.kernels import Matern
from hck.process import log_likelihood
from hck.settings import Settings
from processes.common import Options, Record, mark
from speed import Figure, shortest

SCRIPT = Path(__file__).parents[1] / "gp.py"  # with --peak it prints what `peak_here` gives


class Evaluation:
    """Points, a tree and parameters: all that one log-likelihood needs."""

    def __init__(self, n: int, d: int, rank: int, device: torch.device) -> None:
        self.n, self.d, self.rank = n, d, rank
        generator = torch.Generator(device).manual_seed(0)
        self.x = torch.rand(n, d, generator=generator, dtype=torch.float64, device=device)
        noise = torch.randn(n, generator=generator, dtype=torch.float64, device=device)
        self.y = torch.sin(5 * self.x[:, 0]) + 0.1 * noise
        values = (torch.full((d,), 0.5 * math.sqrt(d)), torch.tensor(1.0), torch.tensor(0.01))
        self.parameters = [value.to(device, torch.float64).requires_grad_() for value in values]
        self.plain = Matern(0.5 * math.sqrt(d), nu=1.5)
        self.blueprint = self.partition()

    def partition(self) -> Blueprint:
        lengthscales, scale, _ = self.parameters
        return Blueprint.of(scale * Matern(lengthscales, nu=1.5), self.x, Settings(self.rank))

    def gradient(self) -> None:
        log_likelihood(TreeKernel(self.blueprint), self.parameters[-1], self.y, self.parameters)

    def value(self) -> None:
        log_likelihood(TreeKernel(self.blueprint), self.parameters[-1], self.y)

    def ridge(self) -> None:
        ridge(self.blueprint.with_kernel(self.plain), 0.01, self.y)


def likelihood(options: Options, console: Console, earlier: Record) -> Iterator[Record]:
    device = torch.device(options.device)
    n, d, rank = (1_000_000, 8, 128) if device.type == "cuda" else (100_000, 8, 128)
    n, d, rank = (10_000, 8, 64) if options.quick else (n, d, options.rank or rank)
    bar = "≤ 2" if device.type == "cuda" and not options.quick else ""
    problem = Evaluation(n, d, rank, device)
    works = {"gradient": problem.gradient, "value": problem.value, "ridge": problem.ridge}
    for work in works.values():
        work()  # compile
    tree = shortest(problem.partition, 2, device)
    seconds = {name: shortest(work, 3, device) for name, work in works.items()}
    peaks = {name: peak_bytes(name, problem) for name in works}
    figures = [
        Figure("log-likelihood with gradient", seconds["gradient"], "s", bar),
        Figure("log-likelihood alone", seconds["value"], "s"),
        Figure("ridge solve", seconds["ridge"], "s"),
        Figure("partition and landmarks", tree, "s"),
        Figure("with gradient: times a ridge solve", seconds["gradient"] / seconds["ridge"]),
        Figure("alone: times a ridge solve", seconds["value"] / seconds["ridge"]),
        *(Figure(f"peak of {WORKS[name]}", peak / 1e9, "GB", "", f"{peak / 8 / n / rank:.2f} n·r numbers")
          for name, peak in peaks.items()),
    ]  # fmt: skip
    yield {"n": n, "d": d, "rank": rank, "figures": [figure.record() for figure in figures]}


WORKS = {"gradient": "the log-likelihood with gradient", "value": "the value alone", "ridge": "a ridge solve"}


def peak_bytes(work: str, problem: Evaluation) -> int:
    """Memory that some work takes at its peak, beside the points and the tree.

    On a CPU it is the resident memory of another process, since this one holds memory from before.
    """
    if problem.x.device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        getattr(problem, work)()
        return torch.cuda.max_memory_allocated() - before
    fields = (work, problem.n, problem.d, problem.rank)
    command = [sys.executable, SCRIPT, "--peak", ",".join(map(str, fields))]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def peak_here(work: str, n: int, d: int, rank: int) -> int:
    """The same for this process."""
    getattr(Evaluation(5000, d, 32, torch.device("cpu")), work)()  # compile
    problem = Evaluation(n, d, rank, torch.device("cpu"))
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = resident("VmRSS:")
    getattr(problem, work)()
    return resident("VmHWM:") - before


def resident(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def show_likelihood(record: Record, console: Console) -> None:
    title = f"likelihood: n = {record['n']:,}, d = {record['d']}, r = {record['rank']}"
    table = Table("figure", "measured", "asked for", "", "beside", title=title, title_justify="left")
    for figure in record["figures"]:
        number = f"{figure['measured']:.3g} {figure['unit']}"
        table.add_row(figure["what"], number, figure["asked"], mark(figure["holds"]), figure["beside"])
    console.print(table)
