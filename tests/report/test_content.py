"""What the report says of a model."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import accuracy_score, confusion_matrix, log_loss, mean_absolute_error, r2_score

import hck
from hck import (
    HCKClassifier,
    HCKGaussianProcessClassifier,
    HCKGaussianProcessRegressor,
    HCKKernelPCA,
    HCKRegressor,
    metrics,
)
from hck.kernels import Gaussian
from hck.report._text import number
from report_page import NASTY, SHOWN, Page

pytestmark = pytest.mark.usefixtures("one_thread")


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
    assert page.row("Lengthscale") == [f"one for each feature, from 0.5000 ({SHOWN}) to 2.000 (a & b)"]
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
    for name, score in (("NLPD", metrics.nlpd), ("CRPS", metrics.crps)):
        assert page.row(name)[0] == number(score(y, mean, std))
    _, lower, upper = process.predict(X, interval=0.95)  # not those of a Gaussian
    assert page.row("Coverage")[0] == number(np.mean((lower <= y) & (y <= upper)))
    noise = f"variance {number(process.noise_)}, standard deviation {number(process.noise_**0.5)}"
    assert ["Noise", noise] in page.tables
    assert page.row("Log-likelihood of the training data") == [number(process.log_marginal_likelihood_value_)]
    alt = next(image["alt"] for image in page.having("img") if "level of the intervals" in image["alt"])
    _, lower, upper = process.predict(X, interval=0.5)
    assert f"{100 * np.mean((lower <= y) & (y <= upper)):.3g} % in those of 50 %" in alt
    assert "in those of 95 %" in alt


def test_a_process_of_two_targets(page_of, data):
    X, y = data[0], np.stack([data[1], 50 * data[1] ** 2], 1)
    model = HCKGaussianProcessRegressor("matern32", rank=32, max_iter=3, random_state=0)
    page = Page(page_of(model.fit(X[:200], y[:200]), X[200:], y[200:]))
    mean, std = model.predict(X[200:], return_std=True, observed=True)
    expected = [number(metrics.nlpd(y[200:, k], mean[:, k], std[:, k])) for k in range(2)]
    assert page.row("NLPD")[:2] == expected
    _, lower, upper = model.predict(X[200:], interval=0.95)
    inside = ((lower <= y[200:]) & (y[200:] <= upper)).mean(0)
    assert page.row("Coverage")[:2] == [number(share) for share in inside]
    assert {"Calibration of intervals, target 0", "Calibration of intervals, target 1"} <= {*page.headings(3)}
    units = ", ".join(map(number, y[:200].std(0)))
    assert ["Targets", f"2 targets; noise and kernel in units of {units}"] in page.tables
    each = model.log_marginal_likelihood_value_ / 400
    assert page.row("Per observation") == [number(each)]


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
        shown = SHOWN if name == NASTY else name
        assert page.row(shown) == [str(count) for count in row]
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

    from hck.selection import Candidate

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


def test_a_metric(page_of, data):
    kernel = Gaussian(1.0, metric=[[2.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    model = HCKRegressor(kernel, alpha=0.1, rank=16, scale="standard").fit(data[0][:200], data[1][:200])
    page = Page(page_of(model, data[0][200:], data[1][200:]))
    assert page.row("Metric") == ["a matrix of 2 × 3"]
    assert page.row("feature 0") == ["0.5000"]
    assert page.row("feature 1") == [number(0.5**-0.5)]
    assert {"Lengthscales", "Importance of features", "Metric"} <= {*page.headings(3)}


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


@pytest.mark.parametrize("classes", [2, 3])
def test_process_of_classes(page_of, data, classes):
    X, y = data[0], np.digitize(data[1], [0.0] if classes == 2 else [-0.5, 0.5])
    model = HCKGaussianProcessClassifier(rank=16, max_iter=3, random_state=0).fit(X[:200], y[:200])
    page = Page(page_of(model, X[200:], y[200:]))
    assert page.headings(2)[:3] == ["The model", "What was learned", "How good it is"]
    assert page.row("Accuracy")[0] == number(accuracy_score(y[200:], model.predict(X[200:])))
    assert page.row("Log-loss")[0] == number(log_loss(y[200:], model.predict_proba(X[200:])))
    assert page.row("Classes")[0].startswith(f"{classes}")
    assert page.row("Log-likelihood of the training data")[0] == number(model.log_marginal_likelihood_value_)
    assert ("Learning" in page.headings(3)) == (classes == 2)
    assert "Calibration of probabilities" in page.headings(3)
