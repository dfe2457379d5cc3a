"""A folder in which long work is done step by step, each of them once."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from hck.files import replacing
from hck.persistence.encode import Encoder
from hck.persistence.model import read_parts, write_parts

_SETTINGS = "job.json"
_HOST = torch.device("cpu")


class Job:
    """Results of finished steps, by name.

    Parameters
    ----------
    folder : Path
        Made if it is not there. One that holds the work of other settings is an error.
    settings : dict
        Parameters and fingerprints of the data.
    """

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self.folder = folder
        mine = {name: _digest(value) for name, value in settings.items()}
        path = folder / _SETTINGS
        if path.exists():
            other = json.loads(path.read_text())
            changed = sorted(name for name in {*mine, *other} if mine.get(name) != other.get(name))
            if changed:
                raise ValueError(
                    f"{folder} holds a run that differs in {', '.join(changed)}: choose another folder, or "
                    "remove this one"
                )
            return
        if folder.exists() and any(folder.iterdir()):
            raise FileExistsError(f"{folder} is not empty, and holds no run of hck: choose another folder")
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(path) as draft:
            draft.write_text(json.dumps(mine, indent=1))

    def once(self, name: str, work: Callable[[], Any]) -> Any:
        """The result of a step, which is done if it has not been."""
        if not self.has(name):
            self.keep(name, work())
        return self.load(name)

    def has(self, name: str) -> bool:
        return (self.folder / name).is_dir()

    def keep(self, name: str, value: Any) -> None:
        """Write a result, whole or not at all."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_parts(path, value, _HOST)

    def load(self, name: str) -> Any:
        return read_parts(self.folder / name, _HOST)


def _digest(value: Any) -> str:
    """Of anything that saved models are made of."""
    encoder = Encoder()
    known = encoder.value(value)
    digest = hashlib.sha256(json.dumps([known, encoder.objects], sort_keys=True).encode())
    for name in sorted(encoder.arrays):
        digest.update(encoder.arrays[name].contiguous().numpy().tobytes())
    return digest.hexdigest()
