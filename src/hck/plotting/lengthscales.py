"""How far points influence each other along each feature."""

from collections.abc import Iterator, Sequence
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from hck.kernels import Kernel, Product, Scaled, Sum, make_kernel
from hck.kernels.stationary import Stationary
from hck.metrics import as_numbers
from hck.plotting.style import MARKERS, PALETTE, Axes, panel, plain, suit_scale


def plot_lengthscales(
    model: BaseEstimator | Kernel,
    feature_names: Sequence[str] | None = None,
    top: int = 30,
    *,
    unit: ArrayLike | None = None,
    ax: "Axes | None" = None,
) -> Axes:
    """Draw the lengthscale of each feature, the shortest first: those matter most.

    Lengthscales of the regressor and the classifier are those of the scaled features. Those of a Gaussian
    process are in the units of the features: divide them by something, such as standard deviations (`unit`),
    to compare them.

    Parameters
    ----------
    model : estimator or Kernel
        A fitted one, with a lengthscale for each feature, or a metric: then lengthscales are those of points
        that differ in one feature alone.
    feature_names : sequence of str, default=None
        None: those that the estimator was fitted to, if there are any.
    top : int, default=30
        How many features to draw.
    unit : array-like of shape (n_features,), default=None
        What to divide the lengthscales by.
    ax : Axes, default=None

    Returns
    -------
    Axes

    Examples
    --------
    >>> from hck.kernels import Gaussian
    >>> ax = plot_lengthscales(Gaussian([3.0, 0.5]), ["wide", "narrow"])
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['narrow', 'wide']
    """
    check_top(top)
    found = lengthscales(model)
    many = {name: values for name, values in found.items() if values.ndim}
    if not many:
        one = ", ".join(f"{float(value):.4g}" for value in found.values()) or "none"
        raise ValueError(f"there is no lengthscale for each feature to draw; for all features: {one}")
    d = len(next(iter(many.values())))
    names = check_names(model, feature_names, d)
    every = np.stack(list(many.values())) / check_unit(unit, d)
    least = every.min(0)
    chosen = np.argsort(least, kind="stable")[: int(top)]
    chosen = chosen[np.isfinite(least[chosen])]  # a feature that a metric leaves out has no end
    with panel(ax, (6.4, 1.2 + 0.24 * len(chosen))) as ax:
        place = np.arange(len(chosen))
        for k, name in enumerate(many):
            colour, marker = PALETTE[k % len(PALETTE)], MARKERS[k % len(MARKERS)]
            label = plain(name.removesuffix("lengthscale").rstrip(".") or name)
            drawn = every[k, chosen]
            ax.plot(drawn, place, linestyle="", marker=marker, color=colour, markersize=6, label=label)
        drawn = every[:, chosen]
        if not suit_scale(ax, "x", drawn[np.isfinite(drawn)]):
            ax.set_xlim(left=0)
        ax.set_yticks(place, [plain(names[i], 28) for i in chosen])
        ax.set_ylim(len(chosen) - 0.5, -0.5)
        ax.set_xlabel(_label(model, unit is not None))
        if len(chosen) < d:
            ax.set_title(f"the {len(chosen)} shortest of {d:,}")
        if len(many) > 1:
            ax.legend(title="kernel")
    return ax


def lengthscales(model: BaseEstimator | Kernel) -> dict[str, np.ndarray]:
    """Those of the kernel that an estimator ended up with, by the name of the parameter.

    With a metric L, of points that differ in one feature alone: 1 over the root of its entry in the diagonal
    of L Lᵀ, which is infinite for a feature that L leaves out.
    """
    found = {}
    for name, part in stationary_parts(kernel_of(model)):
        each = None if part.metric is None else part.importances()
        found[name] = as_numbers(name, part.lengthscale if each is None else each**-0.5)
    return found


def stationary_parts(kernel: Kernel, inside: str = "") -> Iterator[tuple[str, Stationary]]:
    """The kernels with lengthscales that a kernel is made of, by the name of that parameter."""
    if isinstance(kernel, Stationary):
        yield f"{inside}lengthscale", kernel
    elif isinstance(kernel, Scaled):
        yield from stationary_parts(kernel.kernel, inside)
    elif isinstance(kernel, Sum | Product):
        for side in ("left", "right"):
            yield from stationary_parts(getattr(kernel, side), f"{inside}{side}.")


def kernel_of(model: BaseEstimator | Kernel) -> Kernel:
    """The kernel that an estimator was fitted with; the first, if it has several."""
    return kernels_of(model)[0][0]


def kernels_of(model: BaseEstimator | Kernel) -> list[tuple[Kernel, float]]:
    """The kernels that an estimator was fitted with, one for each class or those that share its trees.

    Each with its weight, 1 in all.
    """
    if isinstance(model, Kernel):
        return [(model, 1.0)]
    if hasattr(model, "kernel_"):
        return [(model.kernel_, 1.0)]
    if hasattr(model, "kernels_"):
        return [(kernel, 1 / len(model.kernels_)) for kernel in model.kernels_]
    if hasattr(model, "selection_"):
        return model.selection_.kernels
    if hasattr(model, "eigenvalues_"):
        return [(make_kernel(model.kernel, model.lengthscale), 1.0)]
    raise TypeError(f"expected a kernel or a fitted estimator, got {type(model).__name__}")


def check_top(top: int) -> None:
    """Raise ValueError unless a number of features can be drawn."""
    if not isinstance(top, Integral) or top < 1:
        raise ValueError(f"top must be a whole number, at least 1, got {top!r}")


def check_names(model: BaseEstimator | Kernel, given: Sequence[str] | None, d: int) -> list[str]:
    """Names of d features: those that are given, or those of the model."""
    names = feature_labels(model, d) if given is None else [str(name) for name in given]
    if len(names) != d:
        raise ValueError(f"there are {len(names)} feature names for {d} features")
    return names


def check_unit(unit: ArrayLike | None, d: int) -> np.ndarray:
    """A positive number for each of d features, 1 if none are given."""
    each = np.ones(d) if unit is None else as_numbers("unit", unit)
    if each.shape != (d,) or not (np.isfinite(each).all() and (each > 0).all()):
        raise ValueError(f"unit must have a positive number for each of {d} features")
    return each


def feature_labels(model: BaseEstimator | Kernel, d: int) -> list[str]:
    """The names of d features, or their numbers."""
    names = getattr(model, "kernel_feature_names_", None)
    return names if names is not None and len(names) == d else [f"feature {i}" for i in range(d)]


def _label(model: BaseEstimator | Kernel, divided: bool) -> str:
    if divided:
        return "lengthscale / unit"
    scaled = getattr(model, "features_scaled_", False)
    return "lengthscale of the scaled feature" if scaled else "lengthscale"
