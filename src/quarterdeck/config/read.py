"""From a file, the environment and flags to settings, or to a list of problems.

Owns precedence (flags, then variables, then the file, then defaults) and every message about a
value. It collects all problems, and names the line in the file and the nearest valid name. It never
repeats a value that it does not know: it may be a secret.
"""

from __future__ import annotations

import difflib
import math
import os.path
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, field

from quarterdeck.config.settings import Settings
from quarterdeck.config.shape import (
    Setting,
    Table,
    all_settings,
    bare,
    choices,
    describe_type,
    has_mark,
    short_member,
    table_of,
)
from quarterdeck.domain.errors import ConfigError, UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.domain.toml_lines import Path, key_lines

PREFIX = "QUARTERDECK_"
LARGEST = 1024 * 1024
"""Characters of a configuration file."""

_AT_LINE = re.compile(r" \(at (?:line (?P<line>\d+), column \d+|end of document)\)$")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TRUE, _FALSE = frozenset({"true", "yes", "on", "1"}), frozenset({"false", "no", "off", "0"})

Overrides = Mapping[tuple[str, str], tuple[str, object]]
"""What flags say: section and key → the flag's name and its value."""

Checks = Sequence[tuple[str, Callable[[Settings], object]]]
"""By section: what raises a `UsageError` for settings that cannot be gone by."""

_S = TypeVar("_S", bound=Struct)


class Loaded(Value):
    """Settings, and for each that is not at its default where it comes from."""

    settings: Settings
    sources: dict[str, str] = field(default_factory=dict)


def parse(
    text: str,
    *,
    name: str = "quarterdeck.toml",
    folder: str = "/",
    home: str = "/",
    environ: Mapping[str, str] | None = None,
    overrides: Overrides | None = None,
    checks: Checks = (),
) -> Loaded:
    """Read a configuration. `name` is the file's in messages, `folder` where it is.

    `checks` are those of the parts that will go by it. Raises `ConfigError` with everything that is
    wrong.
    """
    reader = _Reader(name, folder, home)
    values = reader.toml(text)
    reader.variables(values, environ or {})
    for (section, key), (flag, value) in (overrides or {}).items():
        reader.override(values, (section, key), flag, value)
    settings = reader.table(Settings, values, ())
    if settings is not None:
        for section, check in checks:
            reader.check(section, check, settings)
    if reader.problems or settings is None:
        raise ConfigError(tuple(reader.problems))
    return Loaded(settings=settings, sources=reader.sources)


