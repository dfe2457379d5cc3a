"""Points on spheres and circles, as transformers."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from hck import HCKRegressor
from hck.kernels.features import EARTH, Circle, Sphere

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "name": RNG.choice(["a", "b"], 40),
        "lat": RNG.uniform(-90, 90, 40),
        "size": RNG.normal(size=40),
        "lon": RNG.uniform(-180, 180, 40),
    },
    index=np.arange(40)[::-1],
)
ONE_COLUMN = ("check_fit2d_1feature", "check_fit1d")
ARRAY = TABLE[["lat", "size", "lon"]].to_numpy()


@parametrize_with_checks([Circle(0, period=24.0), Sphere(0, 1)])
def test_as_scikit_learn_has_it(estimator, check):
    if isinstance(estimator, Sphere) and check.func.__name__ in ("check_fit_idempotent", *ONE_COLUMN):
        pytest.skip("its data are no degrees, or one column")
    check(estimator)


def test_distances_are_those_of_the_formula():
    """A chord of an angle, which the haversine formula gives: two ways to one distance."""
    placed = Sphere(0, 2).fit_transform(ARRAY)[:, 1:]
    north, east = np.radians(ARRAY[:, [0, 2]]).T
    half = np.sin((north[:, None] - north) / 2) ** 2
    half += np.cos(north[:, None]) * np.cos(north) * np.sin((east[:, None] - east) / 2) ** 2
    found = np.linalg.norm(placed[:, None] - placed, axis=2)
    np.testing.assert_allclose(found, 2 * EARTH * np.sqrt(half), atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(placed, axis=1), EARTH)


def test_circles_close():
    hours = np.array([[0.0], [23.9], [24.0], [47.9], [-0.1]])
    placed = Circle(0, period=24).fit_transform(hours)
    np.testing.assert_allclose(placed[[0, 1]], placed[[2, 4]], atol=1e-12)
    np.testing.assert_allclose(placed[1], placed[3], atol=1e-12)
    assert np.linalg.norm(placed[0] - placed[1]) == pytest.approx(0.1, rel=1e-4)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_frames_stay_frames(kind):
    given = kind(TABLE if kind is pd.DataFrame else TABLE.reset_index(drop=True))
    made = Sphere("lat", "lon").fit(given)
    found = made.transform(given)
    assert type(found) is type(given)
    names = ["name", "size", "lat_lon_x", "lat_lon_y", "lat_lon_z"]
    assert list(made.get_feature_names_out()) == names
    found = found if kind is pd.DataFrame else found.to_pandas()
    assert list(found.columns) == names
    assert list(found["name"]) == list(TABLE["name"])
    np.testing.assert_allclose(found[names[1:]].to_numpy(float), Sphere(0, 2).fit_transform(ARRAY))


def test_output_as_asked_for():
    made = Circle(1, period=2.0).set_output(transform="pandas").fit(ARRAY)
    assert list(made.transform(ARRAY).columns) == ["x0", "x2", "x1_sin", "x1_cos"]
    assert clone(Circle("hour", period=7)).get_params() == {"column": "hour", "period": 7}


def test_in_pipelines():
    y = np.sin(TABLE["lat"] / 20) + (TABLE["name"] == "a")
    steps = Sphere("lat", "lon"), Circle("size", period=3.0)
    model = make_pipeline(*steps, HCKRegressor(alpha=1e-3, lengthscale=500.0, rank=64)).fit(TABLE, y)
    assert model.score(TABLE, y) > 0.9
    assert model[-1].kernel_feature_names_[-1] == "size_cos"


def test_missing_places_are_missing():
    gaps = ARRAY.copy()
    gaps[3, 0], gaps[5, 2] = np.nan, np.nan
    found = Sphere(0, 2).fit_transform(gaps)
    assert np.isnan(found[[3, 5], 1:]).all()
    assert np.isfinite(np.delete(found, [3, 5], 0)).all()


def test_periods_may_be_of_any_type():
    given = TABLE[["lat"]]
    expected = Circle("lat", period=9).fit_transform(given)
    for period in (np.float32(9), np.int8(9), 9.0):
        np.testing.assert_array_equal(Circle("lat", period=period).fit_transform(given), expected)


def test_the_only_column():
    found = Circle("lat", period=9).fit_transform(TABLE[["lat"]])
    assert list(found.columns) == ["lat_sin", "lat_cos"]
    assert list(found.index) == list(TABLE.index)


@pytest.mark.parametrize(
    ("made", "given", "message"),
    [
        (Sphere("lat", "nowhere"), TABLE, "no column 'nowhere': it has 'name', 'lat'"),
        (Sphere("lat", "lon"), ARRAY, "its columns have no names"),
        (Sphere(0, 3), ARRAY, "no column 3: n_features=3"),
        (Sphere("lat", "lat"), TABLE, "must be different"),
        (Sphere("lat", "name"), TABLE, "column 'name' must be numbers"),
        (Sphere(0, 1), ARRAY + 100, "degrees from -90 to 90, got"),
        (Sphere(0, 1, radius=0), ARRAY, "radius must be a positive number, got 0"),
        (Circle(0, period=-1), ARRAY, "period must be a positive number, got -1"),
        (Circle("lat", period=1), TABLE.assign(lat=np.inf), "'lat' contains infinity"),
        (Circle(0, period=1e200), ARRAY, "period must be a positive number, got 1e.200"),
        (Circle(0.0), ARRAY, "named by text or by a whole number, got 0.0"),
        (Circle(True), ARRAY, "named by text or by a whole number, got True"),
        (Sphere(0, 1), ARRAY.astype("M8[s]"), "X has dates or durations"),
        (Circle("lat", period=1), TABLE.assign(lat=1j), "column 'lat' must be numbers: Complex data"),
    ],
)
def test_errors(made, given, message):
    with pytest.raises(ValueError, match=message):
        made.fit(given).transform(given)


def test_what_is_masked_is_missing():
    hidden = np.ma.masked_array(ARRAY, np.zeros_like(ARRAY, dtype=bool))
    hidden.mask[1, 0] = True
    gaps = np.where(hidden.mask, np.nan, ARRAY)
    np.testing.assert_array_equal(Sphere(0, 1).fit_transform(hidden), Sphere(0, 1).fit_transform(gaps))


def test_columns_that_are_numbered():
    frame = pd.DataFrame(ARRAY)
    found = Sphere(0, 1).fit_transform(frame)
    np.testing.assert_array_equal(np.asarray(found), Sphere(0, 1).fit_transform(ARRAY))


@pytest.mark.parametrize("made", [Sphere("lat", "lon"), Circle("lat", period=24)])
def test_a_fit_that_fails_changes_nothing(made):
    before = dict(vars(made.fit(TABLE)))
    with pytest.raises(ValueError, match="no column 'lat'"):
        made.fit(TABLE.rename(columns={"lat": "elsewhere"}))
    assert vars(made).keys() == before.keys()
    assert list(made.feature_names_in_) == list(TABLE.columns)
