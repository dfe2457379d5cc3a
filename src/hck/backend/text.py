"""Text from files and users, made harmless for whoever shows it."""

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
