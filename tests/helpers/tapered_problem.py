"""A small problem for tapered kernels, and its dense algebra."""

import numpy as np
import torch

RNG = np.random.default_rng(0)
N = 131
X, NEW = RNG.uniform(size=(N, 3)), RNG.uniform(-0.1, 1.1, size=(17, 3))
B = torch.from_numpy(RNG.normal(size=(N, 2)))
NOISE = {"one": 0.1, "each": torch.from_numpy(RNG.uniform(0.05, 0.2, N))}
# Wendland's table for up to 3 dimensions
TABLE = [
    lambda s: (1 - s) ** 2,
    lambda s: (1 - s) ** 4 * (4 * s + 1),
    lambda s: (1 - s) ** 6 * (35 * s**2 + 18 * s + 3) / 3,
]


def dense(kernel, radius, x, smoothness=1, metric=1.0):
    z = np.asarray(x) / metric
    s = np.sqrt(((z[:, None] - z) ** 2).sum(-1)) / radius
    return torch.from_numpy(np.asarray(kernel(x)) * np.where(s < 1, TABLE[smoothness](s), 0))


def close(found, expected, tolerance=1e-8):
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


def check(made, k, noise, tolerance=1e-8):
    """All that the protocol has, but gradients and draws, where k is K̃ on old and new points together."""
    n, dtype = N, made.points.dtype
    noisy = k[:n, :n] + torch.diag(torch.as_tensor(noise, dtype=torch.float64).expand(n))
    inverse, across = torch.linalg.inv(noisy), k[:n, n:]
    iterated, factor = made.factor(noise), made.factor(noise)
    assert torch.isfinite(factor.log_determinant)  # from here on, solutions are by the factor

    def same(found, expected):
        assert found.dtype == dtype
        close(found.double(), expected, tolerance)

    same(made @ B, k[:n, :n] @ B)
    same(made @ B[:, 0], k[:n, :n] @ B[:, 0])
    same(made.cross(NEW), across)
    for each in (iterated, factor):
        same(each.solve(B), inverse @ B)
        same(each.solve(B[:, 0]), inverse @ B[:, 0])
        same(each.predictor(B)(NEW), across.mT @ inverse @ B)
    assert "cholesky" not in iterated.__dict__
    close(factor.log_determinant, torch.linalg.slogdet(noisy).logabsdet, n * tolerance)
    same(factor.inverse_diagonal(), inverse.diagonal())
    row = torch.arange(n).repeat_interleave(made.pattern.count)
    close(factor.inverse, inverse[row, made.pattern.column.long()], tolerance)
    cov = k[n:, n:] - across.mT @ inverse @ across
    same(factor.variance(NEW), cov.diagonal())
    same(factor.covariance(NEW), cov)
    others = B - (inverse @ B) / inverse.diagonal()[:, None]
    same(made.ridge(noise, B, left_out=True)[1], others)
    bytes_of_values = len(row) * dtype.itemsize
    assert bytes_of_values < made.nbytes < 5 * bytes_of_values


def _noisy(made, noise):
    return made.matrix.to_dense() + noise * torch.eye(len(made.points), dtype=made.points.dtype)
