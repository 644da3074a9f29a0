"""Write the modules of `wire` that only declare: `python tools/write_wire.py`.

`tools/wire` is the catalogue of the protocol. A file there is the source of one module of
`quarterdeck.wire`, or a part of it: `commands.files.toml` is a part of `commands`. `make types`
writes the modules, and a test fails when one differs from its source.

A table of a file is a struct, unless it has one of the keys in `_KINDS`. The classes below list the
keys of each kind. Types and defaults are written as in Python.
"""

from __future__ import annotations

import ast
import builtins
import subprocess
import sys
import textwrap
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct, field

PROJECT = Path(__file__).parents[1]
CATALOGUE = PROJECT / "tools" / "wire"
MODULES = PROJECT / "src" / "quarterdeck" / "wire"
WIDTH = 100
SECONDS = 60

COMMON = {
    name: module
    for module, names in {
        "functools": "cached_property",
        "msgspec": "Raw field",
        "typing": "Any ClassVar Literal TypeAlias",
        "quarterdeck.domain.errors": "UsageError",
        "quarterdeck.domain.structs": "ABSENT name_set",
        "quarterdeck.wire.base": "Message Number OpenEnum OpenUnion Part UnknownPart",
        "quarterdeck.wire.envelope": "Body Lazy System",
        "quarterdeck.wire.rawjson": "EMPTY always is_object plain_object",
    }.items()
    for name in names.split()
}
"""Names that every file may use. A file lists other hand-written names in its `imports`."""


