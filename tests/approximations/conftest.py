from dataclasses import replace

import pytest

from hck.backend.kinds import KINDS


@pytest.fixture
def small(monkeypatch):
    """Several chunks of everything, and many fronts."""
    sizes = {"_AT_ONCE": 5000, "ROWS": 50}
    for module, values in {
        "tapered": sizes,
        "taper": sizes,
        "sparse_cholesky": {"_LEAF": 5},
    }.items():
        for name, value in values.items():
            monkeypatch.setattr(f"hck.approximations.{module}.{name}", value)
    monkeypatch.setitem(KINDS, "cpu", replace(KINDS["cpu"], distances=2000))
