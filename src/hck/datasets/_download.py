"""Files from their public homes: whole, or the rest of one that broke off, and the same as last time."""

import hashlib
import http.client
import os
import shutil
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import BinaryIO
from urllib.error import HTTPError
from urllib.request import Request, urlopen

_CHUNK = 2**20
_PATIENCE = 60  # seconds without an answer


def download(url: str, path: Path, sha256: str | None = None, show: bool = True) -> None:
    """Download a file.

    It grows as `path` with ``.part`` appended, from where it broke off the last time, and is renamed at the
    end. Its checksum must be `sha256` or, if none is given, that of the first download, which is kept beside
    it. ConnectionError: it could not be had, or only a part of it, which is kept. ValueError: it has another
    checksum, and what came is deleted.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = _beside(path, ".part")
    try:
        _append(url, part, show)
    except (OSError, http.client.HTTPException) as error:
        raise ConnectionError(f"{type(error).__name__}: {error}") from error
    try:
        check(path, sha256, part)
    except ValueError:
        part.unlink()
        raise
    _beside(path, ".sha256").write_text(_digest(part) + "\n")
    os.replace(part, path)


def check(path: Path, sha256: str | None = None, content: Path | None = None) -> None:
    """Refuse a file with another checksum than the one that is given, or that was kept beside it.

    `content` is the file, if it is not at its place yet.
    """
    kept = _beside(path, ".sha256")
    expected = sha256 or (kept.read_text().strip() if kept.exists() else None)
    if expected is None:
        return
    found = _digest(content or path)
    if found != expected:
        known = "it should have" if sha256 else f"it had when it was first downloaded (see {kept.name})"
        raise ValueError(
            f"{path.name} has the SHA-256 checksum {found}, not {expected}, which {known}: it was damaged, "
            f"or changed at its home. Delete {path}"
            + ("" if sha256 else f", and {kept.name} beside it if the change is wanted,")
            + " and load it again"
        )


def _append(url: str, part: Path, show: bool) -> None:
    """What is not there yet."""
    there = part.stat().st_size if part.exists() else 0
    request = Request(url, headers={"Range": f"bytes={there}-"} if there else {})
    try:
        response = urlopen(request, timeout=_PATIENCE)
    except HTTPError as error:
        if error.code != http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise
        error.close()
        if error.headers.get("Content-Range") == f"bytes */{there}":
            return  # all of it is there
        part.unlink()
        _append(url, part, show)
        return
    with response:
        resumed = response.status == http.client.PARTIAL_CONTENT
        length = response.headers.get("Content-Length")
        size = None if length is None else int(length)
        with (
            part.open("ab" if resumed else "wb") as file,
            with_bar(response, size, f"downloading {url.rsplit('/', 1)[-1]}", show) as stream,
        ):
            shutil.copyfileobj(stream, file, _CHUNK)
    came, whole = part.stat().st_size, (there if resumed else 0) + (size or 0)
    if size is not None and came != whole:
        raise ConnectionError(
            f"it broke off after {came:,} of {whole:,} bytes; load it again to go on from there"
        )


def with_bar(stream: BinaryIO, size: int | None, what: str, show: bool) -> AbstractContextManager[BinaryIO]:
    """A stream of bytes, with a progress bar while it is read if `show`, and if its size is known."""
    if not show or not size:
        return nullcontext(stream)
    from rich.progress import wrap_file  # not needed, and not imported, when nothing is shown

    return wrap_file(stream, size, description=f"{what:<28}")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)
