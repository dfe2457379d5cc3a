"""The gallery runs, on fewer points; each script is short, and draws one picture that can be read.

So do the figures of pages.
"""

import ast
import runpy
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

from titles import unreadable

DOCS = Path(__file__).parent.parent / "docs"
SCRIPTS = sorted((DOCS / "gallery").glob("plot_*.py"))
FIGURES = sorted((DOCS / "figures").glob("*.py"))
LINES = 60


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Fewer points, and no window."""
    monkeypatch.setenv("HCK_FAST", "1")
    mpl.use("Agg")
    plt.close("all")  # what other tests have left
    yield
    plt.close("all")


def test_there_are_many():
    assert len(SCRIPTS) >= 15


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script(script):
    runpy.run_path(str(script))
    (number,) = plt.get_fignums()
    figure = plt.figure(number)
    figure.canvas.draw()
    drawn = [ax for ax in figure.axes if ax.has_data()]
    assert drawn
    assert any(ax.get_title() for ax in drawn), "a picture has a title"
    assert not unreadable(figure)


@pytest.mark.parametrize("script", FIGURES, ids=lambda path: path.stem)
def test_figure_of_a_page(script):
    runpy.run_path(str(script))
    assert plt.get_fignums()
    for figure in map(plt.figure, plt.get_fignums()):
        figure.canvas.draw()
        assert not unreadable(figure)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_form(script):
    """What sphinx-gallery makes a page of: a title, text, and cells with a comment each."""
    text = script.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LINES
    title, rule, _, first = (ast.get_docstring(ast.parse(text)) or "").splitlines()[:4]
    assert rule == "=" * len(title)
    assert first
    cells = text.split("\n# %%\n")[1:]
    assert cells
    assert all(cell.startswith("# ") for cell in cells)
    assert "random" not in text or "default_rng(" in text or "random_state=" in text, "seeds are given"
