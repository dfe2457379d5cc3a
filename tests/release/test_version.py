"""A version that is released is the same wherever it is written."""

import re
from pathlib import Path

import pytest

from hck import __version__

ROOT = Path(__file__).resolve().parents[2]
HEADING = re.compile(r"^## \[(\d[^\]]*)\] - (\d{4}-\d\d-\d\d)$", re.MULTILINE)


@pytest.mark.skipif("dev" in __version__, reason="it is not released yet")
def test_version_and_date():
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest, date = HEADING.findall(changes)[0]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert newest == __version__
    assert "[Unreleased]" not in changes
    assert f"\nversion: {__version__}\n" in citation
    assert f'\ndate-released: "{date}"\n' in citation
