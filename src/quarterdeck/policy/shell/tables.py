"""Tables of programs: the options that each one has, and what they and its operands do.

One TOML file per program, `tables/NAME.toml`. A file is read when its program is first met, and
kept. The format is strict: an unknown key or word is a `BadTable`.

    about = "GNU coreutils 9.1"   the program and version that the table describes (required)
    same_as = "grep"              the file is another name for that table (then nothing else)
    looks = true                  it changes nothing, as long as no option of the call writes, runs
                                  or alters anything
    operands = "skip read*"       see below; the default is `none`
    deep = true                   operands are used with everything below them, without an option
    hides = true                  what is deep leaves out hidden files, unless an option is `hidden`
    default = "."                 the operand, if there is none
    deep_default = "."            the same, but only with an option that is `deep` (grep -r)
    plain = true                  no word of it names a file, or has an effect: all are known (ps)
    pairs = true                  of two operands, one may be a folder with a file of the other's
                                  name in it (diff)
    lone_writes_here = true       a single operand is written into the working folder (ln)
    prefix = "xx"                 the beginning of the files that it writes, where no operand or
                                  option gives another (csplit)
    at_files = true               `@file` stands for the words in that file (binutils, gcc)
    language = "sed"              who reads `code`: a key of `CODE` in `languages`
    abbreviations = true          long options may be shortened; default: not `long_with_one_dash`
                                  and not `loose`
    bundles = true                `-abc` is `-a -b -c`; default: not `long_with_one_dash`
    attached = true               `-ox` is `-o x`; false: a value is always the next word (tree)
    loose_values = true           an attached value may end early, and options follow it: only
                                  numbers are accepted there (less)
    long_with_one_dash = false    `-name` is one option (find, gcc, go); `-name=value` too
    two_dashes = false            with that: `--name` is the same as `-name` (go, terraform)
    permutes = true               options may follow operands; false: the first operand ends them
    numeric = false               `-5` is a number (head, git log)
    plus = "run"                  words of an option that begins with `+` (less, vim)
    assignments = "alter"         words for operands of the form NAME=value (`value`: no effect)
    operators = "( ) !"           words that are neither options nor operands (find)
    first_is_bundle = false       the first word is a bundle also without a dash (tar, ar)
    versions = false              NAME3, NAME3.11 and NAME-12 are this program too
    inherits = false              subcommands know the options of this table too
    abbreviated_subcommands = false   a unique beginning of a subcommand is that subcommand
    loose = false                 not all of its options are listed. The others need no rule that
                                  names them, unless they may be the beginning of one that acts; but
                                  each word may be a file that is read. It holds for subcommands,
                                  too
    effect = "alter"              the subcommand itself is an effect that a rule must name: `alter`
                                  (npm config set) or `run`

    [options]
    "-o --output" = "write"       its names, and words for what it does

    [subcommands.NAME]            a table of the same form (without about, versions);
    same_as = "log"               or another name for a subcommand beside it

A word without a dash that ends in `=` (`"of="`) is an option of the form `of=value` (dd).
Where a table has subcommands, the first operand must be one of them; if `operands` is given too,
any other first operand is an ordinary one. A subcommand that is not listed makes the call unknown.

Words of an option. Each of these takes one value, and several take several, in their order:
    value    no effect                        number  no effect; what is no number is unknown, since
                                              other versions of the program take no value there
    read     a file that is read              list    a folder or file of which only names are seen
    write    a file that is written           prefix  the beginning of files that are written
    suffix   the end of the names of further files that are written (cp -S)
    run      a program or code that is run    code    program text that our reader judges
    shell    a text that a shell runs; `wrappers` reads it
    chdir    a folder: other paths are relative to it (or still to the old one: both are assumed)
    folder   a folder that the operands are written into, instead of the last operand
    host     a host or address that is contacted
    send     a text that may name a file by `@` or `<`, whose contents are sent
    command  words up to `;` or `{} +`: a command (find -exec); `wrappers` judges it
and these say more:
    flag     takes no value. With read or write: files that are not named are read or written
    value?   the value is optional: only `--x=value` or `-xvalue`. (`write value?`: a file.) If the
             short name takes no value at all, it is an entry of its own
    joined   in tables of `long_with_one_dash`: the value may follow without a blank (gcc -Idir)
    deep     operands are used with everything below them
    hidden   hidden files are searched, too, by a program that `hides` them
    in-place operands are written, too
    instead  it stands for the first operand, if that is `skip`, `code` or `run` (grep -e PATTERN)
    texts    operands that follow are texts, not files (jq --args)
    runs     an effect that a rule must name by this option: it runs something, or works elsewhere
    names    the same; and files are read whose names are in another file (wc --files0-from)
    alter    the same, for what changes later commands
    onto     the last operand is the place itself, also if it is a folder (cp -T)
    last     options end here: every word after it is an operand
    stops    the program only shows something about itself (--help). Operands count all the same:
             versions of a program differ in that

Words of `operands`, from left to right; at most one has a `*` and takes all that the others leave:
    skip (no file: a pattern, a mode), read, list, write, edit (read and written), move (read, and
    then gone), prefix, run, code, host, none, and `command*`: the words of another command, which
    `wrappers` judges. An item after the `*` is used only if an operand is left for the `*`: in
    `read* write` one operand alone is read. More operands than items are unknown.

`-` and `/dev/stdin` keep their position and have no effect of their own.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left
from functools import cache
from importlib import resources
from typing import Literal

import msgspec

from quarterdeck.domain.structs import Value, name_set

TAKING = name_set(
    "value number read list write prefix suffix run code shell chdir folder host send command"
)
"""Words of an option that take a value each."""

MARKS = name_set(
    "flag value? joined deep hidden in-place instead texts runs names alter last onto stops"
)
OPERANDS = name_set("skip read list write edit prefix move run code command host none")
ACTING = name_set(
    "write prefix suffix run code shell chdir folder host send runs names alter in-place"
)
"""Words for effects beyond reading."""

_WRITING = name_set("write edit prefix suffix folder in-place move")
_FILES = name_set("read list write prefix chdir folder send in-place names run runs code shell")
_OF_OPERANDS = name_set("run code command host")
_NAME = re.compile(r"-{0,2}[^\s=-][^\s=]*=?|-[^\s=]|--")
_VERSIONED = re.compile(r"([A-Za-z][A-Za-z+_]*)-?\d+(?:\.\d+)*")


class BadTable(ValueError):
    """A file with a table cannot be used."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"the table of {name} is not valid: {why}")


