import numpy as np
import pandas as pd
import pytest

from hck import HCKClassifier, HCKGaussianProcessRegressor, HCKRegressor
from hck.report import write_report
from report_page import NASTY


@pytest.fixture(scope="session")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(260, 2))
    y = np.sin(4 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(260)
    return X, y


@pytest.fixture(scope="session")
def regressor(data):
    X = pd.DataFrame(data[0][:200], columns=[NASTY, "a & b"])
    return HCKRegressor("gaussian", lengthscale=[0.5, 2.0], alpha=0.01, rank=16, random_state=0).fit(
        X, data[1][:200]
    )


@pytest.fixture(scope="session")
def process(data):
    return HCKGaussianProcessRegressor("matern32", rank=32, max_iter=5, random_state=0).fit(
        data[0][:200], data[1][:200]
    )


@pytest.fixture(scope="session")
def labels(data):
    return np.array(["low", NASTY, "top"])[np.digitize(data[1], [-0.5, 0.5])]


@pytest.fixture(scope="session")
def classifier(data, labels):
    model = HCKClassifier("gaussian", lengthscale=0.5, alpha=0.1, rank=32, random_state=0)
    return model.fit(data[0][:200], labels[:200])


@pytest.fixture
def page_of(tmp_path):
    """The page that is written for a model."""

    def make(*given, **options):
        path = write_report(*given, tmp_path / "page.html", **options)
        text = path.read_text(encoding="utf-8")
        path.unlink()
        return text

    return make
