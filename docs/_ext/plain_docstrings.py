"""Docstrings are written to be read as they stand; here they become safe reStructuredText.

Shapes such as ``(*batch, n)``, absolute values such as ``|y − f|`` and names such as ``classes_`` mean
something else in reStructuredText. They are escaped, except in code, in examples, and where
numpydoc expects a name.
"""

import re
from typing import Any

CODE = re.compile(r"(`+[^`]+`+_*)")
SPECIAL = re.compile(r"\||(?<=[(,\s])\*(?=\w)|(?<=\w)_(?![\w`])")
NAMES = re.compile(r"\s*[*\w]+(, [*\w]+)*( :|$)")


def escaped(line: str) -> str:
    if line.lstrip().startswith((">>>", "...", "..", "|")):
        return line
    name = match[0] if (match := NAMES.match(line)) else ""
    parts = CODE.split(line[len(name) :])
    return name + "".join(
        part if i % 2 else SPECIAL.sub(lambda found: "\\" + found[0], part) for i, part in enumerate(parts)
    )


def escape(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    lines[:] = map(escaped, lines)


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", escape, priority=100)  # before numpydoc
    return {"parallel_read_safe": True, "parallel_write_safe": True}
