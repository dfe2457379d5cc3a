"""Parameters learned from the likelihood: optimizers, bounds, priors, parts of the points."""

import numpy as np
import pytest
import torch
from sklearn.base import clone

from hck import HCKGaussianProcessRegressor
from hck.kernels import CallableKernel, Gaussian, Laplace, Matern
from process_problem import NEW, NOISE, TREE, N, X, Y, fixed, learning

pytestmark = pytest.mark.usefixtures("one_thread")


def test_learning_raises_the_likelihood(learned):
    before = learning(optimizer=None).fit(X, Y)
    assert learned.log_marginal_likelihood() > before.log_marginal_likelihood() + 5
    assert len(learned.history_) > 2
    assert learned.history_[-1] > learned.history_[0]
    assert 0.7 * 0.1 < learned.noise_**0.5 < 1.4 * 0.1


def test_one_leaf_ends_where_the_gradient_vanishes():
    model = HCKGaussianProcessRegressor("matern32", rank=N).fit(X, Y)
    _, gradient = model.log_marginal_likelihood(eval_gradient=True)
    assert np.abs(gradient).max() < 0.002 * N
    assert (np.diff(model.history_) >= -1e-12).all()
    assert model.history_[-1] == pytest.approx(model.log_marginal_likelihood() / N, rel=1e-6)


def test_no_optimizer_learns_nothing():
    model = fixed(**TREE).fit(X, Y)
    assert repr(model.kernel_) == repr(1.7 * Matern([0.4, 0.9]))
    assert model.noise_ == pytest.approx(NOISE)
    assert model.history_ == []


def test_stochastic_steps_find_the_noise():
    rng = np.random.default_rng(3)
    x = rng.uniform(size=(400, 2))
    y = np.sin(5 * x[:, 0]) + x[:, 1] + 0.1 * rng.standard_normal(400)
    model = HCKGaussianProcessRegressor(
        optimizer="stochastic", max_iter=60, rank=16, learn_size=150, random_state=0
    ).fit(x, y)
    assert len(model.history_) == 60
    assert np.mean(model.history_[-10:]) > np.mean(model.history_[:10])
    assert 0.08 < model.noise_**0.5 < 0.125
    again = clone(model).fit(x, y)
    np.testing.assert_array_equal(again.theta_, model.theta_)


def test_restarts_are_never_worse_than_none():
    x = np.linspace(0, 1, 40)[:, None]
    y = np.sin(20 * x[:, 0]) + 0.05 * np.random.default_rng(0).standard_normal(40)
    # with such a lengthscale everything looks like noise
    model = HCKGaussianProcessRegressor("gaussian", lengthscale=0.5, rank=40, random_state=0)
    alone = model.fit(x, y).log_marginal_likelihood()
    for number in (1, 4):
        model.set_params(n_restarts=number)
        assert model.fit(x, y).log_marginal_likelihood() >= alone - 1e-6
    assert model.log_marginal_likelihood() > alone + 10
    assert model.kernel_.parameters()["lengthscale"][0] < 0.2


def test_few_iterations(learned):
    model = learning(max_iter=1).fit(X, Y)
    assert len(model.history_) == 1
    assert model.log_marginal_likelihood() < learned.log_marginal_likelihood()


def test_bounds_are_respected():
    bounds = {"lengthscale": (0.2, 0.5), "noise": (0.05, 0.2)}
    model = learning(lengthscale=0.3, noise=0.1, bounds=bounds).fit(X, Y)
    lengthscale = model.kernel_.parameters()["lengthscale"].numpy()
    assert (lengthscale >= 0.2 * (1 - 1e-12)).all()
    assert (lengthscale <= 0.5 * (1 + 1e-12)).all()
    assert model.noise_ == pytest.approx(0.05)  # without bounds it would be 0.01
    assert model.kernel_.parameters()["scale"] != pytest.approx(Y.var())


@pytest.mark.parametrize("optimizer", ["lbfgs", "stochastic"])
def test_fixed_parameters_stay(optimizer):
    bounds = {"noise": "fixed", "scale": "fixed"}
    model = HCKGaussianProcessRegressor(
        1.7 * Matern([0.4, 0.9]), noise=0.3, bounds=bounds, optimizer=optimizer, max_iter=5, **TREE
    ).fit(X, Y)
    assert model.noise_ == 0.3
    assert model.kernel_.scale == 1.7
    assert model.theta_names_ == ["lengthscale[0]", "lengthscale[1]"]
    assert not np.allclose(model.theta_, np.log([0.4, 0.9]))
    assert list(model.standard_errors()) == ["lengthscale"]


