"""Batched factorizations and solves against dense linear algebra."""

import warnings

import pytest
import torch

from hck import linalg
from hck.errors import NotPositiveDefiniteError, NumericalWarning

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
    factor = linalg.factor(matrix, "the matrix")
    assert factor.dtype == dtype
    torch.testing.assert_close(factor @ factor.mT, matrix, rtol=0, atol=TOLERANCE[dtype])
    assert torch.equal(factor, factor.tril())
    assert (factor.diagonal(dim1=-2, dim2=-1) > 0).all()


def test_only_the_lower_triangle_is_read():
    matrix = definite(3, 5, 5)
    assert torch.equal(linalg.factor(matrix.tril(), "x"), linalg.factor(matrix, "x"))


@pytest.fixture(params=["L", "inverse of L"])
def kept(request, monkeypatch):
    """What a factor keeps: on a CPU, and, made to believe that it is one, on a GPU."""
    monkeypatch.setattr(linalg, "_is_inverse", lambda factor: request.param != "L")
    return request.param


@both_types
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
@pytest.mark.parametrize("n", [1, 5, 64, 65, 150])
def test_solves(kept, n, batch, dtype):
    matrix = definite(*batch, n, n, dtype=dtype)
    factor = linalg.factor(matrix, "x")
    identity = torch.eye(n, dtype=torch.float64).expand(*batch, n, n)
    inverse = torch.linalg.solve_triangular(torch.linalg.cholesky(matrix.double()), identity, upper=False)
    torch.testing.assert_close(factor, factor.tril())
    right, left = (part.double() for part in (matrix[..., :2], matrix[..., :2, :]))
    close = {"rtol": 0, "atol": 10 * TOLERANCE[dtype]}
    for found, expected in (
        (linalg.whiten(factor, right.to(dtype)), inverse @ right),
        (linalg.unwhiten(factor, right.to(dtype)), inverse.mT @ right),
        (linalg.whiten_right(left.to(dtype), factor), left @ inverse.mT),
        (linalg.inverse(factor), inverse.mT @ inverse),
    ):
        torch.testing.assert_close(found.double(), expected, **close)


def test_log_determinant(kept):
    matrix = definite(2, 3, 5, 5)
    half = linalg.half_log_determinant(linalg.factor(matrix, "x"))
    assert half.item() == pytest.approx(torch.linalg.slogdet(matrix).logabsdet.sum().item() / 2)


def test_failures_in_any_block_are_found(kept):
    matrix = definite(4, 150, 150)
    matrix[1, 100, 100] = -1
    matrix[3, 10, 10] = -1
    with pytest.raises(NotPositiveDefiniteError, match="2 of 4"):
        linalg.factor(matrix, "x")


def test_gradients(kept):
    matrix = definite(2, 6, 6).requires_grad_()
    linalg.half_log_determinant(linalg.factor(matrix, "x")).backward()
    torch.testing.assert_close(matrix.grad, torch.linalg.inv(matrix.detach()) / 2)


@both_types
def test_jitter_for_the_members_that_fail_only(dtype):
    least = {torch.float32: 1e-5, torch.float64: 1e-11}[dtype]
    good, bad = definite(3, 4, 4, dtype=dtype), indefinite_by(least, dtype=dtype)
    matrix = torch.stack([good[0], bad, good[1], good[2]])
    with pytest.warns(
        NumericalWarning, match="the test matrix was not positive definite in 1 of 4"
    ) as caught:
        factor = linalg.factor(matrix, "the test matrix")
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
        small = linalg.factor(1e-8 * indefinite_by(1e-11)[None], "x")
    with pytest.warns(NumericalWarning):
        large = linalg.factor(1e8 * indefinite_by(1e-11)[None], "x")
    torch.testing.assert_close(1e8 * small, large, rtol=1e-6, atol=0)


def test_a_member_does_not_depend_on_the_others():
    mild, severe = indefinite_by(1e-12), indefinite_by(1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)
        together = linalg.factor(torch.stack([mild, severe]), "x")
        apart = [linalg.factor(one[None], "x")[0] for one in (mild, severe)]
    assert torch.equal(together, torch.stack(apart))


def test_a_single_matrix_gets_jitter_too():
    with pytest.warns(NumericalWarning, match="1 of 1"):
        factor = linalg.factor(indefinite_by(1e-11), "x")
    torch.testing.assert_close(factor @ factor.mT, indefinite_by(1e-11), rtol=0, atol=1e-9)


def test_gradient_where_a_member_got_jitter():
    matrix = torch.stack([definite(4, 4), indefinite_by(1e-11)]).requires_grad_()
    with pytest.warns(NumericalWarning):
        factor = linalg.factor(matrix, "x")
    linalg.half_log_determinant(factor).backward()
    assert torch.isfinite(matrix.grad).all()
    torch.testing.assert_close(matrix.grad[0], torch.linalg.inv(matrix[0].detach()) / 2)


@both_types
def test_indefinite_matrices_are_errors_that_say_what_to_do(dtype):
    matrix = torch.stack([definite(4, 4, dtype=dtype), indefinite_by(0.1, dtype=dtype)])
    with pytest.raises(NotPositiveDefiniteError, match=r"the test matrix .*1 of 2") as raised:
        linalg.factor(matrix, "the test matrix")
    message = str(raised.value)
    assert all(word in message for word in ("alpha", "jitter", str(dtype), "dtype='float64'"))
    assert issubclass(NotPositiveDefiniteError, ValueError)


@pytest.mark.parametrize("place", [(0, 0), (2, 2), (2, 1), (3, 0)])
def test_nan(place):
    matrix = definite(3, 4, 4)
    matrix[(1, *place)] = torch.nan
    with pytest.raises(NotPositiveDefiniteError, match="the test matrix contains NaN or infinity in 1 of 3"):
        linalg.factor(matrix, "the test matrix")
