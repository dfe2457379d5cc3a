"""hck beside its peers: error against time, one panel for each data set.

    HCK_DATA=FOLDER python benchmarks/peers.py [--data cadata,mnist] [--methods hck,svgp] [--device cuda]
    python benchmarks/peers.py --quick     # small parts of the data: a trial of the script, no measurement
    python benchmarks/peers.py --draw      # the plot anew, from the figures of an earlier run

Each method first chooses its setting at a small size, by successive halving on the training data with a
fifth of them held out: kernel methods on one grid of lengthscales and alphas, LightGBM on leaves and learning
rates, SVGP on learning rates (it learns its lengthscale and noise). With that setting it is then trained on
all training data at growing sizes (rank, features, points, trees, inducing points), until a run takes longer
than `--limit`. Time is that of fit and predict together; the search is reported apart. The test data are used
for nothing but the errors drawn.

All methods get the same number of threads; hck and SVGP run on `--device`, the others on the CPU. Kernel
methods compute in float64, SVGP in GPyTorch's usual float32. Each method is warmed up on a small part of the
data before anything is timed, so that compiling does not count; on the GPU, where hck compiles for each rank,
with each run's own problem. Results are written after each method, and added to those of an earlier run on
the same machine.
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from scipy.spatial.distance import pdist
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.model_selection import HalvingGridSearchCV, ParameterGrid, ShuffleSplit
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import LabelBinarizer, StandardScaler
from sklearn.utils import gen_batches
from threadpoolctl import threadpool_limits

from datasets import load
from hck import HCKClassifier, HCKRegressor
from hck.datasets import Dataset

NAMES = ("friedman", "cadata", "ijcnn1", "covtype.binary", "mnist")
LENGTHSCALES = 2.0 ** np.arange(-5, 4)  # times the median distance between points
ALPHAS = np.array([1e-8, 1e-6, 1e-4, 1e-2, 1e-1, 1.0])
MOST_FEATURES = 500_000_000  # numbers in a matrix of explicit features, of which scikit-learn makes copies
BATCH = 10_000  # points predicted at once, where the library does not see to that itself

# Estimators that scikit-learn and GPyTorch do not have ----------------------------------------------


class SubsetKernelRidge(KernelRidge):
    """Exact kernel ridge regression on the first points; predicts in batches."""

    def __init__(self, points: int = 1000, *, alpha: float = 1.0, gamma: float | None = None) -> None:
        super().__init__(alpha, kernel="rbf", gamma=gamma)
        self.points = points

    def fit(self, X: np.ndarray, y: np.ndarray) -> "SubsetKernelRidge":
        return super().fit(X[: self.points], y[: self.points])

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.concatenate(
            [super(SubsetKernelRidge, self).predict(X[b]) for b in gen_batches(len(X), BATCH)]
        )


class SVGPRegressor(RegressorMixin, BaseEstimator):
    """GPyTorch's stochastic variational Gaussian process; targets share kernel and inducing points."""

    def __init__(
        self, inducing: int = 128, *, learning_rate: float = 0.03, steps: int = 1000, device: str = "cpu"
    ) -> None:
        self.inducing = inducing
        self.learning_rate = learning_rate
        self.steps = steps
        self.device = device

    def fit(self, X: np.ndarray, y: np.ndarray) -> "SVGPRegressor":
        from gpytorch.likelihoods import GaussianLikelihood
        from gpytorch.mlls import VariationalELBO

        torch.manual_seed(0)
        x, targets = self._tensor(X), self._tensor(y.reshape(len(y), -1).T)  # (n, d), (targets, n)
        self.model_ = sparse_process(x[torch.randperm(len(x))[: self.inducing]], len(targets)).to(self.device)
        likelihood = GaussianLikelihood().to(self.device)
        bound = VariationalELBO(likelihood, self.model_, num_data=len(x))
        optimizer = torch.optim.Adam(
            [*self.model_.parameters(), *likelihood.parameters()], self.learning_rate
        )
        self.model_.train()
        for _ in range(self.steps):
            batch = torch.randint(len(x), (1024,), device=self.device)
            optimizer.zero_grad()
            (-bound(self.model_(x[batch]), targets[:, batch]).sum()).backward()
            optimizer.step()
        return self

    @torch.no_grad()
    def predict(self, X: np.ndarray) -> np.ndarray:
        self.model_.eval()
        means = [self.model_(x).mean for x in self._tensor(X).split(BATCH)]
        return torch.cat(means, 1).T.cpu().numpy()

    def _tensor(self, array: np.ndarray) -> torch.Tensor:
        return torch.as_tensor(array, dtype=torch.float32, device=self.device)


