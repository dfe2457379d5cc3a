"""Dates of CSV files on the command line."""

import numpy as np
import pandas as pd
import pytest

from hck import load
from hck.cli._dates import as_dates, with_dates


def kinds(**columns):
    return [dtype.kind for dtype in with_dates(pd.DataFrame(columns)).dtypes]


@pytest.mark.parametrize(
    "values",
    [
        ["2024-02-29", "1999-12-31"],
        ["2024-02-29 23:59", None, "2024-03-01 00:00:30.25"],
        ["2024-02-29T10:00:00Z", "2024-02-29T10:00:00+02:00", "2024-02-29 10:00 -0530"],
    ],
)
def test_dates(values):
    table = pd.DataFrame({"when": values})
    made = with_dates(table)["when"]
    assert made.dtype.kind == "M"
    assert made.isna().tolist() == table["when"].isna().tolist()
    there = [value for value in values if value is not None]
    for value, found in zip(there, made.dropna(), strict=True):
        wanted = pd.Timestamp(value)
        assert found == (wanted if wanted.tz is None else wanted.tz_convert("UTC"))


@pytest.mark.parametrize(
    "values",
    [
        ["2024-02-29", "2024-02-30"],  # which there is not
        ["2024-02-29", "soon"],
        ["2024-02-29", "2024-02-29T10:00Z"],  # of which only one says where
        ["2024-02", "2024-03"],
        ["29.02.2024", "01.03.2024"],
        ["1-2-3", "2024-2-1"],
        ["20240229", "20240301"],
        [20240229, 20240301],
        [None, None],
        ["", "2024-02-29"],
        ["2024-02-29 ", "2024-02-29"],
    ],
)
def test_no_dates(values):
    assert kinds(when=values) == [pd.Series(values).dtype.kind]


def test_categories_stay_what_they_are():
    assert kinds(when=pd.Categorical(["2024-02-29", "2024-03-01"])) == ["O"]


def test_records_that_are_no_dates_are_named():
    table = pd.DataFrame({"a": [1, 2], "when": ["2024-02-29", "tomorrow"]})
    with pytest.raises(ValueError, match=r"t.csv: column 'when' must be dates .* record 2 has 'tomorrow'"):
        as_dates(table, [1], "t.csv")
    with pytest.raises(ValueError, match="record 1 has 5"):
        as_dates(table.assign(when=[5, 6]), [1], "t.csv")


def write(n, seed, path):
    rng = np.random.default_rng(seed)
    when = pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D")
    y = np.sin(2 * np.pi * when.day_of_year / 365) + 0.1 * rng.normal(size=n)
    frame = pd.DataFrame({"sold": when.strftime("%Y-%m-%d"), "size": rng.normal(size=n), "price": y})
    frame.to_csv(path, index=False)
    return frame


@pytest.mark.filterwarnings("ignore:values are missing")
def test_fit_and_predict_as_with_dates(hck, tmp_path):
    write(300, 0, tmp_path / "300.csv")
    test = write(60, 1, tmp_path / "60.csv")
    options = ("--target", "price", "--fit-time", "0.5", "--out", "model")
    code, _, said = hck("fit", "300.csv", *options)
    assert code == 0, said
    model = load("model")
    assert model.kernel_feature_names_[:3] == [
        *("sold: days", "sold: sine of the year", "sold: cosine of the year")
    ]
    assert hck("predict", "model", "60.csv", "--out", "p.csv")[0] == 0
    features = test.drop(columns="price").assign(sold=pd.to_datetime(test["sold"]))
    np.testing.assert_allclose(pd.read_csv("p.csv").iloc[:, 0], model.predict(features), rtol=1e-6)
    test.assign(sold=None).to_csv("none.csv", index=False)
    code, _, said = hck("predict", "model", "none.csv", "--out", "q.csv")
    assert code == 0, said
    assert np.isfinite(pd.read_csv("q.csv").iloc[:, 0]).all()
    test.assign(sold="today").to_csv("wrong.csv", index=False)
    code, _, said = hck("predict", "model", "wrong.csv", "--out", "r.csv")
    assert code != 0
    assert "'today'" in " ".join(said.split())
