"""Tapered kernels against dense algebra."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from hck.approximations.tapered import Tapered
from hck.errors import NoGradientError, NotPositiveDefiniteError
from hck.kernels import Gaussian, Laplace, Matern
from hck.points import as_points
from hck.process import Process, log_likelihood
from tapered_problem import NEW, NOISE, RNG, B, N, X, _noisy, check, close, dense

pytestmark = pytest.mark.usefixtures("one_thread")

KERNELS = {
    "gaussian": Gaussian(0.5),
    "matern": Matern([0.3, 0.6, 1.2]),
    "laplace": 2.0 * Laplace(1.0),
    "scaled": 3.0 * Gaussian([0.3, 0.6, 1.2]),
}
METRIC = {name: np.array([0.3, 0.6, 1.2]) if name in ("matern", "scaled") else 1.0 for name in KERNELS}


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


OF_POINTS = {**KERNELS, "matrix": Matern(0.5, metric=[[1.0, 0.3], [0.2, 2.0], [-0.4, 0.6]])}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", OF_POINTS)
@pytest.mark.parametrize("smoothness", [0, 1, 2])
def test_slopes_are_differences(smoothness, name):
    made = Tapered.of(OF_POINTS[name], X, 20, smoothness)
    predictor, h = made.factor(0.1).predictor(B), 1e-6
    found = predictor.slope(NEW)
    for m, step in enumerate(h * np.eye(NEW.shape[1])):
        close(found[:, m], (predictor(NEW + step) - predictor(NEW - step)) / (2 * h), 1e-6)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", ["gaussian", "matern", "scaled", "matrix"])
@pytest.mark.parametrize("smoothness", [1, 2])
def test_variances_of_slopes_are_differences(smoothness, name):
    factored = Tapered.of(OF_POINTS[name], X, 20, smoothness).factor(0.1)
    found, n, h = factored.slope_variance(NEW), len(NEW), 1e-5
    for m, step in enumerate(h * np.eye(NEW.shape[1])):
        cov = factored.covariance(np.concatenate([NEW + step, NEW - step]))
        own, between = cov.diagonal(), cov[:n, n:].diagonal()
        close(found[:, m], (own[:n] + own[n:] - 2 * between) / (2 * h) ** 2, 2e-3)


def test_kinks_have_no_variance_of_slopes():
    with pytest.raises(NoGradientError, match="smoothness 0 has a kink"):
        Tapered.of(Gaussian(0.5), X, 20, smoothness=0).factor(0.1).slope_variance(NEW)


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
    process = Process.of(made, 0.1, B[:, 0], torch.ones(N, 1))
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
        likelihood = log_likelihood(made, 0.1, b, [scale])
        found = [likelihood.value, *likelihood.gradient, factor.log_determinant, factor.inverse_diagonal()]
        found += [iterated.solve(b), factor.solve(b), made @ b, made.cross(NEW), factor.predictor(b)(NEW)]
        found += [factor.variance(NEW), factor.covariance(NEW)]
        assert made.draw(2, torch.Generator(device).manual_seed(0)).shape == (1500, 2)
        assert all(part.device.type == device for part in found)
        results.append([part.double().cpu() for part in found])
    for here, there in zip(*results, strict=True):
        close(there, here, tolerance)
