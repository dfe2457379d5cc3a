"""What a fitted estimator is, and how it came to be so."""

from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import torch

from hck.backend.text import in_bytes
from hck.estimators import (
    HCKClassifier,
    HCKGaussianProcessClassifier,
    HCKGaussianProcessRegressor,
    HCKKernelPCA,
    HCKRegressor,
)
from hck.estimators.base import HCKEstimator
from hck.estimators.inspection import (
    categories_of,
    learned_parameters,
    n_training_points,
    scaling_kind,
    trend_of,
)
from hck.kernels import Kernel, Product, Scaled, Sum
from hck.plotting.cut import describe_leaves
from hck.plotting.lengthscales import feature_labels, kernel_of, lengthscales, stationary_parts
from hck.report._text import PageTable, Section, number, plural
from hck.selection import Selection

_ESTIMATORS = (
    *(HCKRegressor, HCKClassifier, HCKGaussianProcessRegressor, HCKGaussianProcessClassifier),
    HCKKernelPCA,
)
_FOLDED = 12  # longer tables are folded
_CODE = (type, FunctionType, ModuleType)  # refers to more than a model

Row = list[str]  # of a table: a name, and what is said of it


def check_model(model: object) -> HCKEstimator:
    """A fitted estimator of ours, or an error."""
    if not isinstance(model, _ESTIMATORS):
        names = ", ".join(kind.__name__ for kind in _ESTIMATORS)
        raise TypeError(f"a report is about one of {names}, got {type(model).__name__}")
    if not hasattr(model, "trees_"):
        raise ValueError(f"this {type(model).__name__} is not fitted: call `fit` first")
    return model


# What it is ---------------------------------------------------------------------------------------------


def model_section(model: HCKEstimator) -> Section:
    """A table of what the model is made of, and one of its lengthscales."""
    scales, tables = _lengthscales(model)
    rows = [
        ["Estimator", type(model).__name__],
        ["Kernel", describe_kernel(kernel_of(model))],
        *scales,
        *_noise_rows(model),
        *_structure_rows(model),
        ["Training points", number(n_training_points(model))],
        ["Features", _features(model)],
        ["Precision", str(model.dtype)],
        ["Memory", f"{in_bytes(held_bytes(model))}, training points included"],
    ]
    return Section("The model", [], [PageTable("Settings", [], rows), *tables])


def describe_kernel(kernel: Kernel) -> str:
    """A kernel's name, without lengthscales.

    Examples
    --------
    >>> from hck.kernels import Gaussian, Matern
    >>> describe_kernel(2.0 * Matern([1.0, 2.0]) + Gaussian(3.0))
    '2.000 × Matérn 3/2 + Gaussian'
    """
    if isinstance(kernel, Scaled):
        return f"{number(float(kernel.scale))} × {describe_kernel(kernel.kernel)}"
    if isinstance(kernel, Sum | Product):
        sign = " + " if isinstance(kernel, Sum) else " × "
        return sign.join(describe_kernel(part) for part in (kernel.left, kernel.right))
    return kernel.label


def rank_of(model: HCKEstimator) -> int:
    """The rank that was chosen or given."""
    return int(model.selection_.rank if hasattr(model, "selection_") else model.rank)


def held_bytes(model: HCKEstimator) -> int:
    """The memory of all arrays that a model refers to, each counted once."""
    seen: set[int] = set()
    sizes: dict[int, int] = {}
    stack: list[object] = [model]
    while stack:
        item = stack.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, torch.Tensor):
            if item.layout == torch.strided:
                storage = item.untyped_storage()
                sizes[storage.data_ptr()] = storage.nbytes()
        elif isinstance(item, np.ndarray):
            base = item
            while isinstance(base.base, np.ndarray):
                base = base.base
            sizes[base.__array_interface__["data"][0]] = base.nbytes
        elif isinstance(item, dict):
            stack += item.values()
        elif isinstance(item, list | tuple | set):
            stack += item
        elif hasattr(item, "__dict__") and not isinstance(item, _CODE):
            stack += vars(item).values()
    return sum(sizes.values())


def _lengthscales(model: HCKEstimator) -> tuple[list[Row], list[PageTable]]:
    """A row for each part of the kernel, and a table where each feature has its own."""
    rows, tables = [], []
    for name, part in stationary_parts(kernel_of(model)):
        values, metric = lengthscales(model)[name], part.metric
        of_part = "" if name == "lengthscale" else f" ({name.rpartition('.')[0]})"
        if values.ndim == 0:
            rows.append([f"Lengthscale{of_part}", f"{number(values)} for all features"])
            continue
        features = feature_labels(model, len(values))
        if metric is not None:
            rows.append([f"Metric{of_part}", f"a matrix of {metric.shape[0]} × {metric.shape[1]}"])
        pairs = [[features[i], number(values[i])] for i in np.argsort(values, kind="stable")]
        low, high = (f"{number(values[i])} ({features[i]})" for i in (values.argmin(), values.argmax()))
        alone = "" if metric is None else ", where the others stay"
        rows.append([f"Lengthscale{of_part}", f"one for each feature{alone}, from {low} to {high}"])
        head, folded = ["Feature", "Lengthscale"], len(pairs) > _FOLDED
        tables.append(PageTable(f"Lengthscales{of_part}", head, pairs, folded))
    return rows, tables


