"""A folder in which long work is done step by step, each of them once."""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
import torch

from hck.backend.files import replacing
from hck.persistence.encode import Encoder
from hck.persistence.model import read_parts, write_parts

_SETTINGS, _LOCK = "job.json", "lock"
T = TypeVar("T")


class Job:
    """Results of finished steps, by name, which are loaded to a device."""

    def __init__(self, folder: Path, device: torch.device) -> None:
        self.folder, self.device = folder.resolve(), device

    def claim(self, settings: Mapping[str, object], defaults: Mapping[str, object], first: str) -> None:
        """Put parameters and fingerprints of data into the folder, or see that they are the same.

        Those that a run lacks, since an earlier version did not have them, count as their `defaults`. Until
        the `first` step is done, settings may change.
        """
        path, mine = self.folder / _SETTINGS, _digests(settings)
        if self.has(first) and path.exists():
            usual, other = _digests(defaults), json.loads(path.read_text())
            every = {*mine, *other}
            changed = [name for name in every if {**usual, **mine}.get(name) != {**usual, **other}.get(name)]
            if changed:
                raise ValueError(
                    f"{self.folder} holds a run that differs in {', '.join(sorted(changed))}: choose another "
                    "folder, or remove this one"
                )
            return
        with replacing(path) as draft:
            draft.write_text(json.dumps(mine, indent=1))

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other processes out of the folder, which is made if it is not there."""
        known = (_SETTINGS, _LOCK)
        if self.folder.is_dir() and not any((self.folder / name).exists() for name in known):
            if any(self.folder.iterdir()):
                raise FileExistsError(
                    f"{self.folder} is not empty, and holds no run of hck: choose another folder"
                )
        elif self.folder.exists() and not self.folder.is_dir():
            raise FileExistsError(f"{self.folder} is a file: choose another name for the folder")
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / _LOCK).open("w") as file:
            if not _lock(file):
                raise RuntimeError(f"another process is at work in {self.folder}")
            yield

    def once(self, name: str, work: Callable[[], T]) -> T:
        """The result of a step, which is done if it has not been."""
        if not self.has(name):
            self.keep(name, work())
        found: T = self.load(name)
        return found

    def has(self, name: str) -> bool:
        return (self.folder / name).is_dir()

    def keep(self, name: str, value: object) -> None:
        """Write a result, whole or not at all."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_parts(path, value, self.device)

    def load(self, name: str) -> Any:
        return read_parts(self.folder / name, self.device)

    def forget(self, *names: str) -> None:
        """Remove folders, and what interrupted writes have left behind."""
        for path in [*(self.folder / name for name in names), *self.folder.rglob(".*.tmp")]:
            shutil.rmtree(path, ignore_errors=True)


def _lock(file: IO[str]) -> bool:
    """Lock a file until it is closed; whether nobody else has."""
    try:
        import fcntl
    except ImportError:  # not on this system
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _digests(values: Mapping[str, object]) -> dict[str, str]:
    return {name: _digest(value) for name, value in values.items()}


def _digest(value: object) -> str:
    """Of anything that saved models are made of."""
    if isinstance(value, np.random.RandomState):
        value = list(value.get_state(legacy=True))
    encoder = Encoder()
    known = encoder.value(value)
    digest = hashlib.sha256(json.dumps([known, encoder.objects], sort_keys=True).encode())
    for name in sorted(encoder.arrays):
        digest.update(encoder.arrays[name].contiguous().cpu().numpy().tobytes())
    return digest.hexdigest()
