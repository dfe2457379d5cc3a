"""Every page in a real browser, at two widths, light and dark.

The pictures of all that are taken stay in the folder that HCK_SCREENSHOTS names, to be looked at.
"""

import io
import os
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from site_pages import html_pages

WIDTHS = (1280, 390)  # a desktop and a phone
KEPT = os.environ.get("HCK_SCREENSHOTS")
HEIGHT = 4000  # of a page, as far as it is kept
SEEN = """(() => {
  const broken = [...document.images].filter(i => i.complete && i.naturalWidth === 0).map(i => i.src);
  const page = document.documentElement;
  const over = width => width > page.clientWidth + 1;
  const wide = !over(page.scrollWidth) ? [] : [...document.querySelectorAll('html, body *')]
    .filter(e => over(e.getBoundingClientRect().right) || e === page)
    .slice(0, 4).map(e => e.tagName + '.' + e.className + ' ' + (e.textContent || '').slice(0, 40));
  const light = name => getComputedStyle(document.body)[name].match(/[\\d.]+/g).slice(0, 3)
    .reduce((sum, part) => sum + Number(part), 0);
  return {broken, wide, ink: light('color'), paper: light('backgroundColor')};
})()"""


@dataclass
class Seen:
    """How a page looks in each setting, and what it said and asked for."""

    page: str
    looks: list[dict]
    events: list[dict]

    def named(self, *names):
        return [(self.page, event["params"]) for event in self.events if event["method"] in names]


def pictured(picture):
    """How light the left edge of a picture is, the ground, and which share is something else."""
    grey = np.asarray(Image.open(io.BytesIO(picture)).convert("L"), dtype=float)
    ground = float(np.median(grey[:, 0]))
    return {"ground": ground, "drawn": float(np.mean(np.abs(grey - ground) > 40))}


def keep(picture, path, width, dark):
    folder = Path(KEPT)
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{'_'.join(path.with_suffix('').parts)}-{width}-{'dark' if dark else 'light'}.png"
    (folder / name).write_bytes(picture)


@pytest.fixture(scope="module")
def shown(site, browser):
    seen = []
    for path in html_pages(site):
        browser.open(path, WIDTHS[0])
        looks = []
        for dark, width in product((False, True), WIDTHS):
            browser.resize(width, dark=dark)
            browser.wait_for(f"document.documentElement.dataset.theme === '{'dark' if dark else 'light'}'")
            picture = browser.picture(HEIGHT if KEPT else None)
            if KEPT:
                keep(picture, path.relative_to(site), width, dark)
            looks.append({"width": width, "dark": dark, **browser.evaluate(SEEN), **pictured(picture)})
        seen.append(Seen(str(path.relative_to(site)), looks, list(browser.events)))
    return seen


def test_all_pages_are_there(shown):
    assert len(shown) > 60


def test_nothing_goes_wrong(shown):
    names = "Runtime.exceptionThrown", "Log.entryAdded", "Network.loadingFailed"
    assert not [said for each in shown for said in each.named(*names)]
    printed = [said for each in shown for said in each.named("Runtime.consoleAPICalled")]
    assert not [(page, said) for page, said in printed if said["type"] in ("error", "warning", "assert")]


def test_nothing_is_asked_for_from_elsewhere(shown):
    asked = {said["request"]["url"] for each in shown for _, said in each.named("Network.requestWillBeSent")}
    assert asked
    assert not [url for url in asked if not url.startswith(("file:", "data:", "blob:"))]


def test_no_page_is_wider_than_the_window(shown):
    wide = [(each.page, look["width"], look["wide"]) for each in shown for look in each.looks if look["wide"]]
    assert not wide


def test_images_are_there(shown):
    assert not [(each.page, look["broken"]) for each in shown for look in each.looks if look["broken"]]


def test_dark_and_light(shown):
    for each in shown:
        for look in each.looks:
            assert (look["ink"] > look["paper"]) == look["dark"], (each.page, look)
            assert (look["ground"] < 128) == look["dark"], (each.page, look)


def test_pictures_are_not_empty(shown):
    """Something is written on every page, and it does not cover the ground."""
    for each in shown:
        for look in each.looks:
            assert 0.005 < look["drawn"] < 0.9, (each.page, look)


@pytest.mark.parametrize(
    ("word", "page"), [("HCKKernelPCA", "hck.html#hck.HCKKernelPCA"), ("conformal", "uncertainty.html")]
)
def test_search_works_without_a_server(site, browser, word, page):
    browser.open(site / "search.html", WIDTHS[0], query=f"?q={word}")
    found = "[...document.querySelectorAll('#search-results a')]"
    browser.wait_for(f"{found}.some(a => a.href.includes('{page}'))")
    assert not browser.named("Runtime.exceptionThrown", "Network.loadingFailed")
