"""Dense, sparse and other points: one interface, equal results."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from hck.backend.blocks import Blocks
from hck.kernels import CallableKernel, Gaussian, Matern, kernel_names, make_kernel
from hck.kernels.inputs import looks_like_objects
from hck.points import DensePoints, ObjectPoints, SparsePoints, as_points, as_points_like, cross

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-13}
both_types = pytest.mark.parametrize("dtype", TOLERANCE)
CPU = torch.device("cpu")


@pytest.fixture
def rng():
    return np.random.default_rng(2)


@pytest.fixture
def x(rng):
    x = rng.normal(size=(30, 6)) * (rng.random((30, 6)) < 0.4)
    x[4] = 0
    return x


def both_kinds(x, dtype):
    return as_points(x, dtype), as_points(sp.csr_matrix(x), dtype)


def shared_letters(a, b):
    return np.array([[len(set(s) & set(t)) for t in b] for s in a], dtype=float)


@both_types
@pytest.mark.parametrize("n_directions", [1, 3, 40])
@pytest.mark.parametrize("n_rows", [0, 1, 8, 30])
def test_projections(x, rng, dtype, n_directions, n_rows):
    rows, which = rng.permutation(30)[:n_rows], rng.integers(n_directions, size=n_rows)
    directions = rng.normal(size=(n_directions, 6))
    expected = np.array([x[i] @ directions[g] for i, g in zip(rows, which, strict=True)])
    for points in both_kinds(x, dtype):
        arguments = torch.tensor(rows), torch.tensor(directions, dtype=dtype), torch.tensor(which)
        found = points.project(*arguments)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE[dtype])


@both_types
def test_accumulated_sums(x, rng, dtype):
    rows, which = rng.integers(30, size=50), rng.integers(3, size=50)  # group 3 stays empty
    weights = rng.normal(size=50)
    expected = np.zeros((4, 6))
    for i, w, g in zip(rows, weights, which, strict=True):
        expected[g] += w * x[i]
    for points in both_kinds(x, dtype):
        weight = torch.tensor(weights, dtype=dtype)
        found = points.accumulate(torch.tensor(rows), weight, torch.tensor(which), 4)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, rtol=0, atol=5 * TOLERANCE[dtype])


@both_types
def test_means_and_variances(x, rng, dtype):
    rows, which = rng.integers(30, size=50), np.arange(50) % 3
    for points in both_kinds(x, dtype):
        arguments = torch.tensor(rows), torch.tensor(which), 3
        for g in range(3):
            mine = x[rows[which == g]]
            np.testing.assert_allclose(points.mean(*arguments)[g], mine.mean(0), atol=5 * TOLERANCE[dtype])
            np.testing.assert_allclose(points.variance(*arguments)[g], mine.var(0), atol=5 * TOLERANCE[dtype])


def test_large_sets_are_worked_through_in_chunks(rng, monkeypatch):
    x = rng.normal(size=(100, 3))
    rows, which, directions = rng.permutation(100), rng.integers(2, size=100), rng.normal(size=(2, 3))
    numbers = torch.tensor(rows), torch.tensor(directions), torch.tensor(which)
    weight, points = torch.ones(100, dtype=torch.float64), as_points(x)
    whole = points.project(*numbers), points.accumulate(numbers[0], weight, numbers[2], 2)
    some = points.project(numbers[0][:40], numbers[1], numbers[2][:40])
    monkeypatch.setattr("hck.points.dense._CHUNK", 21)  # seven points
    torch.testing.assert_close(points.project(*numbers), whole[0])
    torch.testing.assert_close(points.accumulate(numbers[0], weight, numbers[2], 2), whole[1])
    torch.testing.assert_close(points.project(numbers[0][:40], numbers[1], numbers[2][:40]), some)


def table(rows):
    width = max(len(row) for row in rows)
    index = torch.tensor([[*row, *[-1] * (width - len(row))] for row in rows])
    return Blocks(index, bool((index >= 0).all()))


def expected_cross(kernel, a, rows, b, columns):
    """Block after block, value after value."""
    out = torch.zeros(len(rows), rows.index.shape[1], columns.index.shape[1], dtype=torch.float64)
    for block, row, column in zip(out, rows.index.tolist(), columns.index.tolist(), strict=True):
        for i, p in enumerate(row):
            for j, q in enumerate(column):
                if p >= 0 and q >= 0:
                    block[i, j] = kernel.evaluate(a[p : p + 1], b[q : q + 1])[0, 0]
    return out


@both_types
@pytest.mark.parametrize("name", kernel_names())
@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        ([[0, 1, 2], [9, 4, 5]], [[3, 3], [8, 9]]),
        ([[0, 1, 2], [9], [4, 5]], [[3, 4], [5, 6], [7, 8]]),
        ([[0, 1], [9, 3]], [[3], [4, 2]]),
        ([[0, 1], [9], []], [[3], [4, 2], [1]]),
    ],
    ids=["full", "rows padded", "columns padded", "an empty block"],
)
def test_cross_of_dense_and_sparse_points(x, name, dtype, rows, columns):
    rows, columns, kernel = table(rows), table(columns), make_kernel(name, 0.8)
    a, b = torch.tensor(x[:10], dtype=dtype).double(), torch.tensor(x[10:20], dtype=dtype).double()
    expected = expected_cross(kernel, a, rows, b, columns)
    for left, right in zip(both_kinds(x[:10], dtype), both_kinds(x[10:20], dtype), strict=True):
        values = cross(kernel, left, rows, right, columns)
        assert values.dtype == dtype
        np.testing.assert_allclose(values, expected, rtol=0, atol=TOLERANCE[dtype])
        assert (values[~rows.mask] == 0).all()
        assert (values.mT[~columns.mask] == 0).all()


@both_types
def test_cross_of_objects(dtype):
    words, others = ["tree", "leaf", "root", "twig"], ["trunk", "bark"]
    left, right = (as_points(w, dtype, objects=True) for w in (words, others))
    rows, columns, kernel = (
        table([[0, 3], [1], [2, 1]]),
        table([[1], [0, 1], [0]]),
        CallableKernel(shared_letters),
    )
    values = cross(kernel, left, rows, right, columns)
    expected = expected_cross(kernel, np.array(words), rows, np.array(others), columns)
    assert torch.equal(values, expected.to(dtype))


@pytest.mark.parametrize("kind", [DensePoints, SparsePoints, ObjectPoints])
def test_take_join_and_move(x, kind):
    given = sp.csr_matrix(x) if kind is SparsePoints else x
    points = as_points(given, objects=kind is ObjectPoints)
    assert isinstance(points, kind)
    assert len(points) == 30
    assert points.nbytes > 0

    def rows(points):
        return [list(np.ravel(row.toarray() if sp.issparse(row) else row)) for row in points.x]

    few = points.take(torch.tensor([5, 2, 2]))
    assert isinstance(few, kind)
    assert rows(few) == x[[5, 2, 2]].tolist()
    both = points.join([few])
    assert isinstance(both, kind)
    assert rows(both) == np.concatenate([x, x[[5, 2, 2]]]).tolist()
    moved = both.to(CPU)
    assert isinstance(moved, kind)
    assert rows(moved) == rows(both)
    assert (moved.device, moved.dtype) == (CPU, torch.float64)
    assert as_points(points) is points


def test_vectors_as_scikit_learn_takes_them(x):
    dense, sparse = both_kinds(x, torch.float64)
    np.testing.assert_array_equal(dense.numpy(torch.tensor([3, 1])), x[[3, 1]])
    assert sp.issparse(sparse.numpy(torch.tensor([3, 1])))
    np.testing.assert_array_equal(sparse.numpy(torch.tensor([3, 1])).toarray(), x[[3, 1]])
    assert dense.values_per_point == dense.n_features == sparse.n_features == 6
    assert sparse.values_per_point == 0  # never gathered as dense rows


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (["tree", "leaf"], True),
        (np.array(["tree", "leaf"]), True),
        ([{1, 2}, {3}], True),
        ([(1, 2), (3,)], True),
        ([("a", 1), ("b", 2)], True),
        ([1.0, 2.0], True),
        ([[1.0, 2.0], [3.0, 4.0]], False),
        (np.zeros((3, 2)), False),
        (torch.zeros(3, 2), False),
        (sp.csr_matrix((3, 2)), False),
    ],
)
def test_what_counts_as_objects(x, expected):
    assert looks_like_objects(x) is expected


@pytest.mark.parametrize("x", ["abc", None, 3.0])
def test_what_is_no_sequence_of_points(x):
    with pytest.raises(TypeError, match="expected a sequence of points"):
        looks_like_objects(x)


def test_objects_that_are_sequences_stay_objects():
    points = as_points([(1, 2), (3, 4), (5,)], objects=True)
    assert points.x.shape == (3,)
    assert points.x.tolist() == [(1, 2), (3, 4), (5,)]
    assert as_points([[1, 2], [3, 4]], objects=True).x.tolist() == [[1, 2], [3, 4]]


def test_kinds_do_not_mix(x):
    dense, sparse = both_kinds(x, torch.float64)
    objects = as_points(["a", "b"], objects=True)
    one = table([[0]])
    for left, right in [(dense, sparse), (sparse, dense), (dense, objects), (objects, sparse)]:
        with pytest.raises(TypeError, match=f"{type(left).__name__}, {type(right).__name__}"):
            cross(Gaussian(), left, one, right, one)


@both_types
def test_points_in_the_form_of_others(x, dtype):
    for like in both_kinds(x, dtype):
        for given in (x[:3], x[:3].tolist(), torch.tensor(x[:3]), sp.csr_matrix(x[:3]), sp.csc_array(x[:3])):
            made = as_points_like(given, like)
            assert type(made) is type(like)
            assert made.dtype == dtype
            found = made.x.toarray() if sp.issparse(made.x) else made.x
            np.testing.assert_array_equal(found, torch.tensor(x[:3], dtype=dtype))
        with pytest.raises(ValueError, match="5 features where 6 are expected"):
            as_points_like(x[:, :5], like)
        with pytest.raises(TypeError, match="different kinds"):
            as_points_like(as_points(["a"], objects=True), like)
    words = as_points_like(["a", "b"], as_points(["c"], dtype, objects=True))
    assert isinstance(words, ObjectPoints)
    assert words.x.tolist() == ["a", "b"]


@both_types
def test_data_become_points_of_the_type_asked_for(x, dtype):
    integers = (x > 0).astype(int)
    for given in (x, x.tolist(), torch.tensor(x), integers, x > 0, sp.coo_matrix(x), sp.csr_array(integers)):
        points = as_points(given, dtype)
        assert points.dtype == dtype
        assert (
            points.project(torch.tensor([0]), torch.ones(1, 6, dtype=dtype), torch.tensor([0])).dtype == dtype
        )


@pytest.mark.parametrize("shape", [(3,), (2, 3, 4), ()])
def test_points_must_form_a_table(shape):
    with pytest.raises(ValueError, match="2-D array"):
        as_points(np.zeros(shape))


def test_arrays_of_any_layout_become_points(x):
    np.testing.assert_array_equal(as_points(x[::-1]).x, x[::-1])
    np.testing.assert_array_equal(as_points(np.asfortranarray(x)).x, x)


@pytest.mark.parametrize("d", [3, 300])
def test_large_blocks_are_evaluated_by_parts(d, monkeypatch):
    x = DensePoints(torch.randn(200, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64))
    kernel = CallableKernel(lambda a, b: (a @ b.mT).exp(), batched=True) if d == 3 else Matern(d**0.5)
    index = torch.arange(200).view(2, 100)
    index[1, 90:] = -1
    blocks = Blocks(index, full=False)
    expected = cross(kernel, x, blocks, x, blocks)
    monkeypatch.setattr("hck.points.dense._AT_ONCE", 1700)
    torch.testing.assert_close(cross(kernel, x, blocks, x, blocks), expected, rtol=1e-12, atol=1e-12)
