"""hck reproduce, hck bench, hck demo"""

import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from hck.cli._common import AsJson, Device, Quiet, messages, progress, show


def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(help="Experiments, or all; none: list them.", show_default=False)
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder for CSV files and figures.")] = Path("results"),
    device: Device = "cpu",
    quick: Annotated[bool, typer.Option("--quick", help="A small version, about a minute each.")] = False,
    data: Annotated[str, typer.Option(help="Data sets, with commas between; by default all at hand.")] = "",
    quiet: Quiet = False,
) -> None:
    """Repeat the paper's experiments; what is finished is not computed again.

    [bold]hck reproduce fig3 table2 --quick[/bold]
    """
    from hck.experiments import EXPERIMENTS, Options

    if not names:
        table = Table("name", "what it shows")
        for each in EXPERIMENTS.values():
            table.add_row(each.name, each.title)
        Console().print(table)
        return
    unknown = [name for name in names if name not in (*EXPERIMENTS, "all")]
    if unknown:
        raise ValueError(f"{unknown[0]} is not an experiment; choose from {', '.join(EXPERIMENTS)}, all")
    chosen = tuple(name for name in data.split(",") if name)
    options = Options(out, device, quick, chosen)
    for name in EXPERIMENTS if "all" in names else names:
        path = EXPERIMENTS[name].run(options, show=bool(progress(quiet)))
        typer.echo(path)


def bench(
    n: Annotated[int, typer.Option(help="Points.")] = 100_000,
    rank: Annotated[int, typer.Option(help="r.")] = 64,
    features: Annotated[int, typer.Option(help="d.")] = 8,
    device: Device = "cpu",
    as_json: AsJson = False,
) -> None:
    """How fast this machine trains and predicts, against its own rate of matrix products."""
    import torch

    from hck import HCKRegressor

    if min(n, rank, features) < 1:
        raise ValueError("--n, --rank and --features must be at least 1")
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(n, features, generator=generator, dtype=torch.float64).to(device)
    y = torch.sin(6 * X[:, 0]).cpu().numpy()
    options: dict[str, Any] = {
        "kernel": "gaussian",
        "lengthscale": 0.5,
        "alpha": 0.01,
        "rank": rank,
        "leaf_size": rank,
    }
    model = HCKRegressor(**options, leave_one_out=False, random_state=0)
    a = torch.rand(2000, 2000, dtype=torch.float64, device=device)
    messages.print("warming up …", style="dim")
    model.fit(X[: max(1, n // 10)], y[: max(1, n // 10)]).predict(X[:100])
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
    show(result, as_json, f"n = {n:,}, d = {features}, r = {rank}, {device}")


def _seconds(work: object, device: str) -> float:
    import torch

    start = time.perf_counter()
    work()  # type: ignore[operator]
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def demo() -> None:
    """Train on 100,000 points beside the exact kernel, print a table, save a plot."""
    from hck.demo import main

    main([])
