"""Malformed sparse matrices are refused by a ValueError at every door, before compiled code reads them."""

import numpy as np
import pytest
import scipy.sparse as sp

from hck import HCKClassifier, HCKGaussianProcessRegressor, HCKKernelPCA, HCKRegressor
from hck.kernels import Gaussian
from hck.points import as_points, check_sparse

pytestmark = pytest.mark.usefixtures("one_thread")

FORMATS = ["csr", "csc", "bsr", "coo", "lil", "dok", "dia"]
FAR = 10**8


@pytest.fixture
def matrix():
    x = np.random.default_rng(0).normal(size=(40, 6))
    return sp.csr_matrix(np.where(x > 0.3, x, 0.0))


def put(name, at, value):
    def spoil(x):
        getattr(x, name)[at] = value

    return spoil


def cut(name):
    return lambda x: setattr(x, name, getattr(x, name)[:-1])


def fractions(x):
    x.indices = x.indices + 0.5


def longer_row(x):
    x.rows[0].append(FAR)
    x.data[0].append(1.0)


COMPRESSED = {
    "an index too large": put("indices", 3, FAR),
    "an index just past the end": put("indices", 3, 40),
    "an index below 0": put("indices", 3, -1),
    "a pointer too large": put("indptr", 2, FAR),
    "a last pointer too large": put("indptr", -1, FAR),
    "a pointer below 0": put("indptr", 2, -3),
    "a first pointer": put("indptr", 0, 1),
    "too few pointers": cut("indptr"),
    "too few values": cut("data"),
    "too few indices": cut("indices"),
    "fractions": fractions,
}
CASES = [(kind, what, spoil) for kind in ("csr", "csc", "bsr") for what, spoil in COMPRESSED.items()]
CASES += [
    ("coo", "row", put("row", 3, FAR)),
    ("coo", "column", put("col", 3, -1)),
    ("coo", "values", cut("data")),
    ("lil", "uneven", lambda x: x.rows[0].append(1)),
    ("lil", "column", longer_row),
    ("dok", "place", lambda x: x._dict.update({(FAR, 0): 1.0})),
]


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("cls", [sp.csr_matrix, sp.csr_array])
def test_good_ones_stay(matrix, kind, cls):
    found = check_sparse(cls(matrix).asformat(kind))
    assert isinstance(found, sp.csr_matrix)
    assert found.has_canonical_format
    np.testing.assert_array_equal(found.toarray(), matrix.toarray())


@pytest.mark.parametrize(("kind", "what", "spoil"), CASES, ids=[f"{kind}, {what}" for kind, what, _ in CASES])
def test_malformed(matrix, kind, what, spoil):
    x = matrix.asformat(kind, copy=True)
    spoil(x)
    with pytest.raises(ValueError):
        check_sparse(x)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (sp.csr_matrix(np.eye(3) * 1j), "Complex data not supported"),
        (sp.coo_array(np.ones(3)), "two dimensions"),
        (sp.csr_matrix((np.array([1.0], "O"), [0], [0, 1]), shape=(1, 1)), "must be numbers"),
    ],
    ids=["complex", "one dimension", "objects"],
)
def test_others(x, message):
    with pytest.raises(ValueError, match=message):
        check_sparse(x)


def test_what_is_given_twice_is_summed():
    twice = sp.csr_matrix((np.array([1.0, 2.0, 3.0]), np.array([1, 1, 0]), np.array([0, 3])), shape=(1, 3))
    found = check_sparse(twice)
    assert found.nnz == 2
    np.testing.assert_array_equal(found.toarray(), [[3.0, 3.0, 0.0]])
    assert twice.nnz == 3


def test_what_a_matrix_says_of_itself_is_not_believed(matrix):
    assert matrix.has_canonical_format
    first = matrix.indptr[1]
    matrix.indices[:first] = matrix.indices[0]
    assert check_sparse(matrix)[[0]].nnz == 1


DOORS = {
    "points": as_points,
    "kernel": Gaussian(1.0),
    "regressor": lambda x: HCKRegressor(rank=8, alpha=0.1).fit(x, np.arange(40.0)),
    "classifier": lambda x: HCKClassifier(rank=8, alpha=0.1).fit(x, np.arange(40) % 2),
    "process": lambda x: HCKGaussianProcessRegressor("matern32", rank=8).fit(x, np.arange(40.0)),
    "components": lambda x: HCKKernelPCA(2, rank=8).fit(x),
}


@pytest.fixture(scope="module")
def fitted():
    x, y = sp.random(40, 6, 0.4, format="csr", random_state=0), np.arange(40.0)
    given = {"rank": 8, "lengthscale": 1.0, "random_state": 0}
    process = HCKGaussianProcessRegressor("gaussian", noise=0.1, optimizer=None, **given)
    models = {
        "dense": HCKRegressor(alpha=0.1, **given).fit(x.toarray(), y).predict,
        "regressor": HCKRegressor(alpha=0.1, **given).fit(x, y).predict,
        "classifier": HCKClassifier(alpha=0.1, **given).fit(x, y > 20).predict_proba,
        "process": process.fit(x, y).predict,
        "components": HCKKernelPCA(2, **given).fit(x).transform,
    }
    return models


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_doors(matrix, door, kind):
    x = matrix.asformat(kind, copy=True)
    put("row" if kind == "coo" else "indices", 3, FAR)(x)
    with pytest.raises(ValueError, match="malformed sparse matrix"):
        DOORS[door](x)


@pytest.mark.parametrize("what", ["an index too large", "a pointer below 0"])
@pytest.mark.parametrize("door", ["dense", "regressor", "classifier", "process", "components"])
def test_doors_of_predictions(matrix, fitted, door, what):
    COMPRESSED[what](matrix)
    with pytest.raises(ValueError, match="malformed sparse matrix"):
        fitted[door](matrix)


@pytest.mark.parametrize("door", ["regressor", "classifier", "process", "components", "points"])
def test_far_too_many_columns(door):
    x = sp.csr_matrix((np.ones(40), np.arange(40) * 10**15, np.arange(41)), shape=(40, 10**17))
    with pytest.raises(MemoryError, match="columns: dense vectors of so many take"):
        DOORS[door](x)


@pytest.mark.parametrize("x", [np.eye(3) * 1j, sp.csr_matrix(np.eye(3) * 1j)], ids=["dense", "sparse"])
@pytest.mark.parametrize("door", ["points", "kernel"])
def test_complex(x, door):
    with pytest.raises(ValueError, match="Complex data not supported"):
        DOORS[door](x)
