"""Parameters: given, chosen and described."""

import pytest

pytest.importorskip("distributed")
import dask.array as da
from sklearn.base import clone
from sklearn.utils import get_tags

import hck
from dask_problem import GIVEN
from hck.dask import DaskHCKClassifier, DaskHCKGaussianProcessRegressor, DaskHCKRegressor
from hck.dask.workers import Facts, Worker, look_around

pytestmark = pytest.mark.usefixtures("one_thread", "client")


def test_how_many_branches(data, client):
    """Two for each of two threads, if there are points enough."""
    x, y = data
    given = {name: value for name, value in GIVEN.items() if name != "n_branches"}
    assert DaskHCKRegressor(**given).fit(x, y)._model.plan.trunks[0].n_branches == 4
    few = DaskHCKRegressor(**{**given, "leaf_size": 100}).fit(x, y)
    assert few._model.plan.trunks[0].n_branches == 2
    tight = DaskHCKRegressor(**{**given, "leaf_size": 12, "memory_budget": 60_000}).fit(x, y)
    assert tight._model.plan.trunks[0].n_branches == 8


def test_what_is_not_given_is_chosen(data):
    x, y = data
    model = DaskHCKRegressor(fit_time=0.2, random_state=0, n_branches=2)
    model.fit(da.from_array(x, chunks=(350, 3)), da.from_array(y, chunks=350))
    assert model.score(x, y) > 0.95
    assert model._model.n_trees == model.selection_.n_trees
    assert model._model.plan.scaling.factor is not None


def test_parameters(client, data):
    model = DaskHCKRegressor(rank=7, client=client, n_branches=2)
    given = model.get_params()
    assert given["client"] is client
    assert set(given) == {*hck.HCKRegressor().get_params(), "client", "n_branches"}
    again = clone(model)
    assert again.client is client
    assert again.rank == 7
    with pytest.raises(ValueError, match="rank"):
        clone(model).set_params(rank=0).fit(*data)
    assert not get_tags(model).input_tags.sparse


@pytest.mark.parametrize("cls", [DaskHCKRegressor, DaskHCKClassifier, DaskHCKGaussianProcessRegressor])
def test_what_is_said_of_parameters(cls):
    for said in ("at least two branches", "GPUs of the workers", "client : distributed.Client", "seconds_ :"):
        assert cls.__doc__.count(said) == 1
    assert "{" not in cls.__doc__.replace('{"', "")


def test_progress_is_shown(data, capsys):
    DaskHCKRegressor(**GIVEN, verbose=1).fit(*data)
    assert "Dask: up" in capsys.readouterr().out


class Workers:
    """A client that knows what workers have."""

    def __init__(self, *workers):
        self.workers = workers

    def run(self, function, device, on_error):
        self.asked = str(device)
        return dict(enumerate(self.workers))


def test_workers_are_asked_for_the_device_that_is_wanted():
    for device, asked in ((None, "cuda"), ("cpu", "cpu"), ("cuda:1", "cuda:1")):
        workers = Workers(Worker(2, 8000, 1000))
        look_around(workers, device)
        assert workers.asked == asked


def test_what_workers_have():
    plain, gpu = Worker(4, 8000, 0), Worker(2, 8000, 1000)
    assert look_around(Workers(plain, plain), None) == Facts(2, 8, 1000, "cpu", 16_000)
    assert look_around(Workers(plain, gpu), None) == Facts(2, 6, 1000, "cpu", 16_000)
    assert look_around(Workers(gpu, gpu), None) == Facts(2, 4, 400, "cuda", 16_000)
    assert look_around(Workers(gpu, gpu), "cuda:1") == Facts(2, 4, 400, "cuda:1", 16_000)
    assert look_around(Workers(gpu, gpu), "cpu") == Facts(2, 4, 2000, "cpu", 16_000)
    assert look_around(Workers(Worker(1, 0, 0), OSError()), None) == Facts(1, 1, None, "cpu")
    with pytest.raises(ValueError, match=r"device='cuda:1' was asked for, .* no CUDA device on some"):
        look_around(Workers(plain, gpu), "cuda:1")
    with pytest.raises(ValueError, match="device='bogus' is not known; use 'cpu' or 'cuda'"):
        look_around(Workers(plain), "bogus")
    for device in ("mps", "meta"):
        with pytest.raises(ValueError, match=f"device='{device}' is not supported; use 'cpu' or 'cuda'"):
            look_around(Workers(plain), device)
    with pytest.raises(ValueError, match="wait_for_workers"):
        look_around(Workers(), None)


def test_points_without_columns(data):
    x, y = data
    with pytest.raises(ValueError, match="X has no columns"):
        DaskHCKRegressor(**GIVEN).fit(da.from_array(x[:, :0]), y)
