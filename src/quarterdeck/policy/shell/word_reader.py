"""One word of shell text: its value after expansion, where that is known.

It reads the word's own characters and does not trust the syntax tree for quoting: quoting decides
what is a glob, what is an expansion, and which text a rule is compared with.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product

from quarterdeck.domain.structs import Value
from quarterdeck.policy.shell.script import Word

PLAIN = re.compile(r"[A-Za-z0-9_./:@%+,-][A-Za-z0-9_./:@%+,=-]*")
"""Words that mean themselves: most of them. A leading `=` is an expansion in zsh."""

_NAME_AFTER_DOLLAR = re.compile(r"[A-Za-z0-9_{(@*#?$!\[-]")
MOST_TEXTS = 32
"""Words that braces may make of one and that are looked at, each for itself."""

_ANSI_C = re.compile(
    r"\\(?:([abeEfnrtv\\'\"?])|([0-7]{1,3})|x([0-9A-Fa-f]{1,2})"
    r"|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|(.))",
    re.DOTALL,
)
_ANSI_C_NAMED = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}


_SIMPLE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(\[(?:[@*]|\d+)\])?\})")
"""A variable without any operator."""

_BLANK = re.compile(r"\s")


class Known(Value):
    """A value that a variable may have."""

    text: str
    tilde: bool = False
    """It begins with a home folder, as `~`."""

    glob: bool = False
    """It is a pattern: the name of any file that fits."""

    hidden: bool = False


LookUp = Callable[[str, bool], tuple[Known, ...] | None]
"""The values that a variable may have; None if they are not known. The second argument: whether it
is within quotes."""


def read_word(source: str, look_up: LookUp | None = None) -> Word:
    """Read a word. Total: text that is not a word gives a word with an unknown value."""
    if PLAIN.fullmatch(source):
        return Word(source=source, text=source, prefix=source)
    return _Scan(source, look_up).run()


def join_words(words: tuple[Word, ...] | list[Word]) -> str:
    """Words as one line, as they were written."""
    return " ".join([each.source for each in words])


class _Scan:
    """One pass over a word's characters."""

    def __init__(self, source: str, look_up: LookUp | None) -> None:
        self._source = source
        self._look_up = look_up
        self._at = 0
        self._out: list[str] = []
        self._prefix: str | None = None
        """The known text before the first unknown part; None while everything is known."""
        self._glob = False
        self._quoted = False
        self._bare: list[str] = []
        """The unquoted characters, blanks for the quoted: where braces are looked for."""
        self._choices: dict[int, tuple[Known, ...]] = {}
        """Variables among the pieces, by their place."""

    def run(self) -> Word:
        """The word of these characters."""
        source = self._source
        tilde = source.startswith("~")
        if source.startswith("="):
            self._unknown()
        while self._at < len(source):
            self._one(source[self._at])
        texts: tuple[str, ...] = ()
        if self._choices and self._prefix is None:
            if not _braces("".join(self._bare)) and (made := self._with_values()) is not None:
                return made
            self._unknown()
        if _braces("".join(self._bare)):
            # Braces expand to several words, and any of them may be an option.
            texts = self._expand_braces() if self._prefix is None else ()
            self._glob = True
            self._prefix = ""
        text = "".join(self._out)
        known = self._prefix is None
        return Word(
            source=source,
            text=text if known else None,
            prefix=text if self._prefix is None else self._prefix,
            glob=self._glob,
            tilde=tilde,
            quoted=self._quoted,
            texts=texts,
        )

    def _with_values(self) -> Word | None:
        """The word with the values of its variables; None if it is not certain."""
        values = [self._choices.get(at, (Known(text=text),)) for at, text in enumerate(self._out)]
        count = 1
        for each in values:
            count *= len(each)
            if count > MOST_TEXTS:
                return None
        texts: dict[str, None] = {}
        tildes = {self._source.startswith("~")} if 0 not in self._choices else set[bool]()
        glob, hidden = self._glob, False
        for chosen in product(*values):
            text = "".join([each.text for each in chosen])
            begins = next((each for each in chosen if each.text), None)
            if any(each.tilde and each is not begins for each in chosen):
                return None
            tilde = begins is not None and begins.tilde
            if (tilde and text != "~" and not text.startswith("~/")) or (
                not text and not self._quoted
            ):
                return None
            tildes.add(tilde or self._source.startswith("~"))
            glob = glob or any(each.glob for each in chosen)
            hidden = hidden or any(each.hidden for each in chosen)
            texts[text] = None
        if len(tildes) != 1:
            return None
        made = tuple(texts)
        return Word(
            source=self._source,
            text=made[0] if len(made) == 1 else None,
            prefix=_common(made),
            glob=glob or len(made) > 1,
            tilde=tildes.pop(),
            quoted=self._quoted,
            texts=made if len(made) > 1 else (),
            hidden=hidden,
        )

    def _variable(self, at: int, *, quoted: bool) -> int | None:
        """Take the values of a variable. Returns its end; None if they are not known."""
        found = _SIMPLE.match(self._source, at)
        if found is None or self._look_up is None:
            return None
        values = self._look_up(found[1] or found[2], quoted)
        if values is None or (
            # Several words, of which only the first and the last have what is around it.
            found[3] is not None and len(values) > 1 and self._source.strip('"') != found[0]
        ):
            return None
        if not quoted and any(_BLANK.search(each.text) for each in values):
            return None
        self._choices[len(self._out)] = values
        self._take("")
        return found.end()

    def _expand_braces(self) -> tuple[str, ...]:
        """The words that braces expand to: short lists, not nested; else empty."""
        made, group, within = [""], [""], False
        for text, bare in zip(self._out, self._bare, strict=True):
            if bare == "{" or bare == "}":
                if within == (bare == "{"):
                    return ()
                if within:
                    group = group if len(group) > 1 else _number_range(group[0])
                    made = [before + each for before in made for each in group]
                within, group = not within, [""]
            elif within and bare == ",":
                group.append("")
            elif within:
                group[-1] += text
            else:
                made = [before + text for before in made]
            if not 0 < len(made) * len(group) <= MOST_TEXTS:
                return ()
        if within or any(each.startswith("~") != made[0].startswith("~") for each in made):
            return ()
        return tuple(made)

    def _unknown(self) -> None:
        if self._prefix is None:
            self._prefix = "".join(self._out)

    def _take(self, text: str, *, bare: bool = False) -> None:
        self._out.append(text)
        self._bare.append(text if bare else " ")

    def _one(self, char: str) -> None:
        source, at = self._source, self._at
        if char == "\\":
            following = source[at + 1 : at + 2]
            if following and following != "\n":
                self._take(following)
                self._quoted = True
            self._at += 2
        elif char == "'":
            self._single(at + 1)
        elif char == '"':
            self._double(at + 1)
        elif char == "$":
            self._dollar()
        elif char in "`<>();&| \t\n":
            # A substitution, or something that is not part of a word: its value is known only at
            # run time.
            self._unknown()
            self._at = len(source)
        else:
            if char in "*?[":
                self._glob = True
            self._take(char, bare=True)
            self._at += 1

    def _single(self, start: int) -> None:
        end = self._source.find("'", start)
        self._quoted = True
        if end < 0:
            self._unknown()
            end = len(self._source)
        self._take(self._source[start:end])
        self._at = end + 1

    def _double(self, at: int) -> None:
        source = self._source
        self._quoted = True
        while at < len(source) and (char := source[at]) != '"':
            if char == "\\" and source[at + 1 : at + 2] in {"$", "`", '"', "\\", "\n"}:
                self._take("" if source[at + 1] == "\n" else source[at + 1])
                at += 2
            elif char == "`" or (
                char == "$" and _NAME_AFTER_DOLLAR.match(source, at + 1) is not None
            ):
                end = self._variable(at, quoted=True) if char == "$" else None
                if end is not None:
                    at = end
                    continue
                # The end of the quote is not where it seems: an expansion may hold quotes.
                self._unknown()
                self._at = len(source)
                return
            else:
                self._take(char)
                at += 1
        if at >= len(source):
            self._unknown()
        self._at = at + 1

    def _dollar(self) -> None:
        following = self._source[self._at + 1 : self._at + 2]
        if following == "'":
            self._ansi_c(self._at + 2)
        elif following == '"' or (following and _NAME_AFTER_DOLLAR.match(following)):
            end = self._variable(self._at, quoted=False)
            if end is not None:
                self._at = end
                return
            # $"…" is translated by bash, and differs between shells.
            self._unknown()
            self._at = len(self._source)
        else:
            self._take("$")
            self._at += 1

    def _ansi_c(self, start: int) -> None:
        source, at = self._source, start
        while at < len(source) and source[at] != "'":
            at += 2 if source[at] == "\\" else 1
        self._quoted = True
        if at >= len(source):
            self._unknown()
        else:
            self._escapes(source[start:at])
        self._at = at + 1

    def _escapes(self, text: str) -> None:
        """The text of `$'…'`. Bash has more escapes than are read here: those are not known."""
        done = 0
        for found in _ANSI_C.finditer(text):
            char = _unescape(found)
            if char is None:
                self._take(text[done : found.start()])
                self._unknown()
                return
            self._take(text[done : found.start()] + char)
            done = found.end()
        self._take(text[done:])


