"""Batched factorizations and solves against dense linear algebra."""

import warnings

import pytest
import torch

from hck.errors import NotPositiveDefiniteError, NumericalWarning
from hck.linalg import (
    cholesky,
    half_log_determinant,
    solve_lower,
    solve_lower_right_transposed,
    solve_lower_transposed,
)

TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-11}
both_types = pytest.mark.parametrize("dtype", TOLERANCE)


def definite(*shape, dtype=torch.float64, seed=0):
    """Well-conditioned positive definite matrices."""
    root = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (root @ root.mT / shape[-1] + torch.eye(shape[-1])).to(dtype)


def indefinite_by(least, n=4, dtype=torch.float64):
    """A matrix of mean diagonal about 1 whose least eigenvalue is -least."""
    basis, _ = torch.linalg.qr(
        torch.randn(n, n, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    )
    values = torch.ones(n, dtype=torch.float64)
    values[-1] = -least
    return ((basis * values) @ basis.mT).to(dtype)


@both_types
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
def test_factors(batch, dtype):
    matrix = definite(*batch, 5, 5, dtype=dtype)
    factor = cholesky(matrix, "the matrix")
    assert factor.dtype == dtype
    torch.testing.assert_close(factor @ factor.mT, matrix, rtol=0, atol=TOLERANCE[dtype])
    assert torch.equal(factor, factor.tril())
    assert (factor.diagonal(dim1=-2, dim2=-1) > 0).all()


def test_only_the_lower_triangle_is_read():
    matrix = definite(3, 5, 5)
    assert torch.equal(cholesky(matrix.tril(), "x"), cholesky(matrix, "x"))


@both_types
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
def test_solves(batch, dtype):
    factor = torch.linalg.cholesky(definite(*batch, 5, 5, dtype=dtype))
    inverse = torch.linalg.inv(factor.double())
    right, left = (
        definite(*batch, 5, 5, dtype=dtype)[..., :2],
        definite(*batch, 5, 5, dtype=dtype)[..., :2, :],
    )
    close = {"rtol": 0, "atol": TOLERANCE[dtype]}
    torch.testing.assert_close(solve_lower(factor, right).double(), inverse @ right.double(), **close)
    torch.testing.assert_close(
        solve_lower_transposed(factor, right).double(), inverse.mT @ right.double(), **close
    )
    torch.testing.assert_close(
        solve_lower_right_transposed(factor, left).double(), left.double() @ inverse.mT, **close
    )


def test_log_determinant():
    matrix = definite(2, 3, 5, 5)
    half = half_log_determinant(torch.linalg.cholesky(matrix))
    assert half.item() == pytest.approx(torch.linalg.slogdet(matrix).logabsdet.sum().item() / 2)


@both_types
def test_jitter_for_the_members_that_fail_only(dtype):
    least = {torch.float32: 1e-5, torch.float64: 1e-11}[dtype]
    good, bad = definite(3, 4, 4, dtype=dtype), indefinite_by(least, dtype=dtype)
    matrix = torch.stack([good[0], bad, good[1], good[2]])
    with pytest.warns(
        NumericalWarning, match="the test matrix was not positive definite in 1 of 4"
    ) as caught:
        factor = cholesky(matrix, "the test matrix")
    assert "alpha" in str(caught[0].message)
    assert torch.equal(factor[[0, 2, 3]], torch.linalg.cholesky(good))
    assert torch.isfinite(factor).all()
    change = factor[1] @ factor[1].mT - bad
    jitter = change.diagonal().mean().item()
    assert least <= jitter <= 100 * least  # no more than the tenfold steps make necessary
    off = change - torch.diag(change.diagonal())
    assert off.abs().max().item() <= 32 * torch.finfo(dtype).eps


def test_jitter_is_relative_to_the_diagonal():
    with pytest.warns(NumericalWarning):
        small = cholesky(1e-8 * indefinite_by(1e-11)[None], "x")
    with pytest.warns(NumericalWarning):
        large = cholesky(1e8 * indefinite_by(1e-11)[None], "x")
    torch.testing.assert_close(1e8 * small, large, rtol=1e-6, atol=0)


def test_a_member_does_not_depend_on_the_others():
    mild, severe = indefinite_by(1e-12), indefinite_by(1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)
        together = cholesky(torch.stack([mild, severe]), "x")
        apart = [cholesky(one[None], "x")[0] for one in (mild, severe)]
    assert torch.equal(together, torch.stack(apart))


def test_a_single_matrix_gets_jitter_too():
    with pytest.warns(NumericalWarning, match="1 of 1"):
        factor = cholesky(indefinite_by(1e-11), "x")
    torch.testing.assert_close(factor @ factor.mT, indefinite_by(1e-11), rtol=0, atol=1e-9)


def test_gradient_where_a_member_got_jitter():
    matrix = torch.stack([definite(4, 4), indefinite_by(1e-11)]).requires_grad_()
    with pytest.warns(NumericalWarning):
        factor = cholesky(matrix, "x")
    half_log_determinant(factor).backward()
    assert torch.isfinite(matrix.grad).all()
    torch.testing.assert_close(matrix.grad[0], torch.linalg.inv(matrix[0].detach()) / 2)


@both_types
def test_indefinite_matrices_are_errors_that_say_what_to_do(dtype):
    matrix = torch.stack([definite(4, 4, dtype=dtype), indefinite_by(0.1, dtype=dtype)])
    with pytest.raises(NotPositiveDefiniteError, match=r"the test matrix .*1 of 2") as raised:
        cholesky(matrix, "the test matrix")
    message = str(raised.value)
    assert all(word in message for word in ("alpha", "jitter", str(dtype), "dtype='float64'"))
    assert issubclass(NotPositiveDefiniteError, ValueError)


@pytest.mark.parametrize("place", [(0, 0), (2, 2), (2, 1), (3, 0)])
def test_nan(place):
    matrix = definite(3, 4, 4)
    matrix[(1, *place)] = torch.nan
    with pytest.raises(NotPositiveDefiniteError, match="the test matrix contains NaN or infinity in 1 of 3"):
        cholesky(matrix, "the test matrix")
