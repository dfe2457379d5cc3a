"""What of a built site is a page."""

from pathlib import Path


def html_pages(site: Path) -> list[Path]:
    """Those that people see; the theme brings files of its own."""
    return [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
