"""Random numbers and trees on a GPU: those of the CPU."""

import numpy as np
import pytest
import torch

from hck import HCKRegressor
from hck.backend.random import as_random
from hck.partition import known_partitions

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device"),
]
CPU = torch.device("cpu")


@pytest.mark.parametrize("partition", known_partitions())
@pytest.mark.parametrize("landmarks", ["uniform", "farthest", "kmeans", "same"])
def test_a_gpu_has_the_same_trees(partition, landmarks):
    rng = np.random.default_rng(0)
    x, new = rng.normal(size=(1003, 4)), rng.normal(size=(50, 4))
    y = np.sin(x.sum(1))
    options = {"partition": partition, "landmarks": landmarks, "random_state": 3, "n_trees": 2}
    model = HCKRegressor("matern32", lengthscale=1.0, alpha=0.1, rank=20, **options)
    here, there = (model.set_params(device=device).fit(x, y).predict(new) for device in ("cpu", "cuda"))
    np.testing.assert_allclose(there, here, rtol=0, atol=1e-9)


def test_a_gpu_has_the_same_numbers():
    random, gpu = as_random(0), torch.device("cuda")
    assert torch.equal(random.uniform((1000,), CPU), random.uniform((1000,), gpu).cpu())
    which = torch.arange(9)
    assert torch.equal(random.rows(which, 7), random.rows(which.cuda(), 7).cpu())
    torch.testing.assert_close(
        random.normal((1001,), torch.float64, CPU), random.normal((1001,), torch.float64, gpu).cpu()
    )
