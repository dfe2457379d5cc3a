"""The splits of the published tables of exact processes: 64 % to train, 16 % to validate, 20 % to test.

Nothing is chosen on the validation part, and nothing is trained on it.
"""

from collections.abc import Iterator
from importlib.util import find_spec

import numpy as np
from rich.console import Console
from rich.table import Table

from hck import HCKGaussianProcessRegressor
from hck.datasets import records
from processes.common import Options, Prediction, Record, add_columns, mark, warm_up
from processes.splits import Hierarchical, Split, measure
from processes.uci import Method, first_steps, fit_for_exact, over_splits
from processes.with_gpytorch import Exact, Sparse
from processes.with_higp import Iterated

SHARES = (16, 4, 5)
BARS = {"pol": (0.076, -1.22), "elevators": (0.355, 0.375)}  # RMSE and NLPD of exact processes


class Vecchia:
    """GPBoost's process: each observation given its nearest predecessors, Matérn-3/2 with ARD."""

    def __init__(self, options: Options, _: float) -> None:
        self.history: list[float] = []
        self.rounds = 10 if options.quick else 100

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Vecchia":
        import gpboost

        kind = {"cov_function": "matern_ard", "cov_fct_shape": 1.5, "gp_approx": "vecchia"}
        self.varies = X.std(0) > 1e-9  # constant features are refused
        self.model = gpboost.GPModel(
            gp_coords=X[:, self.varies], likelihood="gaussian", num_neighbors=20, **kind
        )
        self.model.fit(y=y, X=np.ones((len(y), 1)), params={"maxit": self.rounds})
        return self

    def predict(self, X: np.ndarray) -> Prediction:
        ones = np.ones((len(X), 1))
        what = {"gp_coords_pred": X[:, self.varies], "X_pred": ones}
        found = self.model.predict(**what, predict_var=True, predict_response=True)
        return np.asarray(found["mu"]), np.sqrt(found["var"])


def default(fit_time: str) -> Method:
    def make(options: Options, _: float) -> Hierarchical:
        return Hierarchical(
            HCKGaussianProcessRegressor(fit_time=fit_time, device=options.device, random_state=0)
        )

    return Method(f"hck, {fit_time}", make)


METHODS = {
    **{name: default(name) for name in ("fast", "balanced", "best")},
    "svgp": Method("GPyTorch SVGP", Sparse, rates=(0.03,), package="gpytorch"),
    "exact": Method("GPyTorch exact", Exact, fit_for_exact, package="gpytorch"),
    "vecchia": Method("GPBoost, Vecchia", Vecchia, package="gpboost"),
    "higp": Method("higp", Iterated, package="higp"),
}


def published(options: Options, console: Console, earlier: Record) -> Iterator[Record]:
    record: Record = earlier | {"data": earlier.get("data", {})}
    methods = {name: METHODS[name] for name in options.processes}
    for name in options.data:
        table = records(name)
        n = 1800 if options.quick else len(table.y)
        seeds = range(options.splits or (1 if options.quick else 5))
        splits = [Split.of(table.X[:n], table.y[:n], seed, SHARES) for seed in seeds]
        entry = record["data"].setdefault(name, {"methods": {}}) | {"points": n}
        record["data"][name] = entry
        for key, method in methods.items():
            if find_spec(method.package) is None:
                console.print(f"{method.label} is left out: {method.package} is not installed")
                continue
            parts = [method.prepare(split, options) for split in splits]
            first = method.make(options, method.rates[0])
            if isinstance(first, Hierarchical):
                warm_up(first.model, *parts[0].shrink(500).train)
            else:
                first_steps(first, parts[0].shrink(200))
            runs = [measure(method.make(options, method.rates[0]), part, options.device) for part in parts]
            for run in runs:
                del run["history"]
            entry["methods"][key] = {"runs": runs, "train_points": len(parts[0].train[1])}
            yield record


def show_published(record: Record, console: Console) -> None:
    for name, entry in record["data"].items():
        rmse, nlpd = BARS.get(name, (None, None))
        table = Table(title=f"{name}: 64 % of {entry['points']:,} to train, 20 % to test; standardised y")
        add_columns(
            table, "method", "trained on", "RMSE", "NLPD", "95 %", "50 %", "fit", "of CPUs", "predict", "bars"
        )
        for key, found in ((key, entry["methods"][key]) for key in METHODS if key in entry["methods"]):
            value = {each: over_splits(found, each)[0] for each in found["runs"][0]}
            met = None if rmse is None else value["rmse"] <= rmse and value["nlpd"] <= nlpd
            cells = [f"{value['rmse']:.4f}", f"{value['nlpd']:.3f}"]
            cells += [f"{100 * value[each]:.1f} %" for each in ("coverage", "half")]
            cells += [
                f"{value.get(each, np.nan):.1f} s"
                for each in ("fit_seconds", "fit_cpu_seconds", "predict_seconds")
            ]
            table.add_row(METHODS[key].label, f"{found['train_points']:,}", *cells, mark(met))
        console.print(table)
