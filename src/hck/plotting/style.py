"""The look of all pictures, in one place."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from hck.backend.text import harmless

if TYPE_CHECKING:
    import matplotlib.axes

Axes: TypeAlias = "matplotlib.axes.Axes"  # known by name, since matplotlib is imported where it is needed

# Okabe and Ito's colours, which people who are colour-blind can tell apart; without their yellow, too pale.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F6B00", "#5F5F5F")
BLUE, RED = PALETTE[:2]
INK, GREY, PALE = "#24292F", "#6E7781", "#D8DEE4"
SEQUENTIAL = "Blues"  # a colour map of one hue, from pale to dark
MARKERS = "osD^vPX*"


@contextmanager
def style() -> Iterator[None]:
    """The look of hck's pictures, for all that is drawn inside; outside nothing changes.

    Examples
    --------
    >>> import matplotlib
    >>> before = matplotlib.rcParams["axes.spines.top"]
    >>> with style():
    ...     matplotlib.rcParams["axes.spines.top"]
    False
    >>> matplotlib.rcParams["axes.spines.top"] == before
    True
    """
    matplotlib = need_matplotlib()
    with matplotlib.rc_context(
        {
            "figure.figsize": (6.4, 4.4),
            "figure.facecolor": "white",
            "figure.constrained_layout.use": True,
            "savefig.facecolor": "white",
            "font.family": ["sans-serif"],
            "font.size": 10,
            "text.color": INK,
            "axes.titlesize": 11,
            "axes.labelsize": 10,
            "axes.labelcolor": INK,
            "axes.edgecolor": GREY,
            "axes.facecolor": "white",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "axes.axisbelow": True,
            "axes.prop_cycle": matplotlib.cycler(color=PALETTE),
            "grid.color": PALE,
            "grid.linewidth": 0.6,
            "xtick.color": GREY,
            "ytick.color": GREY,
            "xtick.labelcolor": INK,
            "ytick.labelcolor": INK,
            "xtick.labelsize": 9,
            "ytick.labelsize": 9,
            "legend.fontsize": 9,
            "legend.frameon": True,
            "legend.framealpha": 0.85,
            "legend.edgecolor": "none",
            "legend.title_fontsize": 9,
            "lines.linewidth": 1.8,
            "lines.markersize": 5,
        }
    ):
        yield


@contextmanager
def panel(ax: "Axes | None", size: tuple[float, float] | None = None) -> Iterator[Axes]:
    """Axes to draw on, in the look of all pictures; if there are none, new ones of a size in inches."""
    with style():
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.figure(figsize=size).add_subplot()
        yield ax


def plain(text: object, most: int = 40) -> str:
    """Text as it is: in one line, not too long, and with no formula in it for matplotlib to set.

    Letters that nobody sees are written out.
    """
    words = harmless(" ".join(str(text).split()))
    words = f" {words}" if words.startswith("_") else words  # which legends leave out
    if len(words) > most:
        words = words[: (most + 1) // 2 - 1] + "…" + words[-(most // 2) :]
    return words.replace("$", r"\$")


def percent(share: float) -> str:
    """A share as text, with two digits where it is small.

    Examples
    --------
    >>> percent(0.954), percent(0.0123), percent(0)
    ('95 %', '1.2 %', '0 %')
    """
    return f"{100 * share:.0f} %" if share >= 0.0995 or share == 0 else f"{100 * share:.2g} %"


def suit_scale(ax: Axes, name: str, values: np.ndarray) -> bool:
    """Make an axis ("x", "y") logarithmic if its values are of several sizes; returns whether it is."""
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = values.min(), values.max()
    if low <= 0 or high < 4 * low:
        return False
    ax.set(**{f"{name}scale": "log"})
    axis = ax.xaxis if name == "x" else ax.yaxis
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 200 * low else (1.0,)))
    axis.set_major_formatter(lambda value, _: f"{value:,.0f}" if 1 <= value < 1e6 else f"{value:g}")
    axis.set_minor_formatter(NullFormatter())
    return True


def thousands(ax: Axes) -> None:
    """A few whole numbers beside both axes, written as 20,000."""
    from matplotlib.ticker import MaxNLocator

    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(5, integer=True))
        axis.set_major_formatter(lambda value, _: f"{value:,.0f}")


def need_matplotlib() -> ModuleType:
    """Matplotlib, or an error that says how to get it."""
    try:
        import matplotlib
    except ImportError:
        raise ImportError("pictures need matplotlib: pip install 'hck[plot]'") from None
    return matplotlib
