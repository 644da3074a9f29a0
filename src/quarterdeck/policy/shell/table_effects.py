"""The effects of a command by the table of its program.

`options` says which word is what; this module says what that does. To allow a command, all must be
known: a word that is not explained is an effect which a rule has to write out. To stop one,
everything that it may be counts: then every word that could be a file is one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import msgspec

from quarterdeck.policy.shell.effects import ProgramEffects, acts, alters, reads, runs, writes
from quarterdeck.policy.shell.options import Given, Parsed, cut, parse, splits
from quarterdeck.policy.shell.script import Effect, Target, Word
from quarterdeck.policy.shell.tables import Operand, Table
from quarterdeck.policy.shell.working_dir import HARMLESS, WorkingDir

CodeReader = Callable[[Word, WorkingDir], list[Effect]]
"""The effects of a program text, which may be unknown."""

MOST_FILES = 600
"""Files of one command that are told one by one. There may be no more needs than 500."""

_MOST_UNKNOWN = 50
"""Words that are not known and are told one by one. No rule names so many."""

_MOST_PAIRED = 8
"""Operands that are compared with each other."""

_LATER = Word(source="…")
"""Words that a wrapper adds at run time."""

_WILD = re.compile(r"[*?\[]")
_MARKED = re.compile(r"(@|<|fileb?://)(.+)", re.DOTALL)
_FILES = frozenset({"read", "list", "write", "edit", "prefix", "move"})
_GIVES = frozenset({"skip", "code", "run"})
"""Operands that an option may stand for."""


def effects_by_table(
    name: str,
    table: Table,
    words: tuple[Word, ...],
    here: WorkingDir,
    *,
    via: str | None = None,
    readers: Mapping[str, CodeReader] | None = None,
    parsed: Parsed | None = None,
) -> ProgramEffects:
    """The effects of a command. `via` is a wrapper that adds words to it at run time.

    `parsed`: its words by the table, if a caller has them.
    """
    if via is not None:
        parsed = parse((*words, _LATER), table)
    elif parsed is None:
        parsed = parse(words, table)
    table = parsed.table
    if table.quiet and not (parsed.options or parsed.operands or parsed.unknown or parsed.open):
        # There is nothing but its name.
        called = tuple(table.name.split()) if " " in table.name else ()
        return ProgramEffects(called=called, looks=table.looks, judged=True)
    return _Effects(name, parsed, words, here, via, readers or {}).all()


class _Effects:
    """The effects of one parsed command."""

    def __init__(
        self,
        name: str,
        parsed: Parsed,
        words: tuple[Word, ...],
        here: WorkingDir,
        via: str | None,
        readers: Mapping[str, CodeReader],
    ) -> None:
        self._name = name
        self._parsed = parsed
        self._words = words
        self._via = via
        self._readers = readers
        self._table = parsed.table
        self._effects: list[Effect] = []
        self._fetches: list[str] = []
        self._files = 0
        self._prefixed = False
        marks: set[str] = set()
        for given in parsed.options:
            marks |= given.option.marks
        self._marks = marks
        self._spec = self._operands_of_table()
        self._here = self._places(here) if parsed.options else here
        self._deep = self._table.deep or "deep" in marks

    def all(self) -> ProgramEffects:
        """Everything that the command may do."""
        parsed, table = self._parsed, self._table
        for given in parsed.options:
            self._option(given)
        if parsed.operands or table.default is not None or table.deep_default is not None:
            self._operands()
        if table.prefix is not None and not self._prefixed:
            self._prefix(_literal(table.prefix))
        if table.effect is not None and "stops" not in self._marks:
            token = table.name.rpartition(" ")[2]
            if table.effect == "alter":
                why = f"{table.name} changes the effect of other commands"
                self._effects.append(alters(why, token))
            else:
                self._effects.append(runs(f"{table.name} can run other code", token))
        if parsed.unknown or parsed.open or table.loose:
            self._unknown()
        return ProgramEffects(
            effects=tuple(self._effects),
            fetches=tuple(self._fetches),
            called=self._subcommand(),
            looks=table.looks and not (parsed.unknown or self._fetches or acts(self._effects)),
            judged=True,
        )

    def _subcommand(self) -> tuple[str, ...]:
        """The subcommand by its full name, and the operands."""
        if " " not in self._table.name:
            return ()
        names = self._table.name.split()
        operands = self._parsed.operands[:MOST_FILES]
        return (*names, *(word.source if word.text is None else word.text for word in operands))

    def _places(self, here: WorkingDir) -> WorkingDir:
        """Where its paths start: options may change that, and not for all of them."""
        now = both = here
        for given in self._parsed.options:
            for word, kind in zip(given.values, given.option.values, strict=False):
                if kind == "chdir":
                    self._add(now.target(word), "list", f"{self._name} {given.typed}")
                    now = now.into(word)
                    both = both.union(now)
        return both

    # --- options -------------------------------------------------------------------------------

    def _option(self, given: Given) -> None:
        option, typed = given.option, given.typed
        marks = option.marks
        for word, kind in zip(given.values, option.values, strict=False):
            self._value(word, kind, typed)
            if word.prefix[:1] == "=" and not typed.startswith("--"):
                # `-f=x` is `-f x` for some programs.
                self._value(cut(word, 1), kind, typed)
        if not marks:
            return
        for kind in ("read", "write"):
            if kind in marks or (option.optional and not given.values and kind in option.values):
                self._file(_nameless_file(typed), kind, f"{self._name} {typed}")
        if "runs" in marks or "names" in marks:
            self._runs(typed)
        if "names" in marks:
            self._add(Target(source=typed), "read", f"{self._name} {typed}")
        if "alter" in marks:
            why = f"{self._name} {typed} changes the effect of other commands"
            self._effects.append(alters(why, typed))

    def _value(self, word: Word, kind: str, typed: str) -> None:
        why = f"{self._name} {typed}"
        match kind:
            case "read" | "list" | "write":
                self._file(word, kind, why, own=typed[-1] == "=")
            case "prefix":
                self._prefix(word)
            case "suffix":
                self._runs(typed)
                self._add(Target(source=typed), "write", why)
            case "folder":
                self._into(word, self._parsed.operands)
            case "run" | "shell":
                self._runs(typed)
            case "code":
                self._code(word, typed)
            case "host":
                self._fetches.append(word.text or "")
            case "send":
                self._send(word, typed)
            case _:
                pass

    def _runs(self, typed: str) -> None:
        why = f"{self._name} {typed} can run other code or change its target"
        self._effects.append(runs(why, typed))

    def _code(self, word: Word, token: str) -> None:
        reader = self._readers.get(self._table.language or "")
        if reader is None:
            why = f"{self._name} runs code that is given in the command"
            self._effects.append(runs(why, token))
        else:
            self._effects.extend(reader(word, self._here))

    def _send(self, word: Word, typed: str) -> None:
        """`@name` or `<name` in a text: the file is sent."""
        text = word.text
        if text is None:
            self._effects.append(runs(f"{self._name} {typed} may send a file", typed))
            self._file(word, "read", f"{self._name} {typed}")
            return
        for mark in ("@", "<", "file://", "fileb://"):
            _, found, file = text.partition(mark)
            if found:
                self._effects.append(runs(f"{self._name} {typed} may send a file", typed))
                # In `@a;type=x` the file ends before the first semicolon, or it does not.
                for each in dict.fromkeys((file, file.partition(";")[0])):
                    word = Word(source=each, text=each, prefix=each, tilde=each.startswith("~"))
                    self._file(word, "read", f"{self._name} {typed}")

    # --- files ---------------------------------------------------------------------------------

    def _file(
        self, word: Word, kind: str, why: str, *, own: bool = False, whole: bool = False
    ) -> None:
        """A file that is read or written."""
        if _no_file(word):
            return
        self._files += 1
        if self._files > MOST_FILES:
            return
        self._add(self._here.target(word), kind, why, own=own, whole=whole)

    def _add(
        self, target: Target, kind: str, why: str, *, own: bool = False, whole: bool = False
    ) -> None:
        """An effect on a file. `whole`: with all that is below it, where the command does that."""
        if kind in {"write", "move"}:
            if kind == "move" or (whole and self._deep):
                target = msgspec.structs.replace(target, deep=True)
            self._effects.append(writes(target, f"{why} writes or removes it", own=own))
            if kind == "write":
                return
        elif kind == "list":
            # Rules protect contents: a list of names reaches no file below.
            target = msgspec.structs.replace(target, names=True)
        elif whole and self._deep:
            hidden = not self._table.hides or "hidden" in self._marks
            target = msgspec.structs.replace(target, deep=True, hidden=hidden)
        self._effects.append(reads(target, f"{why} reads it"))

    def _into(self, place: Word, sources: tuple[Word, ...]) -> None:
        """Where operands are written to: the place itself, or their names in it."""
        if _no_file(place):
            return
        target = self._here.target(place)
        deep = self._deep or any(each.kind == "move" for each in self._table.operands or ())
        # A folder that is not there yet becomes the copy; `.` is there.
        whole = "onto" in self._marks or place.text not in {".", "./", "..", "../"}
        inside: dict[str, None] = {}
        for word in sources:
            name = _last_name(word)
            if name:
                inside.setdefault(name)
            else:
                whole = True  # `cp -r a/. b`: all of it, not a folder `a` in it
        self._write(target, deep=deep and whole)
        self._files += len(inside)
        if not target.paths or self._files > MOST_FILES or "onto" in self._marks:
            return
        for name in inside:
            found = _inside(target, name)
            self._write(found, deep=deep and not found.glob)

    def _write(self, target: Target, *, deep: bool) -> None:
        if deep:
            target = msgspec.structs.replace(target, deep=True)
        self._effects.append(writes(target, f"{self._name} writes it", own=not self._table.looks))

    def _prefix(self, word: Word) -> None:
        """The beginning of the names of files that are written."""
        self._prefixed = True
        target = self._here.target(word)
        paths = tuple(f"{path}*" for path in target.paths)
        self._write(msgspec.structs.replace(target, paths=paths, glob=True), deep=False)

    def _pairs(self, operands: tuple[Word, ...]) -> None:
        """The file in one operand that has the name of another."""
        given = [
            word
            for each in self._parsed.options
            for word, kind in zip(each.values, each.option.values, strict=False)
            if kind == "read"
        ]
        files = [*operands, *given][:_MOST_PAIRED]
        for folder in files:
            for other in files:
                name = _last_name(other)
                if other is not folder and name and not (_no_file(folder) or _no_file(other)):
                    inside = _inside(self._here.target(folder), name)
                    self._add(inside, "read", self._name)

    # --- operands ------------------------------------------------------------------------------

    def _operands(self) -> None:
        table, operands = self._table, self._parsed.operands
        spec = self._spec
        default = table.default or (table.deep_default if self._deep else None)
        if default is not None:
            before = _texts_before(spec)
            if len(operands) <= before < len(spec):
                self._operand(_literal(default), spec[before].kind)
        if not operands:
            return
        roles = assign(operands, spec)
        if roles is None:
            kinds = {each.kind for each in spec} | ({"read", "write"} if table.writes else {"read"})
            roles = [(word, kinds) for word in operands]
            if not table.loose:
                why = f"{self._name} takes {operands[-1].source} in a way that is not known"
                self._effects.append(runs(why, operands[-1].source))
        if table.pairs:
            self._pairs(operands)
        if table.lone_writes_here and len(operands) == 1 and len(spec) > 1:
            self._into(_literal("."), operands)
        copies = len(spec) > 1 and spec[-1].kind == "write" and spec[-2].many
        last = len(operands) - 1
        for at, (word, kinds) in enumerate(roles):
            for kind in sorted(kinds):
                if kind == "write" and at == last and copies:
                    self._into(word, operands[:-1])
                else:
                    self._operand(word, kind)
        if self._files > MOST_FILES:
            unknown = Target(source="…")
            self._add(unknown, "write" if table.writes else "read", f"{self._name}, many files:")

    def _operands_of_table(self) -> tuple[Operand, ...]:
        spec = self._table.operands or ()
        if not self._parsed.options:
            return spec
        if spec and spec[0].kind in _GIVES and "instead" in self._marks:
            spec = spec[1:]
        if any("folder" in given.option.values for given in self._parsed.options):
            spec = tuple(each for each in spec if each.many) or spec
        return spec

    def _operand(self, word: Word, kind: str) -> None:
        match kind:
            case "prefix":
                self._prefix(word)
            case "edit":
                self._operand(word, "read")
                self._operand(word, "write")
            case "read" | "list" | "write" | "move":
                # The name of a program that looks says nothing of a file that it writes.
                self._file(word, kind, self._name, own=not self._table.looks, whole=True)
                if "in-place" in self._marks and kind in {"read", "list"}:
                    self._file(word, "write", self._name, whole=True)
            case "run":
                if word.text not in HARMLESS:
                    why = f"{self._name} runs {word.source}"
                    self._effects.append(runs(why, word.source))
                self._file(word, "read", self._name)
            case "code":
                self._code(word, word.source)
            case "host":
                self._fetches.append(word.text or "")
            case _:
                pass

    # --- what is not known ---------------------------------------------------------------------

    def _unknown(self) -> None:
        parsed, table = self._parsed, self._table
        for each in parsed.unknown[:_MOST_UNKNOWN]:
            if table.loose and each.typed.startswith("-") and not table.may_act(each.typed):
                continue
            self._effects.append(runs(f"{self._name} {each.typed} {each.why}", each.typed))
        if len(parsed.unknown) + len(parsed.open) > _MOST_UNKNOWN:
            self._effects.append(runs(f"too many words of {self._name} are not known", ""))
        if parsed.unknown or (table.loose and any(each.kind == "read" for each in self._spec)):
            self._every_word()
        known = {id(word) for word in parsed.operands if word.text is not None}
        if not any(each.many and each.kind in _FILES for each in self._spec):
            # `-t app:$x`: a value that has a beginning is no file, and more words would be none.
            named = {id(word) for word in parsed.operands}
            known |= {id(each) for each in parsed.open if each.prefix and id(each) not in named}
        if not table.uses_files:
            known.add(id(_LATER))  # `… | xargs docker rmi`: names, but not of files
        for word in parsed.open[:_MOST_UNKNOWN]:
            token = word.source if word is not _LATER or self._via is None else self._via
            if table.acts:
                why = f"{word.source} may be an option of {self._name} at run time"
                by_name = word.glob and word.text is not None
                self._effects.append(msgspec.structs.replace(runs(why, token), by_name=by_name))
            if id(word) not in known:
                self._add(self._here.target(word), "read", self._name)
                if table.writes:
                    self._add(self._here.target(word), "write", self._name)

    def _every_word(self) -> None:
        """Every word, and every value in a word, may be a file."""
        for word in self._words[1 : MOST_FILES + 1]:
            for each in _possible_files(word):
                self._file(each, "read", self._name)
                if self._table.writes and not self._table.loose:
                    self._file(each, "write", self._name)


def assign(
    operands: tuple[Word, ...], spec: tuple[Operand, ...]
) -> list[tuple[Word, set[str]]] | None:
    """What each operand is. A word that may become several may be several things.

    None: there are more operands than the program takes.
    """
    if len(spec) == 1 and spec[0].many:
        return [(word, {spec[0].kind}) for word in operands]
    many = next((at for at, each in enumerate(spec) if each.many), None)
    count = len(operands)
    if many is None and count > len(spec):
        return None
    after = 0 if many is None else len(spec) - many - 1
    loose = next((at for at, word in enumerate(operands) if splits(word)), None)
    vanishing = after and any(word.text is None and splits(word) for word in operands)
    roles: list[tuple[Word, set[str]]] = []
    for at, word in enumerate(operands):
        if many is None or at < many:
            first, role = at, at
        elif count - at <= after and count - after > many:
            first, role = many, len(spec) - (count - at)
        else:
            first, role = many, many
        kinds = {spec[role].kind}
        if loose is not None and at >= loose and (many is None or loose < many):
            kinds = {each.kind for each in spec[loose:]}
        elif vanishing or (splits(word) and at == count - 1 and after):
            kinds = {each.kind for each in spec[first:]}
        roles.append((word, kinds))
    return roles


def _inside(folder: Target, name: str) -> Target:
    """A name in a folder; it may be a pattern."""
    wild = _WILD.search(name) is not None
    return msgspec.structs.replace(
        folder,
        paths=tuple(f"{path.rstrip('/')}/{name}" for path in folder.paths),
        glob=folder.glob or wild,
        hidden=name == "*",
    )


def _texts_before(spec: tuple[Operand, ...]) -> int:
    """The number of operands before the first that is a file."""
    return next(
        (at for at, each in enumerate(spec) if each.many or each.kind not in _GIVES), len(spec)
    )


def _possible_files(word: Word) -> list[Word]:
    """What a word may name: itself, the value in `a=value`, and a file in `@file`, `file://file`."""
    text = word.text
    if text is None:
        return [word]
    value = text.partition("=")[2]
    found = [word]
    texts = [text, value]
    if text.startswith("-"):
        found, texts = [], [value]
        if not text.startswith("--") and not value:
            texts = [text[at:] for at in range(2, min(len(text), 12))]
    marked = [mark[2] for each in texts if (mark := _MARKED.match(each)) is not None]
    named = [each for each in (*texts, *marked) if each and each != text]
    return found + [_literal(each) for each in named]


def _no_file(word: Word) -> bool:
    """Standard input or output, or a process substitution: its commands are separate parts."""
    return word.text in HARMLESS or word.source.startswith(("<(", ">("))


def _literal(text: str) -> Word:
    return Word(source=text, text=text, prefix=text, tilde=text.startswith("~"))


def _nameless_file(typed: str) -> Word:
    """A file that the command does not name."""
    return Word(source=typed)


def _last_name(word: Word) -> str:
    """The name that a copy of a file has: a pattern, if it is not known. Empty: it has none."""
    text = word.text
    if text is None:
        return "*"
    name = text.rstrip("/").rpartition("/")[2]
    if name in {"", ".", "..", "-"}:
        return ""
    # A name that looks like a pattern and is none is taken for one: it means itself, too.
    return name
