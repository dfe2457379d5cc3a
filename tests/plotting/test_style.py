"""One look for all pictures, which leaves matplotlib's settings alone."""

import subprocess
import sys

import matplotlib
import matplotlib.pyplot as plt
import pytest
from matplotlib.colors import to_rgb

from hck import plotting
from hck.plotting import PALETTE, plot_interval_calibration, plot_learning, style
from hck.plotting.style import plain


def test_settings_are_as_they_were():
    before = dict(matplotlib.rcParams)
    ax = plot_learning([-2.0, -1.0, -0.5])
    ax.figure.canvas.draw()
    assert dict(matplotlib.rcParams) == before
    with style():
        assert matplotlib.rcParams["axes.prop_cycle"].by_key()["color"] == list(PALETTE)
    with pytest.raises(ZeroDivisionError), style():
        _ = 1 / 0
    assert dict(matplotlib.rcParams) == before


def test_the_look_stays_when_the_picture_is_drawn_later():
    ax = plot_learning([-2.0, -1.0, -0.5])
    with matplotlib.rc_context({"ytick.labelsize": 30, "text.color": "red", "axes.labelsize": 30}):
        ax.figure.canvas.draw()
    assert not ax.spines["top"].get_visible()
    assert ax.yaxis.label.get_size() == 10
    assert {label.get_size() for label in ax.get_yticklabels()} == {9}


def test_draws_on_the_axes_that_are_given():
    _, (left, right) = plt.subplots(1, 2)
    assert plot_learning([-2.0, -1.0], ax=left) is left
    assert plot_interval_calibration([0.0], [0.1], [1.0], ax=right) is right
    assert len(plt.get_fignums()) == 1
    assert plot_learning([-2.0, -1.0]).figure is not left.figure


def test_no_figure_is_left_by_an_error():
    with pytest.raises(ValueError):
        plot_learning([])
    assert not plt.get_fignums()


def test_colours_differ_in_brightness_from_the_paper():
    """The contrast of each to white is at least 2 (large marks), and no two are alike."""

    def luminance(colour):
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    assert len(set(PALETTE)) == len(PALETTE) >= 8
    assert all(1.05 / (luminance(colour) + 0.05) >= 2 for colour in PALETTE)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        (7, "7"),
        ("a\n  b", "a b"),
        ("$x$", r"\$x\$"),
        ("x" * 21, "x" * 9 + "…" + "x" * 10),
    ],
)
def test_text_is_shown_as_it_is(text, shown):
    assert plain(text, 20) == shown


def test_matplotlib_is_loaded_only_when_something_is_drawn():
    program = "import sys, hck, hck.plotting, hck.report; print('matplotlib' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


@pytest.mark.parametrize("name", ["plot_learning", "plot_lengthscales"])
def test_says_what_to_install(monkeypatch, name):
    from hck.kernels import Gaussian

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    given = {"plot_learning": [-1.0], "plot_lengthscales": Gaussian([1.0, 2.0])}[name]
    with pytest.raises(ImportError, match=r"pip install 'hck\[plot\]'"):
        getattr(plotting, name)(given)
