"""The text that a person is typing: bytes of a terminal in, a text with a cursor out. Pure.

Owns what each key does: the usual keys of shells (Emacs), arrows, a history, and pasted text, which
is never taken for keys. `prompt_line` reads the bytes; `footer` shows the text.
"""

from __future__ import annotations

import re
from codecs import getincrementaldecoder
from collections.abc import Iterator

from quarterdeck.cli.terminal.text import plain

LONGEST = 1_000_000
"""Characters of a text; more are not taken."""
MOST_REMEMBERED = 200
_ESCAPE = re.compile(
    r"\x1b(?:\[200~|\[[0-9;]*[A-Za-z~]|O[A-Za-z]|[^\[O\x1b])|\x1b\[?[0-9;]*\Z|\x1bO?\Z"
)
_PASTE_BEGIN, _PASTE_END = "\x1b[200~", "\x1b[201~"
_RUN = re.compile(r"[^\x00-\x1f\x7f-\x9f]+")
"""Text without keys: it is inserted at once."""
_WORD = re.compile(r"\S+\s*\Z")


class Editor:
    """A text being typed. `take` gives what was finished with Enter."""

    def __init__(self) -> None:
        self.text = ""
        self.cursor = 0
        self.ended = False
        """Whether the person has ended the input: Ctrl-D in an empty line."""
        self._decode = getincrementaldecoder("utf-8")("replace").decode
        self._pending = ""
        self._pasting = False
        self._history: list[str] = []
        self._place = 0
        self._draft = ""

    @property
    def empty(self) -> bool:
        """Whether nothing is typed, and nothing is being pasted."""
        return not self.text and not self._pasting

    def take(self, data: bytes) -> Iterator[str]:
        """Apply what was typed; gives each text that was finished, when the iterator gets there.

        Input after the end is not applied.
        """
        self._pending += self._decode(data)
        at = 0
        while at < len(self._pending) and not self.ended:
            if self._pasting:
                at, whole = self._paste(at)
                if not whole:
                    break
                continue
            if run := _RUN.match(self._pending, at):
                self._insert(run[0])
                at = run.end()
                continue
            key = self._key(at)
            if key is None:
                break  # the rest of a sequence is still to come
            at += len(key)
            if key == _PASTE_BEGIN:
                self._pasting = True
            elif key in {"\r", "\n"}:
                if (done := self._finish()) is not None:
                    self._pending, at = self._pending[at:], 0
                    yield done
            elif key == "\x04" and not self.text:
                self.ended = True
            else:
                self._press(key)
        self._pending = self._pending[at:]

    def flush(self) -> None:
        """Drop an escape character that no sequence followed: the Escape key."""
        if self._pending.startswith("\x1b") and not self._pasting:
            self._pending = ""

    def clear(self) -> str:
        """Take the text away, and give it."""
        text, self.text, self.cursor = self.text, "", 0
        return text

    def remember(self, text: str) -> None:
        """Add a text to the history."""
        if text.strip() and (not self._history or self._history[-1] != text):
            self._history = [*self._history[1 - MOST_REMEMBERED :], text]
        self._place = len(self._history)

    # --- keys -----------------------------------------------------------------------------

    def _key(self, at: int) -> str | None:
        if self._pending[at] != "\x1b":
            return self._pending[at]
        found = _ESCAPE.match(self._pending, at)
        if found is None:
            return "\x1b"
        if found.end() == len(self._pending) and not _is_whole(found[0]):
            return None
        return found[0]

    def _paste(self, at: int) -> tuple[int, bool]:
        """Take pasted text; gives where it ends, and whether its end mark was there."""
        end = self._pending.find(_PASTE_END, at)
        if end >= 0:
            self._insert(self._pending[at:end])
            self._pasting = False
            return end + len(_PASTE_END), True
        # A part of the end mark may be there already.
        rest = self._pending[at:]
        keep = next((n for n in range(len(_PASTE_END) - 1, 0, -1) if _ends_with_part(rest, n)), 0)
        self._insert(rest[: len(rest) - keep])
        return len(self._pending) - keep, False

    def _finish(self) -> str | None:
        if self.text.endswith("\\") and self.cursor == len(self.text):
            self.text = self.text[:-1] + "\n"
            self.cursor = len(self.text)
            return None
        done = self.clear()
        self.remember(done)
        return done

    def _press(self, key: str) -> None:
        match _KEYS.get(key):
            case "erase":
                self._delete(self.cursor - 1, self.cursor)
            case "delete":
                self._delete(self.cursor, self.cursor + 1)
            case "erase word":
                self._delete(self._word_before(), self.cursor)
            case "erase to begin":
                self._delete(0, self.cursor)
            case "erase to end":
                self._delete(self.cursor, len(self.text))
            case "older" | "newer" as way:
                self._from_history(-1 if way == "older" else 1)
            case "newline":
                self._insert("\n")
            case str(way):
                self._move(self._target(way))
            case None if key == "\t":
                self._insert(key)
            case None:
                pass

    def _target(self, way: str) -> int:
        """Where a key moves the cursor to."""
        places = {
            "left": self.cursor - 1,
            "right": self.cursor + 1,
            "begin": 0,
            "end": len(self.text),
            "word left": self._word_before(),
            "word right": self._word_after(),
        }
        return places[way]

    def _insert(self, text: str) -> None:
        text = plain(text)[: max(0, LONGEST - len(self.text))]
        self.text = self.text[: self.cursor] + text + self.text[self.cursor :]
        self.cursor += len(text)

    def _delete(self, begin: int, end: int) -> None:
        begin, end = max(0, begin), min(len(self.text), end)
        self.text = self.text[:begin] + self.text[end:]
        self.cursor = begin

    def _move(self, to: int) -> None:
        self.cursor = min(max(0, to), len(self.text))

    def _from_history(self, step: int) -> None:
        place = self._place + step
        if not 0 <= place <= len(self._history):
            return
        if self._place == len(self._history):
            self._draft = self.text
        self._place = place
        self.text = self._draft if place == len(self._history) else self._history[place]
        self.cursor = len(self.text)

    def _word_before(self) -> int:
        found = _WORD.search(self.text[: self.cursor])
        return found.start() if found else 0

    def _word_after(self) -> int:
        found = re.match(r"\s*\S+", self.text[self.cursor :])
        return self.cursor + (found.end() if found else 0)


