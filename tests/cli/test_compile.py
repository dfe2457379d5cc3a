"""hck compile"""

import os
import subprocess
import sys

BEFORE = "from hck.cli.compile import compile_for; compile_for('float64', 'cpu')"
AFTER = """
import numpy as np
from hck import HCKClassifier, HCKRegressor

X = np.random.default_rng(0).uniform(size=(2500, 4))
HCKRegressor(random_state=0).fit(X, X[:, 0] * X[:, 1]).predict(X)
X = X[:500]
HCKClassifier(random_state=0).fit(X, X[:, 0] > X[:, 1]).predict_proba(X)
"""


def test_after_it_nothing_that_is_usual_is_compiled(tmp_path):
    """One type of number, and all of it anew."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}

    def run(code):
        command = [sys.executable, "-c", code]
        subprocess.run(command, env=environment, check=True)

    run(BEFORE)
    before = set(tmp_path.rglob("*.nbc"))
    assert before
    run(AFTER)
    assert set(tmp_path.rglob("*.nbc")) == before


def test_the_command():
    done = subprocess.run([sys.executable, "-m", "hck.cli", "compile"], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout.startswith("compiled what was not, in ")
    assert done.stderr == ""


def test_a_device_that_is_not_there(hck):
    code, _, said = hck("compile", "--device", "tpu")
    assert code == 1
    assert "--device" in said
