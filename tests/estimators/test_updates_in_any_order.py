"""After any sequence of updates, copies and mistakes a model is a fit to what is left, on the same tree."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hck import HCKClassifier, HCKGaussianProcessRegressor, HCKRegressor
from hck.approximations import TreeKernel
from hck.process import Process

NEW = np.random.default_rng(1).uniform(size=(6, 3))
GIVEN = {"lengthscale": 0.6, "rank": 6, "leaf_size": 9, "random_state": 0}
MISTAKES = [
    lambda model, n: model.forget([n]),
    lambda model, n: model.forget(range(n)),
    lambda model, n: model.update([0], [np.nan]),
    lambda model, n: model.partial_fit(NEW[:2], model.predict(NEW[:1])),
    lambda model, n: model.partial_fit(NEW[:, :2], model.predict(NEW)),
]


class Followed:
    """A model, and beside it plain lists of what was observed."""

    def __init__(self, kind, n, weighted, seed):
        self.kind, self.rng, self.weighted = kind, np.random.default_rng(seed), weighted
        self.classes = ["high", "low"]
        self.x, self.y, self.weight = np.zeros((0, 3)), np.zeros(0), np.zeros(0)
        if kind == "classifier":
            self.model, self.y = HCKClassifier(**GIVEN, alpha=0.05), np.zeros(0, "U9")
        elif kind == "regressor":
            self.model = HCKRegressor(**GIVEN, alpha=0.05, n_trees=2)
        else:
            self.model = HCKGaussianProcessRegressor(**GIVEN, noise=0.05, optimizer=None, trend="linear")
        self.add(n, 1.0)

    def targets(self, x):
        y = np.sin(5 * x[:, 0]) + x[:, 1] + 0.1 * self.rng.standard_normal(len(x))
        if self.kind != "classifier":
            return y
        labels = np.where(y > 1, "high", "low").astype("U9")
        labels[:2] = ["high", "low"][: len(labels)]
        return labels

    def add(self, m, high):
        x, weight = self.rng.uniform(0, high, size=(m, 3)), self.rng.uniform(0.5, 2, m)
        y, name = self.targets(x), "noise_variance" if self.kind == "process" else "sample_weight"
        self.model.partial_fit(x, y, **({name: weight} if self.weighted else {}))
        self.x, self.y = np.append(self.x, x, 0), np.append(self.y, y)
        self.weight = np.append(self.weight, weight)

    def add_class(self):
        if self.kind != "classifier":
            return
        self.classes.append(f"other {len(self.classes)}")
        given = {"sample_weight": [1.0]} if self.weighted else {}
        self.model.partial_fit(NEW[:1], self.classes[-1:], classes=self.classes, **given)
        self.x, self.y = np.append(self.x, NEW[:1], 0), np.append(self.y, self.classes[-1])
        self.weight = np.append(self.weight, 1.0)

    def forget(self, m, keep):
        n = len(self.y)
        gone = np.arange(min(m, n - 1)) if keep else self.rng.choice(n, min(m, n - 1), replace=False)
        self.model.forget(keep=n - len(gone)) if keep else self.model.forget(gone)
        self.x, self.y, self.weight = (np.delete(each, gone, 0) for each in (self.x, self.y, self.weight))

    def update(self, m):
        which = self.rng.choice(len(self.y), min(m, len(self.y)), replace=False)
        values = np.roll(self.y[which], 1)
        self.model.update(which, values)
        self.y[which] = values

    def mistake(self, number):
        attributes = dict(vars(self.model))
        with pytest.raises(ValueError):
            MISTAKES[number](self.model, len(self.y))
        assert vars(self.model) == attributes

    def check(self):
        model = self.model
        model.update([0], self.y[:1])  # so that there are versions
        if self.kind == "process":
            return self._check_process()
        found = []
        for state in model._online:
            blueprint, data = state.harvested
            predictor, left_out = TreeKernel(blueprint).ridge(data.noise, data.b, True)
            found.append(torch.cat([predictor(model._placed(NEW)), left_out]).numpy())
        expected = np.mean(found, 0) + model.intercept_
        if self.kind == "classifier":
            said = model.decision_function(NEW), model.loo_decision_function()
            codes = data.b.numpy() + model.intercept_
            code = codes.argmax(1) if codes.shape[1] > 1 else (codes[:, 0] > 0) * 1
            np.testing.assert_array_equal(model.classes_[code], self.y)
        else:
            said = model.predict(NEW), model.loo_predict()
            np.testing.assert_allclose(data.b.numpy()[:, 0] + model.intercept_, self.y, atol=1e-12)
        both = np.concatenate([each.reshape(len(each), -1) for each in said])
        np.testing.assert_allclose(both, expected, rtol=0, atol=1e-9)
        weight = self.weight if self.weighted else np.ones(len(self.y))
        np.testing.assert_allclose(0.05 / data.noise.numpy(), weight)

    def _check_process(self):
        model = self.model
        (member,), (state,) = model.posterior_.members, model._online
        blueprint, data = state.harvested
        process = Process.of(TreeKernel(blueprint), data.noise, data.b[:, 0], data.b[:, 1:])
        features = model._trend(NEW)
        close = {"rtol": 0, "atol": 1e-9}
        mean, std = model.predict(NEW, return_std=True)
        points = model._placed(NEW)
        np.testing.assert_allclose(
            mean, model._trend.restore(features, process.predict(points, features)), **close
        )
        np.testing.assert_allclose(std**2, process.variance(points, features), **close)
        np.testing.assert_allclose(member.leave_one_out().mean, process.leave_one_out().mean, **close)
        assert model.log_marginal_likelihood() == pytest.approx(process.log_likelihood, abs=1e-8)
        np.testing.assert_allclose(model.y_train_, self.y, **close)
        np.testing.assert_allclose(data.noise, self.weight if self.weighted else 0.05)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(1, 40), st.sampled_from([0.2, 1.0])),
        st.tuples(st.just("forget"), st.integers(1, 40), st.booleans()),
        st.tuples(st.just("update"), st.integers(1, 4)),
        st.tuples(st.just("add_class")),
        st.tuples(st.just("mistake"), st.integers(0, len(MISTAKES) - 1)),
        st.tuples(st.just("copied"), st.sampled_from([deepcopy, lambda m: pickle.loads(pickle.dumps(m))])),
    ),
    max_size=6,
)


@pytest.mark.parametrize("kind", ["regressor", "classifier", "process"])
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=STEPS, n=st.integers(4, 40), weighted=st.booleans(), seed=st.integers(0, 99))
def test_any_sequence(kind, steps, n, weighted, seed):
    followed = Followed(kind, n, weighted, seed)
    for name, *given_ in steps:
        if name == "copied":
            followed.model = given_[0](followed.model)
        else:
            getattr(followed, name)(*given_)
    followed.check()
