"""The look of the experiments' figures."""

from typing import Any

from hck.plotting.style import PALETTE

# Of each method: what it is called, and its colour.
LOOKS = {
    "nystrom": ("Nyström", PALETTE[0]),
    "fourier": ("Fourier", PALETTE[4]),
    "independent": ("independent", PALETTE[2]),
    "hierarchical": ("hierarchical", PALETTE[1]),
    "exact": ("exact", "black"),
    "forest": ("forest of 8", PALETTE[3]),
    "forest, learned": ("forest of 8, learned lengthscales", PALETTE[5]),
}


def look(method: str) -> dict[str, str]:
    """Label and colour, as matplotlib takes them."""
    label, colour = LOOKS[method]
    return {"label": label, "color": colour}


def panels(rows: int, columns: int, size: tuple[float, float], **options: Any) -> tuple[Any, Any]:
    """A figure, and its axes (rows, columns), each of a size in inches and with a grid."""
    import matplotlib.pyplot as plt

    whole = (columns * size[0], rows * size[1])
    figure, axes = plt.subplots(
        rows, columns, figsize=whole, squeeze=False, layout="constrained", **options
    )  # fmt: skip
    for ax in axes.flat:
        ax.grid(alpha=0.3)
    return figure, axes


def few_ticks(axis: Any) -> None:
    """1, 2 and 5 times powers of ten on a logarithmic axis, as plain numbers."""
    from matplotlib.ticker import LogLocator

    axis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=6))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter("")
