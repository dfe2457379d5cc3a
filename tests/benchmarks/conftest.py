"""The benchmarks are scripts, and import what lies beside them."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent.parent / "benchmarks"))