def test_parts_of_a_kernel_can_be_fixed():
    kernel = 2.0 * Gaussian(0.5) + 0.1 * Laplace(0.3)
    model = HCKGaussianProcessRegressor(
        kernel, noise=0.05, bounds={"left.lengthscale": "fixed", "right.scale": (0.05, 0.2)}, **TREE
    ).fit(X, Y)
    assert model.theta_names_ == ["left.scale", "right.lengthscale", "right.scale", "noise"]
    assert model.kernel_.left.kernel.lengthscale == 0.5
    assert 0.05 * (1 - 1e-12) <= model.kernel_.right.scale <= 0.2 * (1 + 1e-12)


def test_priors_pull():
    free = learning().fit(X, Y)
    weak = learning(priors={"noise": (1.0, 0.3)}).fit(X, Y)
    strong = learning(priors={"noise": (1.0, 0.003)}).fit(X, Y)
    assert free.noise_ < 0.02
    assert free.noise_ < weak.noise_ < strong.noise_
    assert strong.noise_ == pytest.approx(1.0, rel=0.01)
    each = learning(priors={"lengthscale": (0.25, 0.001)}).fit(X, Y)
    assert each.kernel_.parameters()["lengthscale"].tolist() == pytest.approx([0.25] * 2, rel=0.01)


def test_learning_on_a_part_of_the_points():
    rows = []

    def rational(a, b):
        rows.append(a.shape[-2])
        return 1 / (1 + (a[..., :, None, :] - b[..., None, :, :]).square().sum(-1))

    kernel = 2.0 * CallableKernel(rational, batched=True)
    model = HCKGaussianProcessRegressor(kernel, noise=0.1, learn_size=40, rank=N, random_state=0).fit(X, Y)
    assert set(rows) <= {1, 30, 40, N}  # 30: a look at some predictions
    assert rows.count(40) > 5
    assert 40 not in rows[rows.index(N) :]  # all points only after learning
    assert model.loo_predict().shape == (N,)
    whole = HCKGaussianProcessRegressor(kernel, noise=0.1, learn_size=None, rank=N).fit(X, Y)
    assert not np.allclose(model.theta_, whole.theta_, rtol=1e-3)
    assert model.log_marginal_likelihood() < whole.log_marginal_likelihood()
    np.testing.assert_allclose(model.theta_, whole.theta_, atol=1.5)
    assert model.log_marginal_likelihood(whole.theta_) == pytest.approx(whole.log_marginal_likelihood())


def test_a_tree_of_ones_own(learned):
    tree = learned.tree_
    with pytest.raises(ValueError, match="learn_size=None"):
        learning(partition=tree, learn_size=N - 1).fit(X, Y)
    for size in (None, N, 20_000):
        model = learning(partition=tree, learn_size=size).fit(X, Y)
        assert model.tree_ is tree or torch.equal(model.tree_.leaf_of_point, tree.leaf_of_point)
    without = learning(partition=tree, learn_size=10, optimizer=None).fit(X, Y)
    assert torch.equal(without.tree_.leaf_of_point, tree.leaf_of_point)


@pytest.mark.parametrize("optimizer", ["lbfgs", "stochastic"])
def test_same_seed_same_result(optimizer):
    model = HCKGaussianProcessRegressor(optimizer=optimizer, max_iter=4, rank=8, learn_size=60, n_restarts=1)
    first, again, other = (clone(model).set_params(random_state=s).fit(X, Y) for s in (5, 5, 6))
    np.testing.assert_array_equal(again.theta_, first.theta_)
    np.testing.assert_array_equal(again.predict(NEW, return_std=True), first.predict(NEW, return_std=True))
    assert not np.array_equal(other.theta_, first.theta_)


def test_progress_is_shown_when_asked_for(capsys):
    learning(max_iter=2).fit(X, Y).predict(NEW, return_std=True)
    assert capsys.readouterr().out == ""
    learning(max_iter=2, verbose=1).fit(X, Y).predict(NEW, return_std=True)
    assert "Learning" in capsys.readouterr().out
