"""Our own kernels for GPUs against the same on the CPU; and that nothing waits for the GPU within a sweep."""

import pytest
import torch
from torch import exp, log

from hck.backend import linalg
from hck.backend.blocks import Blocks
from hck.backend.kernels import DenseCross, Formula, Profile, fused_cross
from hck.backend.random import Random
from hck.backend.repeated import repeat, window
from hck.branches.ridge import ridge
from hck.errors import NumericalWarning
from hck.hierarchy.blueprint import Blueprint
from hck.hierarchy.factor import Factor
from hck.hierarchy.smooth import Weights, smooth_down
from hck.kernels import Gaussian, InverseMultiquadric, Matern, kernel_names, make_kernel
from hck.kernels.stationary import evaluate
from hck.points import DensePoints, KernelBlocks, as_points, cross
from hck.selection import Observations
from hck.selection.learning import Lesson
from hck.selection.metric import Metric, learn_metrics
from hck.selection.neighbourhoods import Neighbourhoods
from hck.settings import Settings

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device"),
]

TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-4}
both_types = pytest.mark.parametrize("dtype", TOLERANCE)


def normal(*shape, dtype=torch.float64, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def definite(members, n, dtype):
    a = normal(members, n, n)
    return (a @ a.mT / n + torch.eye(n)).to(dtype)


@both_types
@pytest.mark.parametrize("n", [1, 5, 16, 17, 33, 64, 65, 100, 257])
def test_factor(n, dtype):
    matrix, right = definite(3, n, dtype), normal(3, n, 2, dtype=dtype)
    there = linalg.factor_(matrix.cuda().triu(), "a matrix")
    expected = torch.linalg.inv(torch.linalg.cholesky(matrix.double()))
    torch.testing.assert_close(there.cpu().double(), expected, rtol=0, atol=20 * TOLERANCE[dtype])
    unwaited = linalg.without_waiting(lambda: linalg.factor_(matrix.cuda().triu(), "a matrix"), there.device)
    torch.testing.assert_close(unwaited, there, rtol=0, atol=0)
    solved = linalg.unwhiten_(there, linalg.whiten_(there, right.cuda())).cpu().double()
    torch.testing.assert_close(matrix.double() @ solved, right.double(), rtol=0, atol=100 * TOLERANCE[dtype])


@pytest.mark.parametrize("n", [7, 64, 150])
def test_a_member_that_fails_gets_a_jitter_and_the_others_none(n):
    matrix = definite(3, n, torch.float64)
    matrix[1] = 1
    with pytest.warns(NumericalWarning, match="1 of 3 blocks"):
        there = linalg.without_waiting(
            lambda: linalg.factor_(matrix.cuda(), "a matrix"), torch.device("cuda")
        )
    again = linalg.inverse(there).cpu()
    torch.testing.assert_close(again[[0, 2]], torch.linalg.inv(matrix[[0, 2]]), rtol=0, atol=1e-10)
    inverted = there[1].cpu()
    values = torch.linalg.eigvalsh(inverted @ matrix[1] @ inverted.mT)
    assert -0.1 <= values.min() <= values.max() <= 1.1


@both_types
@pytest.mark.parametrize("columns", [1, 3, 9])
@pytest.mark.parametrize("n", [3, 16, 61, 64, 130])
def test_packed(n, columns, dtype):
    factor, symmetric = definite(4, n, dtype).tril(), definite(4, n, dtype)
    packed, diagonal = linalg.pack_(symmetric.cuda(), factor.cuda())
    x = normal(4, n, columns, dtype=dtype)
    close = {"rtol": 0, "atol": 20 * TOLERANCE[dtype]}
    torch.testing.assert_close(
        linalg.multiply_packed(packed, diagonal, x.cuda()).cpu(), symmetric @ x, **close
    )
    torch.testing.assert_close(
        linalg.unwhiten_packed(packed, diagonal, x.cuda()).cpu(), factor.mT @ x, **close
    )
    again, back = linalg.unpack(packed, diagonal)
    torch.testing.assert_close(again.cpu(), factor, rtol=0, atol=0)
    torch.testing.assert_close(back.cpu(), symmetric, **close)


@both_types
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (5, 5), (33, 20), (64, 64), (70, 131)])
@pytest.mark.parametrize(
    "kernel",
    [make_kernel(name, scale) for name in kernel_names() for scale in (0.7, [0.5, 1.0, 2.0])],
    ids=repr,
)
def test_kernel_values(kernel, n, m, upper, dtype):
    m = n if upper else m
    x, z = (DensePoints(normal(200, 3, dtype=dtype, seed=seed)) for seed in (1, 2))
    z = x if upper else z
    rows, columns = (torch.randint(200, (4, width)) for width in (n, m))
    rows[1, n // 2 + 1 :] = -1
    columns = rows if upper else columns
    left, right = Blocks(rows, full=False), Blocks(columns, full=False)
    here = cross(kernel, x, left, z, right)
    device = torch.device("cuda")
    sides = (x.to(device), Blocks(rows.cuda(), False), z.to(device), Blocks(columns.cuda(), False))
    there = KernelBlocks(kernel.to(device, dtype), *sides, upper=upper).tensor().cpu()
    if upper:
        here, there = here.triu(), there.triu()
    torch.testing.assert_close(there, here, rtol=0, atol=TOLERANCE[dtype])


@both_types
@pytest.mark.parametrize("name", kernel_names())
def test_kernel_values_are_those_of_torch(name, dtype):
    """Equal points among them; torch loses digits of distances in float32, so it gets float64."""
    x = normal(150, 5, dtype=dtype).cuda()
    x[100:] = x[:50]
    block, kernel = Blocks(torch.arange(150, device="cuda")[None], full=True), make_kernel(name, 1.3)
    there = cross(kernel, DensePoints(x), block, DensePoints(x), block)[0].double()
    torch.testing.assert_close(there, kernel.evaluate(x.double(), x.double()), rtol=0, atol=TOLERANCE[dtype])


def rational(s, shape):
    return exp(-shape * log(1 + s / (2 * shape)))


@both_types
@pytest.mark.parametrize("shape", [0.7, torch.tensor(2.5)], ids=["number", "tensor"])
def test_a_formula_with_a_shape(shape, dtype):
    x = normal(70, 4, dtype=dtype).cuda()
    block = Blocks(torch.arange(70, device="cuda")[None], full=True)
    profile = Profile(Formula(rational, smooth=True), 1.3, 2.0, shape)
    there = fused_cross(DenseCross(profile, x, block, x, block))[0].double().cpu()
    here = evaluate(profile, x.double().cpu(), x.double().cpu())
    torch.testing.assert_close(there, here, rtol=0, atol=2 * TOLERANCE[dtype])


def test_kernel_values_of_a_large_block():
    """More tiles than CUDA takes along a grid's second axis."""
    x = DensePoints(normal(9000, 2).cuda())
    block = Blocks(torch.arange(9000, device="cuda")[None], full=True)
    there = cross(Gaussian(0.7), x, block, x, block)[0]
    torch.testing.assert_close(
        there, torch.exp(-torch.cdist(x.x, x.x).square() / (2 * 0.7**2)), rtol=0, atol=1e-9
    )


@both_types
def test_projections(dtype):
    points, directions = DensePoints(normal(500, 7, dtype=dtype)), normal(5, 7, dtype=dtype)
    rows, which = torch.randperm(500)[:300], torch.randint(5, (300,))
    here = points.project(rows, directions, which)
    there = points.to(torch.device("cuda")).project(rows.cuda(), directions.cuda(), which.cuda())
    torch.testing.assert_close(there.cpu(), here, rtol=0, atol=10 * TOLERANCE[dtype])


@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
@pytest.mark.parametrize("columns", [1, 9])
@pytest.mark.parametrize("leaf_size", [None, 50])
@pytest.mark.parametrize(
    "kernel",
    [Gaussian(0.5), InverseMultiquadric([0.5, 1.0, 1.0, 2.0]), 2.0 * Matern([0.5, 1.0, 1.0, 2.0], 1.5)],
    ids=repr,
)
def test_no_sweep_waits_for_the_gpu(kernel, leaf_size, columns):
    x = normal(3001, 4).cuda()
    blueprint = Blueprint.of(kernel, x, Settings(20, leaf_size))
    variance = blueprint.pad_noise(0.01)
    y = x[:, :1].expand(-1, columns).contiguous()
    b = blueprint.layout.pad(y, variance)
    weights = Weights.room(blueprint.layout, b, blueprint.rank)

    def sweep():
        try:
            torch.cuda.set_sync_debug_mode("error")
            factor = Factor(blueprint, variance, b)
            smooth_down(factor, factor.filtered, weights)
        finally:
            torch.cuda.set_sync_debug_mode("default")

    linalg.without_waiting(sweep, x.device)
    torch.testing.assert_close(weights.own[:-1], ridge(blueprint, 0.01, y).weights, rtol=1e-10, atol=1e-10)


def test_branches_on_the_gpu():
    x = normal(3001, 4).cuda()
    expected = ridge(Blueprint.of(Gaussian(0.5), x, Settings(20)), 0.01, x[:, :2])
    for depth in (1, 3):
        found = ridge(Blueprint.of(Gaussian(0.5), x, Settings(20)), 0.01, x[:, :2], depth)
        torch.testing.assert_close(found.weights, expected.weights, rtol=1e-9, atol=1e-9)


def test_repeated_points_without_jitter_on_the_gpu():
    x = normal(10, 3).repeat(60, 1).cuda()  # so that any landmarks repeat
    with pytest.warns(NumericalWarning, match="landmark matrix"):
        extension = ridge(
            Blueprint.of(Gaussian(0.5), x, Settings(64, jitter=0.0, landmarks="same")), 0.01, x[:, :1]
        )
    assert torch.isfinite(extension.weights).all()


@pytest.mark.parametrize("times", [0, 1, 3, 4, 50])
def test_steps_that_are_recorded(times):
    """What changes in place is the same as by taking each step, and may be read at once."""
    device = torch.device("cuda")
    x, count = normal(50, 50).cuda(), torch.zeros(1, dtype=torch.int64, device=device)
    weights, state = (
        torch.arange(50.0, dtype=x.dtype, device=device),
        torch.ones(50, 1, dtype=x.dtype, device=device),
    )

    def step():
        part = window(x, count % 40, 10)
        state.mul_(0.5).add_(weights[count % 50] * (part.mT @ torch.ones_like(part[:, :1])))
        count.add_(1)

    repeat(step, times, device)
    slow = torch.ones(50, 1, dtype=x.dtype)
    for i in range(times):
        slow = 0.5 * slow + i % 50 * x[i % 40 : i % 40 + 10].sum(0)[:, None].cpu()
    assert int(count) == times
    torch.testing.assert_close(state.cpu(), slow, rtol=1e-10, atol=1e-10)


def test_steps_that_cannot_be_recorded():
    """They look at a value, which is to wait for the device."""
    total = torch.zeros(1, device="cuda")

    def step():
        total.add_(1.0 if float(total) >= 0 else 0.0)

    repeat(step, 10, total.device)
    assert float(total) == 10


@pytest.mark.parametrize("form", ["each", "matrix"])
@pytest.mark.parametrize("classes", [0, 3])
def test_metrics_are_learned_as_on_the_cpu(form, classes):
    x = normal(3000, 3)
    y = x[:, :1].sin()
    if classes:
        y = torch.nn.functional.one_hot((3 * x[:, 0]).long() % classes, classes).double()
    starts = [
        Metric(name, torch.full((3,), 0.5, dtype=x.dtype), mixed=mixed)
        for name in ("matern12", "rational_quadratic")
        for mixed in (False, True)
    ]
    found = []
    for device in ("cpu", "cuda"):
        near = Neighbourhoods.of(Observations(as_points(x.to(device)), y), Random(0), bool(classes))
        found.append(learn_metrics(starts, Lesson(form, 40), near))
    for here, there in zip(*found, strict=True):
        torch.testing.assert_close(there.matrix.cpu(), here.matrix, rtol=1e-4, atol=1e-6)
        assert there.alpha == pytest.approx(here.alpha, rel=1e-4)
