"""hck reproduce, hck bench, hck demo"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from hck.backend.files import is_stdout
from hck.backend.kinds import kind_of
from hck.backend.text import harmless
from hck.cli import _options as option
from hck.cli._common import (
    busy,
    check_device,
    free,
    messages,
    names_in,
    progress,
    say,
    show,
    tabulate,
)


@dataclass(frozen=True)
class Repetition:
    """How experiments are repeated."""

    out: Annotated[Path, typer.Option(help="The folder for CSV files and figures.")] = Path("results")
    device: option.Device = "cpu"
    quick: Annotated[bool, typer.Option("--quick", help="A small version, about a minute each.")] = False
    data: Annotated[str, typer.Option(help="Data sets, with commas between; by default all at hand.")] = ""


def reproduce(
    *,
    names: Annotated[
        list[str] | None, typer.Argument(help="Experiments, or all; none: list them.", show_default=False)
    ] = None,
    repetition: Repetition,
    shown: option.Shown,
) -> None:
    """Repeat the paper's experiments; what is finished is not computed again.

    [bold]hck reproduce fig3 table2 --quick[/bold]
    """
    from hck.experiments import EXPERIMENTS, Options

    if not names:
        titles = {each.name: each.title for each in EXPERIMENTS.values()}
        if shown.as_json:
            show(titles, True)
        else:
            tabulate(["name", "what it shows"], titles.items(), numbers=False)
        return
    unknown = [name for name in names if name not in (*EXPERIMENTS, "all")]
    if unknown:
        raise ValueError(f"{unknown[0]} is not an experiment; choose from {', '.join(EXPERIMENTS)}, all")
    device, data = check_device(repetition.device), tuple(names_in(repetition.data))
    options, drawn = Options(repetition.out, device, repetition.quick, data), {}
    for name in EXPERIMENTS if "all" in names else names:
        drawn[name] = str(EXPERIMENTS[name].run(options, show=bool(progress(shown.quiet))))
        if not shown.as_json:
            say(harmless(drawn[name]))
    if shown.as_json:
        show(drawn, True)


def bench(
    n: Annotated[int, typer.Option(min=1, help="Points.")] = 100_000,
    rank: Annotated[int, typer.Option(min=1, help="r.")] = 64,
    features: Annotated[int, typer.Option(min=1, help="d.")] = 8,
    device: option.Device = "cpu",
    *,
    shown: option.Shown,
) -> None:
    """How fast this machine trains and predicts, against its own rate of matrix products."""
    check_device(device)
    import torch

    from hck import HCKRegressor

    generator = torch.Generator().manual_seed(0)
    X = torch.rand(n, features, generator=generator, dtype=torch.float64, device="cpu").to(device)
    y = torch.sin(6 * X[:, 0]).cpu().numpy()
    model = HCKRegressor("gaussian", lengthscale=0.5, alpha=0.01, rank=rank, leaf_size=rank, device=device)
    model.set_params(leave_one_out=False, random_state=0)
    a = torch.rand(2000, 2000, dtype=torch.float64, device=device)
    with busy("warming up …", shown.quiet):
        model.fit(X[: max(1, n // 10)], y[: max(1, n // 10)]).predict(X[:100])
    with busy("measuring …", shown.quiet):
        product = min(_seconds(lambda: a @ a, device) for _ in range(8))
        training = min(_seconds(lambda: model.fit(X, y), device) for _ in range(3))
        prediction = _seconds(lambda: model.predict(X), device)
    rate, done = 2 * 2000**3 / product / 1e9, 13 * n * rank**2 / training / 1e9
    result = {
        "fit_seconds": training,
        "predict_seconds": prediction,
        "points_per_second": n / training,
        "Gflop/s_of_fit": done,
        "Gflop/s_of_products": rate,
        "share": done / rate,
    }
    show(result, shown.as_json, f"n = {n:,}, d = {features}, r = {rank}, {device}")


def _seconds(work: Callable[[], object], device: str) -> float:
    start = time.perf_counter()
    work()
    kind_of(device).machine().synchronize()
    return time.perf_counter() - start


def demo(
    out: Annotated[Path, typer.Option(help="The PNG file for the plot.")] = Path("hck-demo.png"),
    device: option.Device = "cpu",
    *,
    output: option.Output,
) -> None:
    """Train on 100,000 points beside the exact kernel, print a table, save a plot."""
    free(out, output.force)
    check_device(device)
    from hck import demo as job

    verbose, results = progress(output.quiet), []
    for result in job.run(device, verbose):
        results.append(result)
        if verbose:
            messages.print(f"{result.name} on {result.points:,} points: {result.fit_seconds:.2f} s")
    job.plot(results, out)
    if is_stdout(out):
        return
    if output.as_json:
        show({"results": [asdict(result) for result in results], "plot": str(out)}, True)
        return
    head = ["kernel", "points", "relative error", "fit (s)", "predict (s)"]
    title = f"{job.N_FEATURES} features, noise {job.NOISE}, {job.N_TEST:,} test points"
    tabulate(head, (result.row for result in results), title)
    say(harmless(f"Plot saved to {out}"))
