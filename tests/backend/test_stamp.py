"""Compiled code that is kept on disk: it is used again, and never where it was made of something else."""

import math
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import hck

SHOW = """
import logging
import torch
from hck.backend.blocks import Blocks
from hck.backend.kernels import DenseCross, fused_cross
from hck.kernels import make_kernel
x = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
one = Blocks(torch.arange(2)[None], full=True)
logging.getLogger("hck").addHandler(logging.StreamHandler())
logging.getLogger("hck").setLevel("INFO")
print(float(fused_cross(DenseCross(make_kernel("laplace").profile(), x, one, x, one))[0, 0, 1]))
"""


@pytest.fixture
def package(tmp_path):
    shutil.copytree(Path(hck.__file__).parent, tmp_path / "hck", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def shown(package):
    """What a fresh process computes."""
    return float(run(package).stdout)


NOWHERE = """
from numba.core.caching import _CacheLocator

def refuse(self):
    raise OSError("read-only")

_CacheLocator.ensure_cache_path = refuse
"""


def run(package, code=SHOW):
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    environment |= {"PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=package, check=True, capture_output=True, text=True
    )


def change(path, old, new):
    """Put other text of the same length into a file, and leave its time as it was."""
    text, before = path.read_text(encoding="utf-8"), path.stat()
    assert text.count(old) == 1
    assert len(old) == len(new)
    path.write_text(text.replace(old, new), encoding="utf-8")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    assert path.stat().st_mtime_ns == before.st_mtime_ns


def kept(package):
    return {path: path.stat().st_mtime_ns for path in (package / "hck").rglob("*.nbc")}


def test_another_formula_is_compiled_anew(package):
    assert shown(package) == pytest.approx(0.36787944117144233, rel=1e-15)
    first = kept(package)
    assert first
    assert run(package).stderr == ""
    assert kept(package) == first  # used again
    formula = "def laplace(s: Numbers) -> Numbers:\n    return {}"
    change(package / "hck/kernels/families.py", formula.format("exp(-s)"), formula.format("1/(s+3)"))
    assert shown(package) == 0.25


def test_other_sources_are_compiled_anew(package):
    """The tile is written by another file than the one that holds the function."""
    assert run(package).stderr.startswith("hck compiles its inner loops for this processor")
    clamp = "self._between(x.value, least, {})"
    change(package / "hck/backend/cpu/vector.py", clamp.format("most"), clamp.format("-2.0"))
    assert shown(package) == pytest.approx(0.1353352832366127, rel=1e-15)


def test_classes_that_are_gone(package):
    """What is kept refers to classes of the arguments, of which another version knows nothing."""
    expected = shown(package)
    for path in (package / "hck").rglob("*.py"):
        path.write_text(
            path.read_text(encoding="utf-8").replace("CompiledProfile", "Renamed"), encoding="utf-8"
        )
    assert shown(package) == expected


def test_versions_are_part_of_the_stamp(monkeypatch):
    from hck.backend.cpu import jit

    assert jit._stamp() == jit._STAMP
    for module in (jit.numba, jit.llvmlite, jit.np):
        with monkeypatch.context() as patch:
            patch.setattr(module, "__version__", "0.0")
            assert jit._stamp() != jit._STAMP
    monkeypatch.setattr(jit.sys, "version", "another")
    assert jit._stamp() != jit._STAMP


def test_processes_that_save_together_keep_to_files_of_their_own(tmp_path):
    from hck.backend.cpu import jit

    cache = SimpleNamespace(_cache_path=str(tmp_path), _impl=SimpleNamespace(filename_base="function"))
    files = {key: jit._CacheFiles(cache) for key in ("float64", "float32")}
    for key, own in files.items():
        own.save(key, f"code for {key}")
    assert all(own.load(key) == f"code for {key}" for key in files for own in files.values())
    assert len(list(tmp_path.glob("*.nbi"))) == len(list(tmp_path.glob("*.nbc"))) == 2


def test_where_no_folder_can_be_written_each_process_compiles_anew(package):
    for _ in range(2):
        done = run(package, NOWHERE + SHOW)
        assert float(done.stdout) == pytest.approx(math.exp(-1))
        assert "cannot keep them: set NUMBA_CACHE_DIR" in done.stderr
    assert not kept(package)
