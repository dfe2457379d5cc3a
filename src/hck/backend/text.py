"""Text for people: sizes, and what comes from files and users, made harmless."""

import unicodedata


def harmless(text: str) -> str:
    """The same with letters that nobody sees, but that steer a terminal, a page or a picture, written out.

    Examples
    --------
    >>> print(harmless("a b\\x1b[31m"))
    a b\\x1b[31m
    """
    return "".join(
        c
        if c.isprintable() or unicodedata.category(c) == "Zs"
        else c.encode("unicode_escape", "surrogatepass").decode()
        for c in text
    )


def in_bytes(count: float) -> str:
    """A size in a unit that suits it.

    Examples
    --------
    >>> in_bytes(512), in_bytes(20_500_000), in_bytes(2.88e12)
    ('512 B', '20.5 MB', '2.88 TB')
    """
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= 0.9995 * size:
            return f"{float(f'{count / size:.3g}'):,g} {unit}"
    return f"{count:.0f} B"
