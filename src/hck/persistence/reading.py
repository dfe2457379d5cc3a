"""The folder of a saved model, read only if it is as it was written, while others may replace it."""

import contextlib
import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from hck.errors import ModelFileError
from hck.persistence.arrays import Read
from hck.persistence.document import MODEL, VERSION, Document, digest, entry, parse, regular_size
from hck.persistence.folder import TENSORS

_PATIENCE = 60.0  # seconds in which somebody else may go on replacing the model that is read


class _ReplacedError(Exception):
    """The files are no longer those that `model.json` spoke of."""


@contextlib.contextmanager
def opened(path: Path) -> Iterator[tuple[Document, Read]]:
    """What `model.json` holds, and what reads the tensors that it names: one version of the model or another.

    Tensors that are gone may have been replaced, together with `model.json`: then that is read again.
    """
    last = time.monotonic() + _PATIENCE
    with contextlib.ExitStack() as held:
        while True:
            document = _read(path)
            try:
                read = _tensors(path, document, held)
                break
            except (ModelFileError, _ReplacedError) as error:
                if time.monotonic() > last or (
                    isinstance(error, ModelFileError) and _read(path)["tensors"] == document["tensors"]
                ):
                    raise ModelFileError(str(error)) from error
        yield document, read


def _read(path: Path) -> Document:
    """What `model.json` holds, after all checks but those of the tensors; or a ModelFileError."""
    if not path.is_dir():
        raise ModelFileError(
            f"there is no saved model at {path}" + (": it is a file" if path.exists() else "")
        )
    file = path / MODEL
    document = parse(file)
    version = document.get("version")
    if type(version) is not int or version < 1:
        raise ModelFileError(f"{file} is damaged: {version!r} is no version of the format")
    if version > VERSION:
        raise ModelFileError(
            f"{path} was written by a newer hck ({document.get('hck')}), in version {version} of the format; "
            f"this one reads versions up to {VERSION}: update hck"
        )
    expected = document.pop("sha256", None)
    if expected != digest(document):
        raise ModelFileError(f"{file} is damaged or was altered: its checksum is wrong")
    if entry(document, "tensors", "file", kind=str) not in TENSORS:
        name = document["tensors"]["file"]
        raise ModelFileError(f"{file} is damaged: {name!r} is no name of a file of tensors")
    return document


def _tensors(path: Path, document: Document, held: contextlib.ExitStack) -> Read:
    """What reads the tensors of a model, after a check of their file."""
    name, size = document["tensors"]["file"], entry(document, "tensors", "bytes")
    file = path / name
    try:
        found = regular_size(file)
        content = held.enter_context(file.open("rb"))
    except FileNotFoundError:
        raise ModelFileError(f"{file} is missing") from None
    if found != size:
        raise ModelFileError(f"{file} is truncated or altered: it has {found} bytes, not {size}")
    stored = _stored(file, content, held)
    if hashlib.file_digest(content, "sha256").hexdigest() != entry(document, "tensors", "sha256"):
        raise ModelFileError(f"{file} is damaged or was altered: its checksum is wrong")
    if isinstance(stored, SafetensorError):
        raise ModelFileError(f"{file} is damaged: {stored}")
    every = set(stored.keys())

    def read_one(name: str, dtype: torch.dtype, shape: list[int]) -> Tensor:
        if name not in every:
            raise ModelFileError(f"{file} has no tensor {name!r}")
        found = stored.get_tensor(name)
        if found.dtype != dtype or list(found.shape) != shape:
            raise ModelFileError(
                f"the tensor {name!r} in {file} has dtype {found.dtype} and shape {list(found.shape)}, "
                f"not {dtype} and {shape}"
            )
        return found.clone()  # into memory of our own, whatever becomes of the file

    return read_one


def _stored(file: Path, content: BinaryIO, held: contextlib.ExitStack) -> safe_open | SafetensorError:
    """The tensors of the file that is open as `content`, or what is wrong with them.

    They are opened by name, at once, so that whoever replaces the file while its checksum is computed does
    no harm.
    """
    try:
        stored = held.enter_context(safe_open(file, framework="pt", device="cpu"))
    except SafetensorError as error:
        return error
    except FileNotFoundError:
        raise _ReplacedError(f"{file} is missing") from None
    if not _same(os.stat(content.fileno()), file):
        raise _ReplacedError(f"{file} was replaced while it was read")
    return stored


def _same(known: os.stat_result, file: Path) -> bool:
    try:
        return os.path.samestat(known, os.stat(file))
    except FileNotFoundError:
        return False
