"""What the pages name is there: files, links, and the functions along the walks of docs/architecture.md."""

import ast
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "src" / "hck"
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")])
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")
CONTENTS = re.compile(r"^```\{toctree\}\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"`([\w./-]+\.(?:py|md|json|yml|toml|csv|png))(?:: ([\w.]+))?`")
CODE = re.compile(r"^```(?:python|bash)\n(.*?)^```", re.MULTILINE | re.DOTALL)
METHOD = re.compile(r"`([A-Z]\w+)\.(\w+)`")
FIGURE = re.compile(r"(?<![\d./])\d+\.\d{2,}(?![\d.])")
CHANGES = ROOT / "CHANGELOG.md"  # which names what was there once
MADE = {"model.json", "job.json", "counts.json"}  # by hck, in folders of users


def name_of(path):
    return str(path.relative_to(ROOT))


def found(name, page):
    """The file that a page means: as seen from the page, the repository or the sources, or from anywhere."""
    places = [base / name for base in (page.parent, ROOT, ROOT / "src", SOURCES)]
    anywhere = (path for top in ("src", "tests", "benchmarks") for path in (ROOT / top).rglob(name))
    return next((path for path in places if path.exists()), None) or next(anywhere, None)


def linked(page):
    """The pages that a page leads to, by links or, on the site, by its table of contents."""
    text = page.read_text()
    entries = [f"{line}.md" for block in CONTENTS.findall(text) for line in block.split() if line[0] != ":"]
    return {(page.parent / name).resolve() for name in [*LINK.findall(text), *entries]}


def defined(path):
    """The names of all functions and classes of a file."""
    kinds = ast.FunctionDef | ast.ClassDef
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kinds)}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    broken = [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()]
    assert not broken


@pytest.mark.parametrize("page", [page for page in PAGES if page != CHANGES], ids=name_of)
def test_files_that_are_named_are_there(page):
    for name, inside in FILE.findall(page.read_text()):
        if "NAME" in name or name in MADE:
            continue
        path = found(name, page)
        assert path is not None, f"there is no {name}"
        missing = {inside.rpartition(".")[2]} - {""} - (defined(path) if inside else set())
        assert not missing, f"{name} has no {inside}"


@pytest.mark.parametrize("page", [path for path in PAGES if "docs" in path.parts], ids=name_of)
def test_code_fits_beside_the_sidebars(page):
    """Of a window of 1280; what is longer is cut off there."""
    lines = [line for block in CODE.findall(page.read_text()) for line in block.splitlines()]
    assert not [line for line in lines if len(line) > 88]


def test_methods_along_the_walks_are_there():
    texts = {path: path.read_text() for path in SOURCES.rglob("*.py")}
    for kind, method in METHOD.findall((ROOT / "docs" / "architecture.md").read_text()):
        mine = [path for path, text in texts.items() if re.search(rf"^class {kind}\b", text, re.MULTILINE)]
        assert any(method in defined(path) for path in mine), f"there is no {kind}.{method}"


@pytest.mark.parametrize("name", ["comparison.md", "explanation/when-not.md"])
def test_figures_are_those_of_the_benchmarks(name):
    """Figures of two decimals or more, as they are measured, or as one less that, rounded."""
    reports = [(ROOT / path).read_text() for path in ("benchmarks/README.md", "docs/results/README.md")]
    lines = (ROOT / "benchmarks" / "results" / "tabular.jsonl").read_text().splitlines()
    known = [float(figure) for text in reports for figure in FIGURE.findall(text)]
    known += [run["rmse_over_std"] for line in lines if "rmse_over_std" in (run := json.loads(line))]
    for figure in FIGURE.findall((ROOT / "docs" / name).read_text()):
        least = 10.0 ** -len(figure.partition(".")[2])
        off = min(min(abs(each - float(figure)), abs(1 - each - float(figure))) for each in known)
        assert off < 0.6 * least, f"no benchmark has {figure}"


def test_every_page_can_be_found():
    """From the README, directly or by other pages."""
    known, new = {CHANGES}, {ROOT / "README.md"}
    while new:
        known |= new
        links = set().union(*map(linked, new))
        new = {path for path in links if path.suffix == ".md" and path.exists()} - known
    lost = set(PAGES) - known
    assert not lost, sorted(map(name_of, lost))
