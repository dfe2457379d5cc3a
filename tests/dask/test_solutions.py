"""Solutions on workers that overflow or rounding spoils: the client says so."""

import warnings

import numpy as np
import pytest

pytest.importorskip("distributed")

from dask_problem import GIVEN
from hck.dask import DaskHCKClassifier, DaskHCKRegressor


@pytest.mark.parametrize("cls", [DaskHCKRegressor, DaskHCKClassifier])
def test_a_singular_system_is_named(client, data, cls):
    x, y = data
    model = cls("gaussian", client=client, **{**GIVEN, "scale": None, "lengthscale": 1e9, "alpha": 0.0})
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        model.fit(x, y > 1 if cls is DaskHCKClassifier else y)
    assert sum("wrong by rounding" in str(each.message) for each in found) == 1


def test_overflow(client, data):
    x, y = data
    model = DaskHCKRegressor(client=client, dtype="float32", **GIVEN)
    with pytest.raises(ValueError, match=r"the solution overflows.*Scale y"):
        model.fit(x, 1e37 * y)
    with pytest.raises(ValueError, match=r"y is too large.*Scale y"):
        DaskHCKRegressor(client=client, **GIVEN).fit(x, 1e308 * np.clip(y, 0.5, 1.5))
