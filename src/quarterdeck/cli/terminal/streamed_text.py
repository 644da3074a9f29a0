"""A text of the model that is being written: the lines that are final, and those that may change.

Owns one text. An answer is Markdown, and a block of it is final when the next one begins; thoughts
are plain text, and each line is final. `screen` prints the final lines, and the `footer` shows the
others. Loaded by `screen` only at a terminal.
"""

from __future__ import annotations

from rich.text import Text

from quarterdeck.cli.terminal.markdown import Blocks, ends_apart, to_lines, wrap
from quarterdeck.cli.terminal.text import plain

LONGEST_TAIL = 2000
"""Characters of an unfinished line of thoughts that are shown."""


class Writing:
    """One text. Give it pieces, print what comes back."""

    def __init__(self, *, markdown: bool, style: str = "") -> None:
        self.source = ""
        """All of the text so far."""
        self._markdown = markdown
        self._style = style
        self._blocks = Blocks()
        self._line = ""
        self._apart = False
        self._begun = False

    def feed(self, text: str, width: int) -> list[Text]:
        """Add a piece; gives the lines that are final now."""
        self.source += text
        if not self._begun:
            text = text.lstrip("\n") if self._markdown else text
            self._begun = bool(text)
        if self._markdown:
            return self._lines(self._blocks.feed(text), width)
        whole, newline, self._line = (self._line + text).rpartition("\n")
        return self._apply_styles(wrap(Text(plain(whole)), width)) if newline else []

    def tail(self, width: int) -> list[Text]:
        """The lines that are not final yet."""
        if not self._markdown:
            shown = plain(self._line[-LONGEST_TAIL:])
            return self._apply_styles(wrap(Text(shown), width)) if shown else []
        if not self._blocks.rest.strip():
            return []
        before = [Text()] if self._apart else []
        return before + self._apply_styles(to_lines(self._blocks.rest, width))

    def finish(self, width: int) -> list[Text]:
        """The text is complete; gives the lines that were left."""
        if not self._markdown:
            rest, self._line = self._line, ""
            return self._apply_styles(wrap(Text(plain(rest)), width)) if rest.strip() else []
        rest, self._blocks.rest = self._blocks.rest, ""
        return self._lines([rest], width) if rest.strip() else []

    def _lines(self, blocks: list[str], width: int) -> list[Text]:
        found: list[Text] = []
        for block in blocks:
            lines = self._apply_styles(to_lines(block, width))
            if lines:
                found += [Text(), *lines] if self._apart else lines
                self._apart = False
            self._apart = self._apart or ends_apart(block)
        return found

    def _apply_styles(self, lines: list[Text]) -> list[Text]:
        if self._style:
            for line in lines:
                line.stylize_before(self._style)
        return lines