class Option(Value):
    """An option of a program."""

    name: str
    """The first of its names."""

    values: tuple[str, ...] = ()
    """What each of its values is."""

    optional: bool = False
    """The value is optional, and only taken where it is attached."""

    marks: frozenset[str] = frozenset()

    @property
    def acts(self) -> bool:
        """Whether it does more than reading."""
        return not ACTING.isdisjoint(self.values) or not ACTING.isdisjoint(self.marks)


class Operand(Value):
    """One item of a table's operands."""

    kind: str
    many: bool = False


class Table(Value):
    """The options and operands of a program or of one of its subcommands."""

    name: str
    options: dict[str, Option]
    about: str = ""
    long: tuple[str, ...] = ()
    """Names that may be shortened, sorted."""

    operands: tuple[Operand, ...] | None = None
    """None: there are none, or a subcommand is needed."""

    subcommands: dict[str, Table] = msgspec.field(default_factory=dict)
    looks: bool = False
    deep: bool = False
    hides: bool = False
    default: str | None = None
    deep_default: str | None = None
    plain: bool = False
    pairs: bool = False
    lone_writes_here: bool = False
    prefix: str | None = None
    at_files: bool = False
    language: str | None = None
    bundles: bool = True
    attached: bool = True
    loose_values: bool = False
    long_with_one_dash: bool = False
    two_dashes: bool = False
    permutes: bool = True
    numeric: bool = False
    plus: Option | None = None
    assignments: Option | None = None
    operators: frozenset[str] = frozenset()
    first_is_bundle: bool = False
    versions: bool = False
    keyed: bool = False
    """It has options of the form `of=value`."""

    abbreviated_subcommands: bool = False
    loose: bool = False
    effect: str | None = None
    uses_files: bool = False
    """Whether an operand, or an option that is not inherited, names a file."""

    commands: bool = False
    """Whether it, or a subcommand, runs a command that is among its words."""

    acts: bool = False
    """Whether some option or operand does more than reading: an unknown word may be that."""

    writes: bool = False
    """Whether some option or operand writes a file."""

    quiet: bool = False
    """Whether it has no effect without options and operands."""

    def long_option(self, name: str) -> Option | None:
        """The option that a name or a unique beginning of it means; None if it is not known."""
        found = self.options.get(name)
        if found is not None or not self.long:
            return found
        at = bisect_left(self.long, name)
        while at < len(self.long) and self.long[at].startswith(name):
            option = self.options[self.long[at]]
            if found is not None and option is not found:
                return None
            found = option
            at += 1
        return found

    def may_act(self, name: str) -> bool:
        """Whether a name that is not known may be short for an option that acts."""
        bare = name.lstrip("-")
        return any(
            each.acts and key.lstrip("-").startswith(bare) for key, each in self.options.items()
        )

    def subcommand(self, name: str) -> Table | None:
        """The table of a subcommand; None if it is not known."""
        found = self.subcommands.get(name)
        if found is not None or not self.abbreviated_subcommands:
            return found
        fitting = {id(each): each for key, each in self.subcommands.items() if key.startswith(name)}
        return next(iter(fitting.values())) if len(fitting) == 1 else None


