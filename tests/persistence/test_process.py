"""Saved and loaded Gaussian processes predict the same."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from hck import HCKGaussianProcessRegressor
from hck.approximations import Exact, Iterative, Nystrom
from hck.kernels import Gaussian
from hck.persistence.classes import RECIPES, Place
from hck.points import as_points
from saved_problem import EVERY, GIVEN, NEW, RNG, X, Y, same

pytestmark = pytest.mark.usefixtures("one_thread")


def check_process(found, model, x=NEW, iterative=False):
    same(found.predict(x), model.predict(x))
    for options in ({"return_std": True}, {"return_cov": True}):
        for ours, theirs in zip(found.predict(x, **options), model.predict(x, **options), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(
        found.sample_posterior(x, 3), model.sample_posterior(x, 3), rtol=0, atol=1e-6 if iterative else 1e-10
    )
    same(found.theta_, model.theta_)
    assert found.theta_names_ == model.theta_names_
    assert found.history_ == model.history_
    same(found.coefficients_, model.coefficients_)
    assert repr(found.kernel_) == repr(model.kernel_)
    if iterative:
        assert np.isnan(found.log_marginal_likelihood_value_)
        return
    for ours, theirs in zip(found.loo_predict(True), model.loo_predict(True), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11)
    assert found.loo_metrics() == pytest.approx(model.loo_metrics(), rel=1e-10)
    value, slope = found.log_marginal_likelihood(eval_gradient=True)
    assert value == pytest.approx(model.log_marginal_likelihood_value_, rel=1e-12)
    np.testing.assert_allclose(
        slope, model.log_marginal_likelihood(eval_gradient=True)[1], rtol=1e-8, atol=1e-8
    )
    same(found.sample_prior(x, 2), model.sample_prior(x, 2))


@pytest.mark.parametrize("approximation", EVERY, ids=str)
def test_processes(again, approximation):
    options = {**GIVEN, "optimizer": None, "noise": 0.01, "approximation": approximation}
    model = HCKGaussianProcessRegressor(**options).fit(X, Y)
    check_process(again(model), model, iterative=isinstance(approximation, Iterative))


@pytest.mark.parametrize("trend", ["zero", "mean", "constant", "linear"])
def test_trends_and_noise_of_each_observation(again, trend):
    options = {**GIVEN, "optimizer": None, "trend": trend, "n_trees": 2}
    model = HCKGaussianProcessRegressor(**options).fit(X, Y, noise_variance=RNG.uniform(0.01, 0.1, 200))
    found = again(model)
    check_process(found, model)
    same(found.noise_, model.noise_)


@pytest.mark.parametrize("approximation", ["hierarchical", "nystrom"])
@pytest.mark.parametrize("trend", ["zero", "linear"])
def test_several_targets(again, trend, approximation):
    options = {**GIVEN, "optimizer": None, "trend": trend, "n_trees": 2, "approximation": approximation}
    model = HCKGaussianProcessRegressor(**options).fit(X, np.stack([Y, 100 * Y**2 + 7, np.ones(200)], 1))
    found = again(model)
    for ours, theirs in zip(found.loo_predict(True), model.loo_predict(True), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-11)
    for options in ({"return_std": True}, {"return_cov": True}):
        for ours, theirs in zip(found.predict(NEW, **options), model.predict(NEW, **options), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(
        found.draw_functions(3)(NEW), model.draw_functions(3)(NEW), rtol=1e-6, atol=1e-6
    )
    same(found.y_scale_, model.y_scale_)
    same(found.y_train_, model.y_train_)
    same(found.coefficients_, model.coefficients_)
    assert found.log_marginal_likelihood(model.theta_) == pytest.approx(model.log_marginal_likelihood_value_)


def test_a_target_in_its_own_units(again):
    model = HCKGaussianProcessRegressor(**GIVEN, normalize_y=True, optimizer=None).fit(X, 50 * Y)
    check_process(again(model), model)


@pytest.mark.parametrize("partition", ["kmeans", "kernel"])
def test_processes_that_have_learned(again, partition):
    options = {"bounds": {"noise": "fixed", "scale": (0.1, 10)}, "priors": {"lengthscale": (0.5, 1.0)}}
    model = HCKGaussianProcessRegressor(
        "matern52", noise=0.01, max_iter=6, rank=20, partition=partition, random_state=0, **options
    ).fit(X, Y)
    found = again(model)
    check_process(found, model)
    assert (found.bounds, found.priors) == (options["bounds"], options["priors"])
    ours, theirs = found.standard_errors(), model.standard_errors()
    assert ours.keys() == theirs.keys()
    for name in ours:
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-6)


@pytest.mark.parametrize("options", [{"dtype": "float32"}, {"rank": 200}, {"landmarks": "same"}])
def test_processes_of_several_kinds(again, options):
    model = HCKGaussianProcessRegressor(**{**GIVEN, "optimizer": None, "noise": 0.01, **options}).fit(X, Y)
    found = again(model)
    for ours, theirs in zip(found.predict(NEW, True), model.predict(NEW, True), strict=True):
        assert ours.dtype == theirs.dtype
        same(ours, theirs)


def test_sparse_processes(again):
    model = HCKGaussianProcessRegressor(**GIVEN, optimizer=None).fit(sp.csr_matrix(X[:80]), Y[:80])
    check_process(again(model), model, sp.csr_matrix(NEW))


def test_factors_are_not_saved_but_made_again(again):
    model = HCKGaussianProcessRegressor(**GIVEN, optimizer=None).fit(X, Y)
    model.predict(NEW, return_std=True)
    member = again(model).posterior_.members[0]
    assert not {"factor", "solution"} & vars(member).keys()
    assert not member.source.blueprint.factors
    assert member.mean.points is member.source.blueprint.points


def test_preconditioners_by_their_earlier_name():
    """As files of format 1 first had them."""
    points = as_points(X)
    model, recipe = Exact(Gaussian(0.5), points, [Nystrom.of(Gaussian(0.5), points, 20)]), RECIPES[Exact]
    parts = recipe.take(model)
    parts["guides"] = parts.pop("preconditioners")
    assert recipe.required <= parts.keys() <= recipe.required | recipe.optional
    found = recipe.make(parts, Place(torch.device("cpu")))
    assert found.preconditioners is model.preconditioners
