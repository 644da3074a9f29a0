"""One use of a program that has a table, for readers which know more than a table can say.

A reader gets an `Invocation` and gives the effects. Mostly it changes the table first (what an
operand is depends on another option), and adds effects that follow from a value. `archives`,
`transfers` and `builds` hold the readers; `programs` calls them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from quarterdeck.domain.structs import Value
from quarterdeck.policy.shell.effects import ProgramEffects
from quarterdeck.policy.shell.options import Given, Parsed, cut, parse
from quarterdeck.policy.shell.script import Effect, EffectKind, Word
from quarterdeck.policy.shell.table_effects import effects_by_table
from quarterdeck.policy.shell.tables import Operand, Table
from quarterdeck.policy.shell.working_dir import WorkingDir


class Invocation(Value):
    """A command with its program's table."""

    name: str
    table: Table
    words: tuple[Word, ...]
    here: WorkingDir
    via: str | None = None
    """A wrapper that adds words at run time."""

    input: str | None = None
    """The text that it gets as its input, if that is known."""

    def parse(self) -> Parsed:
        """Its words, by the table."""
        return parse(self.words, self.table)

    def effects(
        self, more: Iterable[Effect] = (), fetches: Iterable[str] | None = None
    ) -> ProgramEffects:
        """The effects by the table, and more. `fetches` replaces what the table says of hosts."""
        found = effects_by_table(self.name, self.table, self.words, self.here, via=self.via)
        added = tuple(more)
        contacts = found.fetches if fetches is None else tuple(dict.fromkeys(fetches))
        quiet = not contacts and all(each.kind is EffectKind.READS for each in added)
        return msgspec.structs.replace(
            found,
            effects=(*found.effects, *added),
            fetches=contacts,
            looks=found.looks and quiet,
        )

    def with_table(
        self,
        *,
        operands: str | None = None,
        options: dict[str, str] | None = None,
        looks: bool | None = None,
    ) -> Invocation:
        """The same with other operands (`read* write`), or other kinds for values of options."""
        table = self.table
        changed = dict(table.options)
        for name, kind in (options or {}).items():
            found = changed[name]
            other = msgspec.structs.replace(found, values=(kind,))
            changed |= {key: other for key, each in changed.items() if each is found}
        spec = table.operands if operands is None else _spec(operands)
        kinds = {each.kind for each in spec or ()}
        return msgspec.structs.replace(
            self,
            table=msgspec.structs.replace(
                table,
                options=changed,
                operands=spec,
                looks=table.looks if looks is None else looks,
                writes=table.writes or not kinds.isdisjoint({"write", "move"}),
            ),
        )


Reader = Callable[[Invocation], ProgramEffects]


def _spec(text: str) -> tuple[Operand, ...]:
    return tuple(
        Operand(kind=each.removesuffix("*"), many=each.endswith("*")) for each in text.split()
    )


def names_given(parsed: Parsed) -> frozenset[str]:
    """The options of a command, by the first name that the table has for each."""
    return frozenset(each.option.name for each in parsed.options)


def uses_of(parsed: Parsed, *names: str) -> list[Given]:
    """Every use of some options, by the first names that the table has for them."""
    return [each for each in parsed.options if each.option.name in names]


def words_of(parsed: Parsed, *names: str) -> list[Word]:
    """The values that some options were given; of `-f=x` only `x`."""
    if not parsed.options:
        return []
    return [
        cut(word, 1) if word.prefix[:1] == "=" and not each.typed.startswith("--") else word
        for each in uses_of(parsed, *names)
        for word in each.values
    ]


def plain(text: str) -> Word:
    """A word with a known value, such as a part of another one."""
    return Word(source=text, text=text, prefix=text, tilde=text.startswith("~"))


def folders(parsed: Parsed, here: WorkingDir) -> list[WorkingDir]:
    """The folders that a program works in, by its options which change it; at least `here`."""
    found = [here]
    for given in parsed.options:
        for word, kind in zip(given.values, given.option.values, strict=False):
            if kind == "chdir":
                found.append(found[-1].into(word))
    return found[1:] or found
