"""Benchmarks of time: what they ask for, and how they show it."""

import os
import subprocess
import sys

import pytest

import contention
import promises


def test_bars_of_contention():
    seconds = {"alone": 2.0, "busy": 6.0, "one after the other": 4.0, "two at once": 3.8}
    seconds |= {"joblib, n_jobs=1": 4.0, "joblib, n_jobs=2": 3.0, "one core": 3.4}
    found = contention.ratios(seconds)
    assert found == pytest.approx({"busy": 3, "two at once": 0.95, "joblib": 0.75, "one core": 1.7})
    lines = contention.table({"what": "data", "seconds": seconds, "ratios": found}).splitlines()
    assert "| busy | 6.00 | 3.00 | ≤ 2.5 | **missed** |" in lines
    assert "| joblib | 3.00 (against 4.00) | 0.75 | ≤ 1.0 | met |" in lines
    assert "| one core | 3.40 | 1.70 | ≥ 1.6 | met |" in lines


@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="this system does not keep processes to cores"
)
def test_processes_stay_on_their_cores():
    before = os.sched_getaffinity(0)
    count = [sys.executable, "-c", "import os; print(len(os.sched_getaffinity(0)))"]
    with contention.on_cores(1):
        assert subprocess.check_output(count) == b"1\n"
    assert os.sched_getaffinity(0) == before
    with (
        pytest.raises(SystemExit, match=f"there are {len(before)} cores, not 1000"),
        contention.on_cores(1000),
    ):
        pass


def test_a_promise_that_is_broken_is_bold():
    record = {"seconds": 2.6, "rmse": 0.12345}
    found = promises.tables(
        {"times": {"1000 2": record, "10000 2": record | {"seconds": 2.5}, "1000 fast": record}}
    )
    assert found.splitlines() == [
        "| fit_time | n = 1,000 | n = 10,000 |",
        "|---|---|---|",
        "| 2 | **2.6** (0.123) | 2.5 (0.123) |",
        "| fast | 2.6 (0.123) |  |",
    ]


def test_first_fits():
    found = promises.tables({"first": {"empty": dict.fromkeys(promises.STEPS, 3.0)}})
    assert "| first fit | 3.0 | ≤ 8 |" in found
    assert "| the same again | 3.0 |  |" in found
