"""Ridge regression, whole and by trunk and branches, against dense algebra; and its memory plan."""

import sys

import pytest
import torch

from hck.branches.ridge import bytes_needed, cut_within_budget, ridge
from hck.hierarchy.blueprint import Blueprint
from hck.hierarchy.factor import Factor
from hck.kernels import Gaussian
from hck.partition import Tree
from hck.settings import Settings

pytestmark = pytest.mark.usefixtures("one_thread")

GIB = 2**30
SOME = [
    f"{name}@{dtype}"
    for dtype in ("float64", "float32")
    for name in (
        *(f"{cutter}/prime" for cutter in ("random_projection", "kmeans", "kernel", "user")),
        "kmeans/leaf_size_3",
        "kd/fewer_points_than_rank",
        "kd/one_point",
        "pca/one_leaf",
        *("ard/prime", "sum/prime", "callable/prime", "landmarks:list", "strings:uniform"),
    )
]


def blueprint_of(problem, **changes):
    return Blueprint.of(problem.kernel, problem.points, Settings(**{**problem.options, **changes}))


@pytest.mark.parametrize("problem", SOME, indirect=True)
def test_every_depth(problem):
    """Weights and predictions, however deep the tree is cut and whether branches are kept or done again."""
    weights = torch.linalg.solve(problem.noisy, problem.b.double())
    predicted = problem.dense_cross.mT @ weights
    for depth in range(len(blueprint_of(problem).layout.levels)):
        for budget in (GIB, 1) if depth else (GIB,):
            blueprint = blueprint_of(problem, memory_budget=budget)
            found = ridge(blueprint, problem.alpha, problem.b, depth)
            w = torch.empty_like(found.weights)
            w[found.tree.order] = found.weights
            problem.assert_close(w, weights, "solve")
            problem.assert_close(found(problem.new_points), predicted, "solve")


@pytest.mark.parametrize("problem", SOME, indirect=True)
def test_every_bundle(problem, monkeypatch):
    """However the branches are bundled."""
    weights = torch.linalg.solve(problem.noisy, problem.b.double())
    blueprint, module = blueprint_of(problem), sys.modules[ridge.__module__]
    for depth, (first, stop) in enumerate(blueprint.layout.levels[1:], 1):
        for bundles in sorted({1, 2, 3, stop - first - 1} & set(range(1, stop - first + 1))):
            cut = depth, bundles, bundles // 2
            monkeypatch.setattr(module, "cut_within_budget", lambda *_, cut=cut: cut)
            found = ridge(blueprint, problem.alpha, problem.b)
            w = torch.empty_like(found.weights)
            w[found.tree.order] = found.weights
            problem.assert_close(w, weights, "solve")


def test_some_branches_kept():
    x = uniform()
    blueprint = Blueprint.of(Gaussian(0.5), x, Settings(16))
    expected = ridge(blueprint, 0.01, x[:, :1]).weights
    work, branch, _ = bytes_needed(blueprint, 1, 3)
    for kept in (1, 3, 7):
        blueprint.budget = work + kept * branch
        assert cut_within_budget(blueprint, 1, 3) == (3, 8, kept)
        found = ridge(blueprint, 0.01, x[:, :1], 3).weights
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("depth", [0, 2])
def test_right_hand_sides_that_want_gradients(depth):
    x = uniform(600)
    blueprint = Blueprint.of(Gaussian(0.5), x, Settings(16))
    expected = ridge(blueprint, 0.01, x[:, 0], depth).weights
    found = ridge(blueprint, 0.01, x[:, 0].clone().requires_grad_(), depth).weights
    torch.testing.assert_close(found.detach(), expected, rtol=1e-9, atol=1e-9)


def test_a_failure_leaves_nothing_behind():
    """After an error in the kernel the same blueprint can be used again."""
    x, left = uniform(300), [10**9]

    def kernel(a, b):
        left[0] -= 1
        if left[0] == 0:
            raise RuntimeError("no more")
        return torch.exp(-torch.cdist(torch.as_tensor(a), torch.as_tensor(b)).square())

    blueprint = Blueprint.of(kernel, x, Settings(16))
    left[0] = 5
    with pytest.raises(RuntimeError, match="no more"):
        ridge(blueprint, 0.01, x[:, 0])
    found = ridge(blueprint, 0.01, x[:, 0])
    assert torch.isfinite(found.weights).all()
    assert blueprint.factors == {}


