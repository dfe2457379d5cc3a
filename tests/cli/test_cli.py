"""The command line, as a person uses it."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file

from hck import __version__
from hck.cli import main
from hck.cli._tables import task_of

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def hck(monkeypatch, capsys, tmp_path):
    """Run a command in an empty folder: exit code, what it printed, and what it said."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["hck", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        printed = capsys.readouterr()
        return left.value.code or 0, printed.out, printed.err

    return run


def table(n, seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.uniform(size=(n, 2)), columns=["a", "b"])
    frame["town"] = rng.choice(["north", "south"], n)
    frame["price"] = np.sin(5 * frame.a) + frame.b + 0.5 * (frame.town == "north")
    frame["price"] += 0.05 * rng.normal(size=n)
    frame["kind"] = np.where(frame.price > 1, "high", "low")
    return frame


@pytest.fixture
def files(tmp_path):
    for name, n, seed in (("train", 400, 0), ("test", 200, 1)):
        table(n, seed).drop(columns="kind").to_csv(tmp_path / f"{name}.csv", index=False)
        table(n, seed).drop(columns="price").to_csv(tmp_path / f"{name}_kinds.csv", index=False)
    table(100, 2)[["town", "b", "a"]].to_csv(tmp_path / "new.csv", index=False)
    return tmp_path


def test_regression(hck, files):
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
    assert "Matern" in hck("info", "model")[1] or "Gaussian" in hck("info", "model")[1]


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
    options = ("--task", "gp", "--rank", "64", "--out", "model")
    assert hck("fit", "train.csv", "--target", "price", *options)[0] == 0
    assert hck("predict", "model", "new.csv", "--out", "predicted.csv", "--level", "0.7")[0] == 0
    predicted = pd.read_csv("predicted.csv")
    assert list(predicted.columns) == ["prediction", "std", "lower", "upper"]
    np.testing.assert_allclose(predicted.upper - predicted.prediction, 1.0364 * predicted["std"], rtol=1e-3)
    found = json.loads(hck("evaluate", "model", "test.csv", "--json")[1])
    assert found["nlpd"] < -1
    code, _, said = hck("predict", "model", "new.csv", "--out", "other.csv", "--level", "1.5")
    assert code == 1
    assert "--level must be between 0 and 1" in said


def test_other_files(hck, files):
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


def test_compare(hck, files):
    options = ("--rank", "32", "--fit-time", "0.3")
    code, out, _ = hck("compare", "train.csv", "--target", "price", *options, "--json")
    found = json.loads(out)
    assert code == 0
    assert list(found) == ["hierarchical", "compositional", "independent", "nystrom", "fourier"]
    assert all(each["rmse"] < 0.3 for each in found.values())
    shown = hck("compare", "train_kinds.csv", "--target", "kind", "--methods", "nystrom", *options)[1]
    assert "accuracy" in shown


def test_bench(hck):
    code, out, _ = hck("bench", "--n", "2000", "--rank", "16", "--json")
    assert code == 0
    assert json.loads(out)["points_per_second"] > 0


WRONG = {
    "no such file": (("fit", "none.csv", "--target", "y", "--out", "m"), "there is no file none.csv"),
    "no target": (("fit", "train.csv", "--out", "m"), "--target is needed"),
    "wrong target": (("fit", "train.csv", "--target", "prize", "--out", "m"), "no column 'prize'"),
    "wrong kernel": (("fit", "train.csv", "--target", "price", "--kernel", "rbf", "--out", "m"), "rbf"),
    "wrong time": (
        ("fit", "train.csv", "--target", "price", "--fit-time", "long", "--out", "m"),
        "use fast, balanced, best or seconds",
    ),
    "wrong approximation": (
        ("fit", "train.csv", "--target", "price", "--approximation", "svd", "--out", "m"),
        "approximation",
    ),
    "no GPU": (("fit", "train.csv", "--target", "price", "--device", "cuda", "--out", "m"), "no CUDA device"),
    "no model": (("predict", "nowhere", "new.csv", "--out", "p.csv"), "nowhere"),
    "no experiment": (("reproduce", "fig99"), "fig99 is not an experiment; choose from fig3"),
    "unknown file": (("fit", "train.csv.doc", "--target", "y", "--out", "m"), "train.csv.doc"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_gets_one_clear_line(name, hck, files):
    if name == "no GPU" and __import__("torch").cuda.is_available():
        pytest.skip("there is a GPU")
    arguments, text = WRONG[name]
    code, out, said = hck(*arguments)
    assert code == 1
    assert out == ""
    assert text in said
    assert said.count("\n") == 1
    assert not (files / "m").exists()


def test_nothing_is_overwritten(hck, files):
    options = ("fit", "train.csv", "--target", "price", "--fit-time", "0.2", "--out", "model")
    assert hck(*options)[0] == 0
    code, _, said = hck(*options)
    assert code == 1
    assert "use --force" in said
    assert hck(*options, "--force")[0] == 0
    (files / "p.csv").write_text("mine")
    code, _, said = hck("predict", "model", "new.csv", "--out", "p.csv")
    assert code == 1
    assert (files / "p.csv").read_text() == "mine"
    assert hck("predict", "model", "new.csv", "--out", "p.csv", "--force")[0] == 0
    assert (files / "p.csv").read_text() != "mine"


def test_missing_columns(hck, files):
    hck("fit", "train.csv", "--target", "price", "--fit-time", "0.2", "--out", "model")
    table(10, 3)[["a", "town"]].to_csv("part.csv", index=False)
    code, _, said = hck("predict", "model", "part.csv", "--out", "p.csv")
    assert code == 1
    assert "no column 'b'" in said
    code, _, said = hck("evaluate", "model", "new.csv")
    assert code == 1
    assert "does not have the target" in said


def test_interrupted(hck, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("hck.demo.main", interrupt)
    assert hck("demo")[0] == 130


def test_help_version_and_a_list_of_experiments(hck):
    assert hck("--version")[1].strip() == __version__
    for command in ("fit", "predict", "evaluate", "info", "report", "compare", "reproduce", "bench", "demo"):
        assert command in hck("--help")[1]
        assert hck(command, "--help")[0] == 0
    assert "fig3" in hck("reproduce")[1]
    assert hck("fit")[0] == 2  # what is missing is a matter of usage


def test_as_a_program(files):
    """Quiet where it is piped: nothing but the result on stdout, nothing on stderr."""
    command = [sys.executable, "-m", "hck.cli", "fit", "train.csv", "--target", "price"]
    done = subprocess.run(
        [*command, "--fit-time", "0.2", "--out", "model", "--json"], cwd=files, capture_output=True, text=True
    )
    assert done.returncode == 0
    assert done.stderr == ""
    assert json.loads(done.stdout)["model"] == "model"


@pytest.mark.parametrize(
    ("y", "task"),
    [
        ([0.5, 1.5, 2.5, 3.5], "regression"),
        (np.arange(100.0), "regression"),
        ([1, 2, 3, 1, 2, 3], "classification"),
        ([-1.0, 1.0, 1.0], "classification"),
        ([0.1, 0.7, 0.1], "classification"),
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
