"""Names from files are text in every picture: no formula, no markup, nothing hidden, nothing invisible."""

import io
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pandas as pd
import pytest

from hck.kernels import Gaussian
from hck.plotting import plot_lengthscales, plot_partition, plot_reliability, plot_tradeoff

NAMES = {
    "[/bold]": "[/bold]",
    "<script>": "<script>",
    "a & b": "a & b",
    "$x_1$": "$x_1$",
    r"\$x\alpha$": r"\$x\alpha$",
    "$\\frac{": "$\\frac{",
    "_hidden": "_hidden",
    "\x1b[31mred": r"\x1b[31mred",
    "a\x00b\u202ec": r"a\x00b\u202ec",
}


def drawn(ax):
    """All text of a picture, as a reader of SVG finds it."""
    page = io.BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        ax.figure.savefig(page, format="svg")
    root = ElementTree.fromstring(page.getvalue())
    return {"".join(each.itertext()).strip() for each in root.iter("{http://www.w3.org/2000/svg}text")}


@pytest.mark.parametrize(("name", "shown"), NAMES.items())
def test_names_are_text(grown, name, shown):
    tree, X = grown(60, 20)
    assert shown in drawn(plot_partition(tree, pd.DataFrame(X, columns=[name, "b"])))
    assert shown in drawn(plot_lengthscales(Gaussian([1.0, 2.0]), feature_names=[name, "b"]))
    proba = np.random.default_rng(0).dirichlet(np.ones(3), 60)
    classes = np.array([name, "b", "c"], dtype=object)
    assert shown in drawn(plot_reliability(classes[proba.argmax(1)], proba, classes))
    runs = [{name: 1.0 + k, "error": 1.0 / (k + 1), "way": name} for k in range(4)]
    found = drawn(plot_tradeoff(runs, name, "error", by="way"))
    assert shown in found
