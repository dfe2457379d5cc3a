"""The Python code of README and docs runs, page by page, with a hundredth of the points.

Blocks of a page share their names. Numbers of at least 10,000, written 10_000, are sizes, which are divided
by 100. A block after a line ``<!-- not run: why -->`` is not run; commands that start with ``hck`` are.
"""

import re
import shlex
import sys
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from hck.cli import main

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"(<!-- not run: .+ -->\n+)?^```(python|bash)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SIZE = re.compile(r"\b\d{1,3}(?:_\d{3})+\b")


def smaller(match):
    size = int(match[0])
    return str(size // 100 if size >= 10_000 else size)


def code_of(page):
    """The kind and the text of each block that is to run, at the line where it is."""
    text = page.read_text(encoding="utf-8")
    for skipped, kind, code in BLOCK.findall(text):
        if not skipped and (kind == "python" or code.startswith("hck ")):
            yield kind, "\n" * text[: text.index(code)].count("\n") + SIZE.sub(smaller, code)


PAGES = [path for path in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))] if any(code_of(path))]


def run_commands(text, monkeypatch):
    for line in text.strip().splitlines():
        words = shlex.split(line, comments=True)
        assert words[0] == "hck", f"only hck's own commands are run here, not {line}"
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as left:
            main()
        assert not left.value.code, line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "FigureCanvasAgg is non-interactive", UserWarning)
        for kind, text in code_of(page):
            if kind == "bash":
                run_commands(text, monkeypatch)
            else:
                exec(compile(text, str(page), "exec"), names)
    plt.close("all")
