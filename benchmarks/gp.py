"""The Gaussian process: whether it finds known parameters, how good its predictions are, how fast it learns.

    HCK_DATA=FOLDER python benchmarks/gp.py [--only recover,uci,published,defaults,likelihood,flights]
                                            [--device cuda]
    python benchmarks/gp.py --quick     # small problems: a trial of the script, no measurement
    python benchmarks/gp.py --draw      # tables and plots anew, from the figures of an earlier run

recover     Observations are drawn from a process with known parameters, Matérn-3/2 with a lengthscale for
            each feature, and the parameters are learned from them. The draw is exact, by a dense Cholesky
            factor of all points, which also gives the best predictions possible; where memory is short, the
            draw and these predictions are those of hck with a large rank and large leaves. The lengthscales
            are short enough for the points to tell them: for long ones even the exact likelihood has a wide
            maximum. On a GPU, or with --full, the exact process learns as well, so that chance can be told
            from approximation.
uci         elevators, pol and cadata, standardised with the training part: 4/9 to train, 2/9 to validate, 3/9
            to test, five splits. Beside hck: GPyTorch's SVGP (1,024 inducing points from k-means, Adam,
            batches of 1,024, 100 epochs, float32; its learning rate is the better of two on the validation
            part of the first split) and its exact process (Adam, 100 steps, float64; on a CPU on 2,000
            points, after which --full takes three steps with all of them). All have the same kernel, a
            constant mean, and start at the same parameters. hck is also trained on 6/9, since it needs no
            validation part.
published   The same data in the splits of the published tables of exact processes: 64 % to train, 16 % that
            are not used, 20 % to test. hck has its defaults, for each `fit_time`. Beside it: SVGP and the
            exact process as above, GPBoost's Vecchia approximation (20 neighbours, ARD), and higp (iterative
            solves, one lengthscale for all features; Adam, as many steps as the exact process).
defaults    Default processes beside default regressors of the same `fit_time` (RMSE), on all regression sets,
            in the same splits, with the share of observations in intervals: of a Gaussian with the standard
            deviation, and as `predict(X, interval=…)` has them.
likelihood  Time and memory of one log-likelihood with its gradient, beside the value alone and a ridge solve.
            Partition and landmarks are not counted: learning reuses them.
flights     Delays of flights in minutes, which have heavy tails: hck beside a constant and a linear model.

Standard deviations are those of observations, noise included. NLPD is the negative log predictive density, in
uci and recover of standardised y. Everything that is timed has been run before, so that compiling does not
count. Results are written after each part, and added to those of an earlier run.
"""

import argparse
import json
import warnings
from importlib.util import find_spec
from pathlib import Path

import torch
from rich.console import Console

from fitting import as_fit_time
from peers import choose, machine
from processes.common import Options, Record
from processes.defaults import SETS
from processes.likelihood import peak_here
from processes.parts import PARTS
from processes.pictures import draw_learning, draw_recover, draw_uci, histories
from processes.published import METHODS as PROCESSES
from processes.uci import METHODS, UCI


