"""The folder of a saved model: written whole or not at all, and read only if it is as it was written."""

import contextlib
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NoReturn, TypeAlias

import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from torch import Tensor

from hck.errors import ModelFileError
from hck.persistence.arrays import JSON, Node
from hck.persistence.decode import Read

FORMAT, VERSION = "hck model", 1
MODEL = "model.json"
TENSORS = ("tensors.safetensors", "tensors-2.safetensors")  # a new model takes the name that is free

Document: TypeAlias = Node


# Writing ---------------------------------------------------------------------------------------------


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
    """
    check_target(path, force)
    path = path.resolve()
    unfinished = path.parent / f".{path.name}.{uuid.uuid4().hex[:8]}.tmp"
    unfinished.mkdir()
    try:
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
    return {**document, "sha256": _digest(document)}


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
    return entry(_parse(path / MODEL), "tensors", "file")


# Reading ---------------------------------------------------------------------------------------------


def read(path: Path) -> Document:
    """What `model.json` holds, after all checks but those of the tensors; or a ModelFileError."""
    if not path.is_dir():
        raise ModelFileError(
            f"there is no saved model at {path}" + (": it is a file" if path.exists() else "")
        )
    file = path / MODEL
    document = _parse(file)
    version = document.get("version")
    if type(version) is not int or version < 1:
        raise ModelFileError(f"{file} is damaged: {version!r} is no version of the format")
    if version > VERSION:
        raise ModelFileError(
            f"{path} was written by a newer hck ({document.get('hck')}), in version {version} of the format; "
            f"this one reads versions up to {VERSION}: update hck"
        )
    expected = document.pop("sha256", None)
    if expected != _digest(document):
        raise ModelFileError(f"{file} is damaged or was altered: its checksum is wrong")
    return document


@contextlib.contextmanager
def tensors(path: Path, document: Document) -> Iterator[Read]:
    """What reads the tensors of a model, after a check of their file."""
    name, size = entry(document, "tensors", "file"), entry(document, "tensors", "bytes")
    if name not in TENSORS:
        raise ModelFileError(f"{path / MODEL} is damaged: {name!r} is no name of a file of tensors")
    file = path / name
    if not file.is_file():
        raise ModelFileError(f"{file} is missing")
    if file.stat().st_size != size:
        raise ModelFileError(
            f"{file} is truncated or altered: it has {file.stat().st_size} bytes, not {size}"
        )
    if _sha256(file) != entry(document, "tensors", "sha256"):
        raise ModelFileError(f"{file} is damaged or was altered: its checksum is wrong")
    try:
        opened = safe_open(file, framework="pt", device="cpu")
    except SafetensorError as error:
        raise ModelFileError(f"{file} is damaged: {error}") from error
    with opened as stored:
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

        yield read_one


def _parse(file: Path) -> Document:
    try:
        document = json.loads(file.read_bytes(), parse_constant=_no_constant)
    except (FileNotFoundError, NotADirectoryError):
        raise ModelFileError(f"{file.parent} is not a saved model: it has no {MODEL}") from None
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{file} is truncated or damaged: {error}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f"{file} does not belong to a model saved by hck")
    return document


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


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


def _digest(document: Document) -> str:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _sha256(file: Path) -> str:
    with open(file, "rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