def sparse_process(inducing: torch.Tensor, targets: int) -> Any:
    """A Gaussian process with inducing points, one variational distribution for each target."""
    from gpytorch.distributions import MultivariateNormal
    from gpytorch.kernels import RBFKernel, ScaleKernel
    from gpytorch.means import ZeroMean
    from gpytorch.models import ApproximateGP
    from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy

    class SparseProcess(ApproximateGP):
        def __init__(self) -> None:
            distribution = CholeskyVariationalDistribution(len(inducing), batch_shape=torch.Size([targets]))
            super().__init__(VariationalStrategy(self, inducing, distribution))
            self.mean = ZeroMean()
            self.kernel = ScaleKernel(RBFKernel())
            self.kernel.base_kernel.lengthscale = median_distance(inducing.cpu()) / 2  # to start with

        def forward(self, x: torch.Tensor) -> MultivariateNormal:
            return MultivariateNormal(self.mean(x), self.kernel(x))

    return SparseProcess()


def median_distance(points: Any) -> float:
    """The scale of the features."""
    return float(np.median(pdist(points)))


class SignClassifier(ClassifierMixin, BaseEstimator):
    """Classification by regression on ±1, one class against all others: what hck and RidgeClassifier do."""

    def __init__(self, regressor: Any) -> None:
        self.regressor = regressor

    def fit(self, X: np.ndarray, y: np.ndarray) -> "SignClassifier":
        self.signs_ = LabelBinarizer(neg_label=-1)
        signs = self.signs_.fit_transform(y).astype(float)
        self.classes_ = self.signs_.classes_
        self.model_ = standardized(clone(self.regressor)).fit(X, signs)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.signs_.inverse_transform(self.model_.predict(X))


def standardized(regressor: Any) -> TransformedTargetRegressor:
    """For regressors without an intercept of their own."""
    return TransformedTargetRegressor(regressor, transformer=StandardScaler(), check_inverse=False)


# Methods --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Method:
    """One way to learn.

    Parameters
    ----------
    label : its name in tables and plots
    unit : what its size counts
    make : the model for a task, a size and the options of the command line
    grid : the settings to choose from, given the lengthscales
    sizes : from small to large
    search_size : the size at which the setting is chosen
    explicit : whether it holds a matrix of points × size
    compiles : whether each size and shape is compiled anew on the GPU
    package : what must be installed
    """

    label: str
    unit: str
    make: Callable[[str, int, argparse.Namespace], Any]
    grid: Callable[[np.ndarray], dict[str, Any]]
    sizes: tuple[int, ...]
    search_size: int
    explicit: bool = False
    compiles: bool = False
    package: str = "sklearn"


def make_hck(task: str, size: int, options: argparse.Namespace) -> Any:
    kind = HCKRegressor if task == "regression" else HCKClassifier
    return kind(rank=size, device=options.device, random_state=0)


def make_ridge_on(features: Any, task: str) -> Pipeline:
    return Pipeline(
        [("features", features), ("ridge", Ridge() if task == "regression" else RidgeClassifier())]
    )


def make_from_regressor(regressor: Any, task: str) -> Any:
    return standardized(regressor) if task == "regression" else SignClassifier(regressor)


def make_svgp(task: str, size: int, options: argparse.Namespace) -> Any:
    steps = 50 if options.quick else 1000
    return make_from_regressor(SVGPRegressor(size, steps=steps, device=options.device), task)


def make_lightgbm(task: str, size: int, options: argparse.Namespace) -> Any:
    from lightgbm import LGBMClassifier, LGBMRegressor

    kind = LGBMRegressor if task == "regression" else LGBMClassifier
    return kind(n_estimators=size, n_jobs=options.threads, random_state=0, verbosity=-1)


def feature_grid(lengthscales: np.ndarray) -> dict[str, Any]:
    return {"features__gamma": gamma(lengthscales), "ridge__alpha": ALPHAS}


def gamma(lengthscale: np.ndarray) -> np.ndarray:
    """γ of scikit-learn's exp(−γ‖x−x'‖²) for the lengthscale σ of exp(−‖x−x'‖²/2σ²)."""
    return 1 / (2 * lengthscale**2)