def parse(arguments: list[str] | None = None) -> Options:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--only", default=",".join(PARTS), help="parts (default: %(default)s)")
    add("--device", choices=("cpu", "cuda"), default="cpu", help="of hck and GPyTorch")
    add("--rank", type=int, help="of hck (default: 256; flights and likelihood 128)")
    add("--leaf-size", type=int, help="of hck (default: 1024; flights and likelihood one to two ranks)")
    add("--n-trees", type=int, help="of hck (default: 1)")
    add("--optimizer", choices=("auto", "lbfgs", "stochastic"), help="of hck (default: auto, recover lbfgs)")
    add("--max-iter", type=int, help="of hck (default: 100)")
    add("--learn-size", type=int, help="of hck (default: all; flights 20,000, on a GPU 200,000)")
    add("--lengthscales", default="0.05,0.1,0.25", help="to recover, on the unit cube (default: %(default)s)")
    add("--draws", type=int, help="to recover from (default: 1, on a GPU 3)")
    add("--data", default=",".join(UCI), help="data sets of uci (default: %(default)s)")
    add("--methods", default=",".join(METHODS), help="methods of uci (default: %(default)s)")
    add("--processes", default=",".join(PROCESSES), help="methods of published (default: %(default)s)")
    add("--splits", type=int, help="of uci and published (default: 5)")
    add("--steps", type=int, help="of Adam for the exact process and higp (default: 100)")
    add("--sets", default=",".join(SETS), help="data sets of defaults (default: %(default)s)")
    add("--fit-times", default="fast", help="of defaults (default: %(default)s)")
    add("--trees", default="auto", help="of defaults: numbers, or auto (default: %(default)s)")
    add("--full", action="store_true", help="on a CPU as much as on a GPU: all flights, the exact process")
    add("--quick", action="store_true", help="small problems: a trial of the script")
    add("--draw", action="store_true", help="only tables and plots, from the figures of an earlier run")
    add("--out", type=Path, default=Path(__file__).parent / "results", help="folder of the results")
    add("--peak", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.only = choose(parser, "--only", options.only, PARTS)
    options.data = choose(parser, "--data", options.data, UCI)
    options.methods = choose(parser, "--methods", options.methods, METHODS)
    options.processes = choose(parser, "--processes", options.processes, PROCESSES)
    options.sets = choose(parser, "--sets", options.sets, SETS)
    options.fit_times = [as_fit_time(text) for text in options.fit_times.split(",")]
    options.trees = [text if text == "auto" else int(text) for text in options.trees.split(",")]
    options.lengthscales = [float(text) for text in options.lengthscales.split(",")]
    options.steps = options.steps or (10 if options.quick else 100)
    options.threads = torch.get_num_threads()
    options.ending = f"{options.device}{'-quick' if options.quick else ''}"
    options.json = options.out / f"gp-{options.ending}.json"
    if options.draw and not options.json.exists():
        parser.error(
            f"there is no {options.json.name} to draw: run without --draw first, or name it with --out"
        )
    return options


def run_all(options: Options, results: Record, console: Console) -> None:
    """Measure the parts; write what there is after each step."""
    here = machine(options)
    for name in options.only:
        earlier = results.get(name, {})
        earlier = earlier if earlier.get("machine") == here else {}
        try:
            for record in PARTS[name].measure(options, console, earlier):
                results[name] = record | {"machine": here}
                options.json.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
        except FileNotFoundError as error:
            console.print(f"{name} is left out: {error}")
            continue
        PARTS[name].show(results[name], console)


def draw_all(options: Options, results: Record, console: Console) -> None:
    """A plot for each thing that there are figures of."""
    drawings = {"recover": draw_recover, "uci": draw_uci, "learning": draw_learning}
    there = {*results} | ({"learning"} if histories(results) else set())
    for name in (name for name in drawings if name in there):
        path = options.out / f"gp-{name}-{options.ending}.png"
        drawings[name](results, path)
        console.print(f"Plot saved as {path.name}")


def main() -> None:
    options, console = parse(), Console(width=130, highlight=False)
    if options.peak:
        work, *sizes = options.peak.split(",")
        print(peak_here(work, *map(int, sizes)))
        return
    warnings.filterwarnings("ignore", module="gpytorch|linear_operator")
    options.out.mkdir(parents=True, exist_ok=True)
    results = json.loads(options.json.read_text()) if options.json.exists() else {}
    if options.draw:
        for name in (name for name in options.only if name in results):
            PARTS[name].show(results[name], console)
    else:
        run_all(options, results, console)
    if find_spec("matplotlib") is None:
        raise SystemExit("matplotlib is not installed: draw the figures with --draw where it is")
    draw_all(options, results, console)


if __name__ == "__main__":
    main()
