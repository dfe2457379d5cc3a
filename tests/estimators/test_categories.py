"""Tables with categories: one column of 0 and 1 for each."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import torch

from hck import HCKClassifier, HCKGaussianProcessRegressor, HCKKernelPCA, HCKRegressor, load

RNG = np.random.default_rng(0)
COLOURS = np.array(["red", "green", "blue"])
EFFECT = {"red": 0.0, "green": 2.0, "blue": -1.0}


def make_table(n, dtype):
    table = pd.DataFrame(
        {"x": RNG.uniform(size=n), "colour": RNG.choice(COLOURS, n), "z": RNG.normal(size=n)}
    )
    return table.assign(colour=table["colour"].astype(dtype))


def targets(table):
    return np.sin(4 * table["x"].to_numpy()) + table["colour"].astype(object).map(EFFECT).to_numpy(float)


@pytest.mark.parametrize("dtype", ["category", "object", "string"])
@pytest.mark.parametrize("make", [HCKRegressor, HCKGaussianProcessRegressor])
def test_regression(make, dtype):
    table, new = make_table(300, dtype), make_table(100, dtype)
    options = {"alpha": 1e-3, "lengthscale": 1.0} if make is HCKRegressor else {"optimizer": None}
    model = make(rank=32, random_state=0, **options).fit(table, targets(table))
    assert model.score(new, targets(new)) > 0.9
    assert model.n_features_in_ == 3
    assert list(model.feature_names_in_) == ["x", "colour", "z"]


def test_the_same_as_columns_of_0_and_1():
    table, new = make_table(200, "category"), make_table(50, "category")
    columns = [
        np.concatenate([t["colour"].to_numpy()[:, None] == np.sort(COLOURS), t[["x", "z"]]], 1)
        for t in (table, new)
    ]
    options = {"rank": 16, "alpha": 0.01, "lengthscale": 1.0, "random_state": 0}
    found = HCKRegressor(**options).fit(table, targets(table)).predict(new)
    expected = (
        HCKRegressor(**options)
        .fit(columns[0].astype(float), targets(table))
        .predict(columns[1].astype(float))
    )
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_everything_automatic():
    table, new = make_table(400, "object"), make_table(100, "object")
    labels = np.where(targets(table) > 0.5, "high", "low")
    model = HCKClassifier(fit_time="fast", random_state=0).fit(table, labels)
    assert model.score(new, np.where(targets(new) > 0.5, "high", "low")) > 0.9


def test_one_weight_for_each_column():
    """Not one for each category: lengthscales that are learned are the same for all of a column."""
    table = make_table(400, "object")
    model = HCKRegressor("matern32", fit_time="fast", random_state=0).fit(table, targets(table))
    learned = [c for c in model.selection_.candidates if "a lengthscale per feature" in c.origin]
    scales = learned[0].kernel.parameters()["lengthscale"]
    assert model.kernel_feature_names_[:3] == ["colour: blue", "colour: green", "colour: red"]
    torch.testing.assert_close(scales[:3], scales[:1].expand(3), rtol=1e-12, atol=0.0)
    assert len({round(float(s), 9) for s in scales}) == 3


def test_many_levels():
    """More than there can be features of: what is known of the target takes their place."""
    rng = np.random.default_rng(0)
    effect, level = rng.normal(size=200), rng.integers(0, 200, 3000)
    table = pd.DataFrame({"level": [f"l{i}" for i in level], "x": rng.uniform(size=3000)})
    y = effect[level] + np.sin(4 * table["x"])
    model = HCKRegressor(fit_time="fast", random_state=0).fit(table[:2000], y[:2000])
    assert model.kernel_feature_names_ == ["level: mean target", "x"]
    assert model.score(table[2000:], y[2000:]) > 0.9
    labels = np.array(["a", "b", "c"])[np.digitize(effect[level], [-0.5, 0.5])]
    model = HCKClassifier(fit_time="fast", random_state=0).fit(table[:2000], labels[:2000])
    assert model.score(table[2000:], labels[2000:]) > 0.9


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_saved_models_carry_it_all(kind, tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "level": [f"l{i}" for i in rng.integers(0, 100, 200)],
            "grade": pd.Categorical(rng.choice(list("abc"), 200), list("cab"), ordered=True),
            "day": pd.date_range("2020-01-01", periods=200, tz="Asia/Tokyo").where(np.arange(200) > 5),
            "kind": rng.choice(["x", "y", None], 200),
            "number": np.where(rng.random(200) < 0.2, np.nan, rng.normal(size=200)),
        }
    )
    given = kind(table)
    model = HCKRegressor(rank=32, alpha=0.1, lengthscale=2.0, random_state=0).fit(given, rng.normal(size=200))
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(given), model.predict(given))


def test_two_columns_of_one_name():
    table = make_table(60, "object").set_axis(["x", "x", "z"], axis=1)
    with pytest.raises(ValueError, match="several columns are called 'x'"):
        HCKRegressor(rank=8, alpha=0.1, lengthscale=1.0).fit(table, np.arange(60.0))


def test_one_level_and_nothing_but_missing_values():
    table = pd.DataFrame({"same": ["a"] * 50, "none": np.full(50, None), "x": np.arange(50.0)})
    model = HCKRegressor(fit_time="fast", random_state=0).fit(table, np.sin(np.arange(50) / 5))
    assert model.score(table, np.sin(np.arange(50) / 5)) > 0.99


def test_categories_that_are_new_or_missing():
    table = make_table(200, "object")
    table.loc[:20, "colour"] = None
    y = np.zeros(200)
    model = HCKRegressor(rank=16, alpha=0.1, lengthscale=1.0, random_state=0).fit(table, y)
    new = make_table(3, "object")
    new["colour"] = ["purple", None, "red"]
    assert np.isfinite(model.predict(new)).all()


def test_numbers_as_objects_are_numbers():
    table = make_table(50, "object").drop(columns="colour").astype(object)
    model = HCKRegressor(rank=8, alpha=0.1, lengthscale=1.0).fit(table, np.zeros(50))
    assert model._columns_in.codings == []


@pytest.mark.parametrize("names", [["x", "colour", "z"], [1, 2, 3], [2, 0, 1]])
@pytest.mark.parametrize("dtype", ["string", "category", "object"])
def test_names_may_be_numbers_and_values_missing(names, dtype):
    table = make_table(60, dtype)
    table.iloc[:5, 1] = pd.NA if dtype == "string" else None
    table = table.set_axis(names, axis=1)
    model = HCKRegressor(rank=8, alpha=0.1, lengthscale=1.0).fit(table, np.zeros(60))
    assert model.kernel_feature_names_[0] == f"{names[1]}: (missing)"
    assert model._columns_in(table).shape == (60, 6)


def test_values_of_several_types():
    table = pd.DataFrame({"a": ["x", 1, "y", None] * 10, "b": np.arange(40.0)})
    model = HCKRegressor(rank=8, alpha=0.1, lengthscale=1.0).fit(table, np.zeros(40))
    assert model._columns_in(table).shape == (40, 5)


def test_whole_numbers_are_the_same_in_another_type():
    """A missing value turns a column of 1 and 2 into one of 1.0 and 2.0."""
    grades = pd.DataFrame({"grade": pd.Series([1, 2, "none"] * 20, dtype=object), "x": np.arange(60.0)})
    model = HCKRegressor(rank=8, alpha=1e-3, lengthscale=1.0, random_state=0).fit(grades, np.arange(60) % 3)
    new = pd.DataFrame({"grade": [1.0, 2.0, np.nan], "x": [0.0, 1.0, 2.0]})
    same = pd.DataFrame({"grade": ["1", "2", "unheard of"], "x": [0.0, 1.0, 2.0]})
    np.testing.assert_array_equal(model.predict(new), model.predict(same))


def test_many_categories_without_targets_are_sparse():
    table = pd.DataFrame({"id": [f"id{i}" for i in range(400)], "b": np.arange(400.0)})
    model = HCKKernelPCA(rank=8, random_state=0).fit(table)
    assert sp.issparse(model._columns_in(table))
    assert np.isfinite(model.transform(table)).all()


def test_errors():
    table = make_table(50, "category")
    model = HCKRegressor(rank=8, alpha=0.1, lengthscale=1.0).fit(table, np.zeros(50))
    with pytest.raises(ValueError, match="in columns colour: pass a table"):
        model.predict(np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"[Ff]eature names|columns are missing"):
        model.predict(table.rename(columns={"x": "y"}))
    with pytest.raises(ValueError, match=r"[Ff]eature names"):
        model.predict(table[["colour", "x", "z"]])
    with pytest.raises(ValueError, match="column 'x' must be numbers: could not convert"):
        model.predict(table.assign(x="many"))
    with pytest.raises(TypeError, match="column 'when' has dtype period"):
        model.fit(table.assign(when=pd.Period("2020")), np.zeros(50))
    with pytest.raises(ValueError, match="infinity"):
        model.fit(table.assign(x=np.inf), np.zeros(50))


@pytest.mark.parametrize("text", ["nan", "NaN", "None", "<NA>", "NaT", "(missing)", "\\(missing)", ""])
@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT], ids=str)
def test_text_is_not_a_missing_value(text, missing):
    """A missing value is a category of its own, whatever text there is."""
    table = pd.DataFrame({"a": np.array(["red", text, missing] * 20, dtype=object)})
    model = HCKRegressor(alpha=1e-6, lengthscale=0.5, rank=128).fit(table, [1.0, 2.0, 3.0] * 20)
    np.testing.assert_allclose(model.predict(table[:3]), [1, 2, 3], atol=1e-3)
    assert len(set(model.kernel_feature_names_)) == 3


def test_missing_values_of_all_kinds_are_one_category():
    missing = np.array([None, np.nan, pd.NA, pd.NaT] * 10, dtype=object)
    model = HCKRegressor(alpha=1e-6, lengthscale=0.5, rank=128)
    model.fit(pd.DataFrame({"a": np.append(missing, ["red"] * 10)}), [1.0] * 40 + [2.0] * 10)
    assert model.kernel_feature_names_ == ["a: (missing)", "a: red"]