def _ends_with_part(text: str, size: int) -> bool:
    return text.endswith(_PASTE_END[:size])


def _is_whole(sequence: str) -> bool:
    """Whether no more bytes belong to an escape sequence."""
    if sequence in {"\x1b", "\x1b[", "\x1bO"}:
        return False
    return not sequence.startswith("\x1b[") or sequence[-1].isalpha() or sequence[-1] == "~"


_KEYS = {
    key: action
    for action, keys in {
        "erase": ("\x7f", "\x08"),
        "delete": ("\x1b[3~", "\x04"),
        "left": ("\x1b[D", "\x1bOD", "\x02"),
        "right": ("\x1b[C", "\x1bOC", "\x06"),
        "begin": ("\x1b[H", "\x1bOH", "\x1b[1~", "\x01"),
        "end": ("\x1b[F", "\x1bOF", "\x1b[4~", "\x05"),
        "word left": ("\x1bb", "\x1b[1;5D", "\x1b[1;3D"),
        "word right": ("\x1bf", "\x1b[1;5C", "\x1b[1;3C"),
        "erase word": ("\x17", "\x1b\x7f"),
        "erase to begin": ("\x15",),
        "erase to end": ("\x0b",),
        "older": ("\x1b[A", "\x1bOA", "\x10"),
        "newer": ("\x1b[B", "\x1bOB", "\x0e"),
        "newline": ("\x1b\r", "\x1b\n"),
    }.items()
    for key in keys
}
"""What each key does, by the bytes that a terminal sends for it."""
