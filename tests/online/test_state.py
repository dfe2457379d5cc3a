"""After any sequence of updates a version is what the definition says of the observations that are left."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hck.backend.kinds import KINDS, OTHER
from hck.backend.records import Record, node_layout
from hck.backend.steps import whole_steps
from hck.hierarchy.blueprint import Blueprint
from hck.hierarchy.dense import Definition
from hck.kernels import Gaussian, Laplace, Matern
from hck.online import Habit, OnlinePredictor, State
from hck.online.node import leaves_below, on_the_way
from hck.online.read import inverse_diagonal, variance
from hck.points import as_points
from hck.settings import Settings

NOISE = 0.05


class Followed:
    """A version, and beside it a plain list of what was observed."""

    def __init__(self, n, kernel=None, seed=0, sparse=False, dtype=torch.float64, **options):
        self.rng, self.sparse, self.dtype = np.random.default_rng(seed), sparse, dtype
        given = {"rank": 6, "leaf_size": 10, **options}
        self.x, self.b = self.draw(n), self.rng.standard_normal((n, 2))
        self.noise = np.full(n, NOISE)
        kernel = Matern(0.6, nu=1.5) if kernel is None else kernel
        blueprint = Blueprint.of(kernel, self.points(self.x), Settings(**given), 0)
        how = {name: given.get(name, default) for name, default in DEFAULTS.items()}
        habit = Habit(**how, leaf_size=given["leaf_size"])
        self.state = State.of(blueprint, given["rank"], habit, *self.tensors(self.b, self.noise))

    def draw(self, n, low=0.0, high=1.0):
        return self.rng.uniform(low, high, size=(n, 3))

    def points(self, x):
        return as_points(sp.csr_matrix(x) if self.sparse else x, self.dtype)

    def tensors(self, *arrays):
        return tuple(torch.from_numpy(array).to(self.dtype) for array in arrays)

    def add(self, m, low=0.0, high=1.0):
        x, b, noise = self.draw(m, low, high), self.rng.standard_normal((m, 2)), self.rng.uniform(NOISE, 1, m)
        self.state = self.state.add(self.points(x), *self.tensors(b, noise))
        self.x, self.b = np.append(self.x, x, 0), np.append(self.b, b, 0)
        self.noise = np.append(self.noise, noise)

    def forget(self, positions):
        self.state = self.state.forget(positions)
        self.x, self.b, self.noise = (np.delete(a, positions, 0) for a in (self.x, self.b, self.noise))

    def forget_some(self, m, oldest=False):
        m = min(m, len(self.x) - 1)
        chosen = np.arange(m) if oldest else self.rng.choice(len(self.x), m, replace=False)
        self.forget(np.sort(chosen))

    def relabel(self, m):
        positions = np.sort(self.rng.choice(len(self.x), min(m, len(self.x)), replace=False))
        b = self.rng.standard_normal((len(positions), 2))
        self.state = self.state.relabel(positions, *self.tensors(b))
        self.b[positions] = b

    def check(self, tolerance=1e-9):
        """Everything that can be read of the version, beside the definition."""
        blueprint, data = self.state.harvested
        tree, new = blueprint.layout.tree, self.points(self.draw(9))
        tree.validate()
        tree.check_rules(3)
        close = {"rtol": 0, "atol": tolerance, "check_dtype": False}
        torch.testing.assert_close(data.b, torch.from_numpy(self.b), **close)
        torch.testing.assert_close(data.noise, torch.from_numpy(self.noise), **close)
        definition = Definition(blueprint.kernel, tree, blueprint.landmarks, blueprint.jitter)
        noisy = definition.square(data.points) + torch.diag(data.noise.double())
        across, b = definition.cross(data.points, new), data.b.double()
        w = torch.linalg.solve(noisy, b)
        predictor = OnlinePredictor(self.state)
        torch.testing.assert_close(predictor(new), across.mT @ w, **close)
        torch.testing.assert_close(predictor.settle()(new), predictor(new), **close)
        own = blueprint.kernel.evaluate(new.x, new.x).diagonal()
        left = own - (across * torch.linalg.solve(noisy, across)).sum(0)
        torch.testing.assert_close(variance(self.state, new), left, **close)
        diagonal, solved, seen = inverse_diagonal(self.state, np.arange(len(self.x)))
        torch.testing.assert_close(diagonal, torch.linalg.inv(noisy).diagonal(), rtol=0, atol=50 * tolerance)
        torch.testing.assert_close(solved, w, rtol=0, atol=50 * tolerance)
        torch.testing.assert_close(seen, data.b)
        expected = torch.linalg.slogdet(noisy).logabsdet.item()
        assert self.state.log_determinant == pytest.approx(expected, abs=tolerance * len(b))
        torch.testing.assert_close(self.state.gram, b.mT @ w, rtol=0, atol=50 * tolerance)


DEFAULTS = {"partition": "random_projection", "landmarks": "uniform"}
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(1, 25)),
        st.tuples(st.just("add_corner"), st.integers(1, 25)),
        st.tuples(st.just("forget"), st.integers(1, 40)),
        st.tuples(st.just("forget_oldest"), st.integers(1, 40)),
        st.tuples(st.just("relabel"), st.integers(1, 5)),
    ),
    max_size=6,
)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=STEPS, n=st.integers(1, 40), seed=st.integers(0, 99))
def test_any_sequence_of_updates(steps, n, seed):
    followed = Followed(n, seed=seed)
    for kind, m in steps:
        if kind.startswith("add"):
            followed.add(m, high=0.2 if kind.endswith("corner") else 1.0)
        elif kind.startswith("forget"):
            followed.forget_some(m, oldest=kind.endswith("oldest"))
        else:
            followed.relabel(m)
    followed.check()


@pytest.mark.parametrize(
    "options",
    [
        {"kernel": Gaussian(0.7), "partition": "pca"},
        {"kernel": Laplace(0.5), "partition": "kd", "landmarks": "farthest"},
        {"landmarks": "kmeans"},
        {"landmarks": "same"},
        {"sparse": True},
        {"leaf_size": 100, "rank": 4},  # one leaf at first
        {"rank": 30, "leaf_size": 5},  # more landmarks than a leaf has points
    ],
    ids=str,
)
def test_shapes_and_kinds(options):
    followed = Followed(50, **options)
    for step in (lambda: followed.add(70), lambda: followed.forget_some(60), lambda: followed.relabel(3)):
        step()
        followed.check(1e-8 if "kernel" in options else 1e-9)


def test_the_same_landmarks_for_a_tree_that_has_none_yet():
    """A root above a single leaf has no landmarks that others could share."""
    followed = Followed(5, landmarks="same")
    followed.add(30)
    root = followed.state.root
    sets = {node.frame.landmarks.x for node in on_the_way(root, followed.state.paths.values()).values()}
    assert all(torch.equal(each, root.frame.landmarks.x) for each in sets)
    followed.add(60)
    followed.check()
    followed.forget_some(94)
    followed.add(40)
    followed.check()


def test_many_at_once():
    """More leaves and nodes than one core takes at a time, some of which get several points."""
    followed = Followed(240, leaf_size=6)
    followed.add(120)
    followed.forget_some(200)
    followed.add(30, high=0.5)
    followed.check()


def test_by_torch_alone(monkeypatch):
    monkeypatch.setitem(KINDS, "cpu", replace(OTHER, is_host=True))
    followed = Followed(60)
    for m in (1, 1, 30):
        followed.add(m)
    followed.forget_some(20)
    followed.forget_some(1)
    followed.relabel(2)
    followed.check()


def test_single_precision():
    followed = Followed(60, dtype=torch.float32, jitter=1e-4)
    followed.add(50)
    followed.forget_some(40)
    blueprint, data = followed.state.harvested
    definition = Definition(blueprint.kernel, blueprint.layout.tree, blueprint.landmarks, blueprint.jitter)
    noisy = definition.square(data.points) + torch.diag(data.noise.double())
    diagonal, solved, _ = inverse_diagonal(followed.state, np.arange(len(followed.x)))
    assert solved.dtype == torch.float32
    w = torch.linalg.solve(noisy, data.b.double())
    torch.testing.assert_close(solved.double(), w, rtol=0, atol=2e-2)
    torch.testing.assert_close(diagonal.double(), torch.linalg.inv(noisy).diagonal(), rtol=0, atol=2e-2)


def test_the_tree_stays_balanced():
    """Leaves have at most 2 n₀ points, and the depth is at most log(2n/n₀) / log(4/3) + 1, whatever comes."""
    followed = Followed(40, leaf_size=8, rank=4)
    for i in range(40):  # a stream that wanders off, of which a window is kept
        followed.add(12, low=i, high=i + 1.0)
        if i > 20:
            followed.forget_some(20, oldest=True)
        sizes = [leaf.size for _, leaf in leaves_below(followed.state.root)]
        depth = max(len(path) for path, _ in leaves_below(followed.state.root))
        assert max(sizes) <= 16
        assert min(sizes) >= 1
        assert sum(sizes) == len(followed.x) == len(followed.state)
        assert depth <= _deepest(followed)
    followed.check(1e-8)


def test_few_points_stay_balanced_too():
    """A stream wanders off, the newest ten and one of each dozen stay: no chain of small leaves is left."""
    followed = Followed(10, leaf_size=10, rank=4, partition="kd")
    for i in range(20):
        followed.add(12, low=i + 1.0, high=i + 2.0)
        followed.forget(np.arange(i + 1, len(followed.x) - 10))
        assert max(len(path) for path, _ in leaves_below(followed.state.root)) <= _deepest(followed)
    followed.check(1e-8)


def _deepest(followed):
    """The bound on the depth of a tree."""
    return math.log(max(1.0, 2 * len(followed.x) / followed.state.habit.leaf_size)) / math.log(4 / 3) + 1


def test_the_same_point_again_and_again():
    followed = Followed(20, leaf_size=4, rank=3)
    point = followed.draw(1)
    for _ in range(3):
        followed.draw = lambda n, low=0, high=1: np.repeat(point, n, 0)
        followed.add(9)
    del followed.draw
    followed.check(1e-8)


def test_a_version_is_never_changed():
    followed = Followed(60)
    before, new = followed.state, followed.points(followed.draw(5))
    said = OnlinePredictor(before)(new).clone()
    followed.add(30)
    followed.forget_some(50)
    again = OnlinePredictor(State(**{**vars(before), "beliefs": {}, "weights": {}}))
    assert torch.equal(again(new), said)
    assert len(before) == 60
    # two that go on from one version do not disturb each other
    one, other = (before.add(new, *followed.tensors(np.full((5, 2), v), np.ones(5))) for v in (1.0, 2.0))
    assert (one.harvested[1].b[-5:] == 1).all()
    assert (other.harvested[1].b[-5:] == 2).all()


def test_what_is_not_on_the_way_is_shared():
    followed = Followed(200)
    before = {id(leaf) for _, leaf in leaves_below(followed.state.root)}
    followed.add(1)
    after = {id(leaf) for _, leaf in leaves_below(followed.state.root)}
    assert len(after - before) == 1


def test_memory_does_not_grow_with_updates():
    def held(state):
        data = [leaf.data for _, leaf in leaves_below(state.root)]
        parts = [leaf.record.memory for _, leaf in leaves_below(state.root)]
        parts += [node.record.memory for node in on_the_way(state.root, list(state.paths.values())).values()]
        parts += [part for each in data for part in (each.points.x, each.b, each.noise)]
        numbers = sum((each.number if each.number.base is None else each.number.base).nbytes for each in data)
        memory = sum(part.untyped_storage().nbytes() for part in parts)
        return memory + numbers + state.ledger.table.nbytes

    followed, sizes = Followed(100), []
    for _ in range(40):
        followed.add(10)
        followed.forget_some(10, oldest=True)
        sizes.append(held(followed.state))
    assert max(sizes[20:]) < 2 * max(sizes[:20])


def test_others_columns():
    followed = Followed(50)
    change = torch.tensor([[1.0, 0.0, -2.0], [0.5, 0.0, 1.0]], dtype=torch.float64)
    new = followed.points(followed.draw(7))
    expected = OnlinePredictor(followed.state)(new) @ change
    torch.testing.assert_close(OnlinePredictor(followed.state.recode(change))(new), expected)
    torch.testing.assert_close(OnlinePredictor(followed.state, change)(new), expected)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device")
def test_on_a_gpu():
    followed = Followed(60)
    blueprint = Blueprint.of(Matern(0.6, nu=1.5), torch.from_numpy(followed.x).cuda(), Settings(6, 10), 0)
    state = State.of(
        blueprint, 6, Habit(**DEFAULTS, leaf_size=10), *followed.tensors(followed.b, followed.noise)
    )
    new = as_points(torch.from_numpy(followed.draw(30)).cuda())
    state = state.add(new, *followed.tensors(np.ones((30, 2)), np.ones(30))).forget(np.arange(40))
    blueprint, data = state.harvested
    w = torch.linalg.solve(
        Definition(blueprint.kernel, blueprint.layout.tree, blueprint.landmarks, blueprint.jitter)
        .square(data.points)
        .to(data.b)
        + torch.diag(data.noise),
        data.b,
    )
    torch.testing.assert_close(inverse_diagonal(state, np.arange(50))[1], w, rtol=0, atol=1e-7)


def test_points_and_observations_must_be_like_those_that_are_there():
    followed = Followed(60, dtype=torch.float32)
    state, one = followed.state, torch.ones(1)
    for other in (torch.ones(1, 3, dtype=torch.float64), torch.ones(1, 2)):
        with pytest.raises(ValueError, match="as many features, and be of one type"):
            state.add(as_points(other, other.dtype), torch.ones(1, 2), one)
    with pytest.raises(TypeError):
        state.add(as_points(sp.csr_matrix(np.ones((1, 3))), torch.float32), torch.ones(1, 2), one)
    for b, noise in ((torch.ones(1, 1), one), (torch.ones(1, 2), torch.ones(2)), (torch.ones(2, 2), one)):
        with pytest.raises(ValueError, match="b and noise must have shapes"):
            state.add(as_points(torch.ones(1, 3), torch.float32), b, noise)


def test_compiled_code_is_given_no_addresses_of_other_numbers():
    state = Followed(60).state
    steps = whole_steps(state.root.record.memory)
    if steps is None:
        pytest.skip("there is no compiled code here")
    nodes = list(on_the_way(state.root, [path for path, _ in leaves_below(state.root)]).values())
    records, transfers = [node.record for node in nodes], [node.frame.transfer for node in nodes]
    children = [[child.record for child in node.children] for node in nodes]
    r, k = records[0].layout.rank, records[0].layout.k
    other = Record(node_layout(torch.float32, r, k), torch.device("cpu"))
    narrow = Record(node_layout(torch.float64, r, k + 1), torch.device("cpu"))
    z = torch.empty(len(nodes), r, k, dtype=torch.float64)
    for wrong in (other, narrow):
        with pytest.raises(ValueError, match="of one type"):
            steps.records_up(records, transfers, [[wrong]] * len(nodes))
        with pytest.raises(ValueError, match="of one type"):
            steps.records_down([*records[:-1], wrong], transfers, [None] * len(nodes), z)
    for matrix in (transfers[0].float(), transfers[0][:, 1:], transfers[0].mT):
        with pytest.raises(ValueError, match="of one type"):
            steps.records_up(records, [matrix] * len(nodes), children)
    with pytest.raises(ValueError, match="of one type"):
        steps.records_down(records, transfers, [None] * len(nodes), z.float())
