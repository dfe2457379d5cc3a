"""The folder of a saved model: written whole or not at all, by one process at a time."""

import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.numpy import save_file
from torch import Tensor

from hck.backend.files import alone
from hck.errors import ModelFileError
from hck.persistence.arrays import JSON
from hck.persistence.document import FORMAT, MODEL, VERSION, Document, digest, entry, parse

TENSORS = ("tensors.safetensors", "tensors-2.safetensors")  # a new model takes the name that is free


def check_target(path: Path, force: bool) -> None:
    """Raise an error unless a model may be written to this path."""
    if path.exists():
        if not path.is_dir():
            raise FileExistsError(f"{path} is a file; a model is saved as a folder: choose another name")
        if not force:
            raise FileExistsError(f"{path} exists: choose another name, or replace it with force=True")
        if not _is_model(path):
            raise FileExistsError(
                f"{path} is not a saved model, or holds more than that, so that it is never replaced: choose "
                "another name, or remove it"
            )
    elif not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent} is not a folder: make it first")


def write(path: Path, document: Document, arrays: Mapping[str, Tensor], force: bool = False) -> None:
    """Write a model to a folder: what `model.json` holds, without checksums, and arrays by their names.

    Whatever interrupts it, there is the old model, if there was one (which `force` replaces), or the new one.
    Who writes to the same path meanwhile waits. What killed writers have left is removed.
    """
    check_target(path, force)
    path = path.resolve()
    with alone(path.with_name(f".{path.name}.lock")):
        check_target(path, force)  # others may have been here
        for left in path.parent.glob(f".{_literal(path.name)}.????????.tmp"):
            shutil.rmtree(left, ignore_errors=True)
        unfinished = path.parent / f".{path.name}.{uuid.uuid4().hex[:8]}.tmp"
        try:
            with _explained(path, arrays):
                unfinished.mkdir()
                old = _tensor_file(path) if path.exists() else None
                name = next(name for name in TENSORS if name != old)
                _write_json(unfinished / MODEL, _finish(document, unfinished / name, arrays))
                _sync(unfinished)
            if old is None:
                os.rename(unfinished, path)
                _sync(path.parent)
            else:
                _replace(path, unfinished, name)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)


@contextlib.contextmanager
def _explained(path: Path, arrays: Mapping[str, Tensor]) -> Iterator[None]:
    """Say of an error of the disk which model it hit, how much room is needed, and that nothing is lost."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        number = getattr(error, "errno", None) or _error_number(error)
        needed = sum(tensor.nbytes for tensor in arrays.values())
        state = "the model that is there is intact" if path.exists() else "nothing was left there"
        raise OSError(
            number,
            f"the model could not be written ({error}): it needs {needed:,} bytes and some more beside it "
            f"until it is complete, and {_free(path.parent):,} are free; {state}",
            str(path),
        ) from error


def _error_number(error: Exception) -> int:
    """Of an error by which safetensors reports one of the system."""
    found = re.search(r"os error (\d+)", str(error))
    return int(found[1]) if found else errno.EIO


def _free(folder: Path) -> int:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return 0


def _literal(name: str) -> str:
    """A name as a pattern that matches it alone."""
    return re.sub(r"([*?\[])", r"[\1]", name)


def _replace(path: Path, unfinished: Path, name: str) -> None:
    """Put new tensors beside the old ones and then, in one step, a new `model.json` that names them."""
    try:
        _tidy(path)
        os.rename(unfinished / name, path / name)
        _sync(path)
        os.replace(unfinished / MODEL, path / MODEL)
        _sync(path)
    finally:
        _tidy(path)


def _tidy(path: Path) -> None:
    """Remove tensors that the model does not refer to."""
    with contextlib.suppress(OSError, ModelFileError):
        kept = _tensor_file(path)
        for name in TENSORS:
            if name != kept:
                (path / name).unlink(missing_ok=True)


def _finish(document: Document, file: Path, arrays: Mapping[str, Tensor]) -> Document:
    """Write the tensors, and put checksums into the document."""
    file.touch()
    mode = file.stat().st_mode
    save_file({name: tensor.contiguous().cpu().numpy() for name, tensor in arrays.items()}, file)
    file.chmod(mode)  # safetensors lets nobody else read it
    _sync(file)
    tensors = {"file": file.name, "bytes": file.stat().st_size, "sha256": _sha256(file)}
    document = {"format": FORMAT, "version": VERSION, **document, "tensors": tensors}
    return {**document, "sha256": digest(document)}


def _write_json(file: Path, document: Document) -> None:
    """A line for each entry, and for each object."""
    objects = ",\n  ".join(json.dumps(each, allow_nan=False) for each in document["objects"])
    shown = {key: json.dumps(value, allow_nan=False) for key, value in document.items() if key != "objects"}
    shown["objects"] = f"[\n  {objects}\n ]"
    lines = [f" {json.dumps(key)}: {shown[key]}" for key in document]
    with open(file, "w", encoding="utf-8") as out:
        out.write("{\n" + ",\n".join(lines) + "\n}\n")
    _sync(file)


def _sync(path: Path) -> None:
    """Wait until a file, or the list of names in a folder, is on the disk."""
    folder = path.is_dir()
    with contextlib.suppress(OSError) if folder else contextlib.nullcontext():  # not everywhere for folders
        number = os.open(path, os.O_RDONLY if folder else os.O_RDWR)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def _is_model(path: Path) -> bool:
    """Whether a folder holds a saved model and nothing else."""
    if not {file.name for file in path.iterdir()} <= {MODEL, *TENSORS}:
        return False
    try:
        return _tensor_file(path) in TENSORS
    except ModelFileError:
        return False


def _tensor_file(path: Path) -> JSON:
    """The name of the file of tensors that a model refers to."""
    return entry(parse(path / MODEL), "tensors", "file")


def _sha256(file: Path) -> str:
    with open(file, "rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
