"""sed scripts: do they only change the text that passes through?

A parser for the commands of GNU sed. It reads a script as sed does: addresses, delimiters of one's
choice, text blocks, labels. Anything that it does not know is reported as unknown, and so is a
script that versions of sed read in different ways.
"""

from __future__ import annotations

import re

from quarterdeck.policy.shell.code import CodeEffects, unknown

LONGEST = 20_000
"""Longer scripts are not read: a person is asked."""

_PLAIN = frozenset("=dDgGhHnNpPxzF")
_NUMBERED = frozenset("lLqQ")
_BRANCHES = frozenset("btT")
_LABEL = re.compile(r"[ \t]*+([A-Za-z0-9_.-]*+)[ \t]*+(?=[;}\n]|$)")
_BLANKS = re.compile(r"[ \t]*")
_GAPS = re.compile(r"[ \t\n;]*")
_NUMBER = re.compile(r"\d+")
_STEP = re.compile(r"\d++(?:[ \t]*+~[ \t]*+\d++)?|\$")
_SECOND = re.compile(r"[+~]\d+|\d+|\$")
_FLAGS = re.compile(r"[gpiImM0-9]*")
_ADDRESS_FLAGS = re.compile(r"[IM]*")
_CLASS = re.compile(r"\[([:.=])[a-z]*\1\]")


class _UnreadableError(Exception):
    """The script is not understood; the text says why."""


def read_sed(script: str) -> CodeEffects:
    """The effects of a script. Several `-e` are one script, joined by newlines."""
    if len(script) > LONGEST:
        return unknown("sed's script is too long to be read")
    if "\r" in script or "\0" in script:
        return unknown("sed's script has control characters")
    parser = _Parser(script)
    try:
        parser.run()
    except _UnreadableError as error:
        return unknown(f"sed's script is not understood: {error}")
    return CodeEffects(
        reads=tuple(parser.reads),
        writes=tuple(parser.writes),
        runs=tuple(parser.runs),
        scripts=tuple(parser.scripts),
    )


