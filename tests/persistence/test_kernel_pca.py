"""Saved and loaded components are the same."""

import pandas as pd
import pytest

from hck import HCKKernelPCA
from saved_problem import EVERY, GIVEN, NEW, X, same

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("approximation", EVERY, ids=str)
def test_components(again, approximation):
    model = HCKKernelPCA(3, **GIVEN, approximation=approximation, fit_inverse_transform=True).fit(X)
    found = again(model)
    same(found.transform(NEW), model.transform(NEW))
    same(found.inverse_transform(found.transform(NEW)), model.inverse_transform(model.transform(NEW)))
    for name in ("eigenvalues_", "eigenvectors_", "explained_variance_ratio_"):
        same(getattr(found, name), getattr(model, name))
    assert list(found.get_feature_names_out()) == list(model.get_feature_names_out())
    assert found._back.device == "cpu"


def test_output_as_a_table(again):
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    model = HCKKernelPCA(2, **GIVEN).set_output(transform="pandas").fit(table)
    found = again(model)
    pd.testing.assert_frame_equal(found.transform(table), model.transform(table))
