"""Check what `make dist` has built, as docs/releasing.md says: ``check_dist.py [PYTHON ...]``.

Each of the interpreters, by default the one that runs this, gets a clean environment in which the wheel is
installed and tried, away from the sources.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
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


def members(wheel: Path) -> dict[str, int]:
    """The files of a wheel with their checksums."""
    with zipfile.ZipFile(wheel) as archive:
        return {each.filename: each.CRC for each in archive.infolist()}


def same_wheel_from(sdist: Path, wheel: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "-w", folder, sdist)
        again = members(next(Path(folder).glob("*.whl")))
    if again != members(wheel):
        sys.exit(f"the sdist builds another wheel: {set(again.items()) ^ set(members(wheel).items())}")


def extras() -> list[str]:
    """Those of pyproject.toml."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    table = text.split("[project.optional-dependencies]\n")[1].split("\n[")[0]
    return re.findall(r"^(\w+) = \[", table, re.MULTILINE)


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
    same_wheel_from(sdist, wheel)
    for python in sys.argv[1:] or [sys.executable]:
        try_wheel(shutil.which(python) or python, wheel)
    print(f"{wheel.name} and {sdist.name} are good")


if __name__ == "__main__":
    main()