def _noise_rows(model: HCKEstimator) -> list[Row]:
    if isinstance(model, HCKKernelPCA):
        return [["Components", number(len(model.eigenvalues_))]]
    if isinstance(model, HCKGaussianProcessClassifier):
        several = f": each with a kernel of its own, of which that of {model.classes_[0]} is shown"
        return [["Classes", number(len(model.classes_)) + (several if len(model.kernels_) > 1 else "")]]
    if not isinstance(model, HCKGaussianProcessRegressor):
        scaling = scaling_kind(model) or "none"
        return [["Ridge (alpha)", number(model.selection_.alpha)], ["Scaling of features", scaling]]
    if np.ndim(model.noise_):
        low, high = model.noise_.min(), model.noise_.max()
        noise = f"variances given for each training point, from {number(low)} to {number(high)}"
    else:
        noise = f"variance {number(model.noise_)}, standard deviation {number(model.noise_**0.5)}"
    trend = trend_of(model)
    every = model.coefficients_.T.ravel()  # target by target
    known = ", ".join(number(each) for each in every[:8])
    more = ", …" if len(every) > 8 else ""
    rows = [["Noise", noise], ["Trend", f"{trend} ({known}{more})" if known else trend]]
    scale = model.y_scale_
    if len(scale) > 1 or model.normalize_y:
        units = ", ".join(number(each) for each in scale[:8]) + (", …" if len(scale) > 8 else "")
        rows.append(["Targets", f"{plural(len(scale), 'target')}; noise and kernel in units of {units}"])
    return rows


def _structure_rows(model: HCKEstimator) -> list[Row]:
    approximation, trees = model.approximation, model.trees_
    rows = [["Approximation", approximation if isinstance(approximation, str) else repr(approximation)]]
    if approximation != "exact":
        rows.append(["Rank", number(rank_of(model))])
    if not trees:
        return rows
    for name in ("partition", "landmarks"):
        value = getattr(model, name)
        given = value if isinstance(value, str) else f"given ({type(value).__name__})"
        rows.append([name.capitalize(), given])
    which = "" if len(trees) == 1 else "the first: "
    leaves = f"{which}{describe_leaves(trees[0])}, depth {trees[0].depth}"
    return [*rows, ["Trees", plural(len(trees), "tree")], ["Leaves", leaves]]


def _features(model: HCKEstimator) -> str:
    if not hasattr(model, "n_features_in_"):
        return "none: points are objects"
    count, categories = number(int(model.n_features_in_)), categories_of(model)
    if not categories:
        return count
    return f"{count}, of them {plural(len(categories), 'category', 'categories')}"


# How it came to be so -----------------------------------------------------------------------------------


def choice_section(model: HCKEstimator) -> Section | None:
    """What was chosen or learned, and why; None where all was given."""
    selection = getattr(model, "selection_", None)
    if isinstance(model, HCKGaussianProcessClassifier):
        return _likelihood(model, n_training_points(model), {})
    if isinstance(model, HCKGaussianProcessRegressor) and not getattr(selection, "candidates", []):
        return _learned(model)
    return None if selection is None else _selected(selection)


def _selected(selection: Selection) -> Section:
    if not selection.candidates:
        return Section("What was chosen", ["Kernel, lengthscales and ridge were given."])
    rows = [[each.origin, number(each.alpha), number(each.loss)] for each in selection.candidates]
    tables = [PageTable("Candidates, the best first", ["Candidate", "Ridge (alpha)", "Loss"], rows)]
    taken = "The first was taken."
    if len(selection.blend) > 1:
        taken = "Predictions are a mean of those of the best."
        rows = [[each.origin, number(each.weight)] for each in selection.blend]
        tables.append(PageTable("Weights in the mean", ["Candidate", "Weight"], rows))
    if selection.notes:
        tables.append(PageTable("Steps", [], [[note] for note in selection.notes]))
    sentences = [
        "Kernels and ridges competed on observations that were left out of training: the smaller the loss, "
        f"the better. {taken}",
        f"Chosen in {selection.seconds:.1f} s.",
    ]
    return Section("What was chosen", sentences, tables)


def _learned(model: HCKGaussianProcessRegressor) -> Section:
    values = {**model.kernel_.parameters(), "noise": model.noise_}
    return _likelihood(model, n_training_points(model) * len(model.y_scale_), values)


def _likelihood(
    model: HCKGaussianProcessRegressor | HCKGaussianProcessClassifier, n: int, values: dict[str, Any]
) -> Section:
    """How likely n observations are, and values of parameters, if they were learned."""
    total = model.log_marginal_likelihood_value_
    rows = [["Log-likelihood of the training data", number(total)], ["Per observation", number(total / n)]]
    sentence = "Nothing: all parameters were given."
    if model.history_:
        steps = plural(len(model.history_), "step")
        sentence = f"Parameters are those of the largest likelihood that was found, in {steps}."
        rows += [
            [name.capitalize(), number(float(value))]
            for name, value in values.items()
            if np.ndim(value) == 0 and name in learned_parameters(model)
        ]
    return Section("What was learned", [sentence], [PageTable("Likelihood", [], rows)])
