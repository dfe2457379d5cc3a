"""What a fitted estimator is, and how it came to be so."""

from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import torch

from hck.estimators import HCKClassifier, HCKGaussianProcessRegressor, HCKKernelPCA, HCKRegressor
from hck.estimators.base import HCKEstimator
from hck.kernels import Kernel, Product, Scaled, Sum
from hck.plotting.cut import describe_leaves
from hck.plotting.lengthscales import feature_labels, kernel_of, lengthscales
from hck.report._text import Section, Table, in_bytes, number, plural
from hck.selection import Selection

_ESTIMATORS = (HCKRegressor, HCKClassifier, HCKGaussianProcessRegressor, HCKKernelPCA)
_FOLDED = 12  # longer tables are folded
_CODE = (type, FunctionType, ModuleType)  # refers to more than a model


def check_model(model: Any) -> HCKEstimator:
    """A fitted estimator of ours, or an error."""
    if not isinstance(model, _ESTIMATORS):
        names = ", ".join(kind.__name__ for kind in _ESTIMATORS)
        raise TypeError(f"a report is about one of {names}, got {type(model).__name__}")
    if not hasattr(model, "trees_"):
        raise ValueError(f"this {type(model).__name__} is not fitted: call `fit` first")
    return model


# What it is ---------------------------------------------------------------------------------------------


def describe_model(model: Any) -> Section:
    """A table of what the model is made of, and one of its lengthscales."""
    rows = [
        ["Estimator", type(model).__name__],
        ["Kernel", describe_kernel(kernel_of(model))],
        *_lengthscale_rows(model),
        *_noise_rows(model),
        *_structure_rows(model),
        ["Training points", number(n_training_points(model))],
        ["Features", _features(model)],
        ["Precision", str(model.dtype)],
        ["Memory", f"{in_bytes(held_bytes(model))}, training points included"],
    ]
    tables = [Table("Settings", [], rows)]
    return Section("The model", [], tables + _lengthscale_tables(model))


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


def n_training_points(model: Any) -> int:
    """How many points the model was fitted to."""
    if model.trees_:
        return model.trees_[0].n_points
    if isinstance(model, HCKKernelPCA):
        return len(model.eigenvectors_)
    return len(model._used) if hasattr(model, "_used") else len(model._training_data().y)


def held_bytes(model: Any) -> int:
    """The memory of all arrays that a model refers to, each counted once."""
    seen: set[int] = set()
    sizes: dict[int, int] = {}
    stack = [model]
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


def _lengthscale_rows(model: Any) -> list[list[str]]:
    rows = []
    for name, values in lengthscales(model).items():
        label = _of_part("Lengthscale", name)
        if values.ndim == 0:
            rows.append([label, f"{number(values)} for all features"])
            continue
        features = feature_labels(model, len(values))
        low, high = (f"{number(values[i])} ({features[i]})" for i in (values.argmin(), values.argmax()))
        rows.append([label, f"one for each feature, from {low} to {high}"])
    return rows


def _lengthscale_tables(model: Any) -> list[Table]:
    tables = []
    for name, values in lengthscales(model).items():
        if values.ndim:
            features = feature_labels(model, len(values))
            rows = [[features[i], number(values[i])] for i in np.argsort(values, kind="stable")]
            head, folded = ["Feature", "Lengthscale"], len(rows) > _FOLDED
            tables.append(Table(_of_part("Lengthscales", name), head, rows, folded))
    return tables


def _of_part(what: str, name: str) -> str:
    """What is said of a parameter, and of which part of the kernel it is, if there are several."""
    return what if name == "lengthscale" else f"{what} ({name.rpartition('.')[0]})"


