"""The page in a real browser, as a person sees it."""

import numpy as np
import pytest

from hck import HCKClassifier, HCKGaussianProcessRegressor
from hck.report import write_report

NASTY = "<script>window.hit = 1</script>"
SEEN = """[...document.querySelectorAll('%s')].map(e => {
  const box = e.getBoundingClientRect();
  return {width: box.width, height: box.height, left: box.left,
          shown: e.checkVisibility({opacityProperty: true, visibilityProperty: true})};
})"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory, browser):
    """Of a process and of a classifier; the browser comes first, so that nothing is fitted without one."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(400, 2))
    y = np.sin(4 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(400)
    folder = tmp_path_factory.mktemp("pages")
    process = HCKGaussianProcessRegressor("matern32", rank=16, max_iter=5, random_state=0).fit(
        X[:300], y[:300]
    )
    label = np.array(["low", NASTY, "top"])[np.digitize(y, [-0.5, 0.5])]
    classifier = HCKClassifier("gaussian", lengthscale=0.5, alpha=0.1, rank=16, random_state=0)
    classifier.fit(X[:300], label[:300])
    return [
        write_report(process, X[300:], y[300:], folder / "process.html", title=NASTY),
        write_report(classifier, X[300:], label[300:], folder / "classes.html"),
    ]


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1200, 390])
def test_page(pages, browser, width, dark):
    for path in pages:
        browser.open(path, width, dark=dark)
        assert not browser.named("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        assert not browser.named("Network.loadingFailed")
        asked = [each["request"]["url"] for each in browser.named("Network.requestWillBeSent")]
        assert {url.partition(":")[0] for url in asked} <= {"file", "data"}
        assert sum(url.startswith("file:") for url in asked) == 1
        assert browser.evaluate("window.hit === undefined && document.scripts.length === 0")
        headings = browser.evaluate(SEEN % "h1, h2, h3")
        assert len(headings) > 8
        assert all(each["shown"] and each["width"] > 50 and each["height"] > 10 for each in headings)
        images = browser.evaluate(SEEN % "img")
        assert len(images) >= 4
        assert all(each["shown"] and each["width"] > 200 and each["height"] > 100 for each in images)
        decoded = "Promise.all([...document.images].map(i => i.decode().then(() => i.naturalWidth > 0)))"
        assert all(browser.evaluate(decoded))
        assert browser.evaluate("document.documentElement.scrollWidth") <= width  # no scrolling sideways
        shade = browser.evaluate("getComputedStyle(document.body).backgroundColor")
        assert shade == ("rgb(13, 17, 23)" if dark else "rgb(255, 255, 255)")


def test_side_by_side_where_there_is_room(pages, browser):
    for width, columns in ((1200, 2), (390, 1)):
        browser.open(pages[0], width)
        lefts = {round(each["left"]) for each in browser.evaluate(SEEN % "figure:not(.wide)")}
        assert len(lefts) == columns


def test_print(pages, browser):
    browser.open(pages[0], 1200, dark=True)
    assert len(browser.call("Page.printToPDF")["data"]) > 10_000
    browser.call("Emulation.setEmulatedMedia", media="print", features=[])
    try:
        assert browser.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    finally:
        browser.call("Emulation.setEmulatedMedia", media="", features=[])
