import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MADE = ("_build", "auto_gallery", "generated")  # by other builds


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The site, built from a copy of the pages without running the gallery; any warning is an error.

    Or that of the folder which HCK_SITE names, such as docs/_build/html, with the gallery's pictures.
    """
    if built := os.environ.get("HCK_SITE"):
        return Path(built).resolve()
    for name in ("myst_parser", "numpydoc", "sphinx_gallery", "sphinx_design", "pydata_sphinx_theme"):
        pytest.importorskip(name, reason="the site needs `pip install 'hck[docs]'`")
    root = tmp_path_factory.mktemp("site")
    for page in ROOT.glob("*.md"):
        shutil.copy(page, root)
    for folder in ("docs", "benchmarks"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns(*MADE))
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-D", "plot_gallery=0"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, str(root / "docs"), str(root / "html")], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return root / "html"