class _File(Value, forbid_unknown_fields=True):
    """A table as it is written."""

    about: str | None = None
    same_as: str | None = None
    looks: bool = False
    operands: str | None = None
    deep: bool = False
    hides: bool = False
    default: str | None = None
    deep_default: str | None = None
    plain: bool = False
    pairs: bool = False
    lone_writes_here: bool = False
    prefix: str | None = None
    at_files: bool = False
    language: str | None = None
    abbreviations: bool | None = None
    bundles: bool | None = None
    attached: bool = True
    loose_values: bool = False
    long_with_one_dash: bool = False
    two_dashes: bool = False
    permutes: bool | None = None
    numeric: bool = False
    plus: str | None = None
    assignments: str | None = None
    operators: str = ""
    first_is_bundle: bool = False
    versions: bool = False
    inherits: bool = False
    abbreviated_subcommands: bool = False
    loose: bool = False
    effect: Literal["alter", "run"] | None = None
    options: dict[str, str] = msgspec.field(default_factory=dict)
    subcommands: dict[str, _File] = msgspec.field(default_factory=dict)


@cache
def table_names() -> frozenset[str]:
    """The names of all programs that have a table."""
    folder = resources.files(__package__) / "tables"
    return frozenset(
        each.name.removesuffix(".toml") for each in folder.iterdir() if each.name.endswith(".toml")
    )


def table_of(name: str) -> Table | None:
    """The table of a program by its name; None if it has none. Raises `BadTable`."""
    if name in table_names():
        return load(name)
    numbered = _VERSIONED.fullmatch(name)
    if numbered is None or numbered[1] not in table_names():
        return None
    found = load(numbered[1])
    return found if found.versions else None


@cache
def load(name: str) -> Table:
    """Read the table of a program from its file. Raises `BadTable`."""
    text = (resources.files(__package__) / "tables" / f"{name}.toml").read_text(encoding="utf-8")
    return read_table(name, text)


def read_table(name: str, text: str) -> Table:
    """A table from its text. Raises `BadTable`."""
    try:
        file = msgspec.convert(tomllib.loads(text), type=_File)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise BadTable(name, str(error)) from error
    if file.same_as is not None:
        if file != _File(same_as=file.same_as) or file.same_as not in table_names():
            raise BadTable(name, f"it is not just another name for {file.same_as}")
        return load(file.same_as)
    if not file.about:
        raise BadTable(name, "`about` is missing")
    return _compile(name, file, {})


