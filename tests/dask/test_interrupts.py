"""Ctrl-C on the client ends a fit, and what it has left on the workers."""

import numpy as np
import pytest

pytest.importorskip("distributed")

from dask_problem import GIVEN
from hck.dask import DaskHCKRegressor

PROMPT = 10  # seconds; two are promised, but the machine of the tests may be busier still


def test_a_fit_is_interrupted(client, data, interrupted):
    x = np.random.default_rng(0).uniform(size=(40_000, 8))
    model = DaskHCKRegressor(client=client, **{**GIVEN, "rank": 300, "leaf_size": None})
    assert interrupted(lambda: model.fit(x, x[:, 0]), 1.0) < PROMPT
    assert not hasattr(model, "n_features_in_")
    again = DaskHCKRegressor(client=client, **GIVEN).fit(*data)  # the workers are free
    assert np.isfinite(again.predict(data[0][:5])).all()
