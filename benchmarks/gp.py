"""The Gaussian process: whether it finds known parameters, how good its predictions are, how fast it learns.

    HCK_DATA=FOLDER python benchmarks/gp.py [--only recover,uci,likelihood,flights] [--device cuda]
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
            points). All have the same kernel, a constant mean, and start at the same parameters. hck is also
            trained on 6/9, since it needs no validation part.
likelihood  Time and memory of one log-likelihood with its gradient, beside the value alone and a ridge solve.
            Partition and landmarks are not counted: learning reuses them.
flights     Delays of flights in minutes, which have heavy tails: hck beside a constant and a linear model.

Standard deviations are those of observations, noise included. NLPD is the negative log predictive density, in
uci and recover of standardised y. Everything that is timed has been run before, so that compiling does not
count. Results are written after each part, and added to those of an earlier run.
"""

import argparse
import json
import math
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from sklearn.cluster import MiniBatchKMeans
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from datasets import flights, records
from hck import HCKGaussianProcessRegressor, metrics
from hck.hierarchy.blueprint import Blueprint
from hck.hierarchy.likelihood import log_likelihood
from hck.hierarchy.ridge import ridge
from hck.kernels import Kernel, Matern
from hck.memory import resolve_budget
from peers import choose, describe, machine, timed
from speed import Figure, shortest

Options = argparse.Namespace
Record = dict[str, Any]
Prediction = tuple[np.ndarray, np.ndarray]  # mean and standard deviation of observations

# What hck is set to where the command line does not say
USUAL = {
    "rank": 256,
    "leaf_size": 1024,
    "n_trees": 1,
    "optimizer": "auto",
    "max_iter": 100,
    "learn_size": None,
}
SETTINGS = {
    "recover": USUAL | {"optimizer": "lbfgs"},  # steps of Adam are too few for a flat maximum
    "uci": USUAL,
    "flights": USUAL | {"rank": 128, "leaf_size": None, "learn_size": 20_000},
}
QUICK = {"rank": 32, "leaf_size": 128, "max_iter": 80}


def setting(options: Options, part: str) -> Record:
    """The parameters of hck for a part of the benchmark."""
    given = {name: getattr(options, name) for name in USUAL if getattr(options, name) is not None}
    return SETTINGS[part] | (QUICK if options.quick else {}) | given


def make_process(options: Options, part: str, **changes: Any) -> HCKGaussianProcessRegressor:
    return HCKGaussianProcessRegressor(
        device=options.device, random_state=0, **(setting(options, part) | changes)
    )


def observe(model: HCKGaussianProcessRegressor, X: np.ndarray) -> Prediction:
    """What a process says of new observations."""
    return model.predict(X, return_std=True, observed=True)


def warm_up(model: HCKGaussianProcessRegressor, X: np.ndarray, y: np.ndarray) -> None:
    """Let it compile what it needs."""
    observe(model.fit(X, y), X[:1000])


def score(y: np.ndarray, mean: np.ndarray, std: np.ndarray) -> dict[str, float]:
    return {
        "rmse": float(np.sqrt(np.mean((y - mean) ** 2))),
        "nlpd": metrics.nlpd(y, mean, std),
        "crps": metrics.crps(y, mean, std),
        "coverage": metrics.coverage(y, mean, std),
    }


# Known parameters -----------------------------------------------------------------------------------

SCALE, NOISE = 1.0, 0.05  # variances
TOLERANCE = 0.15
COVERAGE = (0.93, 0.97)


@dataclass(frozen=True)
class Drawn:
    """Observations of a known process, and what can be said of the last ones if the first are given."""

    X: np.ndarray
    y: np.ndarray
    points: int  # to learn from
    best: Prediction
    how: str

    @property
    def train(self) -> tuple[np.ndarray, np.ndarray]:
        return self.X[: self.points], self.y[: self.points]

    @property
    def test(self) -> tuple[np.ndarray, np.ndarray]:
        return self.X[self.points :], self.y[self.points :]


def draw_process(options: Options, seed: int) -> Drawn:
    """Uniform points and observations; exact if a dense matrix fits into memory."""
    train, test = (2000, 500) if options.quick else (20_000, 5000)
    device = torch.device(options.device)
    generator = torch.Generator(device).manual_seed(seed)
    shape = (train + test, len(options.lengthscales))
    x = torch.rand(shape, generator=generator, dtype=torch.float64, device=device)
    if 8 * len(x) ** 2 <= resolve_budget(None, device):
        y, best = draw_exactly(true_kernel(options).to(device, x.dtype), x, train, generator)
        return Drawn(x.cpu().numpy(), y, train, best, "exactly")
    return draw_with_hck(options, x.cpu().numpy(), train, seed)


