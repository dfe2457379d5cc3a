"""The same results on a GPU as on the CPU, with the same tree and landmarks."""

import pytest
import torch

from hck.hierarchy import HierarchicalKernel
from hck.kernels import Gaussian
from hck.partition import known_partitions
from hck.points import as_points

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device"),
]

TOLERANCES = {torch.float64: 1e-9, torch.float32: 2e-3}
PROBLEMS = [
    f"{name}@{dtype}"
    for dtype in ("float64", "float32")
    for name in (
        *(f"{cutter}/prime" for cutter in (*known_partitions(), "user")),
        "kmeans/leaf_size_3",
        "kd/fewer_points_than_rank",
        "kd/one_point",
        "pca/one_leaf",
        *(
            f"{kernel}/prime"
            for kernel in ("laplace", "matern52", "ard", "sum", "product", "callable", "batched")
        ),
        *("landmarks:farthest", "landmarks:list", "sparse:laplace", "strings:uniform"),
    )
]


def landmark_sets(h):
    """What to pass as `landmarks` to get the same ones; a tree of one leaf has none."""
    sets = [h.landmarks.of_slot(slot).x for slot in range(len(h.tree.inner))]
    return [one.cpu() if isinstance(one, torch.Tensor) else one for one in sets] or "uniform"


def results(h, problem, new, alpha):
    """Everything that can be computed, on the CPU."""
    device = h.tree.device
    b = problem.b.to(device)
    factor = h.factor(alpha)
    weights = factor.solve_padded(h.matrix.layout.pad(b, b))
    inverse = factor.inverse()
    found = {
        "to_dense": h.to_dense(),
        "product": h @ b,
        "diagonal": h.diagonal(),
        "solve": factor.solve(b),
        "log_determinant": factor.log_determinant / problem.n,
        "posterior": factor.posterior(),
        "inverse": inverse.to_dense(),
        "inverse_diagonal": factor.inverse_diagonal(),
        "extend": h.extend(b)(new),
        "predict": h.predictor(weights)(new),
        "cross": h.cross(new),
        "leaf": h.tree.route(new).double(),
    }
    assert all(value.device.type == device.type for value in found.values())
    return {name: value.cpu().double() for name, value in found.items()}


def assert_same(here, there, dtype):
    for name, expected in here.items():
        error = (there[name] - expected).abs().max() / expected.abs().max().clamp_min(1e-3)
        assert error <= TOLERANCES[dtype], f"{name}: relative error {error:.1e}"


@pytest.mark.parametrize("problem", PROBLEMS, indirect=True)
def test_tree_moved_to_the_gpu(problem):
    here = problem.hierarchical
    objects = isinstance(problem.x, list)
    x, new = (as_points(a, problem.dtype, "cuda", objects) for a in (problem.x, problem.new))
    there = problem.build(x=x, partition=here.tree.to("cuda"), landmarks=landmark_sets(here))
    assert there.landmark_factor.device.type == "cuda"
    expected = results(here, problem, problem.new_points, problem.alpha)
    assert_same(expected, results(there, problem, new, problem.alpha), problem.dtype)


@pytest.mark.parametrize("problem", PROBLEMS, indirect=True)
def test_tree_grown_on_the_gpu(problem):
    """Cut and chosen there, then brought here."""
    objects = isinstance(problem.x, list)
    x, new = (as_points(a, problem.dtype, "cuda", objects) for a in (problem.x, problem.new))
    there = problem.build(x=x)
    here = problem.build(partition=there.tree.to("cpu"), landmarks=landmark_sets(there))
    expected = results(here, problem, problem.new_points, problem.alpha)
    assert_same(expected, results(there, problem, new, problem.alpha), problem.dtype)


def test_memory_budget_on_the_gpu():
    generator = torch.Generator("cuda").manual_seed(0)
    x = torch.rand(3000, 4, generator=generator, device="cuda", dtype=torch.float64)
    b = torch.rand(3000, 2, generator=generator, device="cuda", dtype=torch.float64)
    large = HierarchicalKernel.build(Gaussian(0.5), x, rank=32)
    small = HierarchicalKernel.build(Gaussian(0.5), x, rank=32, memory_budget="1MB")
    assert len(small.matrix.layout.leaves) > len(large.matrix.layout.leaves)
    expected = large.factor(1e-3).solve(b)
    torch.testing.assert_close(small.factor(1e-3).solve(b), expected, rtol=1e-8, atol=1e-8)
