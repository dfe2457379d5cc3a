"""Links of pages lead somewhere on the site too.

Pages are read in the repository as well, so their links name files of it. Here those to files that are a page
of the site, or a script of the gallery, become links to that page, and all others lead to the repository.
"""

import os
import re
from pathlib import Path
from typing import Any

REPOSITORY = "https://github.com/hck/hck"
# Files outside docs that a page of the site includes.
INCLUDED = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "benchmarks/README.md": "benchmarks.md",
}
LINK = re.compile(r"(\]\()(?!\w+:|#)([^)#\s]+)")


def rewritten(text: str, folder: Path, docname: str, docs: Path) -> str:
    """A page's text with its links as the site needs them; `folder` is where the text's file is."""
    root = docs.parent

    def replace(match: re.Match[str]) -> str:
        path = Path(os.path.normpath(folder / match[2]))
        if not path.exists() or not path.is_relative_to(root):
            return match[0]
        name = path.relative_to(root).as_posix()
        if name in INCLUDED:
            path = docs / INCLUDED[name]
        elif path.parent == docs / "gallery" and path.suffix == ".py":
            path = docs / "auto_gallery" / f"{path.stem}.rst"
        elif path.suffix == ".png":
            pass  # an image or a link to one: it is copied
        elif not path.is_relative_to(docs) or path.suffix not in (".md", ".rst"):
            kind = "tree" if path.is_dir() else "blob"
            return f"{match[1]}{REPOSITORY}/{kind}/main/{name}"
        return match[1] + Path(os.path.relpath(path, (docs / docname).parent)).as_posix()

    return LINK.sub(replace, text)


def on_page(app: Any, docname: str, source: list[str]) -> None:
    docs = Path(app.srcdir)
    if (docs / f"{docname}.md").exists():
        source[0] = rewritten(source[0], (docs / docname).parent, docname, docs)


def on_include(app: Any, path: Path, docname: str, source: list[str]) -> None:
    docs = Path(app.srcdir)
    source[0] = rewritten(source[0], Path(os.path.normpath(docs / path)).parent, docname, docs)


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", on_page)
    app.connect("include-read", on_include)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
