"""The comparison with other methods: data in parts, runs in processes, and tables of their results."""

import numpy as np
import pytest
import scipy.sparse as sp

from beside.problems import categories, dense, impute, problem, words
from beside.runs import append, in_a_process, key, measure, read
from beside.tables import ranked, tables
from tabular import jobs, parse

JOB = {"data": "kin8nm", "method": "histgradientboosting", "seed": 0, "max_rows": None, "device": "cpu"}
RNG = np.random.default_rng(0)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Two small data sets of the form of real ones."""
    X = RNG.normal(size=(100, 16))
    np.savez(tmp_path / "kin8nm.npz", X=X[:, :8], y=X[:, 0])
    np.savez(tmp_path / "letter.npz", X=X, y=np.array(list("ABCD"))[np.arange(100) % 4])
    monkeypatch.setenv("HCK_DATA", str(tmp_path))
    return tmp_path


def test_parts(folder):
    p = problem("kin8nm", 0, None)
    assert (p.X.shape, p.X_test.shape, p.is_regression, p.classes) == ((80, 8), (20, 8), True, 0)
    fewer = problem("letter", 1, 30)
    assert (fewer.X.shape, fewer.X_test.shape, fewer.classes) == ((30, 16), (20, 16), 4)
    assert fewer.y.dtype.kind == "i"
    assert fewer.first(10).y.tolist() == fewer.y[:10].tolist()


def test_columns_as_methods_take_them():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"a": [1.0, np.nan, 3.0], "b": pd.Categorical(["x", None, "y"])})
    assert categories(X) == ["b"]
    assert impute(X, X).a.tolist() == [1, 2, 3]
    assert words(X).b.tolist() == ["x", "?", "y"]
    assert dense(sp.eye(2, format="csr")).tolist() == [[1, 0], [0, 1]]
    assert dense(X) is X


@pytest.mark.parametrize(
    ("data", "scores"), [("kin8nm", {"rmse", "rmse_over_std"}), ("letter", {"accuracy", "log_loss"})]
)
def test_a_run(folder, data, scores):
    found = measure(JOB | {"data": data, "threads": 1})
    seconds = {"fit_seconds", "fit_cpu_seconds", "predict_seconds"}
    assert set(found) == {"rows", "version"} | scores | seconds
    assert found["rows"] == 80


@pytest.mark.parametrize(
    ("code", "state"),
    [
        ("import sys, pathlib; pathlib.Path(sys.argv[4]).write_text('{\"rmse\": 1}')", "ok"),
        ("raise RuntimeError('too bad')", "error"),
        ("import os; os.abort()", "error"),
        ("import time; time.sleep(60)", "timeout"),
    ],
)
def test_whatever_becomes_of_a_process(tmp_path, code, state):
    script = tmp_path / "script.py"
    script.write_text(code)
    job = JOB | {"threads": 1}
    found = in_a_process(job, 0.5 if state == "timeout" else 30, script)
    assert found["state"] == state
    assert found | job == found
    assert found.get("rmse") == (1 if state == "ok" else None)
    if "too bad" in code:
        assert found["error"] == "exit status 1: RuntimeError: too bad"


def test_a_run_that_was_stopped_goes_on(tmp_path):
    path = tmp_path / "results" / "tabular.jsonl"
    assert read(path) == []
    append(path, JOB)
    with path.open("a") as file:
        file.write('{"data": "kin8')
    assert [key(record) for record in read(path)] == [key(JOB)]


def test_what_is_absent_is_left_out(folder, capsys):
    found = jobs(
        parse(["--data", "kin8nm,mv", "--methods", "histgradientboosting,hck-fast", "--seeds", "0,1"])
    )
    assert [(job["data"], job["seed"]) for job in found] == [("kin8nm", 0)] * 2 + [("kin8nm", 1)] * 2
    assert "mv is left out: it is not at hand" in capsys.readouterr().out


def test_ranks():
    assert ranked(np.array([2, 1, np.nan, 2, np.nan])).tolist() == [2.5, 1, 4.5, 2.5, 4.5]


def test_tables():
    def made(data, method, value, **more):
        column = "rmse" if data in ("kin8nm", "mv") else "accuracy"
        found = {"rows": 100, "fit_seconds": 1.5, column: value, "log_loss": 0.1} if value else {}
        return JOB | {"data": data, "method": method, "state": "ok", **found, **more}

    records = [
        *(made("kin8nm", "hck-fast", value, seed=seed) for seed, value in enumerate((0.1, 0.3))),
        made("kin8nm", "lightgbm", 0.1234567),
        made("mv", "hck-fast", 2.0, rows=50, max_rows=50),
        made("mv", "hck-fast", None, state="error"),
        made("mv", "lightgbm", 1.0),
        made("mv", "lightgbm", None, seed=1, state="timeout"),
        made("mv", "xgboost", 1.0),
        made("letter", "hck-fast", 0.9),
        made("letter", "lightgbm", 0.8),
    ]
    lines = tables(records, ["kin8nm", "mv", "letter"], ["hck-fast", "lightgbm"]).splitlines()
    assert "| kin8nm | 0.2 | **0.1235** |" in lines
    assert "| mv | **2**\\* | timeout |" in lines
    assert "| mean rank on 2 | 1.50 | 1.50 |" in lines
    assert "| letter | **0.9** | 0.8 |" in lines
    assert "| mean rank on 1 | 1.00 | 2.00 |" in lines
    assert "| mv | 1.5 |  |" in lines
    assert "| mv | 2\\* | timeout | **1** |" in tables(records, ["mv"], ["hck-fast", "lightgbm", "xgboost"])
