"""Files that are written whole or not at all, and by one at a time."""

import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Another path beside this one to write to, which takes its place in the end.

    If writing is interrupted, what was there stays, and nothing else is left behind.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        yield draft
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


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
