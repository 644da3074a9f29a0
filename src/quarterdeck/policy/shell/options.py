"""Options and operands of a command line, as a program itself would take them.

`parse` follows the table of a program: what is an option, what is its value, what is an operand.
What the table does not explain is `unknown`, and nothing is guessed. `operand_at` works without a
table, for wrappers.
"""

from __future__ import annotations

import re

from quarterdeck.domain.structs import Value
from quarterdeck.policy.shell.script import Word
from quarterdeck.policy.shell.tables import Option, Table

_WILD = re.compile(r"[*?\[]")
_ASSIGNS = re.compile(r"[A-Za-z_][\w.]*[+:?!]*=")
_WHOLE = re.compile(r"[\w./:%+,=-]*\"[^\"]*\"[\w./:%+,=-]*")
"""Expansions only within double quotes: always one word, but for `"$@"` and its like."""

_NUMBER = re.compile(r"[-+]?[\d.]+[A-Za-z%]*\Z")
_LONGEST_BUNDLE = 60
"""Letters of one word that are read as options. No program has more, but one may repeat them."""

_SUBSTITUTES = ("<(", ">(")
LONGEST_BUNDLE = 128
"""Letters of short options in one word, where the first takes no value."""


class Given(Value):
    """One use of an option."""

    option: Option
    typed: str
    """The option as typed, without its value: what a rule must write out."""

    values: tuple[Word, ...] = ()


class Unknown(Value):
    """A word that the table does not explain."""

    typed: str
    why: str


class Parsed(Value):
    """The words of a command, by the table of its program."""

    table: Table
    """The table that holds for the operands: a subcommand's, if there is one."""

    options: tuple[Given, ...] = ()
    operands: tuple[Word, ...] = ()
    unknown: tuple[Unknown, ...] = ()
    open: tuple[Word, ...] = ()
    """Words that may be options, or several words, when the command runs."""


def parse(words: tuple[Word, ...], table: Table) -> Parsed:
    """Parse the words of a command, the first of which is its name."""
    if len(words) == 1:
        return Parsed(table=table)
    return _Parser(words, table).run()


def splits(word: Word) -> bool:
    """May the shell make several words, or none, of a word whose value is not known?"""
    if word.text is not None:
        return word.glob
    source = word.source
    if source.startswith(_SUBSTITUTES):
        return False
    return _WHOLE.fullmatch(source) is None or "@" in source


