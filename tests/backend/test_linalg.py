"""Batched factorizations and solves against dense linear algebra."""

import warnings

import pytest
import torch

from hck.backend import linalg
from hck.backend.kinds import KINDS, OTHER
from hck.errors import NotPositiveDefiniteError, NumericalWarning

TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-11}
both_types = pytest.mark.parametrize("dtype", TOLERANCE)
# around the sizes of tiles, panels and blocks
SIZES = [1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 100, 128, 129, 150, 256, 257, 512]


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def definite(*shape, dtype=torch.float64, seed=0):
    """Well-conditioned positive definite matrices."""
    root = normal(*shape, seed=seed)
    return (root @ root.mT / shape[-1] + torch.eye(shape[-1])).to(dtype)


def indefinite_by(least, n=4, dtype=torch.float64):
    """A matrix of mean diagonal about 1 whose least eigenvalue is -least."""
    basis, _ = torch.linalg.qr(normal(n, n, seed=1))
    values = torch.ones(n, dtype=torch.float64)
    values[-1] = -least
    return ((basis * values) @ basis.mT).to(dtype)


def factor(matrix, what="x"):
    return linalg.factor_(matrix.clone(), what)


def lower(factored):
    """L, from what a factor keeps on the CPU."""
    return factored.triu().mT


@pytest.fixture(params=["compiled", "torch"])
def kept(request, monkeypatch):
    """Compiled code, and torch, as on any device that has no code of its own, where factors are L⁻¹."""
    if request.param == "torch":
        monkeypatch.setitem(KINDS, "cpu", OTHER)
    return request.param


@both_types
@pytest.mark.parametrize("n", SIZES)
def test_factors(n, dtype):
    matrix = definite(3, n, n, dtype=dtype)
    factored = factor(matrix)
    assert factored.dtype == dtype
    torch.testing.assert_close(
        lower(factored) @ lower(factored).mT, matrix, rtol=0, atol=n**0.5 * TOLERANCE[dtype]
    )
    assert (factored.diagonal(dim1=-2, dim2=-1) > 0).all()


def test_only_the_upper_triangle_is_read(kept):
    matrix = definite(3, 80, 80)
    other = matrix.triu() + 7 * torch.ones_like(matrix).tril(-1)
    right = normal(3, 80, 2)
    expected = linalg.whiten_(factor(matrix), right.clone())
    torch.testing.assert_close(linalg.whiten_(factor(other), right.clone()), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n", [1, 5, 65])
def test_color(kept, n):
    matrix, x = definite(3, n, n), normal(3, n, 2, seed=1)
    expected = torch.linalg.cholesky(matrix) @ x
    torch.testing.assert_close(linalg.color(factor(matrix), x), expected, rtol=0, atol=1e-10)


@both_types
@pytest.mark.parametrize("columns", [1, 2, 16, 37, 80])
@pytest.mark.parametrize("n", SIZES)
def test_solves(kept, n, columns, dtype):
    matrix = definite(3, n, n, dtype=dtype)
    factored, right = factor(matrix), normal(3, n, columns, seed=1).to(dtype)
    root = torch.linalg.cholesky(matrix.double())
    close = {"rtol": 0, "atol": 20 * TOLERANCE[dtype]}
    for found, expected in (
        (linalg.whiten_(factored, right.clone()), (root, False)),
        (linalg.unwhiten_(factored, right.clone()), (root.mT, True)),
    ):
        solution = torch.linalg.solve_triangular(expected[0], right.double(), upper=expected[1])
        torch.testing.assert_close(found.double(), solution, **close)


@both_types
@pytest.mark.parametrize("n", SIZES)
def test_inverse(kept, n, dtype):
    matrix = definite(2, n, n, dtype=dtype)
    expected = torch.cholesky_inverse(torch.linalg.cholesky(matrix.double()))
    found, close = factor(matrix), {"rtol": 0, "atol": 10 * TOLERANCE[dtype]}
    torch.testing.assert_close(linalg.inverse(found).double(), expected, **close)
    diagonal = linalg.inverse_diagonal(found).double()
    torch.testing.assert_close(diagonal, expected.diagonal(dim1=-2, dim2=-1), **close)


@both_types
@pytest.mark.parametrize("columns", SIZES)
@pytest.mark.parametrize("n", [1, 8, 65, 300])
def test_subtract_gram(kept, n, columns, dtype):
    y, matrix = normal(2, n, columns).to(dtype), definite(2, columns, columns, dtype=dtype)
    found = linalg.subtract_gram_(y, matrix.clone()).triu()
    expected = (matrix.double() - y.double().mT @ y.double()).triu()
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=n * TOLERANCE[dtype])