def _noise_rows(model: Any) -> list[list[str]]:
    if isinstance(model, HCKGaussianProcessRegressor):
        if np.ndim(model.noise_):
            low, high = model.noise_.min(), model.noise_.max()
            noise = f"variances given for each training point, from {number(low)} to {number(high)}"
        else:
            noise = f"variance {number(model.noise_)}, standard deviation {number(model.noise_**0.5)}"
        trend = model.trend if isinstance(model.trend, str) else "a function"
        known = ", ".join(number(each) for each in model.coefficients_[:8])
        more = ", …" if len(model.coefficients_) > 8 else ""
        return [["Noise", noise], ["Trend", f"{trend} ({known}{more})" if known else trend]]
    if isinstance(model, HCKKernelPCA):
        return [["Components", number(len(model.eigenvalues_))]]
    scaling = model._scale_kind() or "none"
    return [["Ridge (alpha)", number(model.selection_.alpha)], ["Scaling of features", scaling]]


def _structure_rows(model: Any) -> list[list[str]]:
    approximation = model.approximation
    rows = [["Approximation", approximation if isinstance(approximation, str) else repr(approximation)]]
    shape = getattr(model, "selection_", model)
    if approximation != "exact":
        rows.append(["Rank", number(int(shape.rank))])
    if not model.trees_:
        return rows
    for name, label in (("partition", "Partition"), ("landmarks", "Landmarks")):
        value = getattr(model, name)
        rows.append([label, value if isinstance(value, str) else f"given ({type(value).__name__})"])
    first = model.trees_[0]
    each = "" if len(model.trees_) == 1 else "; the first: "
    rows.append(["Trees", plural(len(model.trees_), "tree")])
    rows.append(["Leaves", f"{each.removeprefix('; ')}{describe_leaves(first)}, depth {first.depth}"])
    return rows


def _features(model: Any) -> str:
    if not hasattr(model, "n_features_in_"):
        return "none: points are objects"
    categories = getattr(model, "_categories", None)
    more = (
        "" if categories is None else f", of them {plural(len(categories.names), 'category', 'categories')}"
    )
    return number(int(model.n_features_in_)) + more


# How it came to be so -----------------------------------------------------------------------------------


def describe_choice(model: Any) -> Section | None:
    """What was chosen or learned, and why; None where all was given."""
    if isinstance(model, HCKGaussianProcessRegressor):
        return _learned(model)
    selection = getattr(model, "selection_", None)
    return None if selection is None else _selected(selection)


def _selected(selection: Selection) -> Section:
    if not selection.candidates:
        return Section("What was chosen", ["Kernel, lengthscales and ridge were given."])
    rows = [
        [candidate.origin, number(candidate.alpha), number(candidate.loss)]
        for candidate in selection.candidates
    ]
    head = ["Candidate", "Ridge (alpha)", "Loss"]
    tables = [Table("Candidates, the best first", head, rows)]
    taken = "The first was taken."
    if len(selection.blend) > 1:
        taken = "Predictions are a mean of those of the best."
        rows = [[candidate.origin, number(candidate.weight)] for candidate in selection.blend]
        tables.append(Table("Weights in the mean", ["Candidate", "Weight"], rows))
    if selection.notes:
        tables.append(Table("Steps", [], [[note] for note in selection.notes]))
    sentences = [
        "Kernels and ridges competed on observations that were left out of training: the smaller the loss, "
        f"the better. {taken}",
        f"Chosen in {selection.seconds:.1f} s.",
    ]
    return Section("What was chosen", sentences, tables)


def _learned(model: HCKGaussianProcessRegressor) -> Section:
    total, n = model.log_marginal_likelihood_value_, n_training_points(model)
    rows = [["Log-likelihood of the training data", number(total)], ["Per observation", number(total / n)]]
    if not model.history_:
        return Section("What was learned", ["Nothing: all parameters were given."], [_likelihood(rows)])
    values = {**model.kernel_.parameters(), "noise": model.noise_}
    rows += [
        [name.capitalize(), number(float(value))]
        for name, value in values.items()
        if np.ndim(value) == 0 and name in model._space.split(model.theta_)
    ]
    steps = plural(len(model.history_), "step")
    return Section(
        "What was learned",
        [f"Parameters are those of the largest likelihood that was found, in {steps}."],
        [_likelihood(rows)],
    )


def _likelihood(rows: list[list[str]]) -> Table:
    return Table("Likelihood", [], rows)