class _Parser:
    """One pass over the words of a command."""

    def __init__(self, words: tuple[Word, ...], table: Table) -> None:
        self._words = _with_braces_expanded(words)
        self._at = 1
        self._table = table
        self._options: list[Given] = []
        self._operands: list[Word] = []
        self._unknown: list[Unknown] = []
        self._open: list[Word] = []
        self._only_operands = False
        self._only_texts = False
        self._chosen = False
        """There is an operand already: a subcommand would have come before it."""

    def run(self) -> Parsed:
        """The words, parsed."""
        words = self._words
        if self._table.plain:
            return Parsed(table=self._table)
        if self._table.first_is_bundle and len(words) > 1:
            self._first_bundle(words[1])
        while self._at < len(words):
            word = words[self._at]
            self._at += 1
            if self._only_operands:
                self._operand(word)
            elif word.text is None:
                self._unknown_word(word)
            elif word.text[:1] == "-" and len(word.text) > 1:
                self._take_option(word, word.text)
            else:
                self._plain(word, word.text)
        return Parsed(
            table=self._table,
            options=tuple(self._options),
            operands=tuple(self._operands),
            unknown=tuple(self._unknown),
            open=tuple(self._open),
        )

    # --- words that are not options ------------------------------------------------------------

    def _plain(self, word: Word, text: str) -> None:
        table = self._table
        if text in table.operators and not word.glob:
            return
        if text[:1] == "@" and table.at_files:
            self._not_known(text, "stands for the words in a file")
        if table.plus is not None and text[:1] == "+" and len(text) > 1:
            self._options.append(Given(option=table.plus, typed=text, values=(cut(word, 1),)))
            return
        if "=" in text:
            if table.keyed:
                key = text.partition("=")[0] + "="
                option = table.options.get(key)
                if option is not None:
                    self._give(option, key, cut(word, len(key)))
                    return
            if table.assignments is not None and _ASSIGNS.match(text):
                key = text.partition("=")[0] + "="
                value = (cut(word, len(key)),)
                self._options.append(Given(option=table.assignments, typed=key, values=value))
                return
        if word.glob and text[:1] in {"*", "?", "["}:
            self._open.append(word)
        self._operand(word)

    def _operand(self, word: Word) -> None:
        table = self._table
        if table.subcommands and not self._chosen:
            literal = word.literal
            found = None if literal is None else table.subcommand(literal)
            if found is not None:
                self._table = found
                return
            if table.operands is None:
                self._unknown.append(Unknown(typed=word.source, why="is not a known subcommand"))
        self._chosen = True
        if self._only_texts and len(self._operands) >= _texts_first(table, self._options):
            return
        self._operands.append(word)
        if not table.permutes:
            self._only_operands = True

    def _unknown_word(self, word: Word) -> None:
        """A word whose value is known only at run time, but for its beginning."""
        prefix = word.prefix
        if splits(word) or (prefix in {"", "-"} and not word.source.startswith(_SUBSTITUTES)):
            self._open.append(word)
        if prefix[:1] != "-" or prefix == "-":
            if prefix and "=" in prefix and (self._table.keyed or self._table.assignments):
                self._plain(word, prefix)
            else:
                self._operand(word)
        elif not self._take_option(word, prefix):
            self._open.append(word)

    # --- options -------------------------------------------------------------------------------

    def _take_option(self, word: Word, text: str) -> bool:
        """An option. Returns False if the word is not known far enough to tell which."""
        if text == "--" and word.text is not None:
            self._only_operands = True
            return True
        if text.startswith("--") or self._table.long_with_one_dash:
            return self._long(word, text)
        return self._bundle(word, text)

    def _long(self, word: Word, text: str) -> bool:
        table = self._table
        name, equals, _ = text.partition("=")
        if not equals and word.text is None:
            return self._take_joined(word, text)
        option = None if word.glob and _WILD.search(name) else table.long_option(name)
        if option is None and table.two_dashes and name.startswith("--"):
            option = table.long_option(name[1:])
        if option is None:
            if table.long_with_one_dash and self._take_joined(word, text):
                return True
            if table.numeric and text[1:].isdigit():
                return True
            if table.long_with_one_dash and table.bundles and not name.startswith("--"):
                return self._bundle(word, text)
            self._not_known(name)
        elif not equals:
            self._give(option, name, None)
        elif option.values:
            self._give(option, name, cut(word, len(name) + 1))
        else:
            self._not_known(name, "takes no value")
        return True

    def _take_joined(self, word: Word, text: str) -> bool:
        """`-Idir`: an option of several letters, or one, with its value behind it."""
        if not self._table.long_with_one_dash:
            return False
        for end in range(min(len(text), 40), 1, -1):
            option = self._table.options.get(text[:end])
            if option is not None and "joined" in option.marks and end < len(text):
                self._give(option, text[:end], cut(word, end))
                return True
        return False

    def _bundle(self, word: Word, text: str, *, start: int = 1) -> bool:
        """`-abc`: the first letter that takes a value takes the rest, or the next word."""
        table = self._table
        number = False
        if len(text) > LONGEST_BUNDLE and table.bundles and word.text is not None:
            option = table.options.get(text[:2])
            if option is None or not option.values:
                self._not_known(text[:LONGEST_BUNDLE])
                return True
        for place in range(start, len(text)):
            letter = text[place]
            if place > _LONGEST_BUNDLE:
                self._not_known(text[:_LONGEST_BUNDLE])
                return True
            if table.numeric and letter.isdigit():
                number = True
                continue
            option = table.options.get(f"-{letter}")
            typed = text[: place + 1]
            if option is None or (number and option.values) or (place > 1 and not table.bundles):
                self._not_known(typed)
                return True
            if not option.values:
                self._options.append(Given(option=option, typed=typed))
                self._mark(option)
                continue
            if not table.attached:
                if text[place + 1 : place + 2].isdigit():
                    self._not_known(text)
                    return True
                self._give(option, typed, None)
                continue
            attached = place + 1 < len(text) or word.text is None
            self._give(option, typed, cut(word, place + 1) if attached else None)
            return True
        return word.text is not None

    def _first_bundle(self, word: Word) -> None:
        """`tar xzf a`: letters without a dash; their values follow in the order of the letters."""
        text = word.text
        if text is None or text[:1] == "-" or word.glob:
            return
        self._at = 2
        if len(text) > LONGEST_BUNDLE:
            self._not_known(text[:LONGEST_BUNDLE])
            return
        for place, letter in enumerate(text):
            option = self._table.options.get(f"-{letter}")
            if option is None:
                self._not_known(text[: place + 1])
                return
            self._give(option, text[: place + 1], None)

    def _give(self, option: Option, typed: str, attached: Word | None) -> None:
        """One option, with the words that it takes."""
        values: list[Word] = [] if attached is None else [attached]
        if attached is not None and self._table.loose_values and typed[1:2] != "-":
            number = attached.text is not None and attached.text.isdecimal()
            if not number:
                self._not_known(typed, "has a value that may end early")
                return
        if option.optional:
            self._options.append(Given(option=option, typed=typed, values=tuple(values)))
            self._mark(option)
            return
        wanted = option.values
        if wanted == ("command",):
            self._skip_command()
            wanted = ()
        while len(values) < len(wanted):
            if self._at >= len(self._words):
                self._not_known(typed, "has no value")
                return
            word = self._words[self._at]
            self._at += 1
            if splits(word):
                self._open.append(word)
            values.append(word)
        if wanted == ("number",) and not _NUMBER.match(values[0].text or "0"):
            self._not_known(typed, "needs a number")
            return
        self._options.append(Given(option=option, typed=typed, values=tuple(values)))
        self._mark(option)

    def _mark(self, option: Option) -> None:
        if option.marks:
            self._only_operands = self._only_operands or "last" in option.marks
            self._only_texts = self._only_texts or "texts" in option.marks

    def _skip_command(self) -> None:
        before = ""
        while self._at < len(self._words):
            text = self._words[self._at].text
            self._at += 1
            if text == ";" or (text == "+" and before == "{}"):
                return
            before = self._words[self._at - 1].source

    def _not_known(self, typed: str, why: str = "is not known") -> None:
        self._unknown.append(Unknown(typed=typed, why=why))


