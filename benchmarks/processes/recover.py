"""Known parameters, learned from observations of a process that has them."""

from collections.abc import Iterator

import numpy as np
from rich.console import Console
from rich.table import Table

from hck import HCKGaussianProcessRegressor, metrics
from peers import timed
from processes.common import (
    Options,
    Record,
    add_columns,
    make_process,
    mark,
    observe,
    score,
    setting,
    warm_up,
)
from processes.draws import NOISE, SCALE, Drawn, draw_process, know_the_truth

TOLERANCE = 0.15
COVERAGE = (0.93, 0.97)


def recover(options: Options, console: Console, earlier: Record) -> Iterator[Record]:
    count = options.draws or (3 if options.device == "cuda" and not options.quick else 1)
    record: Record = {"setting": setting(options, "recover"), "draws": []}
    for seed in range(count):
        drawn, seconds = timed(lambda seed=seed: draw_process(options, seed), options.device)
        console.print(f"recover: draw {seed} made {drawn.how} in {seconds:.1f} s")
        record["draws"].append({"seed": seed, "how": drawn.how, **recover_one(drawn, options, console)})
        yield record


def recover_one(drawn: Drawn, options: Options, console: Console) -> Record:
    """Predictions with the true parameters, and with those that hck and the exact process learn."""
    X_test, y_test = drawn.test
    truth = know_the_truth(options)
    warm_up(make_process(options, "recover", trend="zero", max_iter=1), *drawn.train)
    record: Record = {
        "points": drawn.points,
        "test_points": len(y_test),
        "best": score(y_test, *drawn.best),
        "hck with the truth": score(y_test, *observe(truth.fit(*drawn.train), X_test)),
        "learned": {"hck": learn_back(make_process(options, "recover", trend="zero"), drawn, options)},
        "calibration": {"best": metrics.calibration_curve(y_test, *drawn.best)[1].tolist()},
    }
    if options.device == "cuda" or options.full:
        exact = make_process(
            options, "recover", trend="zero", rank=drawn.points, leaf_size=drawn.points, optimizer="lbfgs"
        )
        try:
            record["learned"]["exact"] = learn_back(exact, drawn, options)
        except (MemoryError, RuntimeError) as error:
            console.print(f"recover: the exact process is left out: {error}")
    for name, found in record["learned"].items():
        record["calibration"][name] = found.pop("shares")
    return record


def learn_back(model: HCKGaussianProcessRegressor, drawn: Drawn, options: Options) -> Record:
    """Parameters beside the true ones, and how good predictions with them are."""
    X_test, y_test = drawn.test
    _, fit_seconds = timed(lambda: model.fit(*drawn.train), options.device)
    predicted, predict_seconds = timed(lambda: observe(model, X_test), options.device)
    errors, error_seconds = timed(model.standard_errors, options.device)
    true = {"lengthscale": np.array(options.lengthscales), "scale": SCALE, "noise": NOISE}
    learned = model.kernel_.parameters() | {"noise": model.noise_}
    return {
        "parameters": {
            name: {
                "true": np.ravel(true[name]).tolist(),
                "learned": np.ravel(learned[name]).tolist(),
                "standard_error": np.ravel(errors[name]).tolist(),  # of the logarithm
            }
            for name in true
        },
        "score": score(y_test, *predicted),
        "fit_seconds": fit_seconds,
        "predict_seconds": predict_seconds,
        "standard_error_seconds": error_seconds,
        "history": model.history_,
        "shares": metrics.calibration_curve(y_test, *predicted)[1].tolist(),
    }


def each_parameter(found: Record) -> Iterator[tuple[str, float, float, float]]:
    """Name, true value, learned value and relative standard error of every number that was learned."""
    for name, entry in found["parameters"].items():
        many = len(entry["true"]) > 1
        for i, values in enumerate(zip(*entry.values(), strict=True)):
            yield (f"{name}[{i}]" if many else name, *values)


def show_recover(record: Record, console: Console) -> None:
    for draw in record["draws"]:
        title = f"recover, draw {draw['seed']}, made {draw['how']}: {draw['points']:,} points"
        table = Table(title=title, title_justify="left")
        add_columns(table, "by", "parameter", "true", "learned", "standard error", "ratio", "within 15 %")
        for method, found in draw["learned"].items():
            for name, true, learned, error in each_parameter(found):
                ratio = learned / true
                numbers = (f"{true:.3g}", f"{learned:.3g}", f"{100 * error:.1f} %", f"{ratio:.3f}")
                table.add_row(method, name, *numbers, mark(abs(ratio - 1) <= TOLERANCE))
        console.print(table)
    show_recovered_predictions(record, console)


def show_recovered_predictions(record: Record, console: Console) -> None:
    table = Table(title="recover: predictions (coverage of 95 % intervals, times in s)", title_justify="left")
    add_columns(table, "draw", "parameters", "RMSE", "NLPD", "over the best", "coverage", "fit", "predict")
    for draw in record["draws"]:
        best, low, high = draw["best"], *COVERAGE
        exact = "true, exact" if draw["how"] == "exactly" else "true, as drawn"
        rows = {exact: {"score": best}, "true, hck": {"score": draw["hck with the truth"]}}
        rows |= {f"learned, {name}": found for name, found in draw["learned"].items()}
        for name, found in rows.items():
            s = found["score"]
            times = [
                f"{found[key]:.1f}" if key in found else "" for key in ("fit_seconds", "predict_seconds")
            ]
            covered = f"{100 * s['coverage']:.1f} % {mark(low <= s['coverage'] <= high)}"
            numbers = (f"{s['rmse']:.4f}", f"{s['nlpd']:.4f}", f"{s['nlpd'] - best['nlpd']:.4f}")
            table.add_row(str(draw["seed"]), name, *numbers, covered, *times)
    console.print(table)
