"""Covariance tapering against dense algebra."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from scipy.stats import multivariate_normal

from hck.approximations.taper import wendland
from hck.approximations.tapered import Tapered
from hck.backend.kinds import KINDS
from hck.errors import NotPositiveDefiniteError
from hck.kernels import Gaussian, Laplace, Matern
from hck.points import as_points

pytestmark = pytest.mark.usefixtures("one_thread")

RNG = np.random.default_rng(0)
N = 131
X, NEW = RNG.uniform(size=(N, 3)), RNG.uniform(-0.1, 1.1, size=(17, 3))
B = torch.from_numpy(RNG.normal(size=(N, 2)))
NOISE = {"one": 0.1, "each": torch.from_numpy(RNG.uniform(0.05, 0.2, N))}
KERNELS = {
    "gaussian": Gaussian(0.5),
    "matern": Matern([0.3, 0.6, 1.2]),
    "laplace": 2.0 * Laplace(1.0),
    "scaled": 3.0 * Gaussian([0.3, 0.6, 1.2]),
}
METRIC = {name: np.array([0.3, 0.6, 1.2]) if name in ("matern", "scaled") else 1.0 for name in KERNELS}
# Wendland's table for up to 3 dimensions
TABLE = [
    lambda s: (1 - s) ** 2,
    lambda s: (1 - s) ** 4 * (4 * s + 1),
    lambda s: (1 - s) ** 6 * (35 * s**2 + 18 * s + 3) / 3,
]


@pytest.fixture
def small(monkeypatch):
    """Several chunks of everything, and many fronts."""
    sizes = {"_AT_ONCE": 5000, "ROWS": 50}
    for module, values in {
        "tapered": sizes,
        "taper": sizes,
        "sparse_cholesky": {"_LEAF": 5},
    }.items():
        for name, value in values.items():
            monkeypatch.setattr(f"hck.approximations.{module}.{name}", value)
    monkeypatch.setitem(KINDS, "cpu", replace(KINDS["cpu"], distances=2000))


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


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("smoothness", [0, 1, 2])
def test_against_dense_algebra(smoothness, name, noise):
    made = Tapered.of(KERNELS[name], X, 20, smoothness)
    k = dense(KERNELS[name], made.radius, np.concatenate([X, NEW]), smoothness, METRIC[name])
    check(made, k, NOISE[noise])
    assert len(made.elimination.fronts) > 5
    assert any(len(front.rest) for front in made.elimination.fronts)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("features", [0, 3], ids=["all distances", "tree"])
@pytest.mark.parametrize("noise", NOISE)
def test_single_precision(noise, features, monkeypatch):
    monkeypatch.setattr("hck.approximations.taper._MOST_FEATURES", features)
    x = torch.from_numpy(X).float()
    made = Tapered.of(KERNELS["matern"], x, 20)
    k = dense(KERNELS["matern"], made.radius, np.concatenate([X, NEW]), 1, METRIC["matern"])
    check(made, k, NOISE[noise], 2e-4)


@pytest.mark.parametrize("shift", [0.0, 1e5], ids=["near", "far"])
def test_all_distances_as_by_a_tree(shift, monkeypatch):
    """Two groups of points; far apart, distances are rough in single precision."""
    x = np.concatenate([X, NEW + shift])
    by_tree = Tapered.of(Matern(0.5), x, 20, radius=0.3)
    monkeypatch.setattr("hck.approximations.taper._MOST_FEATURES", 0)
    by_all = Tapered.of(Matern(0.5), x, 20, radius=0.3)
    for part in ("start", "column"):
        assert torch.equal(getattr(by_all.pattern, part), getattr(by_tree.pattern, part))
    close(by_all.pattern.taper, by_tree.pattern.taper, 1e-12)
    expected = dense(lambda x: 1, 0.3, x)
    close(by_tree.pattern.matrix(by_tree.pattern.taper).to_dense(), expected, 1e-10)
    assert len(by_tree.pattern.column) == int((expected != 0).sum())


def test_wendland_functions_as_in_the_table():
    s = torch.linspace(0, 1, 101, dtype=torch.float64)
    for smoothness, function in enumerate(TABLE):
        close(wendland(s, 3, smoothness), function(s), 1e-14)
        close(wendland(s, 2, smoothness), function(s), 1e-14)
    line = [1 - s, (1 - s) ** 3 * (3 * s + 1), (1 - s) ** 5 * (8 * s**2 + 5 * s + 1)]
    for smoothness, expected in enumerate(line):
        close(wendland(s, 1, smoothness), expected, 1e-14)
        assert float(wendland(s + 1, 1, smoothness).abs().max()) == 0


@pytest.mark.parametrize("smoothness", [0, 1, 2])
@pytest.mark.parametrize("d", [1, 3, 8])
def test_wendland_functions_are_positive_definite(d, smoothness):
    x = torch.from_numpy(np.random.default_rng(d).uniform(size=(300, d)))
    for radius in (0.1, 0.5, 2.0):
        matrix = wendland(torch.cdist(x, x) / radius, d, smoothness)
        assert float(torch.linalg.eigvalsh(matrix)[0]) > -1e-12


def test_a_function_for_few_dimensions_is_not_in_many():
    corners = torch.from_numpy(np.random.default_rng(0).integers(0, 2, size=(400, 12)).astype(float))
    s = torch.cdist(corners, corners) / 2.5
    assert float(torch.linalg.eigvalsh(wendland(s, 1, 0))[0]) < -1e-3
    assert float(torch.linalg.eigvalsh(wendland(s, 12, 0))[0]) > -1e-12


CLOUDS = {
    "uniform": lambda g: g.uniform(size=(2000, 2)),
    "clusters": lambda g: g.normal(size=(2000, 2)) * 0.1 + g.integers(0, 5, size=(2000, 1)) ** 2,
    "eight features": lambda g: g.normal(size=(2000, 8)),
}


@pytest.mark.parametrize(("rank", "sampled"), [(1, False), (64, False), (64, True)])
@pytest.mark.parametrize("cloud", CLOUDS)
def test_rank_is_the_mean_number_of_nonzeros(cloud, rank, sampled, monkeypatch):
    if sampled:
        monkeypatch.setattr("hck.approximations.taper._DISTANCES", 0)
    made = Tapered.of(Gaussian(1.0), CLOUDS[cloud](np.random.default_rng(1)), rank)
    mean = len(made.pattern.column) / 2000
    assert abs(mean - rank) <= (0.25 if sampled else 0.001) * rank


def test_awkward_points():
    grid = np.stack(np.meshgrid(*[np.arange(10.0)] * 2), -1).reshape(-1, 2)
    made = Tapered.of(Matern(2.0), grid, 20)
    assert 9 <= len(made.pattern.column) / 100 <= 20
    close(made.factor(0.1).inverse_diagonal(), torch.linalg.inv(_noisy(made, 0.1)).diagonal())
    repeated = np.repeat(grid[:10], 30, axis=0)
    made = Tapered.of(Matern(2.0), repeated, 10)
    assert len(made.pattern.column) == 10 * 30**2  # a point cannot be told from its copies
    b = torch.ones(300, dtype=torch.float64)
    close(made.factor(0.1).solve(b), torch.linalg.solve(_noisy(made, 0.1), b))


def _noisy(made, noise):
    return made.matrix.to_dense() + noise * torch.eye(len(made.points), dtype=made.points.dtype)


def test_all_points_within_the_radius():
    for n, rank in ((N, N), (N, 10 * N), (1, 1)):
        made = Tapered.of(Gaussian(0.5), X[:n], rank)
        assert len(made.pattern.column) == n * n
        close(made.matrix.to_dense(), dense(Gaussian(0.5), made.radius, X[:n]))
        close(made.factor(0.1).log_determinant, torch.linalg.slogdet(_noisy(made, 0.1)).logabsdet)


def test_more_points():
    """With fronts as large as usual."""
    x = np.random.default_rng(3).uniform(size=(1500, 2))
    made = Tapered.of(Matern(0.2), x, 40)
    assert len(made.elimination.fronts) > 10
    factor, inverse = made.factor(0.01), torch.linalg.inv(_noisy(made, 0.01))
    close(factor.log_determinant, -torch.linalg.slogdet(inverse).logabsdet)
    close(factor.inverse_diagonal(), inverse.diagonal())
    b = torch.from_numpy(RNG.normal(size=(1500, 3)))
    close(factor.solve(b), inverse @ b)
    close(made.factor(0.01).solve(b), inverse @ b, 1e-6)


def test_the_taper_stays_where_it_was():
    first = Tapered.of(Gaussian([0.3, 0.6, 1.2]), X, 20)
    kernel = Matern([1.0, 0.2, 0.4])
    made = first.with_kernel(kernel)
    k = dense(kernel, first.radius, np.concatenate([X, NEW]), 1, np.array([0.3, 0.6, 1.2]))
    check(made, k, 0.1)
    close((first @ B), dense(first.kernel, first.radius, X, 1, np.array([0.3, 0.6, 1.2])) @ B)
    assert made.elimination.fronts is first.elimination.fronts


LEARNED = {
    "gaussian": lambda scale, c: c * Gaussian(scale),
    "matern": lambda scale, c: c * Matern(scale, nu=1.5),
    "matern, rough": lambda scale, c: c * Matern(scale, nu=0.5),
    "laplace": lambda scale, c: c * Laplace(scale),
    "sum": lambda scale, c: c * (Gaussian(scale) + Matern(0.4)),
}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("name", LEARNED)
def test_gradient_of_the_likelihood(name, noise):
    start = Tapered.of(Gaussian([0.3, 0.6, 1.2]), X, 20)
    trend = torch.from_numpy(np.c_[np.ones(N), X[:, :1]])
    values = [torch.tensor([0.4, 0.7, 1.1]).double(), torch.tensor(1.7).double()]
    values.append(torch.as_tensor(NOISE[noise], dtype=torch.float64))

    def at(values, gradient=False):
        parameters = scale, c, variance = [value.clone().requires_grad_() for value in values]
        made = start.with_kernel(LEARNED[name](scale, c))
        return made.log_likelihood(variance, B, parameters if gradient else (), trend)

    found = at(values, gradient=True)
    assert found.coefficients.shape == (2, 2)
    for k, gradient in enumerate(found.gradient):
        assert gradient.shape == values[k].shape
        for place in list(np.ndindex(gradient.shape))[:3]:
            ends = []
            for step in (1e-5, -1e-5):
                moved = [value.clone() for value in values]
                moved[k][place] += step
                ends.append(at(moved).value)
            close(gradient[place], (ends[0] - ends[1]) / 2e-5, 1e-5)


def test_value_of_the_likelihood():
    made, y = Tapered.of(2.0 * Matern(0.5), X, 20), B[:, 0]
    expected = multivariate_normal(cov=_noisy(made, 0.1).numpy()).logpdf(y.numpy())
    assert float(made.log_likelihood(0.1, y).value) == pytest.approx(expected, abs=1e-8)


def test_gradient_in_single_precision():
    scales = [
        torch.tensor([0.4, 0.7, 1.1], dtype=t, requires_grad=True) for t in (torch.float32, torch.float64)
    ]
    found, expected = (
        Tapered.of(Gaussian(1.0), torch.from_numpy(X).to(scale.dtype), 20, radius=0.5)
        .with_kernel(Matern(scale))
        .log_likelihood(0.1, B, [scale])
        .gradient[0]
        for scale in scales
    )
    assert found.dtype == torch.float32
    close(found.double(), expected, 1e-3)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_draws(dtype):
    made = Tapered.of(2.0 * Gaussian(0.5), torch.from_numpy(X[:60]).to(dtype), 20)
    drawn = made.draw(20_000, torch.Generator().manual_seed(0))
    assert drawn.shape == (60, 20_000)
    assert drawn.dtype == dtype
    k = made.matrix.to_dense()
    deviation = ((k.diagonal()[:, None] * k.diagonal() + k.square()) / 20_000).sqrt()
    # draws are around 0, so that their products estimate the covariance
    assert float(((drawn @ drawn.mT / 20_000 - k) / deviation).abs().max()) < 5.5
    again = made.draw(3, torch.Generator().manual_seed(1))
    assert torch.equal(again, made.draw(3, torch.Generator().manual_seed(1)))


def test_draws_at_repeated_points():
    x = np.repeat(X[:40], 2, axis=0)
    drawn = Tapered.of(Matern(0.5), x, 20).draw(50, torch.Generator().manual_seed(0))
    close(drawn[::2], drawn[1::2], 1e-4)
    assert float(drawn.std()) == pytest.approx(1, abs=0.1)


def test_iterations_that_do_not_converge(monkeypatch):
    monkeypatch.setattr("hck.approximations.tapered._MAX_ITER", 2)
    made = Tapered.of(Gaussian(0.5), X, 20)
    factor = made.factor(1e-3)
    close(factor.solve(B), torch.linalg.solve(_noisy(made, 1e-3), B))
    assert "cholesky" in factor.__dict__


def test_a_column_of_zeros():
    made = Tapered.of(Gaussian(0.5), X, 20)
    b = torch.stack([B[:, 0], torch.zeros(N, dtype=torch.float64)], 1)
    close(made.factor(0.1).solve(b), torch.linalg.solve(_noisy(made, 0.1), b))


def test_pickles():
    made = Tapered.of(Matern([0.3, 0.6, 1.2]), X, 20)
    predictor = made.factor(0.1).predictor(B)
    expected = predictor(NEW)
    again = pickle.loads(pickle.dumps(predictor))
    assert torch.equal(again(NEW), expected)
    assert torch.equal(again(NEW, verbose=True), expected)
    assert again.points.x.shape == X.shape
    assert again.nbytes == B.nbytes
    process = made.condition(0.1, B[:, 0], torch.ones(N, 1))
    restored = pickle.loads(pickle.dumps(process))
    h = torch.ones(len(NEW), 1)
    close(restored.predict(NEW, h), process.predict(NEW, h), 1e-12)
    close(restored.variance(NEW, h), process.variance(NEW, h), 1e-12)


def test_new_points_far_away():
    made = Tapered.of(3.0 * Gaussian(0.5), X, 20)
    factor, far = made.factor(0.1), NEW + 100
    assert float(factor.predictor(B)(far).abs().max()) == 0
    close(factor.variance(far), torch.full((len(far),), 3.0, dtype=torch.float64))


def test_errors():
    for rank in (0, 0.5, -3):
        with pytest.raises(ValueError, match="rank must be at least 1"):
            Tapered.of(Gaussian(1.0), X, rank)
    for smoothness in (-1, 3, 0.5):
        with pytest.raises(ValueError, match="smoothness must be 0, 1 or 2"):
            Tapered.of(Gaussian(1.0), X, 10, smoothness)
    for radius in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="radius must be positive"):
            Tapered.of(Gaussian(1.0), X, 10, radius=radius)
    with pytest.raises(ValueError, match="lengthscales"):
        Tapered.of(Gaussian([1.0, 2.0]), X, 10)
    for x in (sp.csr_matrix(X), ["tree", "leaf"], as_points(["tree", "leaf"], objects=True)):
        with pytest.raises(TypeError, match="dense array"):
            Tapered.of(Gaussian(1.0), x, 10)
    made = Tapered.of(Gaussian(1.0), X, 10)
    with pytest.raises(ValueError, match="b has 5 rows"):
        made @ B[:5]
    with pytest.raises(ValueError, match="2 features where 3 are expected"):
        made.factor(0.1).predictor(B)(NEW[:, :2])


def test_repeated_points_without_noise():
    made = Tapered.of(Gaussian(1.0), [[0.0], [0.0], [5.0]], 2, radius=1.0)
    with pytest.raises(NotPositiveDefiniteError, match="larger noise"):
        made.factor(0.0).log_determinant  # noqa: B018


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_on_a_gpu(dtype):
    x = np.random.default_rng(3).uniform(size=(1500, 3))
    b, tolerance = torch.from_numpy(RNG.normal(size=(1500, 2))), 1e-8 if dtype == torch.float64 else 1e-3
    results = []
    for device in ("cpu", "cuda"):
        scale = torch.tensor([0.3, 0.6, 1.2], dtype=dtype, device=device, requires_grad=True)
        points = torch.from_numpy(x).to(device, dtype)
        made = Tapered.of(Matern([0.3, 0.6, 1.2]), points, 30, radius=0.5).with_kernel(Matern(scale))
        iterated, factor = made.factor(0.1), made.factor(0.1)
        likelihood = made.log_likelihood(0.1, b, [scale])
        found = [likelihood.value, *likelihood.gradient, factor.log_determinant, factor.inverse_diagonal()]
        found += [iterated.solve(b), factor.solve(b), made @ b, made.cross(NEW), factor.predictor(b)(NEW)]
        found += [factor.variance(NEW), factor.covariance(NEW)]
        assert made.draw(2, torch.Generator(device).manual_seed(0)).shape == (1500, 2)
        assert all(part.device.type == device for part in found)
        results.append([part.double().cpu() for part in found])
    for here, there in zip(*results, strict=True):
        close(there, here, tolerance)
