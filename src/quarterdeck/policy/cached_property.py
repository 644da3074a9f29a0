"""`cached`: a property that is worked out once for each object.

As `functools.cached_property`, without its lock, which takes longer than what is worked out here.
Two threads may both work it out: the values are equal, and one of them is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

_T = TypeVar("_T")


class cached(Generic[_T]):  # noqa: N801 - used as a decorator, as `property` is
    """A property whose value is kept in the object, which must have a `__dict__`."""

    def __init__(self, make: Callable[[Any], _T]) -> None:
        self._make = make
        self._name = make.__name__
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> cached[_T]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> _T: ...

    def __get__(self, instance: object | None, owner: type) -> cached[_T] | _T:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._make(instance)
        return value
