"""Names of a package that are loaded when they are first used.

A package gathers names from all of its modules; a module that needs one of them need not wait for
the others. Below everything: it imports nothing of ours.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module

__all__ = ["load_later"]


def load_later(package: str, homes: Mapping[str, tuple[str, ...]]) -> Callable[[str], object]:
    """A package's `__getattr__`: it finds each name in the module of the package that has it."""
    home_of = {name: home for home, names in homes.items() for name in names}

    def find(name: str) -> object:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(f"{package}.{home_of[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return find
