"""How columns of tables become features."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

from hck.points import as_points
from hck.preparation.columns import Columns
from hck.preparation.dates import Dates
from hck.preparation.frames import column_of
from hck.preparation.levels import Levels, Ordered, Statistics, statistic_targets
from hck.preparation.scaling import Scaling
from hck.preparation.ties import Ties

N = 60
SIZES = ["small", "middle", "large"]


def make_table(seed=0):
    rng = np.random.default_rng(seed)
    size = rng.choice(SIZES, N).astype(object)
    size[3] = None
    colour = rng.choice(["red", "blue"], N).astype(object)
    colour[5] = None
    return pd.DataFrame(
        {
            "x": np.where(np.arange(N) % 7 == 0, np.nan, rng.normal(size=N)),
            "size": pd.Categorical(size, SIZES, ordered=True),
            "colour": pd.Series(colour, dtype="str"),
            "count": pd.array(np.where(np.arange(N) % 9 == 0, None, np.arange(N)), dtype="Int64"),
            "good": rng.random(N) < 0.5,
            "when": pd.date_range("2020-02-27 05:00", periods=N, freq="7D", unit="us").where(
                np.arange(N) != 8
            ),
        }
    )


def in_polars(table):
    columns = {name: table[name].astype(object).where(table[name].notna(), None).tolist() for name in table}
    return pl.DataFrame(
        columns, strict=False, schema_overrides={"size": pl.Enum(SIZES), "x": pl.Float64, "count": pl.Int64}
    )


LIBRARIES = pytest.mark.parametrize("kind", [in_polars, pa.Table.from_pandas], ids=["polars", "pyarrow"])


@LIBRARIES
def test_libraries_of_frames_agree(kind):
    table = make_table()
    ours, expected = Columns.learn(table)
    theirs, found = Columns.learn(kind(table))
    np.testing.assert_allclose(found, expected)
    assert theirs.codings == ours.codings
    assert theirs.feature_names(theirs.names) == ours.feature_names(ours.names)
    new = make_table(1)
    np.testing.assert_allclose(ours(kind(new)), ours(new))  # and one reads what the other learned


def test_what_features_there_are():
    made, found = Columns.learn(make_table())
    assert made.feature_names(made.names) == [
        *("size", "colour: (missing)", "colour: blue", "colour: red"),
        *("when: days", "when: sine of the year", "when: cosine of the year"),
        *("when: sine of the week", "when: cosine of the week"),
        *("x", "count", "good", "x is missing", "size is missing", "count is missing", "when is missing"),
    ]
    assert found.shape == (N, made.width(6)) == (N, 16)
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(made(make_table()), found)
    assert made.sources(6).tolist() == [1, 2, 2, 2, 5, 5, 5, 5, 5, 0, 3, 4, 0, 1, 3, 5]
    assert made.ties(6).group.tolist() == [0, 1, 1, 1, 2, 3, 3, 4, 4, 5, 6, 7, 8, 9, 10, 11]
    np.testing.assert_allclose(made.of_columns(np.ones(16), 6), [2, 2, 3, 2, 1, 6])


def column(values, **options):
    return column_of(pd.DataFrame({"a": pd.Series(values, **options)}), 0)


def test_order_is_respected_and_may_be_told_by_words():
    given = column(pd.Categorical(["b", "a", None], ["b", "c", "a"], ordered=True))
    made = Ordered.of(given)
    np.testing.assert_array_equal(made(given, "a")[:, 0], [0, 2, np.nan])
    np.testing.assert_array_equal(made(column(["c", "new"]), "a")[:, 0], [1, np.nan])


def test_whole_numbers_as_categories_are_no_numbers():
    made, found = Columns.learn(pd.DataFrame({"a": pd.Categorical([3, 1, 3, 10]), "b": [True, False] * 2}))
    assert made.feature_names(["a", "b"]) == ["a: 1", "a: 10", "a: 3", "b"]
    np.testing.assert_array_equal(found, [[0, 0, 1, 1], [1, 0, 0, 0], [0, 0, 1, 1], [0, 1, 0, 0]])


# Dates -----------------------------------------------------------------------------------------------


def test_dates_by_the_definition():
    days = pd.date_range("2019-11-20 00:30", periods=500, freq="29h", unit="us")
    made = Dates.of(column(days), "a")
    assert made.circles == ["year", "week", "day"]
    found = made(column(days), "a")
    for row, day in zip(found[::37], days[::37], strict=True):
        start, stop = (pd.Timestamp(day.year + k, 1, 1) for k in (0, 1))
        parts = (
            (day - start) / (stop - start),
            day.weekday() / 7,
            (day - day.normalize()) / pd.Timedelta("1D"),
        )
        circles = [f(2 * np.pi * part) for part in parts for f in (np.sin, np.cos)]
        np.testing.assert_allclose(row, [(day - pd.Timestamp(0)) / pd.Timedelta("1D"), *circles], atol=1e-9)


def test_circles_that_dates_do_not_go_round():
    assert Dates.of(column(pd.date_range("2020-01-01", periods=6)), "a").circles == []
    assert Dates.of(column(pd.date_range("2020-01-01", periods=9)), "a").circles == ["week"]
    hours = pd.date_range("2020-01-01", periods=50, freq="h")
    assert Dates.of(column(hours), "a").circles == ["day"]
    assert Dates.of(column(pd.to_datetime([None, None])), "a").circles == []


def test_clocks_of_a_time_zone():
    days = pd.date_range("2020-03-28", periods=72, freq="h", tz="Europe/Berlin", unit="us")
    made = Dates.of(column(days), "a")
    assert (made.zone, made.circles) == ("Europe/Berlin", ["day"])
    found = made(column(days), "a")
    np.testing.assert_allclose(made(column(days.tz_convert("UTC")), "a"), found)
    aware = column(np.array(days.tz_convert("Asia/Tokyo").to_pydatetime(), dtype=object), dtype=object)
    assert Dates.of(aware, "a").zone is not None
    angle = 2 * np.pi * days.tz_localize(None).hour / 24
    np.testing.assert_allclose(found[:, 1], np.sin(angle), atol=1e-9)
    with pytest.raises(ValueError, match="no time zone, but the time zone Europe/Berlin in training"):
        made(column(days.tz_localize(None)), "a")
    with pytest.raises(ValueError, match="must be dates"):
        made(column([1.0, 2.0]), "a")


def test_dates_of_python():
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(k) for k in range(20)]
    given = column(days, dtype=object)
    np.testing.assert_allclose(Dates.of(given, "a")(given, "a")[:, 0], 18262 + np.arange(20))


# Statistics ------------------------------------------------------------------------------------------


def test_statistics_do_not_know_their_own_target():
    """What a row has does not change with its target, nor with those of its part of the data."""
    rng = np.random.default_rng(0)
    levels, y = rng.integers(0, 20, 400), rng.normal(size=(400, 1))
    given = column([f"l{level}" for level in levels])
    known, found = Statistics.learn(given, y)
    fold = np.random.default_rng(0).permutation(400) % 10
    for k in range(3):
        mine = fold == k
        changed = np.where(mine[:, None], y.mean(), y)
        overall = y.mean(0)
        for row in np.flatnonzero(mine)[:5]:
            others = (levels == levels[row]) & ~mine
            prior = _prior(known, levels, y)
            total = (changed - overall)[others].sum()
            expected = overall if np.isinf(prior) else overall + total / (others.sum() + prior)
            np.testing.assert_allclose(found[row], expected)


def _prior(known, levels, y):
    """From the mean of a category, which is drawn to that of all as if so many rows more had it."""
    mine = levels == int(known.values[0][1:])
    drawn = float((known.means[0] - y.mean(0))[0])
    return np.inf if drawn == 0 else (y[mine] - y.mean(0)).sum() / drawn - mine.sum()


def test_statistics_of_noise_say_nothing_and_of_effects_all():
    rng = np.random.default_rng(0)
    levels, effect = rng.integers(0, 100, 5000), rng.normal(size=100)
    given = column([f"l{level}" for level in levels])
    noise = rng.normal(size=(5000, 1))
    _, found = Statistics.learn(given, noise)
    assert found.std() == 0 or abs(np.corrcoef(found[:, 0], noise[:, 0])[0, 1]) < 0.05
    known, found = Statistics.learn(given, effect[levels][:, None] + 0.1 * noise)
    assert np.corrcoef(found[:, 0], effect[levels])[0, 1] > 0.99
    np.testing.assert_allclose(known(column(["unheard"]), "a"), known.overall[None])


def test_a_level_for_each_row_says_nothing():
    given = column([f"id{i}" for i in range(100_000)])
    known, found = Statistics.learn(given, np.random.default_rng(0).normal(size=(100_000, 1)))
    assert found.std() == 0
    np.testing.assert_allclose(known(given, "a"), known.overall[0])


def test_many_levels_become_statistics_where_targets_are_known():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({f"c{k}": [f"l{i}" for i in rng.integers(0, 2 + 20 * k, 500)] for k in range(9)})
    targets = rng.normal(size=(500, 2))
    made, found = Columns.learn(table, lambda: targets)
    kinds = [type(coding) for coding in made.codings]
    assert kinds == [Levels] * 4 + [Statistics] * 5
    assert found.shape[1] == sum(c.width for c in made.codings) < 256
    both = pd.DataFrame({f"c{k}": [f"l{i}" for i in rng.integers(0, 60, 900)] for k in range(6)})
    kinds = [type(coding) for coding in Columns.learn(both, lambda: rng.normal(size=(900, 1)))[0].codings]
    assert kinds.count(Levels) == 4  # of 60 each, no more than 256 in all


def test_targets_of_statistics():
    y = np.arange(6.0)
    np.testing.assert_array_equal(statistic_targets(y, numeric=True)[:, 0], y)
    labels = np.array(["b", "a", "b", "b"])
    np.testing.assert_array_equal(statistic_targets(labels, numeric=False)[:, 0], [0, 1, 0, 0])
    many = np.random.default_rng(0).integers(0, 50, 1000)
    assert statistic_targets(many, numeric=False).shape == (1000, 16)


# Ties ------------------------------------------------------------------------------------------------


def test_features_that_are_tied_are_scaled_alike():
    code = np.random.default_rng(0).choice(3, 1000, p=[0.5, 0.45, 0.05])
    x = np.hstack([code[:, None] == np.arange(3), np.random.default_rng(1).normal(3, 2, (1000, 1))]).astype(
        float
    )
    ties = Ties(np.array([0, 0, 0, 1]), np.array([0.5, 0.5, 0.5, 0.0]))
    points = as_points(x)
    scaling = Scaling.of("standard", points, ties)
    scaled = scaling(points, torch.float64).x
    variance = scaled.var(0, correction=0)
    assert float(variance[:3].sum()) == pytest.approx(1)
    assert float(variance[3]) == pytest.approx(1)
    assert len(set(scaling.factor[:3].tolist())) == 1
    rare = as_points(np.where(np.arange(1000) < 2, 1.0, 0.0)[:, None])
    assert Scaling.of("standard", rare, Ties(np.array([0]), np.array([0.5]))).factor.tolist() == [2.0]