def _common(texts: tuple[str, ...]) -> str:
    """The characters that all texts begin with."""
    first, last = min(texts), max(texts)
    same = 0
    while same < min(len(first), len(last)) and first[same] == last[same]:
        same += 1
    return first[:same]


def _number_range(text: str) -> list[str]:
    """The numbers of `1..3`; empty for other texts."""
    found = re.fullmatch(r"(0|[1-9]\d{0,5})\.\.(0|[1-9]\d{0,5})", text)
    if found is None:
        return []
    first, last = sorted((int(found[1]), int(found[2])))
    return [str(each) for each in range(first, min(last, first + MOST_TEXTS) + 1)]


def _braces(text: str) -> bool:
    """May braces expand it to several words: `{a,b}`, `{1..3}`, or unclosed ones?"""
    at = text.find("{")
    while at >= 0:
        end = text.find("}", at)
        inside = text[at + 1 : end if end >= 0 else len(text)]
        if "," in inside or "{" in inside or (end >= 0 and ".." in inside):
            return True
        at = text.find("{", at + 1 + len(inside))
    return False


def _unescape(found: re.Match[str]) -> str | None:
    r"""The character that an escape of `$'…'` means; None where that is not certain.

    NUL ends the text, `\x{…}` has a length of its own, `\c` makes control characters, and what is
    above 127 depends on the locale and its neighbours.
    """
    named, octal, hexadecimal, short, long, _ = found.groups()
    if named is not None:
        return _ANSI_C_NAMED.get(named, named)
    digits = hexadecimal or short or long
    if octal is None and digits is None:
        return None
    code = int(octal, 8) if octal is not None else int(digits, 16)
    return chr(code) if 0 < code < 128 else None
