"""The list of settings, read from the structs, and the type of each in words.

`read` checks values with it, and a test checks the reference page. It does not know any file or
value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, Meta, Struct, inspect

from quarterdeck.config.settings import Settings
from quarterdeck.domain.structs import Value

TableKind = Literal["one", "named", "many"]
"""A table, a table of named tables, or an array of tables."""

ANY_NAME = "NAME"
"""Stands for a name that people give, in the path of a setting."""


class Table(Value):
    """A table in the file: the struct of it, or of each in it."""

    kind: TableKind
    struct: type[Struct]


class Setting(Value):
    """One thing that can be set. `path` has `NAME` where people give a name."""

    path: tuple[str, ...]
    type: Any
    default: Any
    required: bool
    at_start: bool
    secret: bool

    @property
    def name(self) -> str:
        """As people write it."""
        return ".".join(self.path)

    @property
    def variable(self) -> str | None:
        """The environment variable that overrides it; None for settings in named tables and
        lists.
        """
        if len(self.path) != 2 or ANY_NAME in self.path or self.path[0] in _LISTS:
            return None
        return "QUARTERDECK_" + "_".join(self.path).upper()


def all_settings(struct: type[Struct] = Settings, at: tuple[str, ...] = ()) -> Iterator[Setting]:
    """Every setting, in the order of the structs."""
    for field in msgspec.structs.fields(struct):
        path = (*at, field.name)
        table = table_of(field.type)
        if table is not None:
            inner = (*path, ANY_NAME) if table.kind == "named" else path
            yield from all_settings(table.struct, inner)
            continue
        default = field.default
        if field.default_factory is not NODEFAULT:
            default = field.default_factory()
        yield Setting(
            path=path,
            type=field.type,
            default=None if default is NODEFAULT else default,
            required=field.required,
            at_start=has_mark(field.type, "at_start"),
            secret=has_mark(field.type, "secret") or bare(field.type) == dict[str, str],
        )


def table_of(kind: Any) -> Table | None:
    """What kind of table a type is in the file, if it is one."""
    kind = bare(kind)
    if isinstance(kind, type) and issubclass(kind, Struct):
        return Table(kind="one", struct=kind)
    for inner in get_args(kind):
        if isinstance(inner, type) and issubclass(inner, Struct):
            return Table(kind="named" if get_origin(kind) is dict else "many", struct=inner)
    return None


def short_member(struct: type[Struct]) -> str | None:
    """The member that a text in place of a table stands for, if the table has a short form."""
    return getattr(struct, "SHORT", None)


def bare(kind: Any) -> Any:
    """A type without its annotations, and without the None that it may be."""
    while True:
        if get_origin(kind) is Annotated:
            kind = get_args(kind)[0]
            continue
        inner = [part for part in get_args(kind) if part is not type(None)]
        if _is_union(kind) and len(inner) == 1:
            kind = inner[0]
            continue
        return kind


def has_mark(kind: Any, mark: str) -> bool:
    """Whether a type, or a type inside it, has a mark."""
    if get_origin(kind) is Annotated:
        metas = [meta for meta in get_args(kind)[1:] if isinstance(meta, Meta)]
        if any((meta.extra or {}).get(mark) for meta in metas):
            return True
        return has_mark(get_args(kind)[0], mark)
    return any(has_mark(part, mark) for part in get_args(kind))


def describe_type(kind: Any) -> str:
    """The type of a value in words: `a whole number from 0 to 65535`."""
    if words := choices(kind):
        return "one of " + ", ".join(words)
    return _describe(inspect.type_info(kind))


def choices(kind: Any) -> tuple[str, ...]:
    """The values that a setting accepts, if it is an enumeration."""
    kind = bare(kind)
    return get_args(kind) if get_origin(kind) is Literal else ()


def _describe(info: inspect.Type) -> str:
    match info:
        case inspect.Metadata(type=inner):
            return _describe(inner)
        case inspect.UnionType(types=types):
            return " or ".join(
                _describe(each) for each in types if not isinstance(each, inspect.NoneType)
            )
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType():
            return "a whole number" + _bounds(info)
        case inspect.FloatType():
            return "a number" + _bounds(info)
        case inspect.StrType(pattern="^https?://"):
            return "a text that begins with http:// or https://"
        case inspect.StrType(min_length=least):
            return "a text that is not empty" if least else "a text"
        case inspect.LiteralType(values=values):
            return "one of " + ", ".join(map(str, values))
        case inspect.VarTupleType(item_type=item):
            return f"a list of: {_describe(item)}"
        case inspect.DictType():
            return "a table of texts"
        case _:
            raise TypeError(f"there is no description of {info}")


def _bounds(info: inspect.IntType | inspect.FloatType) -> str:
    if info.ge is not None and info.le is not None:
        return f" from {info.ge} to {info.le}"
    if info.ge is not None:
        return f" of {info.ge} or more"
    if info.gt is not None:
        return f" above {info.gt}" + ("" if info.le is None else f" and up to {info.le}")
    return ""


def _is_union(kind: Any) -> bool:
    return get_origin(kind) is Union or type(kind).__name__ == "UnionType"


_LISTS = frozenset(
    field.name
    for field in msgspec.structs.fields(Settings)
    if (table := table_of(field.type)) is not None and table.kind != "one"
)
