"""One noise for all observations, or a known variance for each."""

import numpy as np
import pytest
import torch

from hck.hierarchy.dense import Definition
from hck.points import as_points
from process_problem import NEW, NOISE, TREE, N, X, Y, changed, fixed, learning

pytestmark = pytest.mark.usefixtures("one_thread")


def dense(model, x, new):
    """K_h of all points by its definition."""
    blueprint, tree = model.posterior_.members[0].source.blueprint, model.tree_
    every = as_points(np.concatenate([x, new]))
    leaf = torch.cat([tree.leaf_of_point, tree.route(as_points(new))])
    definition = Definition(blueprint.kernel, tree, blueprint.landmarks, blueprint.jitter)
    return definition.matrix(every, leaf, every, leaf).numpy()


@pytest.mark.parametrize("settings", [{"rank": N}, TREE], ids=["one_leaf", "tree"])
def test_a_variance_for_each_observation(settings):
    variance = np.random.default_rng(1).uniform(0.001, 1.0, N)
    model = fixed(trend="zero", **settings).fit(X, Y, noise_variance=variance)
    k = dense(model, X, NEW)
    noisy, cross = k[:N, :N] + np.diag(variance), k[:N, N:]
    solved = np.linalg.solve(noisy, np.column_stack([Y, cross]))
    mean, std = model.predict(NEW, return_std=True)
    np.testing.assert_allclose(mean, cross.T @ solved[:, 0], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(std**2, np.diag(k[N:, N:] - cross.T @ solved[:, 1:]), rtol=1e-6, atol=1e-9)
    value = -(Y @ solved[:, 0] + np.linalg.slogdet(noisy)[1] + N * np.log(2 * np.pi)) / 2
    assert model.log_marginal_likelihood() == pytest.approx(value, abs=1e-7)
    np.testing.assert_array_equal(model.noise_, variance)
    assert model.theta_names_ == ["lengthscale[0]", "lengthscale[1]", "scale"]
    left_out, deviation = model.loo_predict(return_std=True)
    inverse = np.linalg.inv(noisy)
    np.testing.assert_allclose(left_out, Y - solved[:, 0] / np.diag(inverse), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(deviation, np.diag(inverse) ** -0.5, rtol=1e-7)


def test_equal_variances_are_one_noise():
    alone = fixed(**TREE).fit(X, Y)
    each = fixed(**TREE).fit(X, Y, noise_variance=np.full(N, NOISE))
    tensor = fixed(**TREE).fit(X, Y, noise_variance=torch.full((N,), NOISE, dtype=torch.float64))
    for model in (each, tensor):
        np.testing.assert_allclose(
            model.predict(NEW, return_std=True), alone.predict(NEW, return_std=True), rtol=1e-10
        )
        assert model.log_marginal_likelihood() == pytest.approx(alone.log_marginal_likelihood(), rel=1e-12)


def test_known_variances_while_learning():
    """Where half of the observations are bad, and known to be, the others are believed."""
    bad = np.arange(N) % 2 == 0
    y = np.sin(5 * X[:, 0]) + X[:, 1]
    spoilt = y + np.where(bad, 3.0, 0.01) * np.random.default_rng(1).standard_normal(N)
    told = learning().fit(X, spoilt, noise_variance=np.where(bad, 9.0, 1e-4))
    untold = learning().fit(X, spoilt)
    truth = np.sin(5 * NEW[:, 0]) + NEW[:, 1]
    errors = [np.abs(model.predict(NEW) - truth).max() for model in (told, untold)]
    assert errors[0] < 0.1 < errors[1]


def test_learning_on_a_part_with_known_variances():
    model = learning(learn_size=40).fit(X, Y, noise_variance=np.full(N, 0.01))
    assert model.theta_names_ == ["lengthscale[0]", "lengthscale[1]", "scale"]
    np.testing.assert_allclose(model.predict(X), Y, atol=0.5)


def test_observations_have_noise(fixed_tree):
    mean, std = fixed_tree.predict(NEW, return_std=True)
    again, observed = fixed_tree.predict(NEW, return_std=True, observed=True)
    np.testing.assert_array_equal(again, mean)
    np.testing.assert_allclose(observed**2, std**2 + NOISE, rtol=1e-10)
    _, cov = fixed_tree.predict(NEW, return_cov=True)
    _, noisy = fixed_tree.predict(NEW, return_cov=True, observed=True)
    np.testing.assert_allclose(noisy, cov + NOISE * np.eye(len(NEW)), rtol=1e-10, atol=1e-12)


def test_the_noise_of_new_observations_must_be_known():
    model = fixed(**TREE).fit(X, Y, noise_variance=np.full(N, NOISE))
    assert (model.predict(NEW, return_std=True)[1] > 0).all()
    with pytest.raises(ValueError, match="observed=True needs the noise of new observations"):
        model.predict(NEW, return_std=True, observed=True)
    with pytest.raises(ValueError, match="observed=True needs the noise of new observations"):
        model.sample_posterior(NEW, observed=True)


@pytest.mark.parametrize(
    ("variance", "message"),
    [
        (np.ones(N - 1), r"noise_variance must have shape \(90,\), got \(89,\)"),
        (np.ones((N, 1)), r"noise_variance must have shape \(90,\)"),
        (0.1, r"noise_variance must have shape \(90,\)"),
        (np.zeros(N), "noise_variance must be positive"),
        (changed(np.ones(N), -1), "noise_variance must be positive"),
        (changed(np.ones(N), np.nan), "noise_variance must be positive and finite"),
        (changed(np.ones(N), np.inf), "noise_variance must be positive and finite"),
    ],
)
def test_bad_variances(variance, message):
    with pytest.raises(ValueError, match=message):
        learning().fit(X, Y, noise_variance=variance)


def test_bounds_of_a_noise_that_is_known():
    with pytest.raises(ValueError, match="'noise', which is not a parameter here"):
        learning(bounds={"noise": "fixed"}).fit(X, Y, noise_variance=np.ones(N))
