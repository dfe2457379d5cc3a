"""Forged models, with right checksums: each is refused by one error, or predicts finite numbers."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import hck
from forgeries import LABELS, METRIC, Original, X, Y, reshaped
from hck import HCKClassifier, HCKGaussianProcessRegressor, HCKKernelPCA, HCKRegressor
from hck.branches import Piece
from hck.errors import ModelFileError, RunFileError
from hck.kernels import Gaussian
from hck.outofcore.job import Job
from hck.partition.centres import CentreRule
from hck.points import DensePoints, check_kernel
from hck.preparation.dates import Dates

pytestmark = pytest.mark.usefixtures("one_thread")

SCRIPT = Path(__file__).parent.parent / "helpers" / "forgeries.py"
SMALL = {"alpha": 0.02, "rank": 3, "leaf_size": 6, "random_state": 0}
GIVEN = {**SMALL, "lengthscale": 0.5}


def test_every_field_and_array_of_every_kind_of_model(tmp_path):
    """In another process, that no forgery can harm this one; `benchmarks/fuzz.py` tries all of them."""
    found = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path), "0.004", "0"],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert found.returncode == 0, f"{(tmp_path / 'last').read_text()}\n{found.stderr[-2000:]}"
    outcome = json.loads((tmp_path / "outcome.json").read_text())
    assert outcome["wrong"] == {}
    assert outcome["counts"]["refused"] > 700


@pytest.fixture
def regressor(tmp_path):
    HCKRegressor(**GIVEN).fit(X, Y).save(tmp_path / "model")
    return Original(tmp_path / "model")


def refused(original, match, document=None, arrays=None):
    original.forge(document or original.document, arrays)
    with pytest.raises(ModelFileError, match=match) as info:
        hck.load(original.folder)
    assert str(original.folder) in str(info.value)


def parts(document, name):
    return next(each["parts"] for each in document["objects"] if each["class"] == name)


@pytest.mark.parametrize(
    ("array", "value", "match"),
    [
        ("].parent", -1, "parent must be -1 for the root"),
        ("].parent", 2**40, "parent must be from -1 to"),
        ("].order", 24, "order must be from 0 to 23"),
        ("].order", 0, "order must have each of 0 to 23 once"),
        ("].stop", 3, "st(art|op) must"),
        (".pick", 10**6, "pick must be from 0"),
        (".pick", -1, "pick must be from 0"),
        ("landmarks.blocks.index", 24, "blocks must be from -1 to 23"),
        ("weights", np.nan, "weights must be finite"),
    ],
)
def test_arrays_that_reach_compiled_code(regressor, array, value, match):
    name = next(name for name in regressor.arrays if name.endswith(array))
    forged = regressor.arrays[name].copy()
    forged.reshape(-1)[-1] = value
    refused(regressor, match, arrays={**regressor.arrays, name: forged})


@pytest.mark.parametrize(
    ("metric", "match"),
    [
        (np.full((2, 3), np.nan), "metric must be finite"),
        (np.full((2, 3), 1e300), "metric must be finite"),
        (np.ones(2), "metric must be a matrix"),
        (np.ones((2, 3, 1)), "metric must be a matrix"),
        (np.ones((2, 3), np.int64) > 0, "metric must be a matrix"),
        (np.ones((2, 4)), "3 lengthscales but a metric of shape"),
        (np.ones((3, 3)), "metric has the shape"),
        (np.ones((0, 3)), "metric must be a matrix"),
    ],
)
@pytest.mark.parametrize("approximation", ["hierarchical", "fourier", "tapered"])
def test_metrics(tmp_path, metric, match, approximation):
    HCKRegressor(METRIC, approximation=approximation, **SMALL).fit(X, Y).save(tmp_path / "model")
    original = Original(tmp_path / "model")
    names = [name for name in original.arrays if name.endswith("metric") and "taper" not in name]
    assert names
    document = original.document
    for name in names:
        document = reshaped(document, name, metric)
    refused(original, match, document, {**original.arrays, **dict.fromkeys(names, metric)})


def test_trees_that_never_end(regressor):
    name = next(name for name in regressor.arrays if name.endswith("].parent"))
    parent = regressor.arrays[name].copy()
    parent[1], parent[2] = 2, 1
    refused(regressor, "parent must be -1 for the root", arrays={**regressor.arrays, name: parent})


@pytest.mark.parametrize("kind", ["Sum", "Product", "Scaled"])
def test_kernels_inside_kernels(regressor, kind):
    """A small file, but forty levels of two each are a kernel of 2⁴⁰ terms."""
    document = json.loads(json.dumps(regressor.document))
    objects = document["objects"]
    at = next(i for i, each in enumerate(objects) if each["class"] == "Gaussian")
    levels = 250 if kind == "Scaled" else 40
    inside = [at, *range(len(objects), len(objects) + levels)]
    names = ("kernel",) if kind == "Scaled" else ("left", "right")
    for number in inside[:-1]:
        made = {name: {"is": "object", "number": number} for name in names}
        objects.append({"class": kind, "parts": made if len(names) == 2 else {**made, "scale": 1.0}})
    whole = objects.pop(document["model"]["number"])
    whole["parts"]["more"] = {"is": "object", "number": len(objects) - 1}
    document["model"]["number"] = len(objects)
    objects.append(whole)
    refused(regressor, "kernels inside each other|nested more than|part of itself", document)


def test_kernels_of_many_terms_are_fine(tmp_path):
    kernel = Gaussian(0.5)
    for _ in range(40):
        kernel = kernel + Gaussian(1.0)
    model = HCKRegressor(kernel, alpha=0.1, rank=3, random_state=0).fit(X, Y)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(hck.load(tmp_path / "model").predict(X), model.predict(X))


def test_arrays_that_are_larger_than_memory(regressor):
    document = json.loads(json.dumps(regressor.document))
    parts(document, "HCKRegressor")["intercept_"]["expand"] = [2**50]
    refused(regressor, "larger than the file can account for", document)
    document = json.loads(json.dumps(regressor.document))
    text = {"is": "values", "items": ["a"], "dtype": "<U400000000", "shape": [1]}
    parts(document, "HCKRegressor")["more_"] = text
    refused(regressor, "larger than the file can account for", document)


def test_classes_where_they_do_not_belong(regressor):
    document = json.loads(json.dumps(regressor.document))
    parts(document, "HCKRegressor")["forest_"] = parts(document, "HCKRegressor")["selection_"]
    refused(regressor, "part 'forest_' of an object of the class 'HCKRegressor'", document)


def test_labels_that_are_fewer_than_columns(tmp_path):
    HCKClassifier("laplace", **GIVEN).fit(X, LABELS).save(tmp_path / "model")
    original = Original(tmp_path / "model")
    document = json.loads(json.dumps(original.document))
    parts(document, "HCKClassifier")["classes_"] = {
        "is": "values",
        "items": ["a", "b"],
        "dtype": "<U1",
        "shape": [2],
    }
    refused(original, "classes_ are 2", document)


@pytest.mark.parametrize("value", [np.nan, -1e308])
def test_means_of_missing_values(tmp_path, value):
    HCKRegressor(**GIVEN).fit(np.where(X > 0.9, np.nan, X), Y).save(tmp_path / "model")
    original = Original(tmp_path / "model")
    name = next(name for name in original.arrays if name.endswith(".means"))
    forged = np.full_like(original.arrays[name], value)
    refused(original, "means must be finite", arrays={**original.arrays, name: forged})


def test_numbers_that_equal_others_of_another_type():
    """Counts as 2.0, which equals 2 but is no index."""
    count = torch.tensor([2, 1])
    rule = CentreRule(torch.zeros(3, 2), count)
    rule.check(count, 2)
    with pytest.raises(ValueError, match="count must be the numbers of children"):
        replace(rule, count=count.float()).check(count, 2)


def test_points_whose_distances_overflow():
    with pytest.raises(ValueError, match="squared distances overflow"):
        check_kernel(Gaussian(1.0), DensePoints(torch.full((3, 2), 1e308, dtype=torch.float64)))


def test_a_branch_that_is_text(tmp_path):
    job = Job(tmp_path, torch.device("cpu"))
    job.keep("branches/0-0", "text")
    with pytest.raises(RunFileError, match=r"0-0 is damaged \(it holds no Piece\)"):
        job.load("branches/0-0", Piece)


def test_lengthscales_whose_squares_overflow(regressor):
    document = json.loads(json.dumps(regressor.document))
    parts(document, "Gaussian")["lengthscale"] = 1e308
    refused(regressor, "lengthscale must be at most 1e\\+154", document)


@pytest.mark.parametrize(
    ("array", "forge", "match"),
    [
        ("members[0].y", lambda y: np.full_like(y, 1e308), "y must not be so large"),
        ("members[0].y", lambda y: np.full_like(y, 1.3e154), "y must not be so large"),
        (
            "members[0].precision",
            lambda precision: np.full_like(precision, 1e308),
            "precision must not be so l",
        ),
        ("members[0].precision", lambda precision: 1e-250 * precision, "precision must not be so small"),
        ("_trend.rough", lambda rough: rough[:, None], "rough must be"),
        ("_trend.basis", lambda basis: basis[:2], "basis must have the shape"),
        ("_trend.basis", lambda basis: 1e200 * basis, "basis must not be so large"),
    ],
)
def test_processes(tmp_path, array, forge, match):
    x = np.column_stack([X, X[:, 0] + 1e-4 * X[:, 1] ** 2])  # so that its trend has a basis
    HCKGaussianProcessRegressor("matern32", optimizer=None, trend="linear", rank=3).fit(x, Y).save(
        tmp_path / "model"
    )
    original = Original(tmp_path / "model")
    name = next(name for name in original.arrays if name.endswith(array))
    forged = forge(original.arrays[name])
    document = reshaped(original.document, name, forged)
    refused(original, match, document, {**original.arrays, name: forged})


def test_means_of_components(tmp_path):
    HCKKernelPCA(2, lengthscale=0.5, rank=3).fit(X).save(tmp_path / "model")
    original = Original(tmp_path / "model")
    name = next(name for name in original.arrays if name.endswith("_mean"))
    forged = np.full_like(original.arrays[name], 1e308)
    refused(original, "_mean must not be so large", arrays={**original.arrays, name: forged})


def test_dates_without_the_name_of_their_zone():
    with pytest.raises(ValueError, match="zone must be a time zone, or None"):
        Dates([], "").validate()
