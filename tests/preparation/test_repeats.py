"""Numbers that are codes as well."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from hck.preparation.columns import Columns
from hck.preparation.levels import Statistics
from hck.preparation.repeats import Repeats, codes_among, says_more

N = 3000


@pytest.fixture
def shop():
    """Numbers of shops, what was sold there, and the town of each."""
    rng = np.random.default_rng(0)
    shop = rng.choice(rng.integers(1, 10_000, 40), N)
    effect = np.random.default_rng(1).normal(size=10_000)[shop]
    return shop.astype(float), effect + 0.5 * rng.normal(size=N), rng.choice(["Ulm", "Jena"], N)


def test_codes_are_told_from_sizes(shop):
    x, y, _ = shop
    rng = np.random.default_rng(2)
    assert says_more(x, y[:, None])
    assert not says_more(x, rng.normal(size=(N, 1)))
    assert not says_more(x, np.sin(x / 2000)[:, None])
    assert not says_more(rng.normal(size=N), y[:, None])
    assert not says_more(np.full(N, np.nan), y[:, None])
    assert not says_more(np.full(N, 3.0), y[:, None])


def test_missing_values_do_not_count(shop):
    x, y, _ = shop
    assert says_more(np.where(np.arange(N) % 3 == 0, np.nan, x), y[:, None])


def test_means_stand_beside_the_number(shop):
    x, y, town = shop
    table = pd.DataFrame({"shop": x, "town": town, "size": np.random.default_rng(3).normal(size=N)})
    columns, features = Columns.learn(table, lambda: y[:, None])
    columns.validate()
    assert columns.repeated == [0]
    assert columns.feature_names(list(table)) == [
        *("town: Jena", "town: Ulm", "shop", "size", "shop: mean target")
    ]
    assert features.shape == (N, columns.width(3)) == (N, 5)
    assert columns.sources(3).tolist() == [1, 1, 0, 2, 0]
    assert columns.ties(3).group.tolist() == [0, 0, 1, 2, 3]
    assert columns.numbers(3) == ([0, 2], slice(2, 4))
    rest = y - features[:, 4]
    assert np.corrcoef(features[:, 4], y)[0, 1] > 0.8
    assert abs(np.corrcoef(features[:, 4], rest)[0, 1]) < 0.1  # which would tell of a leak
    new = pd.DataFrame({"shop": [x[0], 12_345.0], "town": ["Ulm", "Ulm"], "size": [0.0, 0.0]})
    found = columns(new)
    assert found[0, 4] == pytest.approx(y[x == x[0]].mean(), abs=0.1)
    assert found[1, 4] == pytest.approx(y.mean())


def test_several_columns(shop):
    x, y, town = shop
    table = pd.DataFrame({"shop": x, "town": town, "again": x[::-1].copy()})
    columns, features = Columns.learn(table, lambda: np.stack([y, y[::-1]], 1))
    assert columns.repeated == [0, 2]
    assert columns(table).shape == features.shape == (N, columns.width(3)) == (N, 8)
    assert columns.ties(3).group.tolist() == [0, 0, 1, 2, 3, 3, 4, 4]


def test_without_targets_there_are_none(shop):
    x, _, town = shop
    columns, features = Columns.learn(pd.DataFrame({"shop": x, "town": town}))
    assert not columns.repeated
    assert features.shape == (N, 3)


def test_forged_ones_are_refused(shop):
    x, y, town = shop
    table = pd.DataFrame({"shop": x, "town": town})
    columns, _ = Columns.learn(table, lambda: y[:, None])
    for wrong in ([], [1], [-1], [0, 0]):
        with pytest.raises(ValueError, match=r"repeated|statistics"):
            Columns(*list(vars(columns).values())[:6], wrong, columns.statistics).validate()


@pytest.mark.parametrize("fitted", [np.float64, np.float32])
def test_codes_with_fractions_are_the_same_in_any_width(shop, fitted):
    x, y, town = shop
    table = pd.DataFrame({"tariff": x + 0.1, "town": town})
    learned, _ = Columns.learn(table.astype({"tariff": fitted}), lambda: y[:, None])
    assert learned.repeated == [0]
    features = learned(table)
    assert len(np.unique(features[:, -1])) == len(np.unique(x))
    narrow = learned(table.astype({"tariff": np.float32}))
    np.testing.assert_array_equal(narrow[:, -1], features[:, -1])
    found = learned.statistics[0]
    for digits in (lambda value: str(value), lambda value: str(value).replace(".1", ".1000000000000001", 1)):
        words = [digits(float(str(np.float32(value)))) for value in found.values]
        old = Statistics([*words[::-1], "(missing)"], np.vstack([found.means[::-1], [[9.0]]]), found.overall)
        earlier = replace(learned, statistics=[old])
        np.testing.assert_array_equal(earlier(table), features)
        with pytest.warns(UserWarning, match="values are missing"):
            gaps = earlier(table.assign(tariff=np.nan))
        assert gaps[0, -1] == 9  # as early files have it


def test_large_whole_codes_stay_apart(shop):
    x, y, town = shop
    table = pd.DataFrame({"shop": 2.0**40 + x, "town": town})
    learned, _ = Columns.learn(table, lambda: y[:, None])
    assert len(learned.statistics[0].values) == len(np.unique(x))
    np.testing.assert_array_equal(learned(table.astype({"shop": np.int64})), learned(table))


def test_a_column_of_text_without_any_is_missing(shop):
    _, y, town = shop
    table = pd.DataFrame({"town": town, "size": np.arange(N)})
    learned, _ = Columns.learn(table, lambda: y[:, None])
    assert not learned(table.assign(town=np.nan))[:, :2].any()


def test_targets_are_made_once(shop):
    x, y, town = shop
    asked = []

    def targets():
        asked.append(1)
        return y[:, None]

    Columns.learn(pd.DataFrame({"shop": x, "other": x[::-1], "town": town}), targets)
    assert len(asked) == 1


def repeated_settings(rng):
    """100 settings, each measured ten times."""
    x = np.repeat(rng.uniform(size=(100, 2)), 10, 0)
    return x, np.sin(6 * x[:, 0]) + x[:, 1]


def places(rng):
    """150 places, each at the same 30 times."""
    place, time = np.repeat(rng.uniform(size=(150, 2)), 30, 0), np.tile(np.arange(30.0), 150)
    return np.c_[place, time], np.sin(6 * place[:, 0]) + place[:, 1] + np.sin(time / 5)


def whole_places(rng):
    x, y = places(rng)
    return np.floor(x * [10_000, 10_000, 1]), y


def patients(rng):
    """600 patients with what was measured once, in whole numbers and not, and visits at any time."""
    n = np.repeat(np.arange(600), 10)
    once = np.c_[
        rng.normal(size=600), rng.integers(20, 80, 600), rng.integers(50, 110, 600), np.arange(600) % 2
    ]
    return np.c_[once[n], rng.uniform(size=6000)], rng.normal(size=600)[n] + once[n, 0]


def copies(rng):
    """Every row four times, the observation among it."""
    x = rng.normal(size=(400, 3))
    return np.repeat(x, 4, 0), np.repeat(np.sin(x[:, 0]) + 0.1 * rng.normal(size=400), 4)


@pytest.mark.parametrize("make", [repeated_settings, places, whole_places, patients, copies])
def test_what_repeats_together_is_no_code(make):
    """New settings, places and patients have other values, of which a mean says nothing."""
    rng = np.random.default_rng(0)
    x, y = make(rng)
    order = rng.permutation(len(y))
    noisy = y + (0.0 if make is copies else 0.1) * rng.normal(size=len(y))
    assert codes_among(x[order], noisy[order, None]) == []


def test_codes_beside_what_belongs_to_them():
    """A region, an opening hour and a size of each shop, and what is different every day."""
    rng = np.random.default_rng(0)
    ids, region, hour = (
        rng.choice(10_000, 200, replace=False),
        rng.integers(8, size=200),
        rng.integers(5, size=200),
    )
    size, shop = np.round(rng.uniform(size=200), 2), rng.integers(200, size=6000)
    x = np.c_[
        ids[shop], region[shop], hour[shop], size[shop], rng.integers(12, size=6000), rng.normal(size=6000)
    ]
    y = rng.normal(size=200)[shop] + 0.1 * rng.normal(size=6000)
    assert 0 in codes_among(x.astype(float), y[:, None])


def test_new_values_between_others():
    rng = np.random.default_rng(0)
    level, step = rng.integers(0, 100, 4000) * 10.0, rng.normal(size=(100, 1))
    smooth = Repeats.learn(level, np.sin(level / 100)[:, None])[0]
    assert smooth.between
    assert smooth(np.array([455.0]))[0, 0] == pytest.approx(np.sin(4.55), abs=0.05)
    assert smooth(np.array([-100.0, 2000.0]))[:, 0].tolist() == [smooth.overall[0]] * 2
    rough = Repeats.learn(level, step[(level / 10).astype(int)])[0]
    assert not rough.between
    assert rough(np.array([455.0]))[0] == rough.overall
    smooth.validate()
    rough.validate()


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_means_do_not_take_the_type_of_numbers(shop, dtype):
    x, y, _ = shop
    made, features = Columns.learn_array(x[:, None].astype(dtype), lambda: 1e40 * y[:, None])
    again = made.fill(x[:, None].astype(dtype))
    assert features.dtype == again.dtype == np.float64
    assert np.isfinite(features).all()
    assert np.unique(again[:, 1]).size > 30
