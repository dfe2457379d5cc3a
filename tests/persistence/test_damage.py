"""Files that are not as they were written are refused."""

import json
import shutil

import numpy as np
import pytest
import scipy.sparse as sp
from safetensors.numpy import load_file, save_file

from hck import HCKRegressor
from hck.persistence import ModelFileError, load, save
from hck.persistence.folder import _sha256

pytestmark = pytest.mark.usefixtures("one_thread")

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(80, 2))
SPARSE = np.where(X > 0.5, X, 0)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    model = HCKRegressor(lengthscale=0.5, alpha=0.1, rank=8, random_state=0).fit(X, X.sum(1))
    save(model, tmp_path_factory.mktemp("saved") / "model")
    return tmp_path_factory.getbasetemp() / "saved0" / "model"


@pytest.fixture
def folder(original, tmp_path):
    return shutil.copytree(original, tmp_path / "model")


def refused(folder, match):
    with pytest.raises(ModelFileError, match=match):
        load(folder)


def test_a_copy_is_fine(folder):
    load(folder)


# Files -------------------------------------------------------------------------------------------


def test_files_that_are_missing(folder, tmp_path):
    refused(tmp_path / "nothing", "there is no saved model at .*nothing")
    refused(folder / "model.json", r"there is no saved model at .*model\.json: it is a file")
    (folder / "tensors.safetensors").unlink()
    refused(folder, r"tensors\.safetensors is missing")
    (folder / "model.json").unlink()
    refused(folder, r"is not a saved model: it has no model\.json")


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.999])
@pytest.mark.parametrize("name", ["tensors.safetensors", "model.json"])
def test_truncated_files(folder, name, share):
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: int(share * len(content))])
    refused(folder, f"{name} is truncated or")


@pytest.mark.parametrize("name", ["tensors.safetensors", "model.json"])
def test_flipped_bits(folder, name):
    content = (folder / name).read_bytes()
    for at in RNG.integers(len(content), size=40):
        changed = bytearray(content)
        changed[at] ^= 1 << int(RNG.integers(8))
        (folder / name).write_bytes(changed)
        try:
            same = json.loads(changed) == json.loads(content)  # white space
        except ValueError:
            same = False
        if not same:
            refused(folder, name)
    (folder / name).write_bytes(content)
    load(folder)


def test_longer_files(folder):
    with open(folder / "tensors.safetensors", "ab") as file:
        file.write(b"more")
    refused(folder, "truncated or altered: it has")


# model.json --------------------------------------------------------------------------------------


def test_not_json_of_ours(folder):
    for text in ("", "{", "[]", '{"format": "other"}', "[" * 100_000, "\x00\xff", '{"format": NaN}'):
        (folder / "model.json").write_text(text)
        refused(folder, r"model\.json (is truncated or damaged|does not belong to a model)")


def test_versions(folder, edit):
    def newer(document):
        document.update(version=2, hck="9.0")

    edit(folder, newer)
    refused(folder, r"was written by a newer hck \(9\.0\), in version 2 .* up to 1: update hck")
    edit(folder, newer, valid=False)
    refused(folder, "written by a newer hck")
    for version in (0, -1, "1", 1.0, None, True):
        edit(folder, lambda document, version=version: document.update(version=version))
        refused(folder, "is no version of the format")


def test_edits_without_the_checksum(folder, edit):
    edit(folder, lambda document: document["objects"][-1]["parts"].update(alpha=5.0), valid=False)
    refused(folder, r"model\.json is damaged or was altered")


@pytest.mark.parametrize("name", ["os.system", "system", "Kernel", "object", "CallableKernel", "", None, 5])
def test_unknown_classes(folder, edit, name):
    edit(folder, lambda document: document["objects"][0].update({"class": name}))
    refused(folder, "of the class .* which saved models do not have")


@pytest.mark.parametrize("key", ["objects", "model", "device", "tensors"])
def test_missing_entries(folder, edit, key):
    edit(folder, lambda document: document.pop(key))
    refused(folder, f"it has no {key}")


def test_missing_and_unknown_parts(folder, edit):
    def without(document):
        by_name("Extension", document)["parts"].pop("weights")

    def more(document):
        by_name("Forest", document)["parts"]["run"] = "rm"

    edit(folder, without)
    refused(folder, "'Extension' lacks the part 'weights'")
    edit(folder, lambda document: by_name("Extension", document)["parts"].update(weights=None))
    edit(folder, more)
    refused(folder, "'Forest' has the part 'run'")


def test_estimators_without_what_fit_has_set(folder, edit):
    edit(folder, lambda document: by_name("HCKRegressor", document)["parts"].pop("forest_"))
    refused(folder, "'HCKRegressor' lacks the part 'forest_'")


@pytest.mark.parametrize("name", ["predict", "__class__", "__dict__", "not a name", "_loss"])
def test_names_of_attributes(folder, edit, name):
    edit(folder, lambda document: by_name("HCKRegressor", document)["parts"].update({name: 1}))
    refused(folder, "is no name of an attribute")


