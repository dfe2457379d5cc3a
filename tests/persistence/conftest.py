import hashlib
import json

import pytest

from hck.persistence import load, save


@pytest.fixture
def again(tmp_path):
    """Saves a model and loads it."""
    count = iter(range(100))

    def round_trip(model, device=None):
        folder = tmp_path / f"model{next(count)}"
        save(model, folder)
        return load(folder, device)

    return round_trip


@pytest.fixture
def edit():
    """Changes `model.json` by a function, and makes its checksum right, as only a forger would."""

    def change(folder, function, valid=True):
        file = folder / "model.json"
        document = json.loads(file.read_text())
        function(document)
        if valid:
            document.pop("sha256", None)
            text = json.dumps(document, sort_keys=True, separators=(",", ":"))
            document["sha256"] = hashlib.sha256(text.encode()).hexdigest()
        file.write_text(json.dumps(document))

    return change