METHODS = {
    "hck": Method(
        "hck",
        "rank",
        make_hck,
        lambda lengthscales: {"lengthscale": lengthscales, "alpha": ALPHAS},
        sizes=(32, 64, 128, 256, 512, 1024),
        search_size=128,
        compiles=True,
    ),
    "nystroem": Method(
        "Nystroem + Ridge",
        "landmarks",
        lambda task, size, _: make_ridge_on(Nystroem(n_components=size, random_state=0), task),
        feature_grid,
        sizes=(64, 128, 256, 512, 1024, 2048, 4096),
        search_size=512,
        explicit=True,
    ),
    "rbfsampler": Method(
        "RBFSampler + Ridge",
        "features",
        lambda task, size, _: make_ridge_on(RBFSampler(n_components=size, random_state=0), task),
        feature_grid,
        sizes=(64, 128, 256, 512, 1024, 2048, 4096),
        search_size=512,
        explicit=True,
    ),
    "kernelridge": Method(
        "KernelRidge on a subset",
        "points",
        lambda task, size, _: make_from_regressor(SubsetKernelRidge(size), task),
        lambda lengthscales: {"regressor__gamma": gamma(lengthscales), "regressor__alpha": ALPHAS},
        sizes=(500, 1000, 2000, 4000, 8000),  # OpenBLAS of scipy 1.17 crashed at 16,000
        search_size=4000,
    ),
    "lightgbm": Method(
        "LightGBM",
        "trees",
        make_lightgbm,
        lambda _: {"num_leaves": [31, 127, 511], "learning_rate": [0.05, 0.1, 0.2]},
        sizes=(10, 30, 100, 300, 1000, 3000),
        search_size=100,
        package="lightgbm",
    ),
    "svgp": Method(
        "GPyTorch SVGP",
        "inducing points",
        make_svgp,
        lambda _: {"regressor__learning_rate": [0.01, 0.03, 0.1]},
        sizes=(32, 64, 128, 256, 512, 1024),
        search_size=128,
        package="gpytorch",
    ),
}

# Measuring ------------------------------------------------------------------------------------------


def timed(work: Callable[[], Any], device: str) -> tuple[Any, float]:
    """What the work returns, and its seconds."""
    start = time.perf_counter()
    result = work()
    if device == "cuda":
        torch.cuda.synchronize()
    return result, time.perf_counter() - start


def warm_up(model: Any, data: Dataset) -> None:
    """Let it compile, load and allocate what a first use does."""
    model.fit(data.X_train, data.y_train).predict(data.X_test)


def search(model: Any, grid: dict[str, Any], data: Dataset) -> dict[str, Any]:
    """The best setting, by successive halving: more data for the third of the settings that does best.

    Starts with a ninth of the training data, or, if settings are few, with a third.
    """
    few = len(ParameterGrid(grid)) <= 9
    halving = HalvingGridSearchCV(
        model,
        grid,
        cv=ShuffleSplit(1, test_size=0.2, random_state=0),
        min_resources=len(data.y_train) // (3 if few else 9),
        random_state=0,
        refit=False,
        return_train_score=False,
    )
    return halving.fit(data.X_train, data.y_train).best_params_


def measure(model: Any, data: Dataset, device: str) -> dict[str, float]:
    """Train on all training data, predict all test data."""
    _, fit_seconds = timed(lambda: model.fit(data.X_train, data.y_train), device)
    predicted, predict_seconds = timed(lambda: model.predict(data.X_test), device)
    return {
        "fit_seconds": fit_seconds,
        "predict_seconds": predict_seconds,
        "seconds": fit_seconds + predict_seconds,
        "error": data.error(predicted),
    }


def readable(setting: dict[str, Any]) -> dict[str, float]:
    """A setting without the prefixes of nested parameters, with lengthscales for γ."""
    plain = {name.split("__")[-1]: float(value) for name, value in setting.items()}
    if "gamma" in plain:
        plain["lengthscale"] = (2 * plain.pop("gamma")) ** -0.5
    return plain


