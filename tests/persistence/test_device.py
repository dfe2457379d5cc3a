"""Where a model is loaded to, as far as that can be seen without a GPU."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor

from hck import HCKGaussianProcessRegressor, HCKKernelPCA, HCKRegressor
from hck.persistence import classes, load, save
from hck.persistence.classes import Place
from hck.persistence.decode import Decoder
from hck.persistence.encode import Encoder

pytestmark = pytest.mark.usefixtures("one_thread")

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(80, 2))
Y = X.sum(1)
RIDGE = {"kernel": "gaussian", "lengthscale": [0.5, 1.0], "alpha": 0.1, "rank": 8, "random_state": 0}
without_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="for machines without a GPU")


def tensors(x, path=""):
    """All tensors in an object, by where they are."""
    if isinstance(x, Tensor):
        return {path: x}
    if isinstance(x, list | tuple):
        parts = {f"[{i}]": item for i, item in enumerate(x)}
    elif type(x) in classes.RECIPES:
        parts = {f".{name}": part for name, part in classes.RECIPES[type(x)].take(x).items()}
    else:
        return {}
    return {at: found for name, part in parts.items() for at, found in tensors(part, path + name).items()}


@pytest.mark.parametrize("options", [{"partition": "kernel", "n_trees": 2}, {"approximation": "nystrom"}])
@pytest.mark.parametrize("matrix", [np.asarray, sp.csr_matrix])
def test_what_moves(monkeypatch, matrix, options):
    """To a device without numbers: kernels that are shown stay with the CPU, the rest moves."""
    model = HCKRegressor(**RIDGE, **options).fit(matrix(X), Y)
    encoder, meta = Encoder(), torch.device("meta")
    root = encoder.value(model)
    monkeypatch.setattr(classes, "resolve_budget", lambda budget, device: 10**9)
    monkeypatch.setattr("hck.kernels.stationary.positive", lambda name, value, most_axes: value)
    monkeypatch.setattr("hck.persistence.decode._checked", lambda made: made)  # there are no numbers to check
    decoder = Decoder(encoder.objects, lambda name, *_: encoder.arrays[name], Place(meta, "meta"), 1e9)
    found = decoder.value(root, meta)
    assert found.device == "meta"
    assert found.forest_.members[0].points.device == meta
    for path, tensor in tensors(found).items():
        assert tensor.is_meta == path.startswith((".forest_", ".trees_", "._scaling")), path
    assert any(path.startswith(".selection_") for path in tensors(found))


@without_gpu
def test_a_device_that_is_not_there(tmp_path, edit):
    model = HCKRegressor(**RIDGE).fit(X, Y)
    save(model, tmp_path / "model")
    with pytest.raises(ValueError, match="device='cuda' was asked for, but torch finds no CUDA device"):
        load(tmp_path / "model", "cuda")

    def on_gpu(document):
        document["device"] = "cuda:0"
        document["objects"][-1]["parts"]["device"] = "cuda"

    edit(tmp_path / "model", on_gpu)
    with pytest.warns(UserWarning, match="was saved on cuda:0, which torch does not find here") as caught:
        found = load(tmp_path / "model")
    assert caught[0].filename == __file__
    assert found.device == "cpu"
    np.testing.assert_array_equal(found.predict(X), model.predict(X))
    assert load(tmp_path / "model", "cpu").device == "cpu"


def test_names_of_devices(tmp_path):
    save(HCKRegressor(**RIDGE).fit(X, Y), tmp_path / "model")
    assert load(tmp_path / "model").device is None
    assert load(tmp_path / "model", torch.device("cpu")).device == "cpu"
    with pytest.raises(ValueError, match="device='abacus' is not known; use 'cpu' or 'cuda'"):
        load(tmp_path / "model", "abacus")
    with pytest.raises(ValueError, match="not supported; use"):
        load(tmp_path / "model", "meta")


@pytest.mark.parametrize("device", [torch.device("cpu"), "cpu", None])
def test_the_parameter(again, device):
    assert again(HCKRegressor(**RIDGE, device=device).fit(X, Y)).device == (device and "cpu")


def test_estimators_within(again):
    model = HCKKernelPCA(2, rank=8, fit_inverse_transform=True).fit(X)
    assert again(model, "cpu")._back.device == "cpu"


def test_memory_of_another_machine(again, monkeypatch):
    model = HCKGaussianProcessRegressor(optimizer=None, rank=8).fit(X, Y)
    monkeypatch.setattr(classes, "resolve_budget", lambda budget, device: 12345678)
    member = again(model).posterior_.members[0]
    assert member.source.blueprint.budget == member.mean.budget == 12345678
    monkeypatch.setattr(classes, "resolve_budget", lambda budget, device: 2**60)
    assert (
        again(model).posterior_.members[0].source.blueprint.budget
        == model.posterior_.members[0].source.blueprint.budget
    )
