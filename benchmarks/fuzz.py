"""Forged models of every kind, for some minutes: `python benchmarks/fuzz.py --minutes 10 --seed 0`.

Every field and array is changed in many ways, with right checksums, in processes that may die of it. Each
forgery has to be refused by a ModelFileError, or to predict finite numbers; whatever else happens is written
out, and makes the exit status 1. `tests/persistence/test_forgeries.py` tries a hundredth of it.
"""

import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCRIPT = Path(__file__).parent.parent / "tests" / "helpers" / "forgeries.py"


def one_process(share: float, seed: int) -> tuple[collections.Counter, dict[str, str]]:
    """What came of a share of all forgeries."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(SCRIPT), folder, str(share), str(seed)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        found = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if found.returncode:
            last = (Path(folder) / "last").read_text()
            return collections.Counter(died=1), {last: found.stderr[-2000:]}
        outcome = json.loads((Path(folder) / "outcome.json").read_text())
        return collections.Counter(outcome["counts"]), outcome["wrong"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--share", type=float, default=0.05, help="of all forgeries, in each process")
    given = parser.parse_args()
    end, seed, total, wrong = time.monotonic() + 60 * given.minutes, given.seed, collections.Counter(), {}
    while time.monotonic() < end:
        counts, found = one_process(given.share, seed)
        total += counts
        wrong |= found
        seed += 1
        sys.stdout.write(f"seed {seed - 1}: {dict(total)}\n")
        sys.stdout.flush()
    for what, happened in wrong.items():
        sys.stdout.write(f"{what}\n    {happened}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