@pytest.mark.parametrize("n", [5, 70])
def test_factors_of_other_members(kept, n):
    factored, right = factor(definite(3, n, n)), normal(4, n, 3)
    which = torch.tensor([2, 0, 0, 1])
    for solve in (linalg.whiten_, linalg.unwhiten_):
        expected = solve(factored[which].clone(), right.clone())
        torch.testing.assert_close(solve(factored, right.clone(), which), expected, rtol=0, atol=1e-12)


def test_transposed_input(kept):
    factored, right = factor(definite(2, 9, 9)), normal(2, 5, 9)
    expected = linalg.whiten_(factored, right.mT.contiguous())
    torch.testing.assert_close(linalg.whiten_(factored, right.mT), expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("n", [1, 6, 33])
def test_pack(kept, n):
    factored, symmetric = factor(definite(3, n, n)), linalg.mirror(definite(3, n, n, seed=2))
    again, back = linalg.unpack(*linalg.pack_(symmetric, factored))
    torch.testing.assert_close(back, symmetric, rtol=0, atol=0)
    right = normal(3, n, 2)
    expected = linalg.whiten_(factored, right.clone())
    torch.testing.assert_close(linalg.whiten_(again, right.clone()), expected, rtol=0, atol=1e-13)


def test_mirror():
    matrix = definite(2, 7, 7)
    assert torch.equal(linalg.mirror(matrix.triu()), matrix.triu() + matrix.triu(1).mT)


def test_log_determinant(kept):
    matrix = definite(6, 5, 5)
    half = linalg.half_log_determinant(factor(matrix))
    torch.testing.assert_close(half, torch.linalg.slogdet(matrix).logabsdet / 2)


def test_failures_in_any_block_are_found(kept):
    matrix = definite(4, 150, 150)
    matrix[1, 100, 100] = -1
    matrix[3, 10, 10] = -1
    with pytest.raises(NotPositiveDefiniteError, match="2 of 4"):
        factor(matrix)


def test_failures_are_noted(kept):
    matrix = definite(4, 70, 70)
    matrix[2, 69, 69] = -1
    algebra, each, one = KINDS["cpu"].machine().algebra(matrix.dtype), *torch.zeros(2, 4, dtype=torch.int32)
    for failed in (each, one[:1].expand(4)):
        algebra.factor_noting_(matrix.clone(), failed)
    assert each.tolist() == [0, 0, 1, 0]
    assert one.tolist() == [1, 0, 0, 0]


@both_types
def test_jitter_for_the_members_that_fail_only(dtype):
    least = {torch.float32: 1e-5, torch.float64: 1e-11}[dtype]
    good, bad = definite(3, 4, 4, dtype=dtype), indefinite_by(least, dtype=dtype)
    matrix = torch.stack([good[0], bad, good[1], good[2]])
    with pytest.warns(
        NumericalWarning, match="the test matrix was not positive definite in 1 of 4"
    ) as caught:
        factored = lower(factor(matrix, "the test matrix"))
    assert "alpha" in str(caught[0].message)
    torch.testing.assert_close(
        factored[[0, 2, 3]], torch.linalg.cholesky(good), rtol=0, atol=TOLERANCE[dtype]
    )
    assert torch.isfinite(factored).all()
    change = factored[1] @ factored[1].mT - bad
    jitter = change.diagonal().mean().item()
    assert least <= jitter <= 100 * least  # no more than the tenfold steps make necessary
    off = change - torch.diag(change.diagonal())
    assert off.abs().max().item() <= 32 * torch.finfo(dtype).eps


def test_jitter_in_a_later_block(kept):
    """A matrix of several blocks that fails in the last one."""
    matrix = torch.eye(150, dtype=torch.float64).repeat(2, 1, 1)
    matrix[1, -4:, -4:] = indefinite_by(1e-11)
    with pytest.warns(NumericalWarning, match="1 of 2"):
        factored = factor(matrix)
    solution = linalg.unwhiten_(factored, linalg.whiten_(factored, normal(2, 150, 1)))
    torch.testing.assert_close(solution[0], normal(2, 150, 1)[0], rtol=0, atol=1e-12)
    assert torch.isfinite(solution).all()


@pytest.mark.parametrize("n", [60, 150, 256, 300])
def test_what_jitter_has_rescued_is_a_factor(kept, n):
    """Kernel matrices of smooth kernels, positive definite but for rounding."""
    x = torch.linspace(0, 1, n, dtype=torch.float64)
    matrix = torch.exp(-2 * torch.stack([(x - x[:, None]) ** 2, (x**2 - x[:, None] ** 2) ** 2]))
    with pytest.warns(NumericalWarning, match="2 of 2"):
        factored = factor(matrix)
    half = linalg.whiten_(factored, matrix.clone())
    near = linalg.whiten_(factored, half.mT.contiguous())  # L⁻¹ S L⁻ᵀ = I − L⁻¹ J L⁻ᵀ, eigenvalues in [0, 1]
    values = torch.linalg.eigvalsh((near + near.mT) / 2)
    assert values.max() <= 1.1
    assert values.min() >= -0.1
    assert (values > 0.9).sum(-1).min() >= 4


def test_jitter_is_relative_to_the_diagonal(kept):
    with pytest.warns(NumericalWarning):
        small = factor(1e-8 * indefinite_by(1e-11)[None])
    with pytest.warns(NumericalWarning):
        large = factor(1e8 * indefinite_by(1e-11)[None])
    right = normal(1, 4, 1)
    small, large = (linalg.whiten_(one, right.clone()) for one in (small, large))
    torch.testing.assert_close(small, 1e8 * large, rtol=1e-5, atol=0)


def test_a_member_does_not_depend_on_the_others():
    mild, severe = indefinite_by(1e-12), indefinite_by(1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)
        together = factor(torch.stack([mild, severe]))
        apart = [factor(one[None])[0] for one in (mild, severe)]
    assert torch.equal(lower(together), lower(torch.stack(apart)))


@both_types
def test_indefinite_matrices_are_errors_that_say_what_to_do(kept, dtype):
    matrix = torch.stack([definite(4, 4, dtype=dtype), indefinite_by(0.1, dtype=dtype)])
    with pytest.raises(NotPositiveDefiniteError, match=r"the test matrix .*1 of 2") as raised:
        factor(matrix, "the test matrix")
    message = str(raised.value)
    assert all(word in message for word in ("alpha", "jitter", str(dtype), "dtype='float64'"))
    assert issubclass(NotPositiveDefiniteError, ValueError)


@pytest.mark.parametrize("place", [(0, 0), (2, 2), (1, 2), (0, 3)])
def test_nan(kept, place):
    matrix = definite(3, 4, 4)
    matrix[(1, *place)] = torch.nan
    with pytest.raises(NotPositiveDefiniteError, match="the test matrix contains NaN or infinity in 1 of 3"):
        factor(matrix, "the test matrix")


@pytest.mark.parametrize("n", [30, 150])
def test_infinity(n):
    matrix = definite(3, n, n)
    matrix[1, n - 1, n - 1] = torch.inf
    with pytest.raises(NotPositiveDefiniteError, match="NaN or infinity in 1 of 3"):
        factor(matrix)


def test_large_matrices_by_torch():
    matrix = definite(300, 300)
    assert torch.equal(linalg.cholesky(matrix, "x"), torch.linalg.cholesky(matrix))
    stack = torch.stack([definite(5, 5), indefinite_by(1e-11, 5)])
    with pytest.warns(NumericalWarning, match="the test matrix was not positive definite in 1 of 2"):
        lower = linalg.cholesky(stack, "the test matrix")
    torch.testing.assert_close(lower @ lower.mT, stack, rtol=0, atol=1e-9)
    with pytest.raises(NotPositiveDefiniteError, match="the test matrix is not positive definite in 1 of 1"):
        linalg.cholesky(indefinite_by(1e-11), "the test matrix", mend=False)
    with pytest.raises(NotPositiveDefiniteError, match="NaN"):
        linalg.cholesky(torch.full((3, 3), torch.nan, dtype=torch.float64), "the test matrix")


def test_nothing_is_recorded(kept):
    matrix, right = definite(2, 6, 6).requires_grad_(), normal(2, 6, 1).requires_grad_()
    before = right.detach().clone()
    factored = linalg.factor_(matrix.clone(), "x")
    solved = linalg.unwhiten_(factored, linalg.whiten_(factored, right.clone()))
    assert not solved.requires_grad
    torch.testing.assert_close(definite(2, 6, 6) @ solved, before, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("n", [1, 2, 127, 128, 129, 300, 515])
def test_factors_of_one_large_matrix(n, dtype):
    x = torch.randn(n, 2 * n, generator=torch.Generator().manual_seed(n), dtype=torch.float64)
    matrix = (x @ x.T / n + torch.eye(n, dtype=x.dtype)).to(dtype)
    found = linalg.inverse_factor(matrix, "the matrix")
    assert found.shape == (n, n)
    assert (found.triu(1) == 0).all()
    limit = 100 * torch.finfo(dtype).eps
    one = torch.eye(n, dtype=dtype)
    torch.testing.assert_close(found @ torch.linalg.cholesky(matrix), one, rtol=0, atol=limit)
    torch.testing.assert_close(found.mT @ found @ matrix, one, rtol=0, atol=30 * limit)
