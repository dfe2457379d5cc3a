"""The page is safe, complete and readable."""

import base64
import re
from importlib.resources import files
from itertools import pairwise

import pandas as pd
import pytest

from hck.report import write_report
from report_page import NASTY, Page

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def every_page(tmp_path_factory, regressor, process, classifier, data, labels):
    X, y = data[0][200:], data[1][200:]
    frame = pd.DataFrame(X, columns=[NASTY, "a & b"])
    given = [(regressor, frame, y), (process, X, y), (classifier, X, labels[200:])]
    folder, title = tmp_path_factory.mktemp("pages"), f"{NASTY} & more"
    paths = [write_report(*each, folder / f"{k}.html", title=title) for k, each in enumerate(given)]
    return [path.read_text(encoding="utf-8") for path in paths]


def test_nothing_runs_and_nothing_is_loaded(every_page):
    for text in every_page:
        page = Page(text)
        assert not page.having("script")
        assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
        assert "&lt;script&gt;alert(" in text
        assert r"\x1b[31m" in text
        assert "\x1b" not in text
        assert not re.search(r"(?:https?:)?//[a-z]", text)
        assert "url(" not in text
        assert "@import" not in text
        addresses = [
            each for _, attributes in page.tags for each in map(attributes.get, ("src", "href")) if each
        ]
        assert all(address.startswith("data:") for address in addresses)
        policy = next(meta["content"] for meta in page.having("meta") if "http-equiv" in meta)
        assert policy.startswith("default-src 'none'")


def test_pictures_refer_to_nothing_outside(every_page):
    for text in every_page:
        for image in Page(text).having("img"):
            svg = base64.b64decode(image["src"].partition("base64,")[2]).decode()
            assert svg.rstrip().endswith("</svg>")
            assert "<script" not in re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
            targets = re.findall(r'href="([^"]*)"', svg)
            assert all(target.startswith(("#", "data:image/png")) for target in targets)


def test_those_who_do_not_see_it(every_page):
    for text in every_page:
        page = Page(text)
        assert page.having("html")[0]["lang"] == "en"
        levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h[1-6]", tag)]
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(after - before <= 1 for before, after in pairwise(levels))
        assert all(len(image["alt"]) > 20 for image in page.having("img"))
        assert len(page.having("caption")) == len(page.having("table"))
        assert all("scope" in head for head in page.having("th"))
        for landmark in ("header", "main", "footer"):
            assert len(page.having(landmark)) == 1


def test_contrast():
    """At least 4.5 between text and what is behind it, by day and by night (WCAG 2.1, AA)."""
    style = (files("hck.report") / "templates" / "report.css").read_text(encoding="utf-8")

    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(a, b):
        low, high = sorted((luminance(a), luminance(b)))
        return (high + 0.05) / (low + 0.05)

    def mix(a, b, share):
        ends = [(int(a[i : i + 2], 16), int(b[i : i + 2], 16)) for i in (1, 3, 5)]
        return "#" + "".join(f"{round(share * x + (1 - share) * y):02x}" for x, y in ends)

    themes = [dict(re.findall(r"--(\w+): (#\w{6});", part)) for part in re.split("@media", style)[:2]]
    assert [len(theme) for theme in themes] == [6, 6]
    for theme in themes:
        for text in ("ink", "soft", "accent"):
            assert contrast(theme[text], theme["paper"]) >= 4.5
            assert contrast(theme[text], theme["card"]) >= 4.5
        assert contrast(theme["ink"], mix(theme["accent"], theme["paper"], 0.4)) >= 4.5  # confusion matrix
