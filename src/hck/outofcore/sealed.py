"""JSON files with a checksum of each of their entries."""

import json
import zlib
from collections.abc import Mapping
from pathlib import Path

from hck.errors import RunFileError
from hck.persistence.arrays import JSON

_SEALS = "crc32"


def sealed(known: Mapping[str, JSON], indent: int | None = None) -> str:
    """Entries as JSON, with checksums."""
    return json.dumps({**known, _SEALS: {name: _seal(name, known[name]) for name in known}}, indent=indent)


def unsealed(path: Path, remedy: str) -> dict[str, JSON]:
    """The entries of a file, each as it was written; those of earlier versions have no checksums.

    Raises a RunFileError that names the file, and says what to do.
    """
    if not path.is_file():
        raise RunFileError(f"{path} is missing, or is no file: {remedy}")
    try:
        known = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise RunFileError(f"{path} is damaged, it is no JSON ({error}): {remedy}") from error
    if not isinstance(known, dict):
        raise RunFileError(f"{path} is damaged, it holds no entries: {remedy}")
    seals = known.pop(_SEALS, None)
    for name, value in known.items():
        if seals is not None and (not isinstance(seals, dict) or seals.get(name) != _seal(name, value)):
            raise RunFileError(f"{path} is damaged, its {name!r} is not as it was written: {remedy}")
    return known


def _seal(name: str, value: JSON) -> int:
    return zlib.crc32(json.dumps([name, value]).encode())
