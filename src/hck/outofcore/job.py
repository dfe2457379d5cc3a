"""A folder in which long work is done step by step, each of them once."""

import hashlib
import json
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
import torch

from hck.backend.files import replacing
from hck.errors import ModelFileError, RunFileError
from hck.outofcore.sealed import sealed, unsealed
from hck.persistence.encode import Encoder
from hck.persistence.model import read_parts, write_parts

PLAN, MODEL = "plan", "model"  # the first step and the last
POINTS, MESSAGES, BRANCHES = "points", "messages", "branches"  # what is between
_SETTINGS, _LOCK = "job.json", "lock"
_LABEL = {"run", "step", "value"}  # what is written of a step
T = TypeVar("T")


class Job:
    """Results of finished steps, by name, which are loaded to a device.

    Each is written with its name and a number drawn for the run, `run`, which the first that is loaded tells;
    what was made under another name or by another run is refused. Runs of earlier versions have none, "".
    """

    def __init__(self, folder: Path, device: torch.device) -> None:
        self.folder, self.device = folder.resolve(), device
        self.run: str | None = None

    def claim(self, settings: Mapping[str, object], defaults: Mapping[str, object]) -> None:
        """Put parameters and fingerprints of data into the folder, or see that they are the same.

        Those that a run lacks, since an earlier version did not have them, count as their `defaults`. Until
        there is a plan, settings may change.
        """
        path, mine = self.folder / _SETTINGS, _digests(settings)
        if self.has(PLAN):
            usual, other = _digests(defaults), unsealed(path, self._remedy(PLAN))
            every = {*mine, *other}
            changed = [name for name in every if {**usual, **mine}.get(name) != {**usual, **other}.get(name)]
            if changed:
                raise ValueError(
                    f"{self.folder} holds a run that differs in {', '.join(sorted(changed))}: choose another "
                    "folder, or remove this one"
                )
            return
        if any((self.folder / name).exists() for name in (POINTS, MESSAGES, BRANCHES, MODEL)):
            raise RunFileError(f"{self.folder / PLAN} is missing: {self._remedy(PLAN)}")
        with replacing(path) as draft:
            draft.write_text(sealed(mine, indent=1))

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
        lock = self.folder / _LOCK
        if lock.exists() and not lock.is_file():
            raise RunFileError(f"{lock} is no file: remove it")
        with lock.open("w") as file:
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
        self.run = secrets.token_hex(8) if self.run is None else self.run
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_parts(path, {"run": self.run, "step": name, "value": value}, self.device)

    def load(self, name: str, kind: type = object) -> Any:
        """A result of a kind, as it was written by this run; or a RunFileError that says what to do."""
        path = self.folder / name
        if not self.has(name):
            raise RunFileError(f"{path} is missing: {self._remedy(name)}")
        try:
            found = read_parts(path, self.device)
        except ModelFileError as error:
            raise RunFileError(f"{path} is damaged ({error}): {self._remedy(name)}") from error
        if not isinstance(found, dict) or set(found) != _LABEL:  # of an earlier version
            found = {"run": "", "step": name, "value": found}
        self.run = found["run"] if self.run is None else self.run
        if (found["run"], found["step"]) != (self.run, name):
            raise RunFileError(f"{path} is not of this run, or not of this step: {self._remedy(name)}")
        if not isinstance(found["value"], kind):
            raise RunFileError(f"{path} is damaged (it holds no {kind.__name__}): {self._remedy(name)}")
        return found["value"]

    def _remedy(self, name: str) -> str:
        """What to do where a result is not as it was written: all rests upon the plan, and only upon it."""
        if name == PLAN:
            return f"remove {self.folder}, and begin again"
        gone = dict.fromkeys(str(self.folder / each) for each in (name, MODEL) if self.has(each))
        removed = f"remove {' and '.join(gone)}, and " if gone else ""
        return f"{removed}call fit with the same data; what else is finished is kept"

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