class Entry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One name of a module, with its documentation."""

    doc: str = ""


class Member(Struct, frozen=True, forbid_unknown_fields=True):
    """A member of a struct. Short form: `"TYPE"`, or `"TYPE = DEFAULT"`.

    `name` is the name in JSON, where the struct's `rename` does not give it. `note` is a comment.
    """

    type: str
    default: str | None = None
    name: str | None = None
    note: str | None = None


class OnDemand(Entry, frozen=True):
    """A value that is made from a member when it is read, by a function if `by` names one."""

    type: str
    of: str
    by: str | None = None
    form: Literal["property", "cached_property", "method"] = "property"


class Check(Struct, frozen=True, forbid_unknown_fields=True):
    """What a member must be: one of some texts, or as the words say. An absent member passes."""

    member: str
    must_be: Literal["an object", "not empty", "above 0", "0 or more"] | tuple[str, ...]
    error: str


class Declared(Entry, frozen=True):
    """A struct.

    `since` is the first version 2.1.N that answers a command, 0 if none does. `untyped` names the
    known members that have no field. With `salvage`, which says why, members are decoded one by
    one, and those that do not fit are skipped.
    """

    base: str = "Part"
    tag: str | None = None
    tag_field: str | None = None
    rename: str | None = None
    since: int | None = None
    untyped: tuple[str, ...] = ()
    salvage: str | None = None
    members: dict[str, str | Member] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()
    on_demand: dict[str, OnDemand] = field(default_factory=dict)


class Noted(Struct, frozen=True, forbid_unknown_fields=True):
    """A value of an enumeration, with a comment."""

    value: str
    note: str


class Enumeration(Entry, frozen=True):
    """An open enumeration: values by name."""

    values: dict[str, str | Noted]


class Union(Entry, frozen=True):
    """A union of types."""

    union: tuple[str, ...]


class All(Entry, frozen=True):
    """The union of all tagged structs with a base, of this module or of others."""

    all: str
    modules: tuple[str, ...] = ()


class Table(Entry, frozen=True):
    """All tagged structs with a base, by tag. `type` is their common type."""

    table: str
    type: str
    modules: tuple[str, ...] = ()


class Tags(Entry, frozen=True):
    """The tags of a union."""

    tags: str


class Open(Entry, frozen=True):
    """The decoder of an open union."""

    open: str


class Late(Entry, frozen=True):
    """The decoder of a part that is decoded on demand."""

    lazy: str


class Other(Entry, frozen=True):
    """Another name for a value, or for a type."""

    value: str
    alias: bool = False


_KINDS: dict[str, type[Entry]] = {
    "values": Enumeration,
    "union": Union,
    "all": All,
    "table": Table,
    "tags": Tags,
    "open": Open,
    "lazy": Late,
    "value": Other,
}


class Theme(Struct, frozen=True):
    """The source of one module. `left_unknown` are tags that have no struct on purpose."""

    module: str
    files: list[str] = field(default_factory=list)
    doc: list[str] = field(default_factory=list)
    imports: dict[str, str] = field(default_factory=dict)
    left_unknown: set[str] = field(default_factory=set)
    entries: dict[str, Entry] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        """The module that is written."""
        return MODULES / f"{self.module}.py"


Catalogue = dict[str, Theme]


def read_catalogue(folder: Path = CATALOGUE) -> Catalogue:
    """Every theme, by the name of its module. The parts of a module come in order of their names,
    and its main file last.
    """
    found: Catalogue = {}
    for file in sorted(folder.glob("*.toml"), key=lambda file: (file.stem.count(".") == 0, file)):
        module = file.stem.partition(".")[0]
        theme = found.setdefault(module, Theme(module))
        theme.files.append(file.name)
        for name, given in tomllib.loads(file.read_text()).items():
            if name == "doc":
                theme.doc.append(given)
            elif name == "imports":
                homes = ((each, home) for home, names in given.items() for each in names)
                theme.imports.update(homes)
            elif name == "left_unknown":
                theme.left_unknown.update(given)
            elif name in theme.entries:
                raise ValueError(f"{file.name}: {name} is there twice")
            else:
                theme.entries[name] = _entry(file.name, name, given)
    for theme in found.values():
        tags = {entry.tag for entry in theme.entries.values() if isinstance(entry, Declared)}
        if both := sorted(theme.left_unknown & tags):
            raise ValueError(f"{theme.module}: left unknown, but declared: {', '.join(both)}")
    return found


def _entry(file: str, name: str, given: dict[str, object]) -> Entry:
    kind = next((kind for key, kind in _KINDS.items() if key in given), Declared)
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise ValueError(f"{file}: {name}: {error}") from error


# --- the text of a module -----------------------------------------------------------------------


def write_module(theme: Theme, catalogue: Catalogue) -> str:
    """The text of a module, as the formatter leaves it."""
    body = [_write(name, entry, theme, catalogue) for name, entry in theme.entries.items()]
    used = {
        each.id
        for text in body
        for each in ast.walk(ast.parse(text))
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)
    }
    homes = defaultdict(set)
    for name in used - set(theme.entries) - set(dir(builtins)) - {"self", "struct"}:
        homes[_home(name, theme, catalogue)].add(name)
    parts = " and its parts" if len(theme.files) > 1 else ""
    source = f"tools/wire/{theme.files[-1]}{parts}"
    marker = f"Written by tools/write_wire.py from {source}; do not edit."
    texts = [
        _docstring("\n\n".join((*theme.doc, marker)), 0),
        "from __future__ import annotations",
        *(f"from {home} import {', '.join(sorted(names))}" for home, names in homes.items()),
        *body,
    ]
    return _format("\n\n".join(texts) + "\n", theme.path)


def _home(name: str, theme: Theme, catalogue: Catalogue) -> str:
    """The module that defines a name which this module only uses."""
    if home := theme.imports.get(name) or COMMON.get(name):
        return home
    themes = [other.module for other in catalogue.values() if name in other.entries]
    if len(themes) != 1:
        raise ValueError(f"{theme.module}: {name} is in {len(themes)} modules: say which")
    return f"quarterdeck.wire.{themes[0]}"


def _format(text: str, path: Path) -> str:
    ruff = Path(sys.executable).parent / "ruff"
    for command in (["check", "--quiet", "--select", "I", "--fix"], ["format", "--quiet"]):
        done = subprocess.run(
            [ruff, *command, "--stdin-filename", path, "-"],
            input=text,
            capture_output=True,
            text=True,
            check=True,
            timeout=SECONDS,
        )
        text = done.stdout
    return text


def _write(name: str, entry: Entry, theme: Theme, catalogue: Catalogue) -> str:
    match entry:
        case Declared():
            return _struct(name, entry)
        case Enumeration():
            return _enumeration(name, entry)
        case Union(union=members):
            text = f"{name} = {' | '.join(members)}"
        case All(all=base):
            members = tuple(each for each, _ in _tagged(base, entry.modules, theme, catalogue))
            text = f"{name} = {' | '.join(members)}"
        case Table(table=base):
            rows = _tagged(base, entry.modules, theme, catalogue)
            lines = "".join(f'"{tag}": {each},\n' for each, tag in rows)
            text = f"{name}: dict[str, {entry.type}] = {{\n{lines}}}"
        case Tags(tags=union):
            tags = f"str(struct.__struct_config__.tag) for struct in {union}.__args__"
            text = f"{name} = frozenset({tags})"
        case Open(open=union):
            text = f"{name}: OpenUnion[{union}] = OpenUnion({union})"
        case Late(lazy=shape):
            text = f"{name}: Lazy[{shape}] = Lazy({shape}, {shape})"
        case Other(value=value, alias=alias):
            text = f"{name}: TypeAlias = {value}" if alias else f"{name} = {value}"
        case _:
            raise TypeError(type(entry).__name__)
    return f"{text}\n{_docstring(entry.doc, 0)}" if entry.doc else text


def _tagged(
    base: str, modules: Iterable[str], theme: Theme, catalogue: Catalogue
) -> list[tuple[str, str]]:
    """The tagged structs with a base, with their tags."""
    places = [catalogue[module] for module in modules] or [theme]
    return [
        (name, entry.tag)
        for place in places
        for name, entry in place.entries.items()
        if isinstance(entry, Declared) and entry.tag is not None and base in _bases(entry, place)
    ]


def _bases(entry: Declared, theme: Theme) -> Iterator[str]:
    """The bases of a struct, as far as its module declares them."""
    base: Entry | None = entry
    while isinstance(base, Declared):
        name = base.base.partition("[")[0]
        yield name
        base = theme.entries.get(name)


def _enumeration(name: str, entry: Enumeration) -> str:
    lines = [f"class {name}(OpenEnum):", _docstring(entry.doc, 4), ""]
    for key, value in entry.values.items():
        if isinstance(value, Noted):
            lines += _comment(value.note)
        lines.append(f'    {key} = "{value.value if isinstance(value, Noted) else value}"')
    return "\n".join(lines)


def _struct(name: str, entry: Declared) -> str:
    options = {"tag_field": entry.tag_field, "tag": entry.tag, "rename": entry.rename}
    given = [f'{option}="{value}"' for option, value in options.items() if value is not None]
    lines = [f"class {name}({', '.join((entry.base, *given))}):"]
    if entry.doc:
        lines += [_docstring(entry.doc, 4), ""]
    lines += _class_variables(entry)
    members = {each: _member(given) for each, given in entry.members.items()}
    for each, member in members.items():
        lines += _comment(member.note) if member.note else []
        lines.append(f"    {each}: {member.type}{_default(member)}")
    if entry.checks:
        lines += ["", "    def __post_init__(self) -> None:"]
        lines += [line for check in entry.checks for line in _check(check, members[check.member])]
    for each, value in entry.on_demand.items():
        lines += ["", *_on_demand(each, value)]
    return "\n".join(lines)


def _class_variables(entry: Declared) -> list[str]:
    lines: list[str] = []
    if entry.since is not None:
        lines += [f"    since: ClassVar[int | None] = {entry.since or None}", ""]
    if entry.salvage:
        lines += [*_comment(entry.salvage), "    salvage: ClassVar[bool] = True", ""]
    if entry.untyped:
        text = " ".join(entry.untyped)
        if len(text) > 40:
            wrapped = textwrap.fill(text, WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 8)
            text = f'\n        """\n{wrapped}\n        """\n    '
        else:
            text = f'"{text}"'
        lines += [f"    untyped: ClassVar[frozenset[str]] = name_set({text})", ""]
    return lines


def _member(given: str | Member) -> Member:
    if isinstance(given, Member):
        return given
    kind, equals, default = given.partition(" = ")
    return Member(kind, default if equals else None)


def _default(member: Member) -> str:
    arguments = [] if member.name is None else [f'name="{member.name}"']
    if member.default == "{}":
        arguments.append("default_factory=dict")
    elif member.name is not None and member.default is not None:
        arguments.append(f"default={member.default}")
    elif member.default is not None:
        return f" = {member.default}"
    return f" = field({', '.join(arguments)})" if arguments else ""


def _check(check: Check, member: Member) -> list[str]:
    value = f"self.{check.member}"
    optional = "None" in member.type.split(" | ")
    given = f"{value} is not None and " if optional else ""
    match check.must_be:
        case "an object":
            given = f"{value} and " if member.default == "ABSENT" else given
            wrong = f"{given}not is_object({value})"
        case "not empty":
            wrong = f"not {value}"
        case "above 0":
            wrong = f"{given}not {value} > 0"
        case "0 or more":
            wrong = f"{given}{value} < 0"
        case values:
            texts = [*(["None"] if optional else []), *(f'"{each}"' for each in values)]
            wrong = f"{value} not in {{{', '.join(texts)}}}"
    return [f"        if {wrong}:", f'            raise UsageError("{check.error}")']


def _on_demand(name: str, value: OnDemand) -> list[str]:
    source = f"self.{value.of}"
    return [
        *([] if value.form == "method" else [f"    @{value.form}"]),
        f"    def {name}(self) -> {value.type}:",
        _docstring(value.doc, 8),
        f"        return {value.by}({source})" if value.by else f"        return {source}",
    ]


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="    # ", subsequent_indent="    # ")


def _docstring(text: str, indent: int) -> str:
    """A docstring, its paragraphs filled anew. Paragraphs are separated by empty lines."""
    margin = " " * indent
    paragraphs = [" ".join(each.split()) for each in text.strip().split("\n\n")]
    if len(paragraphs) == 1 and indent + len(paragraphs[0]) + 6 <= WIDTH:
        return f'{margin}"""{paragraphs[0]}"""'
    # The formatter puts the closing quotes after a single line, even where there is no room.
    width = WIDTH if len(paragraphs) > 1 else WIDTH - 3
    filled = [
        textwrap.fill(
            ("" if number else '"""') + paragraph,
            width,
            initial_indent=margin,
            subsequent_indent=margin,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for number, paragraph in enumerate(paragraphs)
    ]
    return "\n\n".join(filled) + f'\n{margin}"""'


def main() -> int:
    """Write every module."""
    catalogue = read_catalogue()
    texts = {theme.path: write_module(theme, catalogue) for theme in catalogue.values()}
    for path, text in texts.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
