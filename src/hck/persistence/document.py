"""`model.json`: read with suspicion, since anybody may have written it."""

import hashlib
import json
import math
import os
import stat
from pathlib import Path
from typing import NoReturn, TypeAlias

from hck.errors import ModelFileError
from hck.persistence.arrays import JSON, Node

FORMAT, VERSION = "hck model", 1
MODEL = "model.json"
_MOST_BYTES = 2**30  # of `model.json`, which holds no arrays of numbers

Document: TypeAlias = Node


def parse(file: Path) -> Document:
    """What `model.json` holds, if it is a document of ours, or a ModelFileError."""
    try:
        text = _content(file).decode("utf-8")
        document = json.loads(
            text, parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_without_repetition
        )
    except (FileNotFoundError, NotADirectoryError):
        raise ModelFileError(f"{file.parent} is not a saved model: it has no {MODEL}") from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"{file} is truncated or damaged: {error}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f"{file} does not belong to a model saved by hck")
    return document


def regular_size(file: Path) -> int:
    """The bytes of a file, if it is one: to open a pipe or a device may take for ever."""
    found = os.stat(file)
    if not stat.S_ISREG(found.st_mode):
        raise ModelFileError(f"{file} is no regular file, but a pipe, a device, a folder or the like")
    return found.st_size


def _content(file: Path) -> bytes:
    if regular_size(file) > _MOST_BYTES:
        raise ModelFileError(f"{file} has more than {_MOST_BYTES:,} bytes, which no saved model needs")
    return file.read_bytes()


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is too large for a number")
    return number


def _without_repetition(pairs: list[tuple[str, JSON]]) -> Node:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} is there twice")
    return found


def entry(document: Document, *keys: str, kind: type = object) -> JSON:
    """An entry of the document, of a known type, or a ModelFileError."""
    found: JSON = document
    for key in keys:
        if not isinstance(found, dict) or key not in found:
            raise ModelFileError(f"{MODEL} is damaged: it has no {'.'.join(keys)}")
        found = found[key]
    if not isinstance(found, kind):
        raise ModelFileError(f"{MODEL} is damaged: its {'.'.join(keys)} is {found!r}")
    return found


def digest(document: Document) -> str:
    """The checksum of a document that has none yet."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