def true_kernel(options: Options) -> Kernel:
    return SCALE * Matern(options.lengthscales, nu=1.5)


@torch.no_grad()
def draw_exactly(
    kernel: Kernel, x: Tensor, train: int, generator: torch.Generator
) -> tuple[np.ndarray, Prediction]:
    """y = L z with L Lᵀ = K + noise.

    The rows of L that belong to the test points also have their distribution given the training points: the
    mean is what z of the training points contributes, the variance comes from the rest.
    """
    n, step = len(x), 1000
    factor = x.new_empty(n, n)
    for start in range(0, n, step):
        factor[start : start + step] = kernel.evaluate(x[start : start + step], x)
    factor.diagonal().add_(NOISE)
    factor_in_place(factor, step)
    z = torch.randn(n, generator=generator, dtype=x.dtype, device=x.device)
    y = torch.cat([factor[start : start + step].tril(start) @ z for start in range(0, n, step)])
    mean = factor[train:, :train] @ z[:train]
    std = factor[train:, train:].tril().square().sum(1).sqrt()
    return y.cpu().numpy(), (mean.cpu().numpy(), std.cpu().numpy())


def factor_in_place(a: Tensor, step: int) -> None:
    """Cholesky's factor in the lower triangle, by columns, so that there is one matrix and no more."""
    for start in range(0, len(a), step):
        stop = start + step
        a[start:, start:stop] -= a[start:, :start] @ a[start:stop, :start].mT
        own = torch.linalg.cholesky(a[start:stop, start:stop])
        a[start:stop, start:stop] = own
        a[stop:, start:stop] = torch.linalg.solve_triangular(
            own.mT, a[stop:, start:stop], upper=True, left=False
        )


def draw_with_hck(options: Options, X: np.ndarray, train: int, seed: int) -> Drawn:
    model = know_the_truth(options, rank=1000, leaf_size=2000)
    rng = np.random.default_rng(seed)
    y = model.sample_prior(X, random_state=seed)[:, 0] + math.sqrt(NOISE) * rng.standard_normal(len(X))
    best = observe(model.fit(X[:train], y[:train]), X[train:])
    return Drawn(X, y, train, best, "by hck with rank 1,000 and leaves of 2,000")


def know_the_truth(options: Options, **changes: Any) -> HCKGaussianProcessRegressor:
    fixed = {"kernel": true_kernel(options), "noise": NOISE, "trend": "zero", "optimizer": None}
    return make_process(options, "recover", **(fixed | changes))


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


# Real data, beside GPyTorch -------------------------------------------------------------------------

UCI = ("elevators", "pol", "cadata")


