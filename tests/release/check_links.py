"""Check that links to elsewhere lead somewhere: ``make links``, before a release.

They are those of pages, of the package's description and of data sets. What is gone is an error; what a
server keeps from programs is only named. Where there is no network, nothing is checked.
"""

import re
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from hck.datasets._registry import REGISTRY

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"""https?://[^\s<>()\[\]"'`]*[^\s<>()\[\]"'`.,;:]""")
PAGES = ("*.md", "docs/**/*.md", "benchmarks/*.md", "CITATION.cff")
SECONDS = 30


def all_links() -> set[str]:
    pages = [path for place in PAGES for path in ROOT.glob(place)]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    links = set(project["urls"].values())
    links |= {link for page in pages for link in LINK.findall(page.read_text(encoding="utf-8"))}
    links |= {link for entry in REGISTRY.values() for link in LINK.findall(f"{entry.home} {entry.citation}")}
    return links | {file.url for entry in REGISTRY.values() for file in entry.files}


def status(link: str) -> int | None:
    """What the server answers, or None if nobody does."""
    try:
        with urlopen(Request(link, headers={"User-Agent": "Mozilla/5.0"}), timeout=SECONDS) as answer:
            return answer.status
    except HTTPError as error:
        return error.code
    except (OSError, HTTPException):
        return None


def check(links: set[str]) -> list[str]:
    """Print what is wrong, and return the links that are gone."""
    with ThreadPoolExecutor(8) as pool:
        found = dict(zip(sorted(links), pool.map(status, sorted(links)), strict=True))
    if set(found.values()) == {None}:
        print("no network: no link was checked")
        return []
    gone = [link for link, code in found.items() if code in (None, 404, 410)]
    for link, code in found.items():
        if code is None or code >= 400:
            print("gone:" if link in gone else "look at it yourself:", link, code or "no answer")
    print(f"{len(found) - len(gone)} of {len(found)} links lead somewhere")
    return gone


if __name__ == "__main__":
    sys.exit(1 if check(all_links()) else 0)
