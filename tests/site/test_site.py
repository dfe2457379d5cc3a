"""The site is whole: every public name is on it, and all links within it lead somewhere."""

import importlib.util
import zlib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from site_pages import html_pages

ROOT = Path(__file__).resolve().parents[2]


class Page(HTMLParser):
    """The links of a page, and what they can lead to in it."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.links += [found[name] for name in ("href", "src") if found.get(name)]
        self.anchors |= {found[name] for name in ("id", "name") if found.get(name)}


@pytest.fixture(scope="module")
def pages(site):
    return {path: Page(path.read_text(encoding="utf-8")) for path in html_pages(site)}


def described(site):
    """The names that the site describes, from its inventory."""
    data = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]
    lines = zlib.decompress(data).decode().splitlines()
    return {line.split()[0] for line in lines if line.split()[1].startswith("py:")}


def test_every_public_name_is_described(site):
    spec = importlib.util.spec_from_file_location("public_api", ROOT / "docs" / "_ext" / "public_api.py")
    public_api = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(public_api)
    names, homes = described(site), public_api.homes()
    wanted = [(module, name) for module, members in homes.items() for name in members]
    assert len(wanted) > 150
    assert not {f"{module}.{name}" for module, name in wanted} - names
    known = [getattr(importlib.import_module(module), name) for module, name in wanted]
    for module in public_api.modules():
        things = {name: getattr(module, name) for name in module.__all__ if not name.startswith("__")}
        lost = [name for name, thing in things.items() if not any(thing is other for other in known)]
        assert not lost, f"{module.__name__}: {lost}"


def test_links_within_the_site_lead_somewhere(site, pages):
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.exists(), f"{path.relative_to(site)}: {link}"
            if parts.fragment and target in pages:
                anchors = pages[target].anchors
                assert unquote(parts.fragment) in anchors, f"{path.relative_to(site)}: {link}"


def test_every_example_has_a_page_and_a_notebook(site):
    scripts = [path.stem for path in (ROOT / "docs" / "gallery").glob("plot_*.py")]
    for name in scripts:
        assert (site / "auto_gallery" / f"{name}.html").exists()
    notebooks = {path.stem for path in site.rglob("*.ipynb")}
    assert not set(scripts) - notebooks
