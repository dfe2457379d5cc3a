"""Leave-one-out predictions against models that were trained without the point."""

import pytest
import torch

from hck.hierarchy.leave_one_out import leave_one_out

pytestmark = pytest.mark.usefixtures("one_thread")

SOME = [
    f"{name}@float64"
    for name in (
        "random_projection/prime",
        "kmeans/leaf_size_3",
        "user/prime",
        "pca/one_leaf",
        "kd/one_point",
        "strings:uniform",
    )
]


def left_out(problem, y):
    return leave_one_out(y, problem.factor.solve(y), problem.factor.inverse_diagonal())


@pytest.mark.parametrize("problem", SOME, indirect=True)
def test_against_training_without_the_point(problem):
    n, noisy, b = problem.n, problem.noisy, problem.b.double()
    found = left_out(problem, problem.b)
    assert found.mean.shape == b.shape
    for i in range(0, n, max(1, n // 7)):
        others = torch.arange(n) != i
        weights = torch.linalg.solve(noisy[others][:, others], noisy[others, i])
        torch.testing.assert_close(found.mean[i], weights @ b[others], rtol=1e-7, atol=1e-7)
        variance = noisy[i, i] - noisy[i, others] @ weights
        torch.testing.assert_close(found.variance[i], variance, rtol=1e-7, atol=1e-9)
    one = left_out(problem, problem.b[:, 0])
    torch.testing.assert_close(one.mean, found.mean[:, 0], rtol=1e-12, atol=1e-12)