def _texts_first(table: Table, options: list[Given]) -> int:
    """So many operands come before those that are texts."""
    first = table.operands[:1] if table.operands else ()
    if not first or first[0].kind not in {"skip", "code", "run"}:
        return 0
    return 0 if any("instead" in each.option.marks for each in options) else 1


def cut(word: Word, start: int) -> Word:
    """The rest of a word, as a value that is attached to an option."""
    if word.text is None:
        return Word(source=word.source, prefix=word.prefix[start:], quoted=word.quoted)
    text = word.text[start:]
    return Word(
        source=text,
        text=text,
        prefix=text,
        glob=word.glob and _WILD.search(text) is not None,
        tilde=text.startswith("~"),
        quoted=word.quoted,
    )


def _with_braces_expanded(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """`-{a,b}` is two words."""
    if not [word for word in words if word.texts]:
        return words
    out: list[Word] = []
    for word in words:
        if word.text is not None or not word.texts:
            out.append(word)
            continue
        for text in word.texts:
            glob = _WILD.search(text) is not None
            out.append(Word(source=text, text=text, prefix=text, glob=glob, tilde=word.tilde))
    return tuple(out)


# --- without a table ---------------------------------------------------------------------------


def operand_at(
    words: tuple[Word, ...], values: frozenset[str], flags: frozenset[str]
) -> int | None:
    """The index of the first word that is not an option; None if unknown.

    `values` are options that take the next word, `flags` those that do not; for any other option it
    is unknown whether it takes the next word.
    """
    at = 1
    while at < len(words):
        text = words[at].literal
        if text is None:
            return None
        if text == "--":
            return at + 1
        if not text.startswith("-") or text == "-":
            return at
        taken = _takes(text, values, flags)
        if taken is None:
            return None
        at += taken
    return at


def _takes(text: str, values: frozenset[str], flags: frozenset[str]) -> int | None:
    """How many words an option takes, itself included; None if unknown."""
    name, equals, _ = text.partition("=")
    if name in flags:
        return 1
    if name in values:
        return 1 if equals else 2
    if text.startswith("--"):
        return None
    if text[1:].isdigit():
        return 1 if "-#" in flags else None
    for place, letter in enumerate(text[1:], 1):
        short = f"-{letter}"
        if short in values:
            return 1 if place + 1 < len(text) else 2
        if short not in flags:
            return None
    return 1
