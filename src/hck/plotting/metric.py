"""What a kernel's metric makes of the features: how much each counts, and how they act together."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from hck.kernels import Kernel
from hck.kernels.base import shares
from hck.metrics import as_array
from hck.plotting.lengthscales import check_names, check_top, check_unit, kernel_of, kernels_of
from hck.plotting.style import BLUE, Axes, panel, percent, plain

DIVERGING = "RdBu_r"  # a colour map of two hues, pale amid them


def plot_importances(
    model: BaseEstimator | Kernel,
    feature_names: Sequence[str] | None = None,
    top: int = 30,
    *,
    unit: ArrayLike | None = None,
    ax: "Axes | None" = None,
) -> Axes:
    """Draw how much of squared distances is due to each feature, the most important first.

    For points that are multiplied by L, that is the diagonal of M = L Lᵀ; with a lengthscale σ for each
    feature it is 1/σ². Shares are of the sum of all.

    Parameters
    ----------
    model : estimator or Kernel
        A fitted one, whose kernel has a metric or a lengthscale for each feature. Of several kernels, one for
        each class or those that share the trees, it is the mean of their shares by weight.
    feature_names : sequence of str, default=None
        None: those that the estimator was fitted to, if there are any.
    top : int, default=30
        How many features to draw.
    unit : array-like of shape (n_features,), default=None
        What features are measured in, such as standard deviations: shares are those of features that are
        divided by it.
    ax : Axes, default=None

    Returns
    -------
    Axes

    Examples
    --------
    >>> from hck.kernels import Gaussian
    >>> ax = plot_importances(Gaussian(1.0, metric=[[1.0, 0.0], [1.0, 2.0]]), ["less", "more"])
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['more', 'less']
    """
    check_top(top)
    share = importances(model, unit)
    names, d = check_names(model, feature_names, len(share)), len(share)
    chosen = np.argsort(-share, kind="stable")[: int(top)]
    with panel(ax, (6.4, 1.2 + 0.24 * len(chosen))) as ax:
        place = np.arange(len(chosen))
        ax.barh(place, share[chosen], color=BLUE, height=0.7)
        ax.set_yticks(place, [plain(names[i], 28) for i in chosen])
        ax.set_ylim(len(chosen) - 0.5, -0.5)
        ax.xaxis.set_major_formatter(lambda value, _: percent(value))
        ax.set_xlabel("importance")
        ax.grid(axis="y", visible=False)
        if len(chosen) < d:
            ax.set_title(f"the {len(chosen)} most important of {d:,}")
    return ax


def plot_metric(
    model: BaseEstimator | Kernel,
    feature_names: Sequence[str] | None = None,
    top: int = 20,
    *,
    unit: ArrayLike | None = None,
    ax: "Axes | None" = None,
) -> Axes:
    """Draw M = L Lᵀ, by which squared distances are (x − x')ᵀ M (x − x'), in units of its largest entry.

    A pair of features with a positive entry counts where both grow, or both fall; with a negative one, where
    one grows and the other falls.

    Parameters
    ----------
    model, feature_names, unit, ax
        As in `plot_importances`; of several kernels the first is drawn.
    top : int, default=20
        How many features to draw, the most important ones, in their order.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from hck.kernels import Gaussian
    >>> from hck.plotting import plot_metric
    >>> kernel = Gaussian(1.0, metric=[[1.0], [-1.0]])  # the difference of two features counts
    >>> ax = plot_metric(kernel, ["left", "right"])
    >>> ax.images[0].get_array().tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    check_top(top)
    matrix = _squared(model, unit)
    names = check_names(model, feature_names, len(matrix))
    chosen = np.sort(np.argsort(-np.diag(matrix), kind="stable")[: int(top)])
    shown = matrix[np.ix_(chosen, chosen)]
    side = 1.6 + 0.3 * len(chosen)
    with panel(ax, (side + 1.2, side)) as ax:
        image = ax.imshow(shown / (np.abs(shown).max() or 1.0), cmap=DIVERGING, vmin=-1, vmax=1)
        labels = [plain(names[i], 20) for i in chosen]
        ax.set_xticks(np.arange(len(chosen)), labels, rotation=90)
        ax.set_yticks(np.arange(len(chosen)), labels)
        ax.grid(visible=False)
        ax.figure.colorbar(image, ax=ax, label="entry / largest entry")
        if len(chosen) < len(matrix):
            ax.set_title(f"the {len(chosen)} most important of {len(matrix):,}")
    return ax


def importances(model: BaseEstimator | Kernel, unit: ArrayLike | None = None) -> np.ndarray:
    """Shares (d,) of the features in squared distances, 1 in all; of several kernels their mean by weight."""
    kernels = kernels_of(model)
    known = [found for kernel, _ in kernels if (found := kernel.importances()) is not None]
    if not known:
        raise ValueError(
            "the kernel has one lengthscale for all features, which are equally important: nothing to draw"
        )
    whole = shares(kernels, check_unit(unit, len(known[0])) ** 2)
    return whole / (whole.sum() or 1.0)


def _squared(model: BaseEstimator | Kernel, unit: ArrayLike | None) -> np.ndarray:
    """M (d, d)."""
    factor = kernel_of(model).stretch()
    if factor is None or factor.ndim == 1:
        raise ValueError("the kernel has no metric, but lengthscales: plot_lengthscales draws them")
    L = np.asarray(as_array(factor), dtype=float)
    L = L * check_unit(unit, len(L))[:, None]
    return L @ L.T
