"""The page: what it says, that it is safe and complete, and how it is written."""

import base64
import re
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import Ridge
from sklearn.metrics import accuracy_score, confusion_matrix, log_loss, mean_absolute_error, r2_score

import hck
from hck import HCKClassifier, HCKGaussianProcessRegressor, HCKKernelPCA, HCKRegressor, metrics
from hck.report import write_report
from hck.report._text import number
from hck.report.figures import leaves_of
from hck.report.model import held_bytes

NASTY = '<script>alert("1")</script>'
VOID = {"meta", "link", "img"}
pytestmark = pytest.mark.usefixtures("one_thread")


class Page(HTMLParser):
    """A page taken apart: elements that are closed in order, and the text of each kind."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.texts, self.tables = [], [], {}, []
        self.feed(text)
        self.close()
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.tables.append([])
        if tag in ("th", "td"):
            self.tables[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data.strip())
            if self.open[-1] in ("th", "td"):
                self.tables[-1][-1] += data

    def having(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]

    def headings(self, level):
        return [text for text in self.texts.get(f"h{level}", []) if text]

    def row(self, name):
        (found,) = [cells for cells in self.tables if cells and cells[0] == name]
        return found[1:]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(260, 2))
    y = np.sin(4 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(260)
    return X, y


@pytest.fixture(scope="module")
def regressor(data):
    X = pd.DataFrame(data[0][:200], columns=[NASTY, "a & b"])
    return HCKRegressor("gaussian", lengthscale=[0.5, 2.0], alpha=0.01, rank=16, random_state=0).fit(
        X, data[1][:200]
    )


@pytest.fixture(scope="module")
def process(data):
    return HCKGaussianProcessRegressor(rank=32, max_iter=5, random_state=0).fit(data[0][:200], data[1][:200])


@pytest.fixture(scope="module")
def labels(data):
    return np.array(["low", NASTY, "top"])[np.digitize(data[1], [-0.5, 0.5])]


@pytest.fixture(scope="module")
def classifier(data, labels):
    model = HCKClassifier("gaussian", lengthscale=0.5, alpha=0.1, rank=32, random_state=0)
    return model.fit(data[0][:200], labels[:200])


@pytest.fixture
def page_of(tmp_path):
    """The page that is written for a model."""

    def make(*given, **options):
        path = write_report(*given, tmp_path / "page.html", **options)
        text = path.read_text(encoding="utf-8")
        path.unlink()
        return text

    return make


# What it says ---------------------------------------------------------------------------------------


def test_regression(page_of, regressor, data):
    X, y = data[0][200:], data[1][200:]
    frame = pd.DataFrame(X, columns=[NASTY, "a & b"])
    page, predicted = Page(page_of(regressor, frame, y)), regressor.predict(frame)
    assert page.headings(1) == ["Report: HCKRegressor"]
    assert page.headings(2) == ["The model", "What was chosen", "How good it is", "Pictures"]
    assert page.headings(3) == [
        "Predicted and observed",
        "Lengthscales",
        "Partition",
        "Tree",
        "Blocks of the kernel matrix",
    ]
    assert page.row("RMSE")[0] == number(np.sqrt(np.mean((y - predicted) ** 2)))
    assert page.row("MAE")[0] == number(mean_absolute_error(y, predicted))
    assert page.row("R²")[0] == number(r2_score(y, predicted))
    assert page.row("Relative error")[0] == number(np.linalg.norm(y - predicted) / np.linalg.norm(y))
    assert page.row("Kernel") == ["Gaussian"]
    assert page.row("Lengthscale") == [f"one for each feature, from 0.5000 ({NASTY}) to 2.000 (a & b)"]
    assert page.row("Ridge (alpha)") == ["0.01000"]
    assert page.row("Rank") == ["16"]
    assert page.row("Training points") == ["200"]
    assert page.row("Leaves")[0].startswith(f"{regressor.tree_.n_leaves} leaves of")
    assert "Kernel, lengthscales and ridge were given." in page.texts["p"]
    assert f"hck {hck.__version__}" in " ".join(page.texts["p"])
    assert page.having("time")[0]["datetime"][:2] == "20"


def test_a_process_with_intervals(page_of, process, data):
    X, y = data[0][200:], data[1][200:]
    page = Page(page_of(process, X, y, title="Some <b>title</b>"))
    mean, std = process.predict(X, return_std=True, observed=True)
    assert page.headings(1) == ["Some <b>title</b>"]
    assert "What was learned" in page.headings(2)
    assert {"Calibration of intervals", "Learning", "Lengthscales", "Partition"} <= set(page.headings(3))
    for name, score in (("NLPD", metrics.nlpd), ("CRPS", metrics.crps), ("Coverage", metrics.coverage)):
        assert page.row(name)[0] == number(score(y, mean, std))
    noise = f"variance {number(process.noise_)}, standard deviation {number(process.noise_**0.5)}"
    assert ["Noise", noise] in page.tables
    assert page.row("Log-likelihood of the training data") == [number(process.log_marginal_likelihood_value_)]
    alt = next(image["alt"] for image in page.having("img") if "level of the intervals" in image["alt"])
    assert "in those of 95 %" in alt


def test_classes(page_of, classifier, data, labels):
    X, y = data[0][200:], labels[200:]
    page = Page(page_of(classifier, X, y))
    proba, predicted = classifier.predict_proba(X), classifier.predict(X)
    assert page.row("Accuracy")[0] == number(accuracy_score(y, predicted))
    assert page.row("Log-loss")[0] == number(log_loss(y, proba, labels=classifier.classes_))
    sure, right = proba.max(1), classifier.classes_[proba.argmax(1)] == y
    which = np.minimum((10 * sure).astype(int), 9)
    error = sum(abs(sure[which == k].sum() - right[which == k].sum()) for k in range(10)) / len(y)
    assert page.row("Calibration error")[0] == number(error)
    counts = confusion_matrix(y, predicted, labels=classifier.classes_)
    for name, row in zip(classifier.classes_, counts, strict=True):
        assert page.row(name) == [str(count) for count in row]
    assert "Confusion matrix" in page.headings(2)
    assert "Calibration of probabilities" in page.headings(3)


def test_what_was_chosen(page_of, data):
    model = HCKRegressor(fit_time=1, rank=32, random_state=0).fit(data[0][:200], data[1][:200])
    page = Page(page_of(model, data[0][200:], data[1][200:]))
    best = model.selection_.candidates[0]
    assert page.row(best.origin) == [number(best.alpha), number(best.loss)]
    for note in model.selection_.notes:
        assert [note] in page.tables
    assert "Kernels and ridges competed" in " ".join(page.texts["p"])


def test_what_was_averaged(page_of, regressor, data):
    from copy import deepcopy

    from hck.selection.auto import Candidate

    model = deepcopy(regressor)
    one, two = (
        Candidate(model.selection_.kernel, 0.1, name, weight=w) for name, w in (("one", 0.7), ("two", 0.3))
    )
    model.selection_.candidates = model.selection_.blend = [one, two]
    frame = pd.DataFrame(data[0][200:], columns=[NASTY, "a & b"])
    page = Page(page_of(model, frame, data[1][200:]))
    assert ["one", "0.7000"] in page.tables
    assert "a mean of those of the best" in " ".join(page.texts["p"])


def test_components(page_of, data):
    model = HCKKernelPCA(3, lengthscale=0.5, rank=32, random_state=0).fit(data[0][:200])
    page = Page(page_of(model, data[0][200:], None))
    assert page.row("1")[0] == number(model.eigenvalues_[0])
    assert page.row("Components") == ["3"]
    assert "Partition" in page.headings(3)


def test_several_targets_and_no_tree(page_of, data):
    X, both = data[0], np.stack([data[1], -2 * data[1]], 1)
    model = HCKRegressor("gaussian", lengthscale=0.5, alpha=0.1, rank=16, approximation="nystrom")
    page = Page(page_of(model.fit(X[:200], both[:200]), X[200:], both[200:]))
    assert page.headings(3) == ["Predicted and observed, target 0", "Predicted and observed, target 1"]
    assert len(page.row("RMSE")) == 3
    assert page.row("Training points") == ["200"]
    assert page.row("Lengthscale") == ["0.5000 for all features"]


def test_independent_leaves(page_of, data):
    model = HCKRegressor("gaussian", lengthscale=0.5, alpha=0.1, rank=16, approximation="independent")
    page = Page(page_of(model.fit(data[0][:200], data[1][:200]), data[0][200:], data[1][200:]))
    assert "Leaves are dense; blocks between two children of a node are 0." in page.texts["figcaption"]


def test_objects_tensors_and_categories(page_of, data):
    def shared_letters(a, b):
        return np.array([[1 + len(set(s) & set(t)) for t in b] for s in a], dtype=float)

    words = ["tree", "leaf", "root", "node", "branch", "trunk"]
    model = HCKRegressor(shared_letters, alpha=0.1, partition="kernel", rank=2).fit(words, range(6))
    page = Page(page_of(model, words, range(6)))
    assert page.row("Kernel") == ["a function"]
    assert page.row("Features") == ["none: points are objects"]
    X, y = (torch.from_numpy(part) for part in data)
    model = HCKRegressor("gaussian", lengthscale=0.5, alpha=0.1, rank=32).fit(X[:200], y[:200])
    assert "Partition" in Page(page_of(model, X[200:], y[200:])).headings(3)
    table = pd.DataFrame({"size": data[0][:, 0], "kind": np.where(data[0][:, 1] > 0, "up", "down")})
    scales = {"lengthscale": [1.0, 2.0, 3.0], "alpha": 0.1, "rank": 32}
    model = HCKRegressor("gaussian", **scales).fit(table[:200], data[1][:200])
    page = Page(page_of(model, table[200:], data[1][200:]))
    assert page.row("kind: down") == ["1.000"]
    assert page.row("Features") == ["2, of them 1 category"]


def test_what_is_not_known(page_of, data, labels, classifier):
    X, y = data
    model = HCKGaussianProcessRegressor(rank=32, optimizer=None).fit(X[:200], y[:200], np.full(200, 0.1))
    page = Page(page_of(model, X[200:], y[200:]))
    assert "There are no intervals" in " ".join(page.texts["p"])
    assert "Nothing: all parameters were given." in page.texts["p"]
    assert "Learning" not in page.headings(3)
    model = HCKClassifier("gaussian", lengthscale=0.5, alpha=0.1, rank=32, leave_one_out=False)
    page = Page(page_of(model.fit(X[:200], labels[:200]), X[200:], labels[200:]))
    assert "There are no probabilities" in " ".join(page.texts["p"])
    strange = labels[200:].copy()
    strange[:3] = "new"
    page = Page(page_of(classifier, X[200:], strange))
    assert "3 points of a class that the model does not know" in " ".join(page.texts["p"])
    assert sum(map(int, page.row("new"))) == 3


def test_many_classes_and_features(page_of):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 40)), np.arange(300) % 25
    model = HCKClassifier("gaussian", lengthscale=rng.uniform(5, 9, 40), alpha=0.1, rank=64).fit(X, y)
    text = page_of(model, X, y)
    page = Page(text)
    assert "Confusion matrix" not in page.headings(2)
    assert "it would have 25 classes" in " ".join(page.texts["p"])
    assert "Lengthscales: all 40" in page.texts["summary"]
    assert "Lengthscales of 30 features" in text


# That it is safe, complete and readable -------------------------------------------------------------


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


# How it is written ----------------------------------------------------------------------------------


def test_no_file_is_replaced_unless_asked_for(tmp_path, process, data):
    path = tmp_path / "page.html"
    path.write_text("mine")
    given = process, data[0][200:], data[1][200:]
    with pytest.raises(FileExistsError, match=r"page\.html is there already: use force=True"):
        write_report(*given, path)
    assert path.read_text() == "mine"
    assert write_report(*given, str(path), force=True) == path
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_is_left_where_it_fails(tmp_path, process, data, monkeypatch):
    path = tmp_path / "page.html"
    path.write_text("mine")
    given = process, data[0][200:], data[1][200:], path
    with pytest.raises(ValueError, match="X has 60 points but y has 3 values"):
        write_report(process, data[0][200:], data[1][:3], path, force=True)
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        write_report(*given, force=True)
    assert path.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("where", "error", "message"),
    [(".", IsADirectoryError, "is a folder"), ("no/page.html", FileNotFoundError, "there is no folder")],
)
def test_bad_paths(tmp_path, process, data, where, error, message):
    with pytest.raises(error, match=message):
        write_report(process, data[0], data[1], tmp_path / where)


def test_bad_input(page_of, process, classifier, regressor, data):
    X, y = data
    with pytest.raises(TypeError, match=r"a report is about one of HCKRegressor.*got Ridge"):
        page_of(Ridge(), X, y)
    with pytest.raises(ValueError, match="HCKRegressor is not fitted"):
        page_of(HCKRegressor(), X, y)
    with pytest.raises(ValueError, match="needs the targets"):
        page_of(process, X, None)
    with pytest.raises(ValueError, match="y contains NaN"):
        page_of(process, X, np.full(260, np.nan))
    with pytest.raises(ValueError, match="y must be numbers"):
        page_of(process, X, ["a"] * 260)
    with pytest.raises(ValueError, match="y has 2 targets, but the model predicts 1"):
        page_of(process, X, np.stack([y, y], 1))
    with pytest.raises(ValueError, match="none of the model's classes"):
        page_of(classifier, X, np.zeros(260))


# Parts ----------------------------------------------------------------------------------------------


def test_points_are_sent_to_the_leaves_of_the_model(regressor, process, data):
    frame = pd.DataFrame(data[0][:200], columns=[NASTY, "a & b"])
    scaled = HCKRegressor("gaussian", lengthscale=0.5, alpha=0.1, rank=16, scale="standard", random_state=0)
    for model, X in ((regressor, frame), (process, data[0][:200]), (scaled.fit(frame, data[1][:200]), frame)):
        assert torch.equal(leaves_of(model, X), model.tree_.leaf_of_point)


def test_memory_is_counted_once():
    array, tensor = np.zeros(1000), torch.zeros(500, dtype=torch.float64)

    class Holder:
        def __init__(self):
            self.all = [array, array[:10], tensor, tensor[5:], {"again": tensor.numpy()}, np.zeros]
            self.me = self

    assert held_bytes(Holder()) == 8 * 1500


@pytest.mark.parametrize("value", [0, 0.0, 5e-324, 1e300, -0.5, np.float32(3.25), np.inf])
def test_any_number_has_a_text(value):
    text = number(value)
    assert len(text) < 12
    assert float(text.replace(",", "")) == pytest.approx(float(value), rel=1e-3)
