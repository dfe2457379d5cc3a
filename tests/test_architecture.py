"""The house stands: imports go down, private names stay inside, machines are known to the backend alone."""

import ast
from pathlib import Path

import pytest

import hck

ROOT = Path(hck.__file__).parent

# From the ground up; folders of one floor do not know each other. See docs/architecture.md.
FLOORS = [
    {"errors", "_version", "settings"},
    {"backend"},
    {"kernels"},
    {"points"},
    {"partition", "preparation", "metrics"},
    {"hierarchy", "plotting"},
    {"branches"},
    {"approximations"},
    {"losses"},
    {"process", "conformal"},
    {"online"},
    {"selection"},
    {"persistence"},
    {"outofcore", "dask"},
    {"estimators"},
    {"datasets"},
    {"experiments", "report", "demo"},
    {"cli"},
]
HEIGHT = {name: height for height, names in enumerate(FLOORS) for name in names}

# Exceptions that are left, as (module, what it imports); the aim is none.
UPWARD: set[tuple[str, str]] = set()
PRIVATE: set[tuple[str, str]] = set()
BY_TEXT: set[str] = set()


def modules():
    return sorted(path for path in ROOT.rglob("*.py"))


def name_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def folder_of(module):
    return module.partition(".")[0]


def imports(path):
    """(module inside hck, name imported from it or None), wherever in the file the import is.

    A package may show what stands above it, imported at first use; what its `__init__` says of that to type
    checkers alone is left out.
    """
    tree = ast.parse(path.read_text())
    if path.name == "__init__.py":
        tree.body = [node for node in tree.body if not _for_type_checkers(node)]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "hck":
            for alias in node.names:
                yield node.module.partition(".")[2], alias.name
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("hck."):
                    yield alias.name.partition(".")[2], None


def _for_type_checkers(node):
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_imports_go_down(path):
    module = name_of(path)
    if not module:  # the package itself, which shows everything
        return
    here = folder_of(module)
    for target, name in imports(path):
        other = folder_of(target or name)
        if other not in HEIGHT:  # a name that hck itself shows
            continue
        allowed = here == other or HEIGHT[other] < HEIGHT[here]
        assert allowed or (module, other) in UPWARD, f"{module} imports {other}, which is not below it"


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_private_names_stay_in_their_folder(path):
    module = name_of(path)
    for target, name in imports(path):
        if folder_of(target) == folder_of(module) or not target:
            continue
        hidden = [
            part for part in (*target.split("."), name or "") if part.startswith("_") and part != "_version"
        ]
        allowed = not hidden or name == "__version__" or (module, target) in PRIVATE
        assert allowed, f"{module} uses {target}.{name}, which is private to its folder"


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_devices_are_the_backends_business(path):
    module = name_of(path)
    if folder_of(module) == "backend":
        return
    asked = [ast.unparse(node) for node in ast.walk(ast.parse(path.read_text())) if _asks_for_device(node)]
    assert not asked, f"{module} asks which device it is ({asked[0]}): let hck.backend decide"


# What makes tensors, and what of them is of torch's default type unless another is given.
OF_DEFAULT_TYPE = {
    *("zeros", "ones", "empty", "eye", "rand", "randn", "linspace", "logspace", "tensor", "scalar_tensor"),
    *("normal", "empty_strided", "sparse_csr_tensor", "sparse_coo_tensor"),
}
FACTORIES = OF_DEFAULT_TYPE | {"full", "arange", "as_tensor", "asarray", "randint", "randperm"}


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_no_default_of_torch_decides(path):
    """Who makes a tensor says where it is and, unless its numbers are whole or an array's, of what type."""
    for node in ast.walk(ast.parse(path.read_text())):
        called = _factory(node)
        if called in FACTORIES:
            given = {keyword.arg for keyword in node.keywords}
            needed = {"device", "dtype"} if called in OF_DEFAULT_TYPE or _has_float(node) else {"device"}
            assert needed <= given, f"{name_of(path)}, line {node.lineno}: {ast.unparse(node)}"


def _factory(node):
    """The name of the function of torch that a node calls, if it does."""
    function = node.func if isinstance(node, ast.Call) else None
    of = function.value if isinstance(function, ast.Attribute) else None
    return function.attr if isinstance(of, ast.Name) and of.id == "torch" else None


def _has_float(node):
    return any(isinstance(part, ast.Constant) and isinstance(part.value, float) for part in ast.walk(node))


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_nothing_is_imported_by_its_name_as_text(path):
    module = name_of(path)
    if path.name == "__init__.py" or module in BY_TEXT:
        return
    assert "import_module" not in path.read_text(), f"{module} imports by text"


def test_every_folder_has_a_floor_and_a_sentence():
    found = {folder_of(name_of(path)) for path in modules()} - {""}
    assert found == set(HEIGHT)
    page = (Path(__file__).parent.parent / "docs" / "architecture.md").read_text()
    missing = {name for name in found - {"errors", "_version"} if f"`{name}`" not in page}
    assert not missing, f"docs/architecture.md says nothing of {missing}"


def _asks_for_device(node):
    """`device.type`, `is_cuda`, or the name of a GPU as text."""
    if isinstance(node, ast.Attribute):
        of = getattr(node.value, "attr", getattr(node.value, "id", ""))
        return node.attr == "is_cuda" or (node.attr == "type" and of == "device")
    return isinstance(node, ast.Constant) and node.value == "cuda"