def run(method: Method, data: Dataset, options: argparse.Namespace, console: Console) -> dict[str, Any]:
    """The figures of one method on one data set: a curve of error against time."""
    sizes = method.sizes[:3] if options.quick else method.sizes
    search_size = sizes[0] if options.quick else method.search_size
    grid = method.grid(LENGTHSCALES * median_distance(data.X_train[:1000]))
    model = method.make(data.task, search_size, options)
    warm_up(model, data.shrink(2000, 100))
    setting, search_seconds = timed(lambda: search(model, grid, data), options.device)
    chosen = readable(setting)
    described = ", ".join(f"{name} {value:.3g}" for name, value in sorted(chosen.items()))
    console.print(f"{data.name}, {method.label}: {described}; search {search_seconds:.1f} s")
    runs = []
    for size in sizes:
        if method.explicit and size * len(data.y_train) > MOST_FEATURES:
            break
        model = method.make(data.task, size, options).set_params(**setting)
        if method.compiles and options.device == "cuda":
            warm_up(model, data)
        runs.append({"size": size, **measure(model, data, options.device)})
        console.print(
            f"  {method.unit} {size:,}: {data.measure} {runs[-1]['error']:.4g} in {runs[-1]['seconds']:.2f} s"
        )
        if runs[-1]["seconds"] > options.limit:
            break
    return {"setting": chosen, "search_seconds": search_seconds, "search_size": search_size, "runs": runs}


def compare(data: Dataset, options: argparse.Namespace, results: dict[str, Any], console: Console) -> None:
    """Run all methods on a data set; write what there is after each."""
    entry = results["data"].setdefault(data.name, {"methods": {}})
    entry |= {
        "measure": data.measure,
        "training_points": len(data.y_train),
        "test_points": len(data.y_test),
        "features": data.X_train.shape[1],
    }
    for name in options.methods:
        entry["methods"][name] = run(METHODS[name], data, options, console)
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results, indent=1))


# Showing --------------------------------------------------------------------------------------------


def show(name: str, entry: dict[str, Any], console: Console) -> None:
    """A data set's table: each method where its error is least."""
    table = Table(title=f"{name}: least {entry['measure']} of each method (times in s)")
    table.add_column("method")
    for heading in ("size", "error", "fit", "predict", "search"):
        table.add_column(heading, justify="right")
    for key, figures in in_order(entry):
        best = min(figures["runs"], key=lambda run: run["error"])
        seconds = (best["fit_seconds"], best["predict_seconds"], figures["search_seconds"])
        size = f"{METHODS[key].unit} {best['size']:,}"
        table.add_row(key, size, f"{best['error']:.4g}", *(f"{s:.2f}" for s in seconds))
    console.print(table)


