"""What `import hck` brings, and when."""

import subprocess
import sys

import pytest

import hck


def test_nothing_slow_is_imported_before_it_is_used():
    slow = "{'torch', 'sklearn', 'scipy', 'numba', 'pandas'}"
    code = f"import sys, hck, hck.cli._app; assert not {slow} & {{*sys.modules}}"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_everything_is_there():
    for name in hck.__all__:
        assert getattr(hck, name) is not None
        assert name in dir(hck)
    assert hck.kernels.Gaussian(1.0) is not None
    assert hck.estimators.HCKRegressor is hck.HCKRegressor


def test_what_is_not_there():
    with pytest.raises(AttributeError, match="module 'hck' has no attribute 'HCKRegresor'"):
        _ = hck.HCKRegresor
