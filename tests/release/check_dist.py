"""Check what `make dist` has built, as docs/releasing.md says: ``check_dist.py [PYTHON ...]``.

Each of the interpreters, by default the one that runs this, gets a clean environment in which the wheel is
installed and tried, away from the sources.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TRY = """
import numpy as np
import hck

X = np.random.default_rng(0).uniform(size=(500, 2))
model = hck.HCKRegressor(lengthscale=0.5, alpha=0.01, rank=16, random_state=0).fit(X, X[:, 0])
assert model.score(X, X[:, 0]) > 0.9
model.save("model")
assert (hck.load("model").predict(X) == model.predict(X)).all()
print("hck", hck.__version__, "from", hck.__file__)
"""


def run(*command: object, fails: bool = False, **options: object) -> str:
    """Run a command, and end everything if it does not do what it should."""
    print("$", *command, flush=True)
    text = [str(part) for part in command]
    done = subprocess.run(text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if (done.returncode != 0) != fails:
        sys.exit(f"{done.stdout[-4000:]}\n{' '.join(text)} ended with {done.returncode}")
    return done.stdout


def check_sdist(sdist: Path) -> None:
    """It has what git tracks of it, all of src, and nothing else but what hatchling says about it."""
    tracked = set(run("git", "ls-files", "-z", cwd=ROOT).split("\0"))
    with tarfile.open(sdist) as archive:
        packed = {each.name.partition("/")[2] for each in archive if not each.isdir()} - {"PKG-INFO"}
    sources = {name for name in tracked if name.startswith("src/")}
    if strange := packed - tracked:
        sys.exit(f"the sdist has files that git does not track: {sorted(strange)}")
    if missing := sources - packed:
        sys.exit(f"the sdist lacks sources: {sorted(missing)}")


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def wheel_of(source: Path) -> dict[str, bytes]:
    """The contents of a wheel made from a folder, or from an sdist, which pip unpacks first."""
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "-w", folder, source)
        return contents(next(Path(folder).glob("*.whl")))


def check_readme(wheel: Path) -> None:
    """An index has none of the repository's files, so that all links name where they are."""
    text = next(text for name, text in contents(wheel).items() if name.endswith("/METADATA")).decode()
    if relative := re.findall(r"\]\((?!https?:|#)([^)]+)", text):
        sys.exit(f"the README has links that an index cannot follow: {relative}")


def check_same(wheel: Path, source: Path) -> None:
    mine, other = contents(wheel), wheel_of(source)
    if differing := [name for name in mine.keys() | other.keys() if mine.get(name) != other.get(name)]:
        sys.exit(f"{source.name} builds another wheel: {sorted(differing)}")


def extras() -> list[str]:
    """Those of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return list(project["optional-dependencies"])


def try_wheel(python: str, wheel: Path) -> None:
    """In an environment that has seen nothing else of the project."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(python, "-m", "venv", folder / "venv")
        program = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
        pip = program / "python", "-m", "pip", "--disable-pip-version-check"
        away = {"cwd": folder, "env": {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}}
        pins = "-c", ROOT / "constraints.txt"
        run(*pip, "install", "--quiet", *pins, wheel, **away)
        print(run(program / "python", "-c", TRY, **away))
        run(program / "hck", "--version", fails=True, **away)  # it says that the extra is missing
        run(*pip, "install", "--quiet", *pins, f"hck[cli] @ {wheel.as_uri()}", **away)
        print(run(program / "hck", "--version", **away))
        print(run(program / "hck", "demo", "--force", **away))
        run(*pip, "check", **away)
        for extra in extras():
            run(*pip, "install", "--dry-run", "--quiet", *pins, f"hck[{extra}] @ {wheel.as_uri()}", **away)


def main() -> None:
    dist = ROOT / "dist"
    wheel, sdist = (next(dist.glob(pattern)) for pattern in ("*.whl", "*.tar.gz"))
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist)
    run(sys.executable, "-m", "check_wheel_contents", wheel)
    check_readme(wheel)
    check_sdist(sdist)
    check_same(wheel, ROOT)
    check_same(wheel, sdist)
    for python in sys.argv[1:] or [sys.executable]:
        try_wheel(shutil.which(python) or python, wheel)
    print(f"{wheel.name} and {sdist.name} are good")


if __name__ == "__main__":
    main()