@dataclass(frozen=True)
class Split:
    """Standardised parts of a data set, each X and y."""

    train: tuple[np.ndarray, np.ndarray]
    validation: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]

    @classmethod
    def of(cls, X: np.ndarray, y: np.ndarray, seed: int) -> "Split":
        """4/9, 2/9 and 3/9 of the records, scaled with the first."""
        order = np.random.default_rng(seed).permutation(len(y))
        parts = np.split(order, [4 * len(y) // 9, 6 * len(y) // 9])
        scale_X, scale_y = StandardScaler().fit(X[parts[0]]), StandardScaler().fit(y[parts[0], None])
        return cls(*((scale_X.transform(X[p]), scale_y.transform(y[p, None])[:, 0]) for p in parts))

    def without_validation(self) -> "Split":
        """The validation part to train on as well."""
        both = zip(self.train, self.validation, strict=True)
        return replace(self, train=tuple(np.concatenate(pair) for pair in both))

    def shrink(self, points: int) -> "Split":
        """The first training points only."""
        return replace(self, train=tuple(part[:points] for part in self.train))


class TorchProcess:
    """What both of GPyTorch's processes share: kernel, start, and a Gaussian likelihood."""

    def __init__(self, device: str, dtype: torch.dtype, rate: float, rounds: int) -> None:
        self.device, self.dtype, self.rate, self.rounds = device, dtype, rate, rounds
        self.history: list[float] = []

    def tensor(self, array: np.ndarray) -> Tensor:
        return torch.as_tensor(array, dtype=self.dtype, device=self.device)

    def kernel(self, features: int) -> Any:
        """Matérn-3/2 that starts where hck starts on standardised data."""
        from gpytorch.kernels import MaternKernel, ScaleKernel

        kernel = ScaleKernel(MaternKernel(nu=1.5, ard_num_dims=features))
        kernel.outputscale, kernel.base_kernel.lengthscale = 1.0, math.sqrt(features)
        return kernel

    def likelihood(self) -> Any:
        from gpytorch.likelihoods import GaussianLikelihood

        likelihood = GaussianLikelihood()
        likelihood.noise = 0.1
        return likelihood.to(self.device, self.dtype)

    def climb(self, losses: Iterator[Callable[[], Tensor]]) -> None:
        """Steps of Adam, one for each loss."""
        both = (*self.model.parameters(), *self.noisy.parameters())
        once = {id(parameter): parameter for parameter in both}  # the exact process has those of the noise
        optimizer = torch.optim.Adam(once.values(), self.rate)
        for loss in losses:
            optimizer.zero_grad()
            value = loss()
            value.backward()
            optimizer.step()
            self.history.append(-value.item())

    @torch.no_grad()
    def predict(self, X: np.ndarray) -> Prediction:
        self.model.eval()
        self.noisy.eval()
        found = [self.noisy(self.model(x)) for x in self.tensor(X).split(2000)]
        mean, variance = torch.cat([f.mean for f in found]), torch.cat([f.variance for f in found])
        return mean.cpu().double().numpy(), variance.sqrt().cpu().double().numpy()


class Sparse(TorchProcess):
    """SVGP, trained with batches."""

    def __init__(self, options: Options, rate: float) -> None:
        super().__init__(options.device, torch.float32, rate, 10 if options.quick else 100)
        self.inducing = 64 if options.quick else 1024

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Sparse":
        from gpytorch.mlls import VariationalELBO

        torch.manual_seed(0)
        x, target = self.tensor(X), self.tensor(y)
        clusters = MiniBatchKMeans(self.inducing, n_init=1, random_state=0).fit(X)
        self.model = sparse_process(self.tensor(clusters.cluster_centers_), self.kernel(X.shape[1]))
        self.model, self.noisy = self.model.to(self.device, self.dtype), self.likelihood()
        bound = VariationalELBO(self.noisy, self.model, num_data=len(x))

        def losses() -> Iterator[Callable[[], Tensor]]:
            for _ in range(self.rounds):
                for batch in torch.randperm(len(x), device=self.device).split(1024):
                    yield lambda batch=batch: -bound(self.model(x[batch]), target[batch])

        self.climb(losses())
        return self


class Exact(TorchProcess):
    """The exact process, by Cholesky factors."""

    def __init__(self, options: Options, rate: float) -> None:
        super().__init__(options.device, torch.float64, rate, 10 if options.quick else 100)

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Exact":
        from gpytorch.mlls import ExactMarginalLogLikelihood

        x, target = self.tensor(X), self.tensor(y)
        self.noisy = self.likelihood()
        self.model = exact_process(x, target, self.noisy, self.kernel(X.shape[1]))
        self.model = self.model.to(self.device, self.dtype)
        likelihood = ExactMarginalLogLikelihood(self.noisy, self.model)
        losses = (lambda: -likelihood(self.model(x), target) for _ in range(self.rounds))
        with only_cholesky():
            self.climb(losses)
        return self

    def predict(self, X: np.ndarray) -> Prediction:
        with only_cholesky():
            return super().predict(X)


def only_cholesky() -> Any:
    """GPyTorch without conjugate gradients."""
    from gpytorch.settings import fast_computations

    return fast_computations(covar_root_decomposition=False, log_prob=False, solves=False)


def sparse_process(inducing: Tensor, kernel: Any) -> Any:
    from gpytorch.distributions import MultivariateNormal
    from gpytorch.means import ConstantMean
    from gpytorch.models import ApproximateGP
    from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy

    class SparseProcess(ApproximateGP):
        def __init__(self) -> None:
            distribution = CholeskyVariationalDistribution(len(inducing))
            super().__init__(VariationalStrategy(self, inducing, distribution))
            self.mean, self.kernel = ConstantMean(), kernel

        def forward(self, x: Tensor) -> MultivariateNormal:
            return MultivariateNormal(self.mean(x), self.kernel(x))

    return SparseProcess()


def exact_process(x: Tensor, y: Tensor, likelihood: Any, kernel: Any) -> Any:
    from gpytorch.distributions import MultivariateNormal
    from gpytorch.means import ConstantMean
    from gpytorch.models import ExactGP

    class ExactProcess(ExactGP):
        def __init__(self) -> None:
            super().__init__(x, y, likelihood)
            self.mean, self.kernel = ConstantMean(), kernel

        def forward(self, x: Tensor) -> MultivariateNormal:
            return MultivariateNormal(self.mean(x), self.kernel(x))

    return ExactProcess()


class Hierarchical:
    """hck, with the interface of the others."""

    def __init__(self, model: HCKGaussianProcessRegressor) -> None:
        self.model, self.history = model, []

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Hierarchical":
        self.model.fit(X, y)
        self.history = self.model.history_
        return self

    def predict(self, X: np.ndarray) -> Prediction:
        return observe(self.model, X)


@dataclass(frozen=True)
class Method:
    """One way to learn.

    Parameters
    ----------
    label : its name in tables and plots
    make : the model for the options and a learning rate
    prepare : what it does to a split before it trains
    rates : learning rates to choose from, if there is a choice
    package : what must be installed
    """

    label: str
    make: Callable[[Options, float], Any]
    prepare: Callable[[Split, Options], Split] = lambda split, _: split
    rates: tuple[float, ...] = (0.1,)
    package: str = "hck"


def fit_for_exact(split: Split, options: Options) -> Split:
    """As many points as the exact process can take."""
    return split if options.device == "cuda" and not options.quick else split.shrink(2000)


def hierarchical(options: Options, _: float) -> Hierarchical:
    return Hierarchical(make_process(options, "uci"))


METHODS = {
    "hck": Method("hck", hierarchical),
    "hck69": Method("hck, trained on 6/9", hierarchical, lambda split, _: split.without_validation()),
    "svgp": Method("GPyTorch SVGP", Sparse, rates=(0.01, 0.03), package="gpytorch"),
    "exact": Method("GPyTorch exact", Exact, fit_for_exact, package="gpytorch"),
}


def uci(options: Options, console: Console, earlier: Record) -> Iterator[Record]:
    record: Record = earlier | {"data": earlier.get("data", {})}
    methods = [name for name in options.methods if find_spec(METHODS[name].package)]
    for name in sorted(set(options.methods) - set(methods)):
        console.print(f"uci: {METHODS[name].label} is left out: {METHODS[name].package} is not installed")
    for name in options.data:
        X, y = records(name)
        n = 1800 if options.quick else len(y)
        splits = [
            Split.of(X[:n], y[:n], seed) for seed in range(options.splits or (2 if options.quick else 5))
        ]
        entry = record["data"].setdefault(name, {"methods": {}})
        entry |= {"points": n, "features": X.shape[1]}
        for key in methods:
            entry["methods"][key] = compare(METHODS[key], splits, options)
            if key.startswith("hck"):
                entry["methods"][key]["setting"] = setting(options, "uci")
            console.print(f"{name}, {METHODS[key].label}: {in_words(entry['methods'][key])}")
            yield record


def compare(method: Method, splits: list[Split], options: Options) -> Record:
    """A method on all splits, each with its scores and times."""
    splits = [method.prepare(split, options) for split in splits]
    if method.package == "hck":
        warm_up(make_process(options, "uci", max_iter=1), *splits[0].train)
    else:
        first_steps(method.make(options, method.rates[0]), splits[0])
    record: Record = {"train_points": len(splits[0].train[1]), "rate": method.rates[0]}
    if len(method.rates) > 1:
        record["rate"], record["search_seconds"] = timed(
            lambda: choose_rate(method, splits[0], options), options.device
        )
    runs = [measure(method.make(options, record["rate"]), split, options.device) for split in splits]
    histories = [run.pop("history") for run in runs]
    return record | {"runs": runs, "history": histories[0]}


def first_steps(model: Any, split: Split) -> None:
    """Let GPyTorch load what it needs."""
    model.rounds = 1
    model.fit(*split.train).predict(split.test[0][:100])


def choose_rate(method: Method, split: Split, options: Options) -> float:
    """The learning rate with the best density on the validation part."""
    X, y = split.validation

    def density(rate: float) -> float:
        return metrics.nlpd(y, *method.make(options, rate).fit(*split.train).predict(X))

    return min(method.rates, key=density)


def measure(model: Any, split: Split, device: str) -> Record:
    _, fit_seconds = timed(lambda: model.fit(*split.train), device)
    predicted, predict_seconds = timed(lambda: model.predict(split.test[0]), device)
    return {
        **score(split.test[1], *predicted),
        "fit_seconds": fit_seconds,
        "predict_seconds": predict_seconds,
        "history": model.history,
    }


def over_splits(found: Record, key: str) -> tuple[float, float]:
    """Mean and standard deviation."""
    values = [run[key] for run in found["runs"]]
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def spread(found: Record, key: str, digits: int) -> str:
    mean, deviation = over_splits(found, key)
    return f"{mean:.{digits}f} ± {deviation:.{digits}f}"


def in_words(found: Record) -> str:
    figures = (spread(found, key, digits) for key, digits in (("rmse", 4), ("nlpd", 3), ("fit_seconds", 1)))
    return "RMSE {}, NLPD {}, fit {} s".format(*figures)


def show_uci(record: Record, console: Console) -> None:
    for name, entry in in_order(record):
        title = (
            f"{name}: {entry['points']:,} records, {entry['features']} features; standardised y, times in s"
        )
        table = Table(title=title, title_justify="left")
        add_columns(table, "method", "trained on", "RMSE", "NLPD", "coverage", "fit", "predict")
        for key, found in methods_of(entry):
            cells = [spread(found, "rmse", 4), spread(found, "nlpd", 3)]
            cells += [f"{100 * over_splits(found, 'coverage')[0]:.1f} %"]
            cells += [spread(found, "fit_seconds", 1), spread(found, "predict_seconds", 2)]
            table.add_row(METHODS[key].label, f"{found['train_points']:,}", *cells)
        console.print(table)


def in_order(record: Record) -> list[tuple[str, Record]]:
    return [(name, record["data"][name]) for name in UCI if name in record["data"]]


def methods_of(entry: Record) -> list[tuple[str, Record]]:
    return [(key, entry["methods"][key]) for key in METHODS if key in entry["methods"]]


# The likelihood -------------------------------------------------------------------------------------


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
        return Blueprint.of(scale * Matern(lengthscales, nu=1.5), self.x, self.rank)

    def gradient(self) -> None:
        log_likelihood(self.blueprint, self.parameters[-1], self.y, self.parameters)

    def value(self) -> None:
        log_likelihood(self.blueprint, self.parameters[-1], self.y)

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
    command = [sys.executable, __file__, "--peak", ",".join(map(str, fields))]
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


# Flights --------------------------------------------------------------------------------------------


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
    X, y = flights()
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

# Showing --------------------------------------------------------------------------------------------


def add_columns(table: Table, *headings: str) -> None:
    for i, heading in enumerate(headings):
        table.add_column(heading, justify="right" if i else "left")


def mark(holds: bool | None) -> str:
    return {None: "", True: "✓", False: "✗"}[holds]


COLORS = {"hck": "C0", "exact": "C1", "best": "black"}


def draw_recover(results: Record, path: Path) -> None:
    """Learned beside true parameters, and how many observations are inside intervals."""
    record, (figure, (left, right)) = results["recover"], panels(1, 2, 4.2)
    draw_parameters(left, record["draws"])
    draw_calibration(right, record["draws"][0]["calibration"])
    finish(figure, "Known parameters", record, path)


def draw_parameters(panel: Any, draws: list[Record]) -> None:
    """Ratios of all draws side by side, with intervals of 95 %."""
    learned = [item for draw in draws for item in draw["learned"].items()]
    for place, (method, found) in enumerate(learned):
        names, true, values, errors = zip(*each_parameter(found), strict=True)
        ratios, width = np.array(values) / true, np.exp(1.96 * np.nan_to_num(errors))
        at = np.arange(len(ratios)) + 0.12 * (place - (len(learned) - 1) / 2)
        bars = (ratios - ratios / width, ratios * width - ratios)
        label = f"learned by {method}, 95 %" if method not in dict(learned[:place]) else None
        style = {"fmt": "o", "color": COLORS[method], "markersize": 4, "capsize": 2}
        panel.errorbar(at, ratios, bars, label=label, **style)
        panel.set_xticks(
            range(len(names)),
            [f"{n.replace('lengthscale', 'σ')}\n{t:g}" for n, t in zip(names, true, strict=True)],
            fontsize=8,
        )
    panel.axhspan(1 - TOLERANCE, 1 + TOLERANCE, color="grey", alpha=0.15, label="within 15 %")
    panel.axhline(1, color="grey", linewidth=1)
    panel.set(ylabel="learned / true", title="parameters")
    panel.legend(fontsize=8)


def draw_calibration(panel: Any, curves: dict[str, list[float]]) -> None:
    for name, shares in curves.items():
        levels = np.arange(1, len(shares) + 1) / (len(shares) + 1)
        label = "true parameters" if name == "best" else f"learned by {name}"
        panel.plot(levels, np.array(shares) - levels, "o-", markersize=3, color=COLORS[name], label=label)
    panel.axhline(0, color="grey", linewidth=1)
    panel.set(
        xlabel="level of the interval", ylabel="share inside − level", title="calibration on new points"
    )
    panel.legend(fontsize=8)


def draw_uci(results: Record, path: Path) -> None:
    """RMSE above and NLPD below, a column for each data set."""
    record = results["uci"]
    data = in_order(record)
    figure, axes = panels(2, len(data), 3)
    for row, key in enumerate(("rmse", "nlpd")):
        for column, (name, entry) in enumerate(data):
            draw_methods(axes[row, column], entry, key, labels=column == 0)
            axes[row, column].set_title(name if row == 0 else "")
    finish(figure, "Test error and density, mean and standard deviation over splits", record, path)


def draw_methods(panel: Any, entry: Record, key: str, labels: bool) -> None:
    """A line for each method, also for those that were not run."""
    places = {method: -i for i, method in enumerate(METHODS)}
    for method, found in methods_of(entry):
        mean, deviation = over_splits(found, key)
        panel.errorbar(mean, places[method], xerr=deviation, fmt="o", capsize=3)
        text = f"{found['train_points']:,} points"
        panel.annotate(
            text, (mean, places[method]), (0, 5), textcoords="offset points", ha="center", fontsize=7
        )
    panel.set_yticks([*places.values()], [METHODS[m].label if labels else "" for m in places], fontsize=8)
    panel.set_ylim(-len(places) + 0.5, 0.5)
    panel.margins(x=0.15)
    panel.set_xlabel(f"{key.upper()} (standardised)")
    panel.grid(alpha=0.3)


def histories(results: Record) -> dict[str, list[float]]:
    """The objective at each step, where hck learned."""
    found = {}
    if "recover" in results:
        found["recover"] = results["recover"]["draws"][0]["learned"]["hck"]["history"]
    for name, entry in in_order(results.get("uci", {"data": {}})):
        found[name] = entry["methods"].get("hck", {}).get("history")
    found["flights"] = results.get("flights", {}).get("history")
    return {name: history for name, history in found.items() if history}


def draw_learning(results: Record, path: Path) -> None:
    found = histories(results)
    figure, axes = panels(1, len(found), 3)
    for panel, (name, history) in zip(axes, found.items(), strict=True):
        panel.plot(range(1, len(history) + 1), history)
        panel.set(xlabel="step", title=name)
        panel.grid(alpha=0.3)
    axes[0].set_ylabel("log-likelihood per observation")
    finish(figure, "Learning", next(results[part] for part in PARTS if part in results), path)


def panels(rows: int, columns: int, height: float) -> tuple[Any, Any]:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        rows, columns, figsize=(max(4.2 * columns, 5), height * rows), layout="constrained", squeeze=False
    )
    return figure, axes[0] if rows == 1 else axes


def finish(figure: Any, title: str, record: Record, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure.suptitle(f"{title} ({describe(record['machine'])})", fontsize=10)
    figure.savefig(path, dpi=130)
    plt.close(figure)


# The command ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """A part of the benchmark: how it is measured (results so far, one after another) and shown."""

    measure: Callable[[Options, Console, Record], Iterator[Record]]
    show: Callable[[Record, Console], None]


PARTS = {
    "recover": Part(recover, show_recover),
    "uci": Part(uci, show_uci),
    "likelihood": Part(likelihood, show_likelihood),
    "flights": Part(delays, show_flights),
}


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
    add("--splits", type=int, help="of uci (default: 5)")
    add("--full", action="store_true", help="on a CPU as much as on a GPU: all flights, the exact process")
    add("--quick", action="store_true", help="small problems: a trial of the script")
    add("--draw", action="store_true", help="only tables and plots, from the figures of an earlier run")
    add("--out", type=Path, default=Path(__file__).parent / "results", help="folder of the results")
    add("--peak", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.only = choose(parser, "--only", options.only, PARTS)
    options.data = choose(parser, "--data", options.data, UCI)
    options.methods = choose(parser, "--methods", options.methods, METHODS)
    options.lengthscales = [float(text) for text in options.lengthscales.split(",")]
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
