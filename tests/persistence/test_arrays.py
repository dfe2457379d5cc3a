"""Arrays are stored once, as small as they are, and come back as they lay in memory."""

import gc

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor

from hck import HCKClassifier, HCKGaussianProcessRegressor, HCKKernelPCA, HCKRegressor
from hck.persistence import classes, save
from hck.persistence.arrays import DTYPES, pack, unpack
from hck.persistence.classes import Place
from hck.persistence.decode import Decoder
from hck.persistence.encode import Encoder

pytestmark = pytest.mark.usefixtures("one_thread")

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(3000, 4))
Y = np.sin(4 * X[:, 0]) + X[:, 1]
LABELS = np.where(Y > 1, "high", "low")


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(12).reshape(3, 4),
        torch.arange(12).reshape(3, 4).mT,
        torch.arange(24).reshape(2, 3, 4).permute(1, 2, 0),
        torch.arange(4).expand(3, 4),
        torch.arange(3)[:, None].expand(3, 4),
        torch.tensor(5.0).expand(3, 4),
        torch.arange(12).reshape(3, 4)[:, 1:3],
        torch.arange(12).reshape(3, 4)[::2].mT,
        torch.arange(12).reshape(3, 4)[:-1],
        torch.arange(12).reshape(3, 4, 1).expand(3, 4, 2).permute(2, 1, 0),
        torch.zeros(0, 3),
        torch.tensor(True),
        torch.zeros(1, 5).expand(1, 5).mT,
    ],
    ids=lambda tensor: f"{list(tensor.shape)}, {tensor.stride()}",
)
def test_layouts(tensor):
    packed, layout = pack(tensor)
    assert packed.numel() <= tensor.numel()
    found = unpack(packed.contiguous(), layout)
    assert torch.equal(found, tensor)
    assert [found.stride(axis) == 0 for axis in range(found.ndim) if found.shape[axis] > 1] == [
        tensor.stride(axis) == 0 for axis in range(tensor.ndim) if tensor.shape[axis] > 1
    ]


def round_trip(value):
    encoder = Encoder()
    node = encoder.value(value, "x")
    stored = {name: tensor.contiguous() for name, tensor in encoder.arrays.items()}
    cpu = torch.device("cpu")
    decoder = Decoder(encoder.objects, lambda name, dtype, shape: stored[name].clone(), Place(cpu), 1e9)
    return decoder.value(node, cpu), encoder


@pytest.mark.parametrize("dtype", [*DTYPES, ">f8", ">i2", "<U3", "O", "datetime64[ns]", "timedelta64[s]"])
def test_types(dtype):
    array = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
    found, _ = round_trip(array)
    np.testing.assert_array_equal(found, array)
    assert found.dtype == array.dtype.newbyteorder("=")


def test_arrays_in_any_order():
    array = RNG.normal(size=(4, 6))
    frozen = array[:2].copy()
    frozen.flags.writeable = False
    for some in (array.T, array[::-1], array[:, ::-2], np.broadcast_to(array[0], (5, 6)), frozen):
        np.testing.assert_array_equal(round_trip(some)[0], some)
    assert round_trip(np.asfortranarray(array))[0].flags.f_contiguous


def test_what_is_shared_is_stored_once():
    x = torch.from_numpy(X)
    matrix = sp.csr_matrix(X)
    values = [x, X, x.detach(), x.view(3000, 4), matrix, 2 * matrix, matrix]
    found, encoder = round_trip(values)
    assert len(encoder.arrays) == 1 + 3 + 3
    assert found[0].data_ptr() == found[1].ctypes.data == found[3].data_ptr()
    assert found[4].data.ctypes.data == found[6].data.ctypes.data
    same = sp.csr_matrix((2 * matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)
    assert len(round_trip([matrix, same])[1].arrays) == 4


def held(model):
    """The bytes of all memory that a model refers to, caches apart."""
    blocks, seen, todo = {}, set(), [model]
    while todo:
        x = todo.pop()
        if id(x) in seen or isinstance(x, type):
            continue
        seen.add(id(x))
        if isinstance(x, Tensor):
            storage = x.untyped_storage()
            blocks[storage.data_ptr()] = storage.nbytes()
        elif isinstance(x, np.ndarray):
            base = x
            while isinstance(base.base, np.ndarray):
                base = base.base
            blocks[base.ctypes.data] = base.nbytes
        elif isinstance(x, list | tuple):
            todo += x
        elif isinstance(x, dict):
            todo += x.values()
        elif sp.issparse(x):
            todo += [x.data, x.indices, x.indptr]
        elif type(x) in classes.RECIPES:
            todo += classes.RECIPES[type(x)].take(x).values()
    return sum(blocks.values())


@pytest.mark.parametrize(
    "model",
    [
        HCKRegressor(n_trees=4, alpha=0.1, lengthscale=0.5, rank=32),
        HCKRegressor(n_trees=4, alpha=0.1, lengthscale=0.5, rank=32, landmarks="same", partition="kmeans"),
        HCKClassifier(n_trees=2, alpha=0.1, lengthscale=0.5, rank=32, approximation="nystrom"),
        HCKRegressor(alpha=0.1, lengthscale=0.5, rank=32, approximation="tapered"),
        HCKGaussianProcessRegressor(optimizer=None, rank=64),
        HCKGaussianProcessRegressor(optimizer=None, rank=32, approximation="fourier"),
        HCKKernelPCA(2, rank=32, fit_inverse_transform=True),
    ],
    ids=repr,
)
def test_size(model, tmp_path):
    model.fit(X, LABELS if isinstance(model, HCKClassifier) else Y)
    save(model, tmp_path / "model")
    size = sum(file.stat().st_size for file in (tmp_path / "model").iterdir())
    assert size <= 1.2 * held(model)


def test_points_of_a_forest_are_stored_once(tmp_path):
    sizes = []
    for n_trees in (1, 5):
        model = HCKRegressor(n_trees=n_trees, alpha=0.1, lengthscale=0.5, rank=32, random_state=0).fit(X, Y)
        save(model, tmp_path / str(n_trees))
        sizes.append((tmp_path / str(n_trees) / "tensors.safetensors").stat().st_size)
    weights_and_order = 2 * 8 * len(X)
    assert sizes[1] - sizes[0] < 4 * (2 * weights_and_order)
    assert sizes[1] < sizes[0] + 4 * (sizes[0] - X.nbytes)


def test_a_part_of_a_large_tensor(tmp_path):
    """Of memory that a model sees a part of, the rest is not saved."""
    large = torch.rand(100_000, 4, dtype=torch.float64)
    model = HCKRegressor(alpha=0.1, lengthscale=0.5, rank=32, leave_one_out=False).fit(large[:500], Y[:500])
    save(model, tmp_path / "model")
    assert (tmp_path / "model" / "tensors.safetensors").stat().st_size < 100_000


def test_numbers_that_are_freed_meanwhile():
    """Where memory is used again, arrays are not taken for each other."""
    encoder = Encoder()
    for k in range(200):
        encoder.value(np.full(100, k), f"x{k}")
        gc.collect(0)
    assert [int(tensor[0]) for tensor in encoder.arrays.values()] == list(range(200))
