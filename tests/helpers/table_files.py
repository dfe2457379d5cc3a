"""Small tables, written to files."""

import bz2
import gzip
import lzma

import numpy as np

CSV = "rooms,place,price\n3,town,200.5\n5,country,150\n4,,90\n"
COMPRESS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def write(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


TEXT = "1.5 1:0.5 3:-2\n-1 2:1e-3\n\n2 # a remark\n"
X = np.array([[1.0, 0, 2], [0, 3, 0]])