@pytest.mark.parametrize(
    "node",
    [
        {"is": "eval", "text": "1 + 1"},
        {"is": ["tensor"]},
        {"name": "x"},
        {"is": "object", "number": 10_000},
        {"is": "object", "number": -1},
        {"is": "object", "number": "Forest"},
        {"is": "object"},
        {"is": "number", "value": "1e5"},
        {"is": "dtype", "name": "os"},
        {"is": "tensor", "name": "nothing", "dtype": "float64", "shape": [1]},
        {"is": "tensor", "name": "intercept_", "dtype": "float32", "shape": [1]},
        {"is": "tensor", "name": "intercept_", "dtype": "float64", "shape": [2]},
        {"is": "array", "name": "intercept_", "dtype": "float64", "shape": [1], "axes": [3]},
        {"is": "array", "name": "intercept_", "dtype": "float64", "shape": [1], "expand": [-5, "a"]},
        {"is": "array", "name": "intercept_", "dtype": "float64", "shape": [1], "times": "O"},
        {"is": "values", "items": [1], "dtype": "f8", "shape": [1]},
        {"is": "values", "items": [1], "dtype": "O", "shape": [7]},
        {"is": "dict", "items": [[[], 1]]},
        {"is": "sparse", "data": 1, "indices": 2, "indptr": 3, "shape": [1, 1]},
    ],
    ids=str,
)
def test_values_that_mean_nothing(folder, edit, node):
    edit(folder, lambda document: by_name("HCKRegressor", document)["parts"].update(intercept_=node))
    refused(folder, r"in the file|in .*tensors\.safetensors|the file has|has no tensor")


def test_circles(folder, edit):
    def circle(document):
        number = document["objects"].index(by_name("Forest", document))
        by_name("Forest", document)["parts"]["members"] = [{"is": "object", "number": number}]

    edit(folder, circle)
    refused(folder, "is a part of itself")


def test_a_model_that_is_none(folder, edit):
    def other(document):
        document["model"]["number"] = document["objects"].index(by_name("Forest", document))

    edit(folder, other)
    refused(folder, "holds a Forest, which is no estimator")
    for value, match in (([], "its model is"), ({}, "unknown kind")):
        edit(folder, lambda document, value=value: document.update(model=value))
        refused(folder, match)
    edit(folder, lambda document: document.update(device="abacus"))
    refused(folder, "device 'abacus' of the saved model is not known")


def test_files_elsewhere(folder, edit, tmp_path):
    shutil.copy(folder / "tensors.safetensors", tmp_path / "other.safetensors")
    edit(folder, lambda document: document["tensors"].update(file="../other.safetensors"))
    refused(folder, "no name of a file of tensors")


def test_kernels_that_are_none(folder, edit):
    for value in (-1.0, "long", {"is": "number", "value": "nan"}, None):
        edit(
            folder,
            lambda document, value=value: by_name("Gaussian", document)["parts"].update(lengthscale=value),
        )
        refused(folder, "class 'Gaussian' in the file cannot be made: .*lengthscale must be")


# Tensors -----------------------------------------------------------------------------------------


def forge(folder, edit, change):
    """Other tensors, with the right checksum."""
    file = folder / "tensors.safetensors"
    arrays = load_file(file)
    change(arrays)
    save_file(arrays, file)
    seal(folder, edit)


def seal(folder, edit):
    file = folder / "tensors.safetensors"
    found = {"bytes": file.stat().st_size, "sha256": _sha256(file)}
    edit(folder, lambda document: document["tensors"].update(found))


def test_other_tensors(folder, edit):
    def shorter(arrays):
        arrays["intercept_"] = np.zeros(0)

    def single(arrays):
        arrays["intercept_"] = np.zeros(1, dtype=np.float32)

    forge(folder, edit, single)
    refused(folder, r"'intercept_' in .* has dtype torch.float32 and shape \[1\], not torch.float64")
    forge(folder, edit, shorter)
    refused(folder, r"has dtype torch.float64 and shape \[0\], not torch.float64 and \[1\]")
    forge(folder, edit, lambda arrays: arrays.pop("intercept_"))
    refused(folder, "has no tensor 'intercept_'")


def test_not_safetensors(folder, edit):
    for content in (b"", b"\xff" * 100, (10**9).to_bytes(8, "little") + b"{}"):
        (folder / "tensors.safetensors").write_bytes(content)
        seal(folder, edit)
        refused(folder, r"tensors\.safetensors is damaged")


def test_sparse_matrices_that_are_none(tmp_path, edit):
    model = HCKRegressor("gaussian", lengthscale=0.5, alpha=0.1, rank=8, approximation="nystrom")
    save(model.fit(sp.csr_matrix(SPARSE), X.sum(1)), tmp_path / "model")

    def outside(arrays):
        name = next(name for name, array in arrays.items() if name.endswith("indices") and array.size)
        arrays[name][0] = 10**6

    forge(tmp_path / "model", edit, outside)
    refused(tmp_path / "model", "kind 'sparse' in the file cannot be made")


def by_name(name, document):
    return next(entry for entry in document["objects"] if entry["class"] == name)
