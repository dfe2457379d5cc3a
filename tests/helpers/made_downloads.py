"""Data sets made up in the form of the real ones, and put on the tests' server."""

import bz2
import lzma
from dataclasses import replace

import numpy as np

from hck.datasets._registry import REGISTRY, File

RNG = np.random.default_rng(0)
PACK = {"bz2": bz2.compress, "xz": lzma.compress}


def text(X, y):
    """LIBSVM's, with indices from 1."""
    lines = []
    for row, target in zip(X, y, strict=True):
        pairs = " ".join(f"{j + 1}:{value!r}" for j, value in enumerate(row.tolist()) if value)
        lines.append(f"{target:g} {pairs}".rstrip())
    return ("\n".join(lines) + "\n").encode()


def made(name, n=50):
    """Small parts of something like a data set: one of records, or one to train and one to test on."""
    entry = REGISTRY[name]
    parts = []
    for _ in range(max(1, len(entry.files))):
        X = RNG.integers(0, 9, (n, entry.d)).astype(float)
        y = RNG.normal(size=n).round(3) if entry.task == "regression" else RNG.integers(1, 4, n)
        parts.append((X, y))
    return parts


def packed(file, X, y):
    return PACK.get(file.name.rsplit(".", 1)[-1], bytes)(text(X, y))


def at(server, monkeypatch, name, parts):
    """A data set whose home is a server on this machine."""
    files = REGISTRY[name].files
    for file, part in zip(files, parts, strict=True):
        server.files[file.name] = packed(file, *part)
    here = tuple(File(server.url(file.name)) for file in files)
    monkeypatch.setitem(REGISTRY, name, replace(REGISTRY[name], files=here))


def save(folder, name, X, y):
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / f"{name}.npz", X=X, y=y)
