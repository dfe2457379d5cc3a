"""Delays of flights, beside a constant and a linear model."""

from collections.abc import Iterator

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

from hck.datasets import records
from processes.common import Options, Prediction, Record, add_columns, make_process, setting, warm_up
from processes.splits import Hierarchical, Split, measure


class Linear:
    """Ridge regression, or a constant, with normal residuals."""

    def __init__(self, constant: bool = False) -> None:
        self.constant, self.history = constant, []

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Linear":
        self.model = Ridge().fit(self._features(X), y)
        self.std = float(np.std(y - self.model.predict(self._features(X))))
        return self

    def predict(self, X: np.ndarray) -> Prediction:
        mean = self.model.predict(self._features(X))
        return mean, np.full_like(mean, self.std)

    def _features(self, X: np.ndarray) -> np.ndarray:
        return np.zeros((len(X), 1)) if self.constant else X


def flight_parts(options: Options) -> Split:
    """Shuffled and scaled; there is nothing to validate."""
    table = records("flights3m")
    X, y = table.X, table.y
    whole = options.full or options.device == "cuda"
    train, test = (2_400_000, 600_000) if whole else (200_000, 50_000)
    train, test = (5000, 1000) if options.quick else (train, test)
    order = np.random.default_rng(0).permutation(len(y))
    first, rest = order[:train], order[train : train + test]
    scale = StandardScaler().fit(X[first])
    return Split((scale.transform(X[first]), y[first]), (X[:0], y[:0]), (scale.transform(X[rest]), y[rest]))


def delays(options: Options, console: Console, earlier: Record) -> Iterator[Record]:
    split = flight_parts(options)
    used = flight_setting(options)
    process = make_process(options, "flights", **used)
    warm_up(make_process(options, "flights", **(used | {"max_iter": 1})), *split.shrink(50_000).train)
    record: Record = {
        "points": len(split.train[1]),
        "test_points": len(split.test[1]),
        "features": split.train[0].shape[1],
        "setting": setting(options, "flights") | used,
        "methods": {},
    }
    models = {"constant": Linear(constant=True), "linear": Linear(), "hck": Hierarchical(process)}
    for name, model in models.items():
        record["methods"][name] = measure(model, split, options.device)
        record["history"] = record["methods"][name].pop("history")
        yield record
    record["parameters"] = {
        name: np.ravel(value).tolist() for name, value in process.kernel_.parameters().items()
    } | {"noise": process.noise_}
    yield record


def flight_setting(options: Options) -> Record:
    """A GPU can learn on more points: noise is large, and few points do not show short lengthscales."""
    large = options.device == "cuda" and options.learn_size is None and not options.quick
    return {"learn_size": 200_000} if large else {}


def show_flights(record: Record, console: Console) -> None:
    title = (
        f"flights: {record['points']:,} to train, {record['test_points']:,} to test, {record['features']} "
        "features; delay in minutes, times in s"
    )
    table = Table(title=title, title_justify="left")
    add_columns(table, "method", "RMSE", "NLPD", "CRPS", "coverage of 95 %", "fit", "predict")
    for name, found in record["methods"].items():
        cells = [f"{found['rmse']:.3f}", f"{found['nlpd']:.4f}", f"{found['crps']:.3f}"]
        cells += [f"{100 * found['coverage']:.1f} %"]
        cells += [f"{found['fit_seconds']:.1f}", f"{found['predict_seconds']:.2f}"]
        table.add_row(name, *cells)
    console.print(table)
    if "parameters" in record:
        values = record["parameters"]["lengthscale"]
        lengths = ", ".join(f"{n} {v:.2g}" for n, v in zip(FLIGHT_FEATURES, values, strict=True))
        console.print(f"lengthscales in standard deviations: {lengths}")


FLIGHT_FEATURES = (
    "day",
    "sine of time",
    "cosine",
    "distance",
    "from latitude",
    "longitude",
    "to latitude",
    "longitude",
)