def _compile(name: str, file: _File, inherited: dict[str, Option]) -> Table:
    options = dict(inherited)
    for names, words in file.options.items():
        option = _option(name, names, words)
        for each in names.split():
            if each in options and each not in inherited:
                raise BadTable(name, f"{each} is there twice")
            options[each] = option
    one_dash = file.long_with_one_dash
    # What is not listed may begin like an option that is.
    shortened = not (one_dash or file.loose) if file.abbreviations is None else file.abbreviations
    operands = None if file.operands is None else _operands(name, file.operands)
    subcommands = _subcommands(name, file, options)
    kinds = {each.kind for each in operands or ()}
    acting = any(each.acts for each in options.values())
    mixed = len(kinds - {"skip"}) > 1 and not kinds.isdisjoint(_WRITING)
    return Table(
        name=name,
        options=options,
        about=file.about or "",
        long=tuple(sorted(each for each in options if _may_be_shortened(each, one_dash)))
        if shortened
        else (),
        operands=operands,
        subcommands=subcommands,
        looks=file.looks,
        deep=file.deep,
        hides=file.hides,
        default=file.default,
        deep_default=file.deep_default,
        plain=file.plain,
        pairs=file.pairs,
        lone_writes_here=file.lone_writes_here,
        prefix=file.prefix,
        at_files=file.at_files,
        language=file.language,
        bundles=not one_dash if file.bundles is None else file.bundles,
        attached=file.attached,
        loose_values=file.loose_values,
        long_with_one_dash=one_dash,
        two_dashes=file.two_dashes,
        permutes=file.loose or operands is not None or not file.subcommands
        if file.permutes is None
        else file.permutes,
        numeric=file.numeric,
        plus=None if file.plus is None else _option(name, "+", file.plus),
        assignments=None if file.assignments is None else _assignment(name, file.assignments),
        operators=name_set(file.operators),
        first_is_bundle=file.first_is_bundle,
        versions=file.versions,
        keyed=any(each[-1] == "=" for each in options),
        abbreviated_subcommands=file.abbreviated_subcommands,
        loose=file.loose,
        effect=file.effect,
        quiet=not (file.loose or file.default or file.deep_default or file.prefix or file.effect),
        uses_files=not kinds <= {"skip", "host"}
        or any(not _FILES.isdisjoint(words.split()) for words in file.options.values()),
        commands="command" in kinds
        or any("shell" in each.values for each in options.values())
        or any(each.commands for each in subcommands.values()),
        acts=acting or mixed or not kinds.isdisjoint(_OF_OPERANDS) or bool(subcommands),
        writes=not kinds.isdisjoint(_WRITING)
        or any(not _WRITING.isdisjoint((*each.values, *each.marks)) for each in options.values()),
    )


def _may_be_shortened(name: str, one_dash: bool) -> bool:
    return name.startswith("--") or (one_dash and len(name) > 2 and name.startswith("-"))


def _subcommands(name: str, file: _File, options: dict[str, Option]) -> dict[str, Table]:
    made: dict[str, Table] = {}
    others: list[tuple[str, str]] = []
    for key, each in file.subcommands.items():
        if each.same_as is not None:
            if each != _File(same_as=each.same_as):
                raise BadTable(name, f"{key} is not just another name for {each.same_as}")
            others.append((key, each.same_as))
            continue
        if each.about is not None or each.versions:
            raise BadTable(name, f"{key} is no program")
        inside = each if each.inherits or not file.inherits else _inherit(each)
        if file.loose:
            inside = msgspec.structs.replace(inside, loose=True)
        made[key] = _compile(f"{name} {key}", inside, options if file.inherits else {})
    for key, same_as in others:
        if same_as not in made:
            raise BadTable(name, f"{key} is the same as {same_as}, which is not there")
        made[key] = made[same_as]
    return made


def _inherit(file: _File) -> _File:
    return msgspec.structs.replace(file, inherits=True)


def _assignment(table: str, words: str) -> Option:
    taken = any(each in TAKING for each in words.split())
    return _option(table, "=", words if taken else f"value {words}")


def _option(table: str, names: str, words: str) -> Option:
    listed, given = names.split(), words.split()
    wrong = [each for each in given if each not in TAKING and each not in MARKS]
    wrong += [each for each in listed if not _NAME.fullmatch(each) and each not in {"+", "="}]
    if wrong or not listed or not given:
        raise BadTable(table, f"{names!r} = {words!r} is not understood")
    marks = frozenset(each for each in given if each in MARKS)
    values = tuple(each for each in given if each in TAKING)
    optional = "value?" in marks
    if "flag" in marks and not optional:
        # A flag that reads or writes does so with files that are not named.
        if not set(values) <= {"read", "write"}:
            raise BadTable(table, f"{names} is a flag and takes a value")
        marks, values = marks | set(values), ()
    elif optional and len(values) > 1:
        raise BadTable(table, f"{names} has more than one optional value")
    elif not values and not optional:
        raise BadTable(table, f"{names} is neither a flag nor takes a value")
    if optional and not values:
        values = ("value",)
    return Option(name=listed[0], values=values, optional=optional, marks=marks)


def _operands(table: str, text: str) -> tuple[Operand, ...]:
    items = tuple(
        Operand(kind=each.removesuffix("*"), many=each.endswith("*")) for each in text.split()
    )
    known = all(each.kind in OPERANDS for each in items)
    if not items or not known or sum(each.many for each in items) > 1:
        raise BadTable(table, f"operands {text!r} are not understood")
    return () if [each.kind for each in items] == ["none"] else items