@pytest.mark.parametrize("depth", [-1, 7, 99])
def test_no_such_depth(depth):
    with pytest.raises(ValueError, match=f"depth must be 0 to 6 for this tree, got {depth}"):
        ridge(Blueprint.of(Gaussian(0.5), uniform(), Settings(16)), 0.01, uniform()[:, 0], depth)


def uniform(n=4000, d=3):
    return torch.rand(n, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.parametrize("depth", [0, 2, 5])
def test_threads_change_nothing(depth):
    x = uniform()
    found = []
    for threads in (1, 3):
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            found.append(ridge(Blueprint.of(Gaussian(0.5), x, Settings(16)), 0.01, x, depth).weights)
        finally:
            torch.set_num_threads(before)
    torch.testing.assert_close(*found, rtol=0, atol=1e-12)


def test_a_variance_for_each_point():
    x = uniform(300)
    noise = torch.linspace(0.01, 1, 300, dtype=torch.float64)
    blueprint = Blueprint.of(Gaussian(0.5), x, Settings(16))
    found = ridge(blueprint, noise, x[:, 0], 2)
    plain = ridge(Blueprint.of(Gaussian(0.5), x, Settings(16)), noise, x[:, 0], 0)
    torch.testing.assert_close(found.weights, plain.weights, rtol=1e-9, atol=1e-9)
    assert (found.weights - ridge(blueprint, 0.01, x[:, 0]).weights).abs().max() > 1e-3


class TestCut:
    def cut(self, budget):
        return cut_within_budget(
            Blueprint.of(Gaussian(0.5), uniform(), Settings(16, memory_budget=budget)), 1
        )

    def test_enough_memory_stores_everything(self):
        assert self.cut(GIB)[0] == 0

    def test_less_memory_does_more_again(self):
        blueprint = Blueprint.of(Gaussian(0.5), uniform(), Settings(16))
        whole, *_ = bytes_needed(blueprint, 1, 0)
        again = []
        for share in (1.0, 0.7, 0.5, 0.4):
            depth, bundles, kept = self.cut(int(share * whole))
            again.append(0.0 if depth == 0 else 1 - kept / bundles)
            work, each, _ = bytes_needed(blueprint, 1, depth, bundles)
            assert depth == 0 or work + kept * each <= share * whole
        assert again == sorted(again)
        assert again[0] == 0 < again[-1] <= 1

    @pytest.mark.parametrize("problem", SOME, indirect=True)
    def test_what_some_depth_can_do_is_done(self, problem):
        """No budget is too small that is enough for some depth, in trees of any shape."""
        blueprint = blueprint_of(problem)
        for depth in range(len(blueprint.layout.levels)):
            blueprint.budget = bytes_needed(blueprint, 1, depth)[0]
            work, *_ = bytes_needed(blueprint, 1, *cut_within_budget(blueprint, 1)[:2])
            assert work <= blueprint.budget

    def test_leaves_of_the_trunk_count(self):
        """A tree most of whose points are in leaves right below the root."""
        x = uniform(1000)
        leaf = torch.full((1000,), 1)
        leaf[450:900] = 2
        leaf[900:] = torch.arange(100) // 50 + 4
        tree = Tree.from_parents([-1, 0, 0, 0, 3, 3], leaf)
        blueprint = Blueprint.of(Gaussian(0.5), x, Settings(10, partition=tree))
        trunk = blueprint.layout.cut(1).trunk
        noise = blueprint.pad_noise(0.1)
        held = Factor(blueprint.part(trunk), noise).nbytes
        assert held <= bytes_needed(blueprint, 1, 1)[0] <= 3 * held

    def test_too_little_is_said_before_anything_is_allocated(self):
        blueprint = Blueprint.of(Gaussian(0.5), uniform(), Settings(16, memory_budget="10 kB"))
        with pytest.raises(MemoryError, match=r"=10 kB is too small: at least .* are needed\. Lower rank or"):
            ridge(blueprint, 0.01, uniform()[:, 0])