class _Reader:
    """The state of one run: values, sources and problems."""

    def __init__(self, name: str, folder: str, home: str) -> None:
        self.problems: list[str] = []
        self.sources: dict[str, str] = {}
        self._name, self._folder, self._home = name, folder, home
        self._lines: dict[Path, int] = {}
        self._overridden: dict[Path, str] = {}

    # --- where values come from ---

    def toml(self, text: str) -> dict[str, Any]:
        """The file's values. Raises `ConfigError` at once if the file is not valid TOML."""
        try:
            values = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            found = _AT_LINE.search(str(error))
            line = found["line"] if found and found["line"] else text.count("\n") + 1
            text = _AT_LINE.sub("", str(error))
            raise ConfigError((f"{self._name}:{line}: {text}",)) from error
        except RecursionError as error:
            raise ConfigError((f"{self._name}: it is nested too deep",)) from error
        self._lines = key_lines(text)
        for key, line in self._lines.items():
            self.sources[_dotted_name(key)] = f"line {line}"
        return values

    def variables(self, values: dict[str, Any], environ: Mapping[str, str]) -> None:
        """Apply the environment's overrides, and report misspelt variables."""
        known = {setting.variable: setting for setting in all_settings() if setting.variable}
        sections = {f"{PREFIX}{setting.path[0].upper()}_" for setting in known.values()}
        for variable, text in sorted(environ.items()):
            setting = known.get(variable)
            if setting is not None:
                section, key = setting.path
                value = _from_text(setting, text)
                self.override(values, (section, key), variable, value)
            elif variable.startswith(tuple(sections)):
                near = _nearest(variable, [name for name in known if name])
                self.problems.append(f"{variable}: there is no such setting{near}")

    def override(
        self, values: dict[str, Any], path: tuple[str, str], source: str, value: object
    ) -> None:
        """Override a value of the file."""
        section = values.setdefault(path[0], {})
        if isinstance(section, dict):  # otherwise the file's own problem is reported
            section[path[1]] = value
            self._overridden[path] = source
            self.sources[_dotted_name(path)] = source

    # --- types ---

    def table(self, struct: type[_S], values: object, at: Path) -> _S | None:
        """One table as its struct; None, with a problem reported, if it does not fit."""
        if not isinstance(values, dict):
            self._report(at, "expected a table")
            return None
        before = len(self.problems)
        fields = {each.name: each for each in msgspec.structs.fields(struct)}
        made: dict[str, object] = {}
        for key, value in values.items():
            known = fields.get(key)
            if known is None:
                self._report(
                    (*at, key), f"there is no such setting{self._near(key, [*fields], at)}"
                )
            elif (table := table_of(known.type)) is not None:
                made[key] = self._tables(table, value, (*at, key))
            else:
                made[key] = self._value(known.type, value, (*at, key))
        for missing in [each for each in fields.values() if each.required]:
            if missing.name not in values:
                self._report(
                    at, f"{missing.name} is missing: expected {describe_type(missing.type)}"
                )
        if len(self.problems) > before:
            return None
        try:
            return struct(**made)
        except UsageError as error:
            self._report_error(error, at, set(fields))
            return None

    def check(self, section: str, check: Callable[[Settings], object], settings: Settings) -> None:
        """Run the check of a part that uses the settings."""
        try:
            check(settings)
        except UsageError as error:
            names = {each.path[-1] for each in all_settings() if each.path[0] == section}
            self._report_error(error, (section,), names)

    def _tables(self, table: Table, value: object, at: Path) -> object:
        match table.kind, value:
            case "one", str() if (short := short_member(table.struct)) is not None:
                self.sources[_dotted_name((*at, short))] = self.sources.get(_dotted_name(at), "")
                return self.table(table.struct, {short: value}, at)
            case "one", _:
                return self.table(table.struct, value, at)
            case "named", dict():
                for key in value:
                    if not _NAME.fullmatch(key):
                        self._report((*at, key), "a name may only have letters, digits, - and _")
                return {key: self.table(table.struct, of, (*at, key)) for key, of in value.items()}
            case "many", list():
                return tuple(
                    self.table(table.struct, each, (*at, number))
                    for number, each in enumerate(value)
                )
        example = (
            f"[{_dotted_name(at)}.NAME]" if table.kind == "named" else f"[[{_dotted_name(at)}]]"
        )
        self._report(at, f"expected tables, each under {example}")
        return None

    def _value(self, kind: Any, value: object, at: Path) -> object:
        try:
            made = msgspec.convert(value, kind)
        except msgspec.ValidationError:
            self._report(at, f"expected {describe_type(kind)}, {_given_instead(kind, value)}")
            return None
        if isinstance(made, float) and math.isinf(made) and not has_mark(kind, "endless"):
            self._report(at, f"expected {describe_type(kind)}, got {made}")
            return None
        return self._path(made) if has_mark(kind, "path") else made

    def _path(self, given: object) -> object:
        """A path, absolute: `~` is the home folder, and the file's folder is where it begins."""
        if isinstance(given, tuple):
            return tuple(map(self._path, given))
        if not isinstance(given, str):
            return given
        if given == "~" or given.startswith("~/"):
            given = self._home + given[1:]
        return os.path.normpath(given if given.startswith("/") else f"{self._folder}/{given}")

    # --- problems ---

    def _report(self, at: Path, text: str) -> None:
        if len(at) == 2 and (source := self._overridden.get(at)):
            self.problems.append(f"{source}: {text}")
            return
        line = next(
            (self._lines[at[:n]] for n in range(len(at), 0, -1) if at[:n] in self._lines), 0
        )
        where = f"{self._name}:{line}" if line else self._name
        self.problems.append(f"{where}: {_dotted_name(at)}: {text}" if at else f"{where}: {text}")

    def _report_error(self, error: UsageError, at: Path, names: set[str]) -> None:
        """An error whose text starts with the name of a setting is reported for that setting."""
        key, colon, rest = str(error).partition(": ")
        if colon and key in names:
            self._report((*at, key), rest)
        else:
            self._report(at, str(error))

    def _near(self, key: str, names: list[str], at: Path) -> str:
        if near := _nearest(key, names):
            return near
        others = [each.name for each in all_settings() if each.path[-1] == key]
        return (
            f"; did you mean {others[0]}?"
            if others and others[0] != _dotted_name((*at, key))
            else ""
        )


def _from_text(setting: Setting, text: str) -> object:
    """A variable's text as the file would have it."""
    kind = bare(setting.type)
    try:
        if kind is bool:
            return {**dict.fromkeys(_TRUE, True), **dict.fromkeys(_FALSE, False)}[text.lower()]
        if kind is int:
            return int(text)
        if kind is float:
            return float(text)
    except (KeyError, ValueError):
        return text  # the type check reports it
    if str(kind).startswith("tuple"):
        return [part.strip() for part in text.split(",") if part.strip()]
    return text


def _dotted_name(key: Path) -> str:
    """As people write it; an element of an array by its number, from 1."""
    text = ""
    for part in key:
        text += f"[{part + 1}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def _nearest(given: str, names: list[str]) -> str:
    found = difflib.get_close_matches(given, names, n=1, cutoff=0.6)
    return f"; did you mean {found[0]}?" if found else ""


_NAMES: dict[type, str] = {
    bool: "true or false", int: "a number", float: "a number", str: "a text", list: "a list",
    dict: "a table",
}  # fmt: skip


def _given_instead(kind: Any, value: object) -> str:
    """A description of the given value: its type; the value itself only for numbers and choices."""
    if (accepted := choices(kind)) and isinstance(value, str):
        return f"got {value!r}{_nearest(value, list(accepted))}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"got {value}"
    return f"got {_NAMES.get(type(value), 'a date or a time')}"
