"""The gallery runs, on fewer points; each script is short, and draws one picture that can be read."""

import ast
import runpy
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

SCRIPTS = sorted((Path(__file__).parent.parent / "docs" / "gallery").glob("plot_*.py"))
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
