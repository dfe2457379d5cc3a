"""Files that are written whole or not at all, and by one at a time."""

import os
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

_STDOUT = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
_drafts: set[Path] = set()  # that are being written


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Another path to write to, which takes the place of this one in the end.

    A link is followed: what it leads to is replaced. What is there must be a regular file, or ``-`` for the
    standard output. If writing is interrupted, what was there stays, and nothing else is left behind.
    """
    target = regular(path)
    folder, name = (Path(tempfile.gettempdir()), "hck") if target is None else (target.parent, target.name)
    draft = folder / f".{name[:200]}.{secrets.token_hex(4)}"
    _drafts.add(draft)
    try:
        yield draft
        if target is None:
            _print(draft)
        else:
            if target.exists():
                shutil.copymode(target, draft)
            os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)
        _drafts.discard(draft)


def regular(path: Path) -> Path | None:
    """The regular file that a path leads to, which need not be there yet; None for the standard output.

    Raises OSError for anything else, such as a device, a FIFO or a folder.
    """
    if is_stdout(path):
        return None
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise OSError(f"{path} is a link that leads back to itself: remove it, or use another name")
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the name of a file in it")
    if target.exists() and not stat.S_ISREG(target.stat().st_mode):
        raise OSError(
            f"{path} is not a regular file but a device, FIFO or socket, which is not replaced: give the "
            "name of a file, or - for the standard output"
        )
    return target


def is_stdout(path: Path) -> bool:
    """Whether a path stands for the standard output."""
    return str(path) in _STDOUT


def remove_drafts() -> None:
    """Before the process ends at once, remove what is half written."""
    for draft in list(_drafts):
        draft.unlink(missing_ok=True)


def _print(draft: Path) -> None:
    """Copy a file to the standard output, as bytes if it takes bytes."""
    with draft.open("rb") as file:
        if hasattr(sys.stdout, "buffer"):
            sys.stdout.flush()
            shutil.copyfileobj(file, sys.stdout.buffer)
        else:
            sys.stdout.write(file.read().decode("utf-8", "replace"))
        sys.stdout.flush()


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Wait until no other process or thread holds this lock, a file, and hold it.

    The system lets go of it when a process dies. The file is removed in the end.
    """
    with ExitStack() as held:
        while True:
            file = held.enter_context(open(lock, "ab"))
            _wait_for(file)
            if _is_still(lock, file):
                break
            file.close()  # its last holder has removed it
        try:
            yield
        finally:
            with suppress(OSError):  # not everywhere while it is open
                lock.unlink()


def _wait_for(file: IO[bytes]) -> None:
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        while True:
            with suppress(OSError):  # after ten seconds in vain
                file.seek(0)
                msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined]
                return
    else:
        with suppress(OSError):  # file systems without locks
            fcntl.flock(file, fcntl.LOCK_EX)


def _is_still(lock: Path, file: IO[bytes]) -> bool:
    try:
        return os.path.samestat(os.stat(lock), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False