def in_order(entry: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """A data set's methods, in one order."""
    return [(key, entry["methods"][key]) for key in METHODS if key in entry["methods"]]


def draw(results: dict[str, Any], path: Path) -> None:
    """Error against total time, one panel for each data set."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = [name for name in NAMES if name in results["data"]]
    columns = min(3, len(names) + 1)
    rows = -(-(len(names) + 1) // columns)  # one more panel for the legend
    figure, panels = plt.subplots(
        rows, columns, figsize=(4.4 * columns, 3.7 * rows + 0.3), layout="constrained", squeeze=False
    )
    lines: dict[str, Any] = {}
    for axes, name in zip(panels.flat, names, strict=False):
        lines |= draw_panel(axes, name, results["data"][name])
    for axes in panels.flat[len(names) :]:
        axes.set_axis_off()
    legend = [lines[key] for key in METHODS if key in lines]
    panels.flat[len(names)].legend(handles=legend, loc="center", frameon=False, labelspacing=1)
    figure.suptitle(f"Error against time of fit and predict ({describe(results['machine'])})")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def draw_panel(axes: Any, name: str, entry: dict[str, Any]) -> dict[str, Any]:
    """One data set; returns the line of each method, for the legend."""
    from matplotlib.ticker import LogLocator

    lines = {}
    for key, figures in in_order(entry):
        place, runs = list(METHODS).index(key), figures["runs"]
        (lines[key],) = axes.plot(
            [run["seconds"] for run in runs],
            [run["error"] for run in runs],
            color=f"C{place}",
            marker="os^vDP"[place],
            markersize=5,
            linewidth=2.5 if key == "hck" else 1.2,
            zorder=3 if key == "hck" else 2,
            label=f"{METHODS[key].label} ({METHODS[key].unit})",
        )
    axes.set_title(f"{name}: n = {entry['training_points']:,}, d = {entry['features']}")
    axes.set(xscale="log", xlabel="fit + predict (s)", ylabel=entry["measure"])
    errors = [run["error"] for _, figures in in_order(entry) for run in figures["runs"]]
    if max(errors) > 4 * min(errors):
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_minor_formatter("")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_major_formatter("{x:.3g}")
    axes.grid(alpha=0.3, which="both")
    return lines


def describe(machine: dict[str, Any]) -> str:
    threads = f"CPU threads: {machine['threads']}"
    return threads if machine["device"] == "CPU" else f"hck and SVGP on {machine['device']}; {threads}"


# The command ----------------------------------------------------------------------------------------


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    here = Path(__file__).parent / "results"
    parser.add_argument("--data", default=",".join(NAMES), help="data sets (default: %(default)s)")
    parser.add_argument("--methods", default=",".join(METHODS), help="methods (default: %(default)s)")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="of hck and SVGP")
    parser.add_argument(
        "--threads", type=int, default=os.cpu_count(), help="of each method (default: %(default)s)"
    )
    parser.add_argument(
        "--limit", type=float, default=100, help="seconds that end a method's curve (default: 100)"
    )
    parser.add_argument("--quick", action="store_true", help="small parts of the data, few sizes")
    parser.add_argument("--draw", action="store_true", help="only draw, from the figures of an earlier run")
    parser.add_argument(
        "--out", type=Path, default=here, help="folder of the results (default: beside this script)"
    )
    parser.add_argument("--json", type=Path, help="the figures (default: peers-<machine>.json in --out)")
    parser.add_argument("--plot", type=Path, help="the plot (default: peers-<machine>.png in --out)")
    options = parser.parse_args(arguments)
    options.data = choose(parser, "--data", options.data, NAMES)
    options.methods = choose(parser, "--methods", options.methods, METHODS)
    stem = f"peers-{'gpu' if options.device == 'cuda' else 'cpu'}{'-quick' if options.quick else ''}"
    options.json = options.json or options.out / f"{stem}.json"
    options.plot = options.plot or options.out / f"{stem}.png"
    if options.draw and not options.json.exists():
        parser.error(
            f"there is no {options.json.name} to draw: run without --draw first, or name it with --json"
        )
    return options


def choose(parser: argparse.ArgumentParser, option: str, text: str, known: Any) -> list[str]:
    """The names in a list with commas, or an error that says which there are."""
    names = text.split(",")
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"{option}: {', '.join(unknown)} not known; choose from {', '.join(known)}")
    return names


def installed(names: list[str], console: Console) -> list[str]:
    """The methods whose package is there; says which are not."""
    missing = [name for name in names if find_spec(METHODS[name].package) is None]
    for name in missing:
        console.print(f"{name} is left out: {METHODS[name].package} is not installed")
    return [name for name in names if name not in missing]


def machine(options: argparse.Namespace) -> dict[str, Any]:
    """What the figures depend on beside the code."""
    packages = {"torch": "torch", "numpy": "numpy", "scikit-learn": "sklearn"}
    packages |= {"lightgbm": "lightgbm", "gpytorch": "gpytorch"}
    return {
        "device": torch.cuda.get_device_name() if options.device == "cuda" else "CPU",
        "threads": options.threads,
        "versions": {name: version(name) for name, module in packages.items() if find_spec(module)},
    }


def earlier(path: Path) -> dict[str, Any]:
    """The figures of earlier runs."""
    return json.loads(path.read_text()) if path.exists() else {"data": {}}


def run_all(options: argparse.Namespace, console: Console) -> dict[str, Any]:
    """Compare the methods on all data sets; returns these figures and those of earlier runs."""
    here, results = machine(options), earlier(options.json)
    if results.setdefault("machine", here) != here:
        raise SystemExit(f"{options.json.name} is from another machine or other versions: use another --out")
    try:
        sources = [load(name) for name in options.data]
    except FileNotFoundError as error:
        raise SystemExit(str(error)) from None
    options.methods = installed(options.methods, console)
    torch.set_num_threads(options.threads)
    with threadpool_limits(options.threads):
        for data in sources:
            compare(data.shrink(2000, 1000) if options.quick else data, options, results, console)
            show(data.name, results["data"][data.name], console)
    return results


def main() -> None:
    options, console = parse(), Console(highlight=False)
    results = earlier(options.json) if options.draw else run_all(options, console)
    if find_spec("matplotlib") is None:
        raise SystemExit("matplotlib is not installed: draw the figures with --draw where it is")
    draw(results, options.plot)
    console.print(f"Plot saved as {options.plot.name}")


if __name__ == "__main__":
    main()
