"""The commands in a text by bash's own grammar, and whether another reading agrees.

`read_strictly` reads a text with `tokens` and marks what it runs: every word of every simple
command, every redirection, every operator between commands. The other reader makes the same marks
from the syntax tree. Where the two differ by one byte, it is not known what bash would run, and a
person is asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import ClassVar, NamedTuple

from quarterdeck.domain.structs import name_set
from quarterdeck.policy.shell.tokens import Kind, Lexer, Outside, Token

Mark = tuple[int, int, str, int, int]
"""Start and end in bytes, the kind, the position of the command that it belongs to, and the number
of subshells and substitutions around it."""

WORD, ASSIGNMENT, TEST = "word", "assignment", "test"
TESTS = frozenset({"[", "[["})
JOINTS = frozenset({"&&", "||", "|", "|&", "&"})

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[[^\]]*\])?\+?=")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DECLARING = name_set("declare typeset export local readonly")
_RESERVED = name_set(
    "! { } [[ ]] case coproc do done elif else esac fi for function if in select then until while"
)
_PIECE = re.compile(
    r" *(?:((?:[A-Za-z0-9_./:@%+,=~*?^!{}\[\]-]|'[^'\n]*'|\"[^\"\\$`\n]*\")+)|(&&|\|\|?|;))"
)
LONGEST_PLAIN = 1_024
"""Characters of a text that is looked at for a line of simple commands first."""

_CASE_ENDS = frozenset({";;", ";&", ";;&"})


class Reading(NamedTuple):
    """The result of the strict reading."""

    marks: list[Mark]
    tokens: list[Token]
    """They make up the text, without a gap."""

    outside: tuple[int, str] | None
    """Where and why it was given up, if it was."""


def read_strictly(text: str) -> Reading:
    """Read a text that has one character for each byte. Never raises."""
    grammar = _Grammar(text)
    outside: tuple[int, str] | None = None
    try:
        grammar.program("")
    except Outside as error:
        outside = (min(error.at, len(text)), error.why)
    tokens = grammar.tokens
    done = tokens[-1].end if tokens else 0
    if done < len(text):
        tokens.append(Token(Kind.REST, done, len(text)))
    return Reading(grammar.marks, tokens, outside)


def plain_marks(text: str) -> list[Mark] | None:
    """The marks of one short line of simple commands; None if it has anything else in it.

    Most commands are such lines, and they need no grammar: words without substitutions and escapes,
    blanks, and operators between commands. `read_strictly` makes the same marks of them.
    """
    marks: list[Mark] = []
    place, at, size, operator = -1, 0, len(text), ""
    if size > LONGEST_PLAIN:
        return None
    while at < size:
        found = _PIECE.match(text, at)
        if found is None:
            return None
        start, end = found.span(found.lastindex or 0)
        at = end
        if found.lastindex == 1:
            if place < 0:
                word = found[1]
                if "=" in word or word in _RESERVED or word in TESTS:
                    return None
                place = start
            marks.append((start, end, WORD, place, 0))
            continue
        operator = found[2]
        if place < 0 or not operator:
            return None
        place = -1
        if operator != ";":
            marks.append((start, end, operator, 0, 0))
    return marks if place >= 0 or operator == ";" else None


def difference(strict: list[Mark], other: list[Mark]) -> Mark | None:
    """What only one of two readings saw, the first of it; None where they agree."""
    if strict == other or (len(strict) == len(other) and sorted(strict) == sorted(other)):
        return None
    apart = set(strict) ^ set(other)
    # A thing that was seen twice by one of them leaves nothing apart.
    return min(apart) if apart else min((*strict, *other))


def document_mark(start: int, end: int, last: int) -> Mark:
    """A here-document: the position of its delimiter, and the start of its last line."""
    return (start, end, "<<", last, 0)


class _Grammar(Lexer):
    """Commands, lists, groups and conditions, from tokens."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.marks: list[Mark] = []
        self._shells = -1

    def program(self, closer: str) -> None:
        """Read commands up to a closing bracket, or to the end of the text ("")."""
        documents = len(self.documents)
        self._shells += 1
        self._start_command()
        self._list(frozenset({closer}))
        self._shells -= 1
        for document, last in self.documents[documents:]:
            self.marks.append(document_mark(document.start, document.end, last))
        del self.documents[documents:]

    # --- lists -----------------------------------------------------------------------------

    def _start_command(self) -> None:
        """Go to a token that may begin a command."""
        self.arrays = True
        self.advance()

    def _stands(self, stops: frozenset[str]) -> bool:
        """Is the current token one of these words or operators, or the end ("")?"""
        if self.at(Kind.END):
            return "" in stops
        return self.kind in {Kind.WORD, Kind.OPERATOR} and self.raw in stops

    def _lines(self) -> None:
        while self.at(Kind.NEWLINE):
            self._start_command()

    def _list(self, stops: frozenset[str]) -> None:
        """Commands up to one of these; the current token is that one then."""
        while True:
            self._lines()
            if self._stands(stops):
                return
            self._and_or()
            if self.at(Kind.OPERATOR, ";", "&"):
                self._joint()
                self._start_command()
            elif not self.at(Kind.NEWLINE) and not self._stands(stops):
                self._fail_unexpected()

    def _fail_unexpected(self) -> None:
        text = self.raw[:40] if not self.at(Kind.END) else "the end"
        self.outside(f"{text!r} is not understood here")

    def _joint(self) -> None:
        if self.raw in JOINTS:
            self.marks.append((self.start, self.end, self.raw, 0, self._shells))

    def _and_or(self) -> None:
        while True:
            while self.at(Kind.WORD, "!"):
                self._start_command()
            self._command()
            if not self.at(Kind.OPERATOR, "&&", "||", "|", "|&"):
                return
            self._joint()
            self._start_command()
            self._lines()

    # --- commands --------------------------------------------------------------------------

    def _command(self) -> None:
        if self.at(Kind.OPERATOR, "("):
            if self.text[self.end : self.end + 1] == "(":
                self.brackets()
            else:
                self._subshell()
        elif self.at(Kind.WORD) and self.raw in _RESERVED:
            compound = self._COMPOUND.get(self.raw)
            if compound is None:
                self._fail_unexpected()
                return
            self.deeper()
            compound(self)
            self.higher()
        elif self.kind in {Kind.WORD, Kind.REDIRECTION}:
            self._simple()
            return
        else:
            self._fail_unexpected()
        # After a compound command only redirections may follow.
        self.advance()
        while self.at(Kind.REDIRECTION):
            self._redirection()

    def _function(self) -> None:
        """The name of a function has been read: `()` and a group follow."""
        self.advance()
        if not self.at(Kind.OPERATOR, ")"):
            self._fail_unexpected()
        self.advance()
        while self.at(Kind.NEWLINE):
            self.advance()
        if not self.at(Kind.WORD, "{"):
            self._fail_unexpected()
        self.deeper()
        self._group()
        self.higher()
        self.advance()

    def _simple(self) -> None:
        words: list[tuple[int, int, str]] = []
        first = name = ""
        while True:
            if len(words) == 1 and name and self.at(Kind.OPERATOR, "("):
                self._function()
                return
            if self.at(Kind.WORD):
                sets = not name and _ASSIGNMENT.match(self.raw) is not None
                if not sets and not name:
                    first = name = self.raw
                words.append((self.start, self.end, ASSIGNMENT if sets else WORD))
                self.arrays = not name or first in _DECLARING
                self.advance()
            elif self.at(Kind.REDIRECTION):
                self._redirection()
            else:
                break
        if not words:
            return
        place = words[0][0]
        if first in TESTS:
            self.marks.append((place, words[-1][1], TEST, place, self._shells))
            return
        for start, end, what in words:
            self.marks.append((start, end, what, place, self._shells))

    def _redirection(self) -> None:
        operator = self.raw.lstrip("0123456789")
        if operator in {"<<", "<<-"}:
            self.document()
        else:
            kept, self.arrays = self.arrays, False
            self.word_wanted()
            self.arrays = kept
            self.marks.append((self.start, self.end, operator, 0, 0))
        self.advance()

    def _subshell(self) -> None:
        self.deeper()
        self._shells += 1
        self._start_command()
        self._list(frozenset({")"}))
        self._shells -= 1
        self.higher()

    def _group(self) -> None:
        self._then("}")

    def _then(self, *stops: str) -> str:
        """A list of commands; returns the word that ends it."""
        self._start_command()
        self._list(frozenset(stops))
        return self.raw

    def _if(self) -> None:
        ended = "elif"
        while ended == "elif":
            self._then("then")
            ended = self._then("elif", "else", "fi")
        if ended == "else":
            self._then("fi")

    def _while(self) -> None:
        self._then("do")
        self._then("done")

    def _for(self) -> None:
        self.arrays = False
        self.advance()
        if self.at(Kind.OPERATOR, "("):
            self.brackets(clauses=3)
            self.advance()
        else:
            self._for_words()
        self._separator()
        if not self.at(Kind.WORD, "do"):
            self._fail_unexpected()
        self._then("done")

    def _for_words(self) -> None:
        if not self.at(Kind.WORD) or not _NAME.fullmatch(self.raw):
            self._fail_unexpected()
        self.advance()
        while self.at(Kind.NEWLINE):
            self.advance()
        if self.at(Kind.WORD, "in"):
            self.advance()
            while self.at(Kind.WORD):
                self.advance()

    def _separator(self) -> None:
        if self.at(Kind.OPERATOR, ";"):
            self.advance()
        while self.at(Kind.NEWLINE):
            self.advance()

    def _case(self) -> None:
        self.arrays = False
        self.word_wanted()
        self.advance()
        while self.at(Kind.NEWLINE):
            self.advance()
        if not self.at(Kind.WORD, "in"):
            self._fail_unexpected()
        self.advance()
        while True:
            self.arrays = False
            while self.at(Kind.NEWLINE):
                self.advance()
            if self.at(Kind.WORD, "esac"):
                return
            self._patterns()
            self._start_command()
            self._list(_CASE_ENDS | {"esac"})
            if self.raw == "esac":
                return
            self.advance()

    def _patterns(self) -> None:
        if self.at(Kind.OPERATOR, "("):
            self.advance()
        while self.at(Kind.WORD):
            self.advance()
            if not self.at(Kind.OPERATOR, "|"):
                break
            self.word_wanted()
        if not self.at(Kind.OPERATOR, ")"):
            self._fail_unexpected()

    def _test(self) -> None:
        """`[[ … ]]`: words, brackets and operators up to the closing one."""
        place = self.start
        self.arrays = False
        self.advance()
        while not self.at(Kind.WORD, "]]"):
            if self.at(Kind.WORD, "=~"):
                self.regex()
            elif not self._in_test():
                self._fail_unexpected()
            self.advance()
        self.marks.append((place, self.end, TEST, place, self._shells))

    def _in_test(self) -> bool:
        if self.at(Kind.WORD) or self.at(Kind.NEWLINE):
            return True
        if self.at(Kind.OPERATOR):
            return self.raw in {"&&", "||", "(", ")"}
        return self.at(Kind.REDIRECTION, "<", ">")

    _COMPOUND: ClassVar[dict[str, Callable[[_Grammar], None]]] = {
        "{": _group,
        "if": _if,
        "while": _while,
        "until": _while,
        "for": _for,
        "case": _case,
        "[[": _test,
    }
