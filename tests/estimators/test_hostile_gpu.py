"""A card when things go wrong: budgets, memory that others hold, threads, overwritten data."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch

import hck
from hck import HCKClassifier, HCKGaussianProcessRegressor, HCKRegressor

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device"),
]

RNG = np.random.default_rng(0)
X, NEW = RNG.uniform(size=(3000, 4)), RNG.uniform(size=(50, 4))
Y = np.sin(6 * X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=3000)
GIVEN = {"kernel": "matern32", "lengthscale": 0.5, "rank": 64, "n_trees": 1, "random_state": 0}
MAKES = {
    "ridge": lambda **more: HCKRegressor(alpha=0.01, scale=None, **GIVEN, **more),
    "process": lambda **more: HCKGaussianProcessRegressor(noise=0.01, optimizer=None, **GIVEN, **more),
}
each = pytest.mark.parametrize("make", MAKES.values(), ids=MAKES)


def on_card(x):
    return torch.as_tensor(x, dtype=torch.float64, device="cuda")


@each
def test_a_model_shares_no_memory_with_tensors_on_the_card(make):
    x, y = on_card(X), on_card(Y)
    model = make().fit(x, y)
    expected = model.predict(on_card(NEW)).cpu()
    x.fill_(7.0)
    y.fill_(7.0)
    torch.testing.assert_close(model.predict(on_card(NEW)).cpu(), expected, rtol=0, atol=0)


def test_a_budget_is_kept_on_the_card():
    """By ridge regression in branches; a process is refused, with what it needs."""
    x, y = on_card(RNG.uniform(size=(400_000, 4))), on_card(RNG.normal(size=400_000))
    for make, rank in ((MAKES["ridge"], 128), (MAKES["process"], 64)):
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        model = make(memory_budget="1GB").set_params(rank=rank).fit(x, y)
        assert torch.cuda.max_memory_allocated() - before <= 1e9
        assert np.isfinite(model.predict(NEW)).all()
        del model
    with pytest.raises(MemoryError, match="memory_budget"):
        MAKES["process"](memory_budget="100MB").fit(x, y)


@pytest.mark.parametrize("wanted", [{"return_cov": True}, {"return_cov": True, "observed": True}])
def test_a_covariance_too_large_for_the_card_is_refused(wanted):
    model = MAKES["process"](device="cuda").fit(X, Y)
    many = np.zeros((300_000, 4))
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    with pytest.raises(MemoryError, match=r"300,000 points takes 2\.88 TB"):
        model.predict(many, **wanted)
    assert torch.cuda.max_memory_allocated() < 2e9


def test_what_others_hold_of_the_card_is_not_free():
    model = MAKES["process"](device="cuda").fit(X, Y)
    n = 30_000
    model.predict(np.zeros((1000, 4)), return_cov=True)
    held = torch.empty(torch.cuda.mem_get_info()[0] - 8 * n * n, dtype=torch.uint8, device="cuda")
    try:
        with pytest.raises(MemoryError):
            model.predict(np.zeros((n, 4)), return_cov=True)
    finally:
        del held
        torch.cuda.empty_cache()


def test_a_card_too_many():
    for name in (f"cuda:{torch.cuda.device_count()}", "cuda:77"):
        with pytest.raises(ValueError, match="no such device"):
            HCKRegressor(device=name).fit(X, Y)


def test_after_a_fork_the_card_is_refused_by_name():
    script = """
import os, warnings
import numpy as np
from hck import HCKRegressor
warnings.simplefilter("ignore")
x = np.random.default_rng(0).uniform(size=(200, 2))
model = HCKRegressor("gaussian", lengthscale=0.5, alpha=0.1, device="cuda").fit(x, x[:, 0])
child = os.fork()
if child == 0:
    try:
        HCKRegressor("gaussian", lengthscale=0.5, alpha=0.1, device="cuda").fit(x, x[:, 0])
    except RuntimeError as error:
        os._exit(0 if "spawn" in str(error) else 2)
    os._exit(1)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-c", script], env=os.environ, timeout=120, check=False)
    assert done.returncode == 0


def test_threads_that_fit_at_once_learn_what_each_would_alone():
    """Also while metrics are learned, which is recorded."""

    def regress(seed):
        return HCKRegressor(fit_time="fast", device="cuda", random_state=seed).fit(X, Y).predict(NEW)

    def classify(seed):
        model = HCKClassifier(fit_time="fast", device="cuda", random_state=seed)
        return model.fit(X[:1000], Y[:1000] > np.median(Y)).decision_function(NEW)

    works = [(work, seed) for work in (regress, classify) for seed in (0, 1)]
    alone, together = [work(seed) for work, seed in works], [None] * len(works)

    def run(k):
        work, seed = works[k]
        together[k] = work(seed)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_allclose(other, one, rtol=0, atol=1e-6)


@each
def test_the_same_numbers_as_on_a_cpu(make):
    here, there = make(device="cpu").fit(X, Y), make(device="cuda").fit(X, Y)
    np.testing.assert_allclose(there.predict(NEW), here.predict(NEW), rtol=0, atol=1e-9)


@pytest.mark.parametrize("wrong", [np.inf, 1e200])
@each
def test_wrong_numbers_on_the_card_leave_the_model(make, wrong):
    model = make().fit(on_card(X), on_card(Y))
    expected = model.predict(NEW)
    bad = on_card(X).clone()
    bad[5, 1] = wrong
    with pytest.raises(ValueError, match=r"infinite|infinity|overflow"):
        model.fit(bad, on_card(Y))
    np.testing.assert_array_equal(model.predict(NEW), expected)


def test_a_saved_model_of_a_card_that_is_not_there(tmp_path):
    MAKES["ridge"](device="cuda").fit(X, Y).save(tmp_path / "model")
    with pytest.raises(ValueError, match="no such device"):
        hck.load(tmp_path / "model", device="cuda:77")
    there = hck.load(tmp_path / "model", device="cpu").predict(NEW)
    np.testing.assert_allclose(there, hck.load(tmp_path / "model", device="cuda").predict(NEW), atol=1e-9)
