import numpy as np
import pytest


@pytest.fixture(scope="session")
def cluster():
    """Two worker processes of one thread."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit="3GB"
    ) as made:
        yield made


@pytest.fixture(scope="module")
def client(cluster):
    """The current client, for these tests only: what others compute must not go to these workers."""
    distributed = pytest.importorskip("distributed")
    with distributed.Client(cluster) as made:
        yield made


@pytest.fixture(scope="session")
def data():
    """Points, and a smooth function of them with noise."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(700, 3))
    return x, np.sin(5 * x[:, 0]) + x[:, 1] + 0.1 * rng.standard_normal(700)


@pytest.fixture(scope="module")
def fitted(client, data):
    """A forest of two trees on blocks of other sizes for X and y, some of them empty."""
    import dask.array as da

    from dask_problem import GIVEN
    from hck.dask import DaskHCKRegressor

    x, y = data
    X = da.from_array(x, chunks=((200, 0, 300, 1, 199), (2, 1)))
    return DaskHCKRegressor(**GIVEN, n_trees=2).fit(X, da.from_array(y, chunks=250))
