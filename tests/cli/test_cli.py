"""The command line, as a person uses it."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file

from hck import __version__
from hck.approximations.make import NAMES
from hck.cli._common import show, warn
from hck.cli._options import APPROXIMATIONS, KERNELS
from hck.cli._tables import task_of
from hck.kernels import make_kernel

pytestmark = pytest.mark.usefixtures("one_thread")


def test_regression(hck, files, table):
    assert hck("fit", "train.csv", "--target", "price", "--out", "model", "--fit-time", "0.5")[0] == 0
    code, out, _ = hck("evaluate", "model", "test.csv", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["rmse"] < 0.1
    assert 0.85 < found["inside_95%_intervals"] <= 1
    assert hck("predict", "model", "new.csv", "--out", "predicted.csv")[0] == 0
    predicted = pd.read_csv("predicted.csv")
    truth = table(100, 2).price
    assert list(predicted.columns) == ["prediction", "lower", "upper"]
    assert np.sqrt(np.mean((predicted.prediction - truth) ** 2)) < 0.1  # columns are found by their names
    assert (predicted.lower < predicted.prediction).all()
    narrow = hck("predict", "model", "new.csv", "--out", "narrow.csv", "--level", "0.5")
    assert narrow[0] == 0
    assert (pd.read_csv("narrow.csv").upper < predicted.upper).all()
    code, out, _ = hck("info", "model", "--json")
    assert json.loads(out)["target"] == "price"
    assert json.loads(out)["points"] == 400
    assert re.search("Matern|Gaussian|RationalQuadratic", hck("info", "model")[1])


def test_classification(hck, files):
    code, out, _ = hck(
        "fit", "train_kinds.csv", "--target", "kind", "--out", "model", "--fit-time", "0.5", "--json"
    )
    assert code == 0
    assert json.loads(out)["task"] == "classification"
    assert json.loads(out)["left_out_accuracy"] > 0.9
    assert hck("predict", "model", "new.csv", "--out", "predicted.csv")[0] == 0
    predicted = pd.read_csv("predicted.csv")
    assert list(predicted.columns) == ["prediction", "p_high", "p_low"]
    np.testing.assert_allclose(predicted.p_high + predicted.p_low, 1)
    found = json.loads(hck("evaluate", "model", "test_kinds.csv", "--json")[1])
    assert found["accuracy"] > 0.9
    assert found["log_loss"] < 0.4


def test_gaussian_process(hck, files):
    options = ("--task", "gp", "--rank", "64", "--fit-time", "fast", "--out", "model")
    assert hck("fit", "train.csv", "--target", "price", *options)[0] == 0
    assert hck("predict", "model", "new.csv", "--out", "predicted.csv", "--level", "0.7")[0] == 0
    predicted = pd.read_csv("predicted.csv")
    assert list(predicted.columns) == ["prediction", "std", "lower", "upper"]
    reach = (predicted.upper - predicted.prediction) / predicted["std"]
    assert np.ptp(reach) < 1e-6
    assert 0.7 < reach.mean() < 1.4  # a Gaussian's: 1.04
    found = json.loads(hck("evaluate", "model", "test.csv", "--json")[1])
    assert found["nlpd"] < -1
    code, _, said = hck("predict", "model", "new.csv", "--out", "other.csv", "--level", "1.5")
    assert code == 1
    assert "--level must be between 0 and 1" in said


def test_other_files(hck, files, table):
    frame = table(300, 0)
    X, y = frame[["a", "b"]].to_numpy(), frame.price.to_numpy()
    dump_svmlight_file(X, y, "data.svm")
    np.savez("data.npz", X=X, y=y)
    frame.drop(columns="kind").to_parquet("data.parquet")
    for name in ("data.svm", "data.npz", "data.parquet"):
        target = ("--target", "price") if name.endswith("parquet") else ()
        options = ("--out", f"of-{name}", "--fit-time", "0.2", "--kernel", "gaussian", "--json")
        code, out, said = hck("fit", name, *target, *options)
        assert code == 0, said
        assert json.loads(out)["task"] == "regression"
        assert hck("predict", f"of-{name}", name, "--out", f"{name}.csv")[0] == 0
        assert len(pd.read_csv(f"{name}.csv")) == 300


def test_text_without_its_last_columns(hck):
    """They are 0 in all records, but the model knows that they are there."""
    X = np.random.default_rng(0).uniform(size=(200, 5)) * (np.arange(5) < 3 + (np.arange(200) % 3)[:, None])
    y = X @ [1.0, 2.0, 3.0, 4.0, 5.0]
    dump_svmlight_file(X, y, "train.svm")
    few = np.arange(0, 200, 3)  # those with three columns
    dump_svmlight_file(X[few, :3], y[few], "few.svm")
    assert hck("fit", "train.svm", "--out", "model", "--fit-time", "0.2")[0] == 0
    found = json.loads(hck("evaluate", "model", "few.svm", "--json")[1])
    assert found["points"] == len(few)
    assert found["r2"] > 0.99
    assert hck("predict", "model", "few.svm", "--out", "few.csv")[0] == 0
    assert hck("report", "model", "--data", "few.svm", "--out", "few.html")[0] == 0


def test_parts_of_a_file(hck, table):
    """To train and to test, unless another is asked for."""
    train, test = table(300, 0), table(70, 1)
    arrays = {"X_train": train[["a", "b"]], "X_test": test[["a", "b"]]}
    np.savez("both.npz", **arrays, y_train=train.price, y_test=test.price)
    options = ("--fit-time", "0.2", "--json")
    assert json.loads(hck("fit", "both.npz", "--out", "model", *options)[1])["points"] == 300
    assert json.loads(hck("evaluate", "model", "both.npz", "--json")[1])["points"] == 70
    other = hck("evaluate", "model", "both.npz", "--part", "train", "--json")
    assert json.loads(other[1])["points"] == 300


def test_names_on_one_side_only(hck, table):
    """A model of a table predicts for an array and the other way round, by position."""
    frame = table(200, 0)[["a", "b", "price"]]
    frame.to_csv("named.csv", index=False)
    np.savez("array.npz", X=frame[["a", "b"]], y=frame.price)
    for name, other in (("named.csv", "array.npz"), ("array.npz", "named.csv")):
        target = ("--target", "price")
        asked = target if name.endswith("csv") else ()
        assert hck("fit", name, *asked, "--out", f"of-{name}", "--fit-time", "0.2")[0] == 0
        asked = target if other.endswith("csv") else ()
        same, swapped = (
            hck("evaluate", f"of-{name}", each, *(target if each.endswith("csv") else ()), "--json")
            for each in (name, other)
        )
        assert swapped[2] == ""  # nothing to warn of
        assert json.loads(swapped[1])["rmse"] == pytest.approx(json.loads(same[1])["rmse"])


def test_few_points_have_no_intervals(hck, table):
    table(1, 0).drop(columns="kind").to_csv("one.csv", index=False)
    code, out, _ = hck(
        "fit", "one.csv", "--target", "price", "--task", "regression", "--out", "model", "--json"
    )
    assert code == 0
    assert "left_out_rmse" not in json.loads(out)
    assert hck("predict", "model", "one.csv", "--out", "p.csv")[0] == 0
    assert list(pd.read_csv("p.csv").columns) == ["prediction"]
    code, _, said = hck("predict", "model", "one.csv", "--out", "q.csv", "--level", "0.5")
    assert code == 1
    assert "it has no intervals" in said


def test_labels_that_the_model_has_not_seen(hck, files, table):
    hck("fit", "train_kinds.csv", "--target", "kind", "--out", "model", "--fit-time", "0.2")
    frame = table(100, 3).drop(columns="price")
    frame.loc[:9, "kind"] = "middling"
    frame.to_csv("more.csv", index=False)
    found = json.loads(hck("evaluate", "model", "more.csv", "--json")[1])
    assert found["of_unknown_class"] == 10
    assert found["accuracy"] < 0.91


def test_many_points_are_predicted_in_blocks(hck, files, monkeypatch):
    hck("fit", "train.csv", "--target", "price", "--out", "model", "--fit-time", "0.2")
    assert hck("predict", "model", "new.csv", "--out", "whole.csv")[0] == 0
    monkeypatch.setattr("hck.cli.predict._BLOCK", 33)
    assert hck("predict", "model", "new.csv", "--out", "blocks.csv")[0] == 0
    pd.testing.assert_frame_equal(pd.read_csv("whole.csv"), pd.read_csv("blocks.csv"))


def test_compare(hck, files):
    options = ("--rank", "32", "--fit-time", "0.3")
    code, out, _ = hck("compare", "train.csv", "--target", "price", *options, "--out", "all.csv", "--json")
    found = json.loads(out)
    assert code == 0
    assert list(found) == ["hierarchical", "compositional", "independent", "nystrom", "fourier"]
    assert all(each["rmse"] < 0.3 for each in found.values())
    written = pd.read_csv("all.csv", index_col="kernel")
    assert written.rmse["nystrom"] == pytest.approx(found["nystrom"]["rmse"])
    shown = hck("compare", "train_kinds.csv", "--target", "kind", "--methods", "nystrom,", *options)[1]
    assert "accuracy" in shown
    asked = ("--task", "gp", "--methods", "hierarchical", "--json")
    process = hck("compare", "train.csv", "--target", "price", *options[:2], *asked)
    assert "nlpd" in json.loads(process[1])["hierarchical"]


def test_bench(hck):
    code, out, _ = hck("bench", "--n", "2000", "--rank", "16", "--json")
    assert code == 0
    assert json.loads(out)["points_per_second"] > 0


def test_interrupted(hck, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("hck.demo.run", interrupt)
    assert hck("demo")[0] == 130


@pytest.fixture
def short_demo(monkeypatch):
    for name, value in {"N_TRAIN": 300, "N_TEST": 50, "SUBSETS": (50, 100), "RANKS": (8, 16)}.items():
        monkeypatch.setattr(f"hck.demo.{name}", value)


def test_demo(hck, short_demo, tmp_path):
    code, out, said = hck("demo", "--json")
    found = json.loads(out)
    assert (code, said) == (0, "")
    assert [each["rank"] for each in found["results"]] == [None, None, 8, 16]
    assert all(0 < each["relative_error"] < 2 for each in found["results"])
    assert (tmp_path / found["plot"]).read_bytes().startswith(b"\x89PNG")
    code, _, said = hck("demo")
    assert code == 1
    assert "use --force" in said
    code, out, _ = hck("demo", "--force")
    assert code == 0
    assert "hierarchical, rank 16" in out


def test_help_version_and_a_list_of_experiments(hck):
    assert hck("--version")[1].strip() == __version__
    names = "fit predict evaluate info report compare reproduce bench demo compile"
    for command in names.split():
        assert command in hck("--help")[1]
        assert hck(command, "--help")[0] == 0
    assert "fig3" in hck("reproduce")[1]
    assert hck("fit")[0] == 2  # what is missing is a matter of usage


def test_as_a_program(files):
    """Quiet where it is piped: nothing but the result on stdout, nothing on stderr."""
    command = [sys.executable, "-m", "hck.cli", "fit", "train.csv", "--target", "price"]
    done = subprocess.run(
        [*command, "--fit-time", "fast", "--out", "model", "--json"],
        cwd=files,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0
    assert done.stderr == ""
    assert json.loads(done.stdout)["model"] == "model"


@pytest.mark.skipif(os.name != "posix", reason="pipes that nobody reads are told of by POSIX systems")
def test_nobody_reads(files):
    """A pipe that is closed is no mistake, since the work is done."""
    fitted = f"{sys.executable} -m hck.cli fit train.csv --target price --fit-time fast --out model --json"
    done = subprocess.run(
        ["bash", "-c", f"{fitted} | true; echo ${{PIPESTATUS[0]}}"], cwd=files, capture_output=True, text=True
    )
    assert done.stdout.strip() == "0"
    assert done.stderr == ""
    assert (files / "model" / "model.json").exists()


def test_names_that_are_known_without_torch():
    assert set(APPROXIMATIONS) == set(NAMES)
    with pytest.raises(ValueError, match=f"known kernels: {', '.join(KERNELS)}"):
        make_kernel("unheard of")


def test_json_has_no_nan(capsys):
    show({"a": float("nan"), "b": [1.0, float("inf")]}, True)
    assert json.loads(capsys.readouterr().out) == {"a": None, "b": [1.0, None]}


def test_warnings_are_lines(capsys):
    warn("two\nlines", UserWarning, "file.py", 3)
    warn("for programmers", DeprecationWarning, "file.py", 4)
    assert capsys.readouterr().err == "hck: two lines\n"


@pytest.mark.parametrize(
    ("y", "task"),
    [
        ([0.5, 1.5, 2.5, 3.5], "regression"),
        (np.arange(100.0), "regression"),
        ([1, 2, 3, 1, 2, 3], "classification"),
        ([-1.0, 1.0, 1.0], "classification"),
        ([0.1, 0.7, 0.1], "regression"),  # which classifiers do not take
        (["a", "b"], "classification"),
        ([True, False], "classification"),
    ],
)
def test_task(y, task):
    assert task_of(np.asarray(y)) == task


def test_report(hck, files):
    hck("fit", "train.csv", "--target", "price", "--fit-time", "0.2", "--out", "model")
    code, out, _ = hck("report", "model", "--data", "test.csv", "--out", "report.html", "--json")
    assert code == 0
    assert json.loads(out)["bytes"] == (files / "report.html").stat().st_size
    assert "model on test.csv" in (files / "report.html").read_text()
    assert hck("report", "model", "--data", "test.csv", "--out", "report.html")[0] == 1  # it is there
    code, _, said = hck("report", "model", "--data", "new.csv", "--out", "other.html")
    assert code == 1
    assert "does not have the target" in said
