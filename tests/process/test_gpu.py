"""Gaussian processes give the same results on a GPU as on the CPU, with the same tree and landmarks."""

import pytest
import torch

from hck.approximations import TreeKernel
from hck.hierarchy import HierarchicalKernel
from hck.hierarchy.sample import sample_prior
from hck.kernels import Gaussian, InverseMultiquadric, Laplace, Matern
from hck.process import Process, log_likelihood

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device"),
]

G = torch.Generator().manual_seed(0)
X, NEW = (torch.rand(n, 3, generator=G, dtype=torch.float64) for n in (311, 40))
Y = torch.sin(4 * X[:, 0]) + X[:, 1] + 0.1 * torch.randn(311, generator=G, dtype=torch.float64)
NOISE = 0.02 + 0.05 * torch.rand(311, generator=G, dtype=torch.float64)
SHAPES = [(16, 16), (16, 70), (40, 400)]  # rank, leaf_size
KERNELS = {
    "ard": lambda s, a: a * Matern(s, nu=1.5),
    "sum": lambda s, a: Gaussian(s) + a * Laplace(2.0),
    "product": lambda s, a: a * InverseMultiquadric(s) * Matern(1.0, nu=2.5),
}
TOLERANCES = {torch.float64: 1e-8, torch.float32: 2e-2}


def both(make, shape, dtype, **tensors):
    """The same hierarchical kernel here and on the GPU, with tensors of its own for each."""
    rank, leaf_size = shape
    found, here = [], None
    for device in ("cpu", "cuda"):
        own = {k: v.to(device, dtype).requires_grad_() for k, v in tensors.items()}
        options = {"partition": "random_projection", "landmarks": "uniform"}
        if here is not None:
            options["partition"] = here.tree.to("cuda")
            sets = [here.landmarks.of_slot(slot).x for slot in range(len(here.tree.inner))]
            options["landmarks"] = sets or "uniform"
        kernel = make(*own.values())
        built = HierarchicalKernel.build(kernel, X.to(device, dtype), rank, leaf_size, jitter=1e-4, **options)
        here = here or built
        found.append((built.blueprint, own))
    return found


def assert_same(there, here, dtype):
    assert there.device.type == "cuda"
    error = (there.cpu().double() - here.double()).abs().max() / here.double().abs().max().clamp_min(1e-2)
    assert error <= TOLERANCES[dtype]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", KERNELS)
def test_likelihood_and_gradient(name, shape, dtype):
    scales = torch.tensor([0.4, 0.7, 1.5], dtype=torch.float64)
    amplitude = torch.tensor(1.7, dtype=torch.float64)
    results = []
    for blueprint, own in both(KERNELS[name], shape, dtype, scales=scales, amplitude=amplitude):
        device = blueprint.points.device
        noise = NOISE.to(device, dtype).requires_grad_()
        trend = torch.ones(len(X), 1, dtype=dtype, device=device)
        found = log_likelihood(
            TreeKernel(blueprint), noise, Y.to(device, dtype), [*own.values(), noise], trend
        )
        results.append((found.value[None], found.coefficients, found.precision, *found.gradient))
    for here, there in zip(*results, strict=True):
        assert_same(there, here, dtype)


@pytest.mark.parametrize("trends", [0, 4])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("shape", SHAPES)
def test_posterior(shape, dtype, trends):
    results = []
    for blueprint, _ in both(lambda: Matern(0.7), shape, dtype):
        device = blueprint.points.device

        def trend(x, device=device):
            return torch.cat([torch.ones_like(x[:, :1]), x], 1)[:, :trends].to(device, dtype)

        found = Process.of(TreeKernel(blueprint), NOISE.to(device, dtype), Y.to(device, dtype), trend(X))
        new = NEW.to(device, dtype)
        left_out = found.leave_one_out()
        variance = found.variance(new, trend(NEW))
        assert (variance >= 0).all()
        results.append(
            [
                found.predict(new, trend(NEW)),
                variance,
                found.covariance(new, trend(NEW)),
                left_out.mean,
                left_out.variance,
                torch.tensor([found.log_likelihood], device=device),
            ]
        )
    for here, there in zip(*results, strict=True):
        assert_same(there, here, dtype)


def test_draws_have_the_kernel_as_covariance():
    h = HierarchicalKernel.build(Matern(0.5), X.to("cuda"), 16, 40)
    drawn = sample_prior(h.blueprint, 40_000)
    expected = h.to_dense()
    error = (drawn @ drawn.mT / drawn.shape[1] - expected).abs().max()
    assert float(error) <= 0.045  # six standard deviations of an entry on the diagonal


@pytest.mark.parametrize("shape", SHAPES)
def test_draws_given_observations(shape):
    (_, _), (blueprint, _) = both(lambda: Matern(0.7), shape, torch.float64)
    trend = torch.ones(len(X), 1, dtype=torch.float64, device="cuda")
    found = Process.of(TreeKernel(blueprint), NOISE.to("cuda"), Y.to("cuda"), trend)
    new, h_new = NEW.to("cuda"), trend[: len(NEW)]
    drawn = found.sample(new, h_new, 20_000)
    std = found.variance(new, h_new).sqrt()
    off = (drawn.mean(1) - found.predict(new, h_new)).abs() / std * drawn.shape[1] ** 0.5
    assert float(off.max()) <= 5
    torch.testing.assert_close(drawn.std(1), std, rtol=0.05, atol=0)


@pytest.mark.parametrize("shape", SHAPES)
def test_functions_of_several_outputs(shape):
    """Random numbers are the same on every device, and so are functions that are drawn with them."""
    results = []
    for blueprint, _ in both(lambda: Matern(0.7), shape, torch.float64):
        device = blueprint.points.device
        y = torch.stack([Y, Y.square()], 1).to(device)
        trend, new = (torch.ones(len(x), 1, dtype=torch.float64, device=device) for x in (X, NEW))
        drawn = Process.of(TreeKernel(blueprint), 0.05, y, trend).functions(3, 1, n_waves=64)
        results.append(
            [drawn(NEW.to(device), new), drawn.take(torch.tensor([1], device=device))(X.to(device), trend)]
        )
    for here, there in zip(*results, strict=True):
        assert_same(there, here, torch.float32)  # factors without noise are nearly singular
