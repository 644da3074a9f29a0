"""Tokens of a shell text by bash's own rules: words, operators, redirections, here-documents.

A second opinion, written from bash's grammar and strict on purpose: it shares no code with the tree
that `reader` walks, and gives up (`Outside`) at constructs outside of the common part of the
language. `strict` makes commands of the tokens.

It is longer than other modules, because the tokens nest: a word has commands in it, and these have
words.

Linear: every character is visited a bounded number of times. The text has one character for each
byte (latin-1), so that positions are those of the tree.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from enum import Enum
from typing import NamedTuple, NoReturn

MOST_TOKENS = 2_000
"""Words, operators and newlines in one text. People write a hundred."""

LEVELS = 32
"""Levels of substitutions, groups and expansions in one another. People write five."""


class Outside(Exception):
    """The text is not in the part of the language that is understood: where, and why."""

    def __init__(self, at: int, why: str) -> None:
        super().__init__(why)
        self.at = at
        self.why = why


class Kind(Enum):
    """The kind of a token."""

    WORD = "word"
    OPERATOR = "operator"
    REDIRECTION = "redirection"
    NEWLINE = "newline"
    BLANK = "blank"
    COMMENT = "comment"
    DOCUMENT = "document"
    """The lines of a here-document, its last one included."""
    REST = "rest"
    """The rest of the text, which was not read."""
    END = "end"


class Token(NamedTuple):
    """A piece of the text."""

    kind: Kind
    start: int
    end: int


class Document(NamedTuple):
    """A here-document whose lines follow later."""

    delimiter: str
    start: int
    end: int
    """The position of its delimiter in the command."""
    quoted: bool
    dashed: bool


_PLAIN = re.compile(r"[^ \t\n|&;()<>'\"\\$`]+")
_BLANKS = re.compile(r"[ \t]+")
_COMMENT = re.compile(r"[^\n]*")
_OPERATOR = re.compile(r"&&|\|\||;;&|;;|;&|\|&|[&;|()]")
_REDIRECTION = re.compile(r"[0-9]*(?:<<<|<<-|<<|<>|<&|<|>>|>&|>\||>)|&>>|&>")
_IN_DOUBLE = re.compile(r"[^\"\\$`]+")
_IN_BRACE = re.compile(r"[^}'\"\\$`<>{\n]+")
_IN_DOCUMENT = re.compile(r"[^\\$`]+")
_IN_SUM = re.compile(r"[A-Za-z0-9_ \t+*/%<>=!&|^~?:,.-]+|\$[A-Za-z_][A-Za-z0-9_]*|\$\{\w+\}")
_ANSI_C = re.compile(r"(?:[^\\']|\\.)*'", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]")
_PARAMETER = re.compile(
    r"[#!]?(?:[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*?$!#-])"
    r"(?:\[(?:[@*]|-?[0-9]+|\$?[A-Za-z_][A-Za-z0-9_]*)\])?"
)
_FUNCTION = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\([ \t]*\)")
_ARRAY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_DELIMITER = re.compile(
    r"(?P<bare>[A-Za-z0-9_.+-]+)|'(?P<one>[A-Za-z0-9_.+ -]+)'|\"(?P<two>[A-Za-z0-9_.+ -]+)\""
    r"|\\(?P<back>[A-Za-z0-9_.+-]+)"
)
_BREAKS = " \t\n|&;()<>"


class Lexer(ABC):
    """Reads tokens from a text, one after the other. Words with substitutions nest."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[Token] = []
        """The tokens of the outermost level: together they are the text."""
        self.kind = Kind.END
        self.start = self.end = 0
        """The current token."""
        self.raw = ""
        """Its text."""
        self.arrays = False
        """Whether the next word may be `name=(…)`."""
        self.documents: list[tuple[Document, int]] = []
        """The here-documents that were read, and where each one's last line begins."""
        self._at = 0
        self._limit = len(text)
        self._level = 0
        self._within = 0
        """The number of enclosing words, documents and arrays; text inside them belongs to their
        token."""
        self._waiting: list[Document] = []
        self._count = 0

    @abstractmethod
    def program(self, closer: str) -> None:
        """Read commands up to a closing bracket, or to the end of the text ("")."""

    def outside(self, why: str, at: int | None = None) -> NoReturn:
        """Give up."""
        raise Outside(self.start if at is None else at, why)

    def deeper(self) -> None:
        """One level down; the caller goes up again."""
        self._level += 1
        if self._level > LEVELS:
            self.outside("it is nested too deep", self._at)

    def higher(self) -> None:
        """One level up."""
        self._level -= 1

    def at(self, kind: Kind, *texts: str) -> bool:
        """Is the current token of this kind, and one of these if any are given?"""
        return self.kind is kind and (not texts or self.raw in texts)

    # --- tokens ----------------------------------------------------------------------------

    def advance(self) -> None:
        """Go to the next token that is not a blank or a comment."""
        self._count += 1
        if self._count > MOST_TOKENS:
            self.outside(f"it has more than {MOST_TOKENS} words and signs", self._at)
        self._blanks()
        start = self.start = self._at
        char = self._char(start)
        if char == "":
            self._set(Kind.END, start)
        elif char == "\n":
            self._at = start + 1
            self._set(Kind.NEWLINE, start)
            if self._waiting:
                self._read_documents()
        elif (found := _REDIRECTION.match(self.text, start, self._limit)) and not self._process(
            found
        ):
            self._after_operator(found.end())
            self._set(Kind.REDIRECTION, start)
        elif not found and (found := _OPERATOR.match(self.text, start, self._limit)):
            self._after_operator(found.end())
            self._set(Kind.OPERATOR, start)
        else:
            self._word()
            self._set(Kind.WORD, start)

    def regex(self) -> None:
        """Go to the next token, which is the right side of `=~`: it may hold brackets."""
        self._blanks()
        start = self.start = self._at
        open_ = 0
        while (char := self._char(self._at)) and not (char in " \t\n" and not open_):
            if char == "(":
                open_ += 1
            elif char == ")":
                open_ -= 1
            elif char in " \t\n;&<>" or open_ < 0:
                self.outside("this pattern is not understood")
            if char in "()|":
                self._at += 1
            else:
                self._piece(char)
        if self._at == start or open_:
            self.outside("this pattern is not understood")
        self._set(Kind.WORD, start)

    def document(self) -> None:
        """Take note of a here-document: the current token is `<<` or `<<-`."""
        dashed = self.raw.endswith("-")
        self._blanks()
        start = self.start = self._at
        found = _DELIMITER.match(self.text, start, self._limit)
        if found is None or (self._char(found.end()) or "\n") not in _BREAKS:
            self.outside("the here-document's delimiter is unusual", start)
        self._at = found.end()
        quoted = found.lastgroup != "bare"
        delimiter = found[found.lastgroup or 0]
        self._waiting.append(Document(delimiter, start, self._at, quoted, dashed))
        self._set(Kind.WORD, start)

    def word_wanted(self) -> None:
        """Go to the next token, which must be a word."""
        self.advance()
        if self.kind is not Kind.WORD:
            self.outside("a word is missing")

    def _set(self, kind: Kind, start: int) -> None:
        self.kind = kind
        self.end = self._at
        self.raw = self.text[start : self._at]
        if not self._within and kind is not Kind.END:
            self.tokens.append(Token(kind, start, self._at))

    def _char(self, at: int) -> str:
        return self.text[at] if at < self._limit else ""

    def _blanks(self) -> None:
        """Skip text between tokens: blanks, continued lines, comments."""
        start = self._at
        while True:
            char = self._char(self._at)
            if char == " " or char == "\t":
                found = _BLANKS.match(self.text, self._at, self._limit)
                self._at = found.end() if found else self._at + 1
            elif char == "\\" and self._char(self._at + 1) == "\n":
                self._at += 2
            else:
                break
        if self._at > start and not self._within:
            self.tokens.append(Token(Kind.BLANK, start, self._at))
        if char == "#":
            found = _COMMENT.match(self.text, self._at, self._limit)
            end = found.end() if found else self._limit
            if not self._within:
                self.tokens.append(Token(Kind.COMMENT, self._at, end))
            self._at = end

    def _after_operator(self, at: int) -> None:
        self._at = at
        if self._goes_on(at) and (self._char(at + 2) or "\n") not in " \t\n":
            self.outside("an operator continues on the next line", at)

    def _process(self, found: re.Match[str]) -> bool:
        """Is it no redirection, but a process substitution: `<(` or `>(`?"""
        if self._char(found.end()) != "(":
            return False
        if found[0] not in {"<", ">"}:
            self.outside("a bracket after a redirection", found.start())
        return True

    def _goes_on(self, at: int) -> bool:
        return self._char(at) == "\\" and self._char(at + 1) == "\n"

    # --- words -----------------------------------------------------------------------------

    def _word(self) -> None:
        start = self._at
        while char := self._char(self._at):
            if char in " \t\n|&;)":
                break
            if char == "(":
                if self.arrays and _FUNCTION.match(self.text, start, self._limit):
                    break  # the name of a function
                if not self.arrays or not _ARRAY.fullmatch(self.text, start, self._at):
                    self.outside("a bracket in a word", self._at)
                self._array()
                break
            if char in "<>":
                if self._char(self._at + 1) != "(":
                    if self.text[start] == "{" and self.text[self._at - 1] == "}":
                        self.outside("a variable names the descriptor", start)
                    break
                if self._at != start:
                    self.outside("a process substitution within a word", self._at)
                self._commands_inside(self._at + 2)
                self._ends_here()
                break
            if char == "\\" and self._goes_on(self._at):
                if (self._char(self._at + 2) or "\n") not in " \t\n":
                    self.outside("a word continues on the next line", self._at)
                break
            self._piece(char)

    def _piece(self, char: str) -> None:
        """One piece of an unquoted word."""
        at = self._at
        if char == "\\":
            if self._char(at + 1) in {"", "\n"}:
                self.outside("a word continues on the next line", at)
            self._at = at + 2
        elif char == "'":
            self._single(at)
        elif char == '"':
            self._double(at)
        elif char == "$":
            self._dollar(quoted=False)
        elif char == "`":
            self._backquotes(quoted=False)
        else:
            found = _PLAIN.match(self.text, at, self._limit)
            self._at = found.end() if found else at + 1

    def _ends_here(self) -> None:
        if (self._char(self._at) or "\n") not in " \t\n|&;)":
            self.outside("a word continues after a bracket", self._at)

    def _array(self) -> None:
        """`name=(…)`: words, comments and newlines between brackets."""
        begun = self.start
        if self._waiting:
            self.outside("an array before a here-document's lines", self._at)
        self._at += 1
        self._within += 1
        self.arrays = False
        while True:
            self.advance()
            if self.kind is Kind.OPERATOR and self.raw == ")":
                break
            if self.kind not in {Kind.WORD, Kind.NEWLINE}:
                self.outside("this array is not understood")
        self._within -= 1
        self.start = begun
        self._ends_here()

    def _single(self, at: int) -> None:
        end = self.text.find("'", at + 1, self._limit)
        if end < 0:
            self.outside("a quote is not closed", at)
        self._at = end + 1

    def _double(self, at: int) -> None:
        self._at = at + 1
        while (char := self._char(self._at)) != '"':
            if char == "":
                self.outside("a quote is not closed", at)
            self._live(char, _IN_DOUBLE)
        self._at += 1

    def _live(self, char: str, plain: re.Pattern[str]) -> None:
        """One step in a text with substitutions, or over all `plain` characters."""
        if char == "\\":
            self._at += 2
        elif char == "$":
            self._dollar(quoted=True)
        elif char == "`":
            self._backquotes(quoted=True)
        else:
            found = plain.match(self.text, self._at, self._limit)
            self._at = found.end() if found else self._at + 1

    # --- substitutions ---------------------------------------------------------------------

    def _dollar(self, *, quoted: bool) -> None:
        at = self._at
        following = self._char(at + 1)
        if following == "(":
            if self._char(at + 2) == "(":
                self._sum(at + 3)
            else:
                self._commands_inside(at + 2)
        elif following == "{":
            self._brace(at + 2, quoted=quoted)
        elif following == "'" and not quoted:
            found = _ANSI_C.match(self.text, at + 2, self._limit)
            if found is None:
                self.outside("a quote is not closed", at)
            self._at = found.end()
        elif following == "[" or (following == '"' and not quoted):
            self.outside(f"${following} is not understood", at)
        elif self._goes_on(at + 1):
            self.outside("the text after a $ is on the next line", at)
        else:
            found = _NAME.match(self.text, at + 1, self._limit)
            self._at = found.end() if found else at + 1

    def _commands_inside(self, at: int) -> None:
        """Commands between brackets, from inside of the opening one."""
        if self._goes_on(at):
            self.outside("the text after a bracket is on the next line", at)
        self._inside(at, self._limit, ")")
        self._at = self.end

    def _inside(self, at: int, limit: int, closer: str) -> None:
        """Commands in a part of the text. The state around them is kept."""
        kept = self.start, self.kind, self.arrays, self._waiting, self._limit
        begun = at
        self._at, self._limit, self._waiting = at, limit, []
        self.deeper()
        self._within += 1
        self.program(closer)
        self._within -= 1
        self.higher()
        if self._waiting:
            self.outside("a here-document is not closed", begun)
        self.start, self.kind, self.arrays, self._waiting, self._limit = kept
        if self._waiting and "\n" in self.text[begun : self._at]:
            self.outside("a newline before the lines of a here-document", begun)

    def _backquotes(self, *, quoted: bool) -> None:
        at = self._at
        end = self.text.find("`", at + 1, self._limit)
        if end < 0:
            self.outside("a substitution is not closed", at)
        content = self.text[at + 1 : end]
        if "\\" in content or (quoted and '"' in content):
            self.outside("backslashes and quotes have another meaning between backquotes", at)
        self._inside(at + 1, end, "")
        self._at = end + 1

    def brackets(self, *, clauses: int = 1) -> None:
        """`((…))`: the current token is the first bracket, and becomes all of it."""
        start = self.start
        if self._char(self.end) != "(":
            self.outside("this arithmetic is not understood")
        if not self._within:
            self.tokens.pop()
        self._sum(self.end + 1, clauses)
        self.start = start
        self._set(Kind.OPERATOR, start)

    def _sum(self, at: int, clauses: int = 1) -> None:
        """`$((…))` of numbers, names and operators; in a loop, three of them."""
        open_, self._at = 0, at
        while True:
            char = self._char(self._at)
            if char == ";" and clauses > 1 and not open_:
                clauses -= 1
                self._at += 1
                continue
            found = _IN_SUM.match(self.text, self._at, self._limit)
            if found:
                self._at = found.end()
            elif char == "(":
                open_ += 1
                self._at += 1
            elif char == ")" and open_:
                open_ -= 1
                self._at += 1
            elif char == ")" and self._char(self._at + 1) == ")" and clauses == 1:
                self._at += 2
                return
            else:
                self.outside("this arithmetic is not understood", at)

    def _brace(self, at: int, *, quoted: bool) -> None:
        """`${…}`: a parameter, and perhaps an operator with a text."""
        found = _PARAMETER.match(self.text, at, self._limit)
        if found is None:
            self.outside("this expansion is not understood", at)
        self._at = found.end()
        if (self._char(self._at) or "{") not in "}:-=+?#%/^,@":
            self.outside("this expansion is not understood", at)
        self.deeper()
        while (char := self._char(self._at)) != "}":
            if char in {"", "{", "\n"} or (quoted and char in "'\""):
                self.outside("this expansion is not understood", at)
            if char in "<>":
                if self._char(self._at + 1) == "(":
                    self.outside("a process substitution within an expansion", self._at)
                self._at += 1
            elif char in "\\'\"$`":
                if self._goes_on(self._at):
                    self.outside("an expansion continues on the next line", self._at)
                self._quoted_piece(char, quoted=quoted)
            else:
                part = _IN_BRACE.match(self.text, self._at, self._limit)
                self._at = part.end() if part else self._at + 1
        self.higher()
        self._at += 1

    def _quoted_piece(self, char: str, *, quoted: bool) -> None:
        if char == "$" and quoted:
            self._dollar(quoted=True)
        elif char == "`" and quoted:
            self._backquotes(quoted=True)
        else:
            self._piece(char)

    # --- here-documents ----------------------------------------------------------------------

    def _read_documents(self) -> None:
        """The lines of every here-document that was begun in the line before."""
        kept = self._at
        waiting, self._waiting = self._waiting, []
        for document in waiting:
            first = self._at
            last, after = self._last_line(document, first)
            if not document.quoted:
                self._substitutions(first, last)
            self.documents.append((document, last))
            self._at = after
        if not self._within:
            self.tokens.append(Token(Kind.DOCUMENT, kept, self._at))

    def _last_line(self, document: Document, at: int) -> tuple[int, int]:
        """Where the last line of a here-document begins, and where the text continues after it."""
        before: list[str] = []
        """Continued lines: bash joins them before it looks for the delimiter."""
        while at < self._limit:
            stop = self.text.find("\n", at, self._limit)
            stop = self._limit if stop < 0 else stop
            line = self.text[at:stop]
            if not document.quoted and (len(line) - len(line.rstrip("\\"))) % 2:
                before.append(line[:-1])
            elif before:
                if document.delimiter in {line.lstrip("\t"), "".join((*before, line)).lstrip("\t")}:
                    self.outside("the here-document may end elsewhere", document.start)
                before = []
            elif (line.lstrip("\t") if document.dashed else line) == document.delimiter:
                return stop - len(document.delimiter), stop
            at = stop + 1
        raise Outside(document.start, "the here-document is not closed")

    def _substitutions(self, at: int, end: int) -> None:
        """Substitutions in the lines of a here-document without quotes."""
        kept, self._limit, self._at = self._limit, end, at
        start, kind = self.start, self.kind
        self._within += 1
        while char := self._char(self._at):
            self._live(char, _IN_DOCUMENT)
        self._within -= 1
        self._limit, self.start, self.kind = kept, start, kind