class _Parser:
    """Reads commands one by one; `at` is the index of the next character."""

    def __init__(self, script: str) -> None:
        self.script = script
        self.at = 0
        self.depth = 0
        self.reads: list[str | None] = []
        self.writes: list[str | None] = []
        self.runs: list[str] = []
        self.scripts: list[str] = []

    def run(self) -> None:
        while True:
            self._skip(_GAPS)
            if self.at >= len(self.script):
                break
            addressed = self._addresses()
            self._command(addressed)
        if self.depth:
            raise _UnreadableError("a `{` is not closed")

    def _next(self) -> str:
        """The next character, which is taken; "" at the end."""
        found = self.script[self.at : self.at + 1]
        self.at += 1
        return found

    def _peek(self) -> str:
        return self.script[self.at : self.at + 1]

    def _skip(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.script, self.at)
        if found is None:
            return ""
        self.at = found.end()
        return found.group()

    # --- addresses -----------------------------------------------------------------------------

    def _addresses(self) -> bool:
        if not self._address(_STEP):
            return False
        self._skip(_BLANKS)
        if self._peek() == ",":
            self.at += 1
            self._skip(_BLANKS)
            if not self._address(_SECOND):
                raise _UnreadableError("an address is missing after the comma")
            self._skip(_BLANKS)
        return True

    def _address(self, plain: re.Pattern[str]) -> bool:
        mark = self._peek()
        if mark in {"/", "\\"} and mark:
            self.at += 1
            delimiter = self._next() if mark == "\\" else mark
            self._pattern(delimiter)
            self._skip(_ADDRESS_FLAGS)
            return True
        return bool(self._skip(plain))

    # --- commands ------------------------------------------------------------------------------

    def _command(self, addressed: bool) -> None:
        self._skip(_BLANKS)
        if self._peek() == "!":
            self.at += 1
            self._skip(_BLANKS)
        name = self._next()
        if name in _PLAIN and name:
            self._end()
        elif name in _NUMBERED and name:
            self._skip(_BLANKS)
            self._skip(_NUMBER)
            self._end()
        elif name == "{":
            self.depth += 1
        elif name == "}" and self.depth and not addressed:
            self.depth -= 1
            self._end()
        elif name == "#" and not addressed:
            self._line()
        elif name in _BRANCHES and name:
            if _LABEL.match(self.script, self.at) is None:
                raise _UnreadableError("a label has unusual characters")
            self._skip(_LABEL)
            self._end()
        elif name == ":" and not addressed:
            found = _LABEL.match(self.script, self.at)
            if found is None or not found.group(1):
                raise _UnreadableError("a label has unusual characters")
            self.at = found.end()
            self._end()
        elif name == "s":
            self._substitute()
        elif name == "y":
            self._transliterate()
        elif name in {"a", "i", "c"}:
            self._text()
        else:
            self._file_or_program(name)

    def _file_or_program(self, name: str) -> None:
        if name == "e":
            command = self._line().strip()
            self.runs.append(f"sed's `e` runs {command or 'its input'}")
            self.scripts += [command] if command else []
        elif name in {"r", "R"}:
            self.reads.append(self._file())
        elif name in {"w", "W"}:
            self.writes.append(self._file())
        else:
            raise _UnreadableError(f"`{name}` is not a known command" if name else "it is cut off")

    def _file(self) -> str:
        """The name of a file: all of the line, whatever characters it has."""
        self._skip(_BLANKS)
        file = self._line()
        if not file:
            raise _UnreadableError("the name of a file is missing")
        return file

    def _line(self) -> str:
        stop = self.script.find("\n", self.at)
        stop = len(self.script) if stop < 0 else stop
        found = self.script[self.at : stop]
        self.at = stop
        return found

    def _end(self) -> None:
        """The end of a command: `;`, a newline, or before `}` and `#`."""
        self._skip(_BLANKS)
        after = self._peek()
        if after in {";", "\n"} and after:
            self.at += 1
        elif after and after not in {"}", "#"}:
            raise _UnreadableError(f"`{after}` after a command")

    def _text(self) -> None:
        """`a`, `i` and `c`: text to the end of a line that does not end with a backslash."""
        self._skip(_BLANKS)
        if self._peek() == "\\":
            self.at += 1
            self._skip(_BLANKS)
            if self._peek() == "\n":
                self.at += 1
            elif self._peek() == "\\":
                raise _UnreadableError("backslashes before a text")
        elif self._peek() in {"", "\n"}:
            raise _UnreadableError("a text is missing")
        while (character := self._next()) not in {"", "\n"}:
            if character == "\\" and not self._next():
                raise _UnreadableError("the text ends with a backslash")

    # --- patterns ------------------------------------------------------------------------------

    def _delimiter(self) -> str:
        delimiter = self._next()
        if delimiter in {"", "\n", "\\"} or not delimiter.isascii():
            raise _UnreadableError("an unusual delimiter")
        return delimiter

    def _pattern(self, delimiter: str) -> None:
        """A regular expression, to its delimiter. Versions differ on one within brackets."""
        if delimiter in {"", "\n", "\\", "["} or not delimiter.isascii():
            raise _UnreadableError("an unusual delimiter")
        while (character := self._next()) != delimiter:
            if character in {"", "\n"}:
                raise _UnreadableError("a pattern is not closed")
            if character == "\\":
                if self._next() in {"", "\n"}:
                    raise _UnreadableError("a pattern is not closed")
            elif character == "[":
                self._brackets(delimiter)

    def _brackets(self, delimiter: str) -> None:
        if self._peek() == "^":
            self.at += 1
        if self._peek() == "]":
            self.at += 1
        while (character := self._next()) != "]":
            if character in {"", "\n"} or character == delimiter:
                raise _UnreadableError("a delimiter within brackets")
            if character == "\\" and self._next() in {"", "\n", "]", "["}:
                raise _UnreadableError("a backslash within brackets")
            if character == "[" and self._peek() in {":", ".", "="}:
                self.at -= 1
                if _CLASS.match(self.script, self.at) is None:
                    raise _UnreadableError("an unusual class of characters")
                if delimiter in self._skip(_CLASS):
                    raise _UnreadableError("a delimiter within brackets")

    def _replacement(self, delimiter: str) -> None:
        while (character := self._next()) != delimiter:
            if character in {"", "\n"}:
                raise _UnreadableError("a replacement is not closed")
            if character == "\\" and not self._next():
                raise _UnreadableError("a replacement is not closed")

    def _substitute(self) -> None:
        delimiter = self._delimiter()
        self._pattern(delimiter)
        self._replacement(delimiter)
        self._skip(_FLAGS)
        self._skip(_BLANKS)
        flag = self._peek()
        if flag == "e":
            self.runs.append("sed's `s///e` runs what it makes")
            self.at += 1
            self._skip(_FLAGS)
            flag = self._peek()
        if flag == "w":
            self.at += 1
            self.writes.append(self._file())
            return
        self._end()

    def _transliterate(self) -> None:
        delimiter = self._delimiter()
        if delimiter == "[":
            raise _UnreadableError("an unusual delimiter")
        start = self.at
        self._replacement(delimiter)
        self._replacement(delimiter)
        if "[" in self.script[start : self.at]:
            raise _UnreadableError("brackets in `y`")
        self._end()
