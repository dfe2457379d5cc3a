"""Chunks on many cores: same results, same order, errors and gradients pass through."""

import os
import sys
import threading
import time

import pytest
import torch

from hck.backend.parallel import at_a_time, chunks, evenly, for_each, parallel_map
from hck.hierarchy import HierarchicalKernel
from hck.kernels import Gaussian

CPU = torch.device("cpu")


@pytest.fixture(autouse=True, params=[1, 3])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def test_results_come_in_the_order_of_the_items():
    def slow_first(i):
        time.sleep(0.002 * (20 - i))
        return i

    assert list(parallel_map(slow_first, range(20), CPU)) == list(range(20))


def test_items_run_on_several_threads_with_one_inside_each(threads):
    seen = set()

    def work(i):
        time.sleep(0.01)
        seen.add((threading.current_thread().name, torch.get_num_threads()))

    for_each(work, range(12), CPU)
    assert len(seen) == threads
    assert {inner for _, inner in seen} == {1}
    assert torch.get_num_threads() == threads


def test_other_threads_keep_their_number_of_threads(threads):
    for_each(lambda i: None, range(8), CPU)
    seen = []
    other = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
    other.start()
    other.join()
    assert seen == [threads]


@pytest.mark.parametrize(
    ("threads", "count", "width", "alone"),
    [(2, 9, 4, 1), (4, 9, 4, 1), (4, 11, 4, 0), (2, 9, 1, 0), (2, 1, 4, 1)],
    indirect=["threads"],
)
def test_what_is_left_over_has_all_cores(threads, count, width, alone):
    """Items that would leave cores idle at the end have all cores inside, one after another."""
    found = list(evenly(lambda item: (item, at_a_time(CPU)), range(count), CPU, width))
    assert [item for item, _ in found] == list(range(count))
    assert [inside for _, inside in found] == [1] * (count - alone) + [threads] * alone


def test_errors_reach_the_caller_and_stop_the_work():
    done = []

    def work(i):
        if i == 3:
            raise ValueError("three")
        time.sleep(0.001)
        done.append(i)

    with pytest.raises(ValueError, match="three"):
        for_each(work, range(1000), CPU)
    assert len(done) < 1000
    for_each(done.append, range(2), CPU)  # the pool still works


@pytest.mark.parametrize("enabled", [True, False])
def test_gradient_mode_is_the_callers(enabled):
    x = torch.ones(5, requires_grad=True)
    with torch.set_grad_enabled(enabled):
        results = list(parallel_map(lambda i: 2 * x[i], range(5), CPU))
    assert [r.requires_grad for r in results] == [enabled] * 5
    if enabled:
        torch.stack(results).sum().backward()
        assert x.grad.tolist() == [2.0] * 5


def test_nested_work_does_not_wait_for_itself():
    def outer(i):
        return sum(parallel_map(lambda j: i * j, range(10), CPU))

    assert list(parallel_map(outer, range(10), CPU)) == [45 * i for i in range(10)]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can fork a process that has threads")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_can_fit_after_its_parent_did():
    x = torch.rand(3000, 3, dtype=torch.float64)

    def fit():
        return HierarchicalKernel.build(Gaussian(0.3), x, rank=40).factor(0.1).solve(x[:, 0])

    expected = fit()
    torch.rand(700, 700) @ torch.rand(700, 700)  # with all of torch's threads
    child = os.fork()
    if child == 0:
        os._exit(0 if torch.allclose(fit(), expected, rtol=1e-9) else 1)
    for _ in range(600):
        finished, status = os.waitpid(child, os.WNOHANG)
        if finished:
            break
        time.sleep(0.05)
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
        pytest.fail("the forked process hung")
    assert os.waitstatus_to_exitcode(status) == 0


def test_inference_mode_is_the_callers():
    with torch.inference_mode():
        out = torch.zeros(6)

        def work(i):
            out[i] = i

        for_each(work, range(6), CPU)
    assert out.tolist() == list(range(6))


def test_two_threads_may_come_first_at_once(threads, monkeypatch):
    monkeypatch.setattr("hck.backend.parallel._pools", {})
    results = []

    def use():
        torch.set_num_threads(threads)
        results.append(list(parallel_map(lambda i: i, range(5), CPU)))

    callers = [threading.Thread(target=use, daemon=True) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(timeout=30)
    assert results == [list(range(5))] * 4


def test_chunks_tile_the_range():
    assert chunks(3, 11, 4) == [slice(3, 7), slice(7, 11)]
    assert chunks(0, 5, 4) == [slice(0, 4), slice(4, 5)]
    assert chunks(2, 2, 4) == []
