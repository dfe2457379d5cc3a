"""Properties that are computed once, of objects that several threads read."""

import functools
from typing import Any, TypeVar

Value = TypeVar("Value")


class cached_property(functools.cached_property[Value]):
    """As that of functools, and its owner can be pickled and copied while a thread computes it.

    What is pickled is a copy of the owner's attributes, since these may get one more meanwhile.

    Examples
    --------
    >>> class Circle:
    ...     @cached_property
    ...     def area(self):
    ...         return 3.14
    >>> circle = Circle()
    >>> circle.area, circle.__getstate__() == vars(circle), circle.__getstate__() is vars(circle)
    (3.14, True, False)
    """

    def __set_name__(self, owner: type, name: str) -> None:
        super().__set_name__(owner, name)
        if getattr(owner, "__getstate__", None) is getattr(object, "__getstate__", None):
            owner.__getstate__ = attributes_of  # type: ignore[assignment]


def attributes_of(one: object) -> dict[str, Any]:
    """A copy of an object's attributes as they are at the moment."""
    return one.__dict__.copy()
