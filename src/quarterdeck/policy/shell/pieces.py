"""The parts of statements: words, assignments, redirections, and the blanks between them.

`reader` handles statements. Everything uncertain becomes a problem.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from itertools import pairwise

from tree_sitter import Node

from quarterdeck.policy.shell.heredocs import check_heredoc
from quarterdeck.policy.shell.listings import Listing
from quarterdeck.policy.shell.script import Assignment, Part, Problem, Target, Word
from quarterdeck.policy.shell.strict import (
    ASSIGNMENT,
    JOINTS,
    TEST,
    TESTS,
    WORD,
    Mark,
    document_mark,
)
from quarterdeck.policy.shell.variables import NO_VARIABLES
from quarterdeck.policy.shell.word_reader import PLAIN, Known, read_word
from quarterdeck.policy.shell.working_dir import HARMLESS, WorkingDir

SKIPPED = frozenset({"comment", "heredoc_start", "heredoc_end", "file_descriptor", "regex"})
_JOINT = re.compile(r"(?:\\\n)+")
_BLANK = re.compile(r"(?:[ \t\n]|\\\n)*")
DEPTH = 48
"""Levels of nesting in one tree. People write five."""

LEAVES = frozenset(
    {
        "word",
        "number",
        "raw_string",
        "variable_name",
        "special_variable_name",
        "string_content",
        "heredoc_content",
        "test_operator",
        "ansi_c_string",
        "file_descriptor",
        "comment",
        "regex",
        "extglob_pattern",
        "command_name",
    }
)
"""Nodes without anything inside that could run."""

_INDEX = re.compile(r"\$\{[#!]?\w+\[(?![0-9@*-]+\])")
_OFFSET = re.compile(r"\$\{\w+(?:\[[@*]\])?:(?![-+=?])(?!\s*-?\s*\d+\s*(?::\s*-?\d+\s*)?\})")
"""An index, an offset or a length that is not written in digits: bash evaluates it."""

_LIVE = re.compile(rb"`|\$\(")
_NAMES = frozenset({"command_name"})
_ARGUMENTS = frozenset({"word", "number"})
_SPACE = 32
_PLAIN = re.compile(rb"[A-Za-z0-9_./:@%+,=~-]+")
_TESTS = frozenset(each.encode() for each in TESTS)
_WRITES = frozenset({">", ">>", "&>", "&>>", ">|", ">&", "<>"})


def _sets(name: str, script: str) -> bool:
    """May a script set a variable: does it name it without reading it?"""
    return re.search(rf"(?<![$\w{{]){name}\b", script) is not None


class Pieces(ABC):
    """One text, its bytes, its problems, and the words and redirections in it."""

    def __init__(self, source: str, here: WorkingDir, level: int) -> None:
        self.parts: list[Part] = []
        self.problems: list[Problem] = []
        self.steps = 0
        self._source = source
        self._level = level
        self._here = here
        """Where the next command runs, if the last one did well."""
        self._loose = here
        """Where it runs whether the last one did well or not."""
        self._bytes = source.encode("utf-8", "replace")
        self._ascii = len(self._bytes) == len(source)
        self._plain = source.isascii()
        """Bytes and characters are the same."""
        self._span: tuple[int, int] | None = None
        self._depth = 0
        self._cut_at = -1
        self._marks: list[Mark] = []
        """Marks from the syntax tree, to be compared with the strict reading."""
        self._shells = 0
        self._strict: dict[int, list[tuple[int, int]]] = {}
        """The positions of the words of each command, by the strict reading."""
        self._variables = NO_VARIABLES
        self._inside_length = [0]
        """The characters of all scripts within the outermost one, counted by all readers."""
        self._outer = source
        """The outermost script around this one."""
        self._input: Listing | None = None
        """Names of files that the next command gets as its input."""
        self._output: Listing | None = None
        """Names of files that the last command wrote to its output."""
        self._pipes = 0
        """The number of pipelines around the next command."""
        self._piped = False
        """Whether the next command gets the output of another one."""
        self._around: tuple[bool, str | None] = (False, None)
        """The same for redirections of a statement around the next command."""
        self._text_input: tuple[bool, str | None] = (False, None)
        """Whether the redirections that were read last give an input, and its text if known."""

    @abstractmethod
    def _visit(self, node: Node) -> None:
        """Read a statement."""

    @abstractmethod
    def _arithmetic(self, node: Node) -> None:
        """Read `((…))` or `$((…))`."""

    # --- the text ---------------------------------------------------------------------------

    def _problem(self, at: tuple[int, int], why: str) -> None:
        text = self._bytes[at[0] : at[1]].decode("utf-8", "replace")
        self.problems.append(Problem(source=text[:200], why=why, span=self._chars(at)))

    def _chars(self, at: tuple[int, int]) -> tuple[int, int]:
        if self._span is not None:
            return self._span
        if self._ascii:
            return at
        start = len(self._bytes[: at[0]].decode("utf-8", "replace"))
        return start, start + len(self._bytes[at[0] : at[1]].decode("utf-8", "replace"))

    def _text(self, node: Node) -> str:
        if self._plain:
            return self._source[node.start_byte : node.end_byte]
        return self._bytes[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def _doubt(self, node: Node, why: str) -> None:
        self._problem((node.start_byte, node.end_byte), why)

    def _gap(self, start: int, end: int) -> None:
        """Between two nodes there may be only blanks, and no continuation line inside a word."""
        if start >= end:
            return
        text = self._bytes[start:end].decode("utf-8", "replace")
        if text == " ":
            return
        if not _BLANK.fullmatch(text):
            self._problem((start, end), f"{text[:40]!r} is not understood")
        elif _JOINT.fullmatch(text):
            self._problem((start, end), "a word continues on the next line")

    def _mark_words(self, what: str, nodes: list[Node]) -> None:
        """Mark the words of one command."""
        place = nodes[0].start_byte if nodes else 0
        for node in nodes:
            self._marks.append((node.start_byte, node.end_byte, what, place, self._shells))

    def _lost_words(self, node: Node) -> list[tuple[int, int]]:
        """Plain words of a command that are missing in the tree, as happens around
        here-documents.
        """
        strict = self._strict.get(node.start_byte) if self._strict else None
        if strict is None:
            return []
        shown = {(child.start_byte, child.end_byte) for child in node.children}
        lost = [
            each
            for each in strict
            if each not in shown and _PLAIN.fullmatch(self._bytes, each[0], each[1])
        ]
        place = node.start_byte
        self._marks += [(start, end, WORD, place, self._shells) for start, end in lost]
        return lost

    def _word_at(self, at: tuple[int, int]) -> Word:
        return read_word(self._bytes[at[0] : at[1]].decode())

    def _mark_command(self, node: Node) -> None:
        place, first = -1, ""
        marks: list[Mark] = []
        for child in node.children:
            kind = child.type
            if kind.endswith("_redirect"):
                continue
            start, end = child.start_byte, child.end_byte
            if place < 0:
                place, first = start, kind
                if first == "command_name" and self._bytes[start:end] in _TESTS:
                    first = TEST
            what = ASSIGNMENT if kind == "variable_assignment" else WORD
            marks.append((start, end, what, place, self._shells))
        if first == TEST:
            begun = node.start_byte
            marks = [(begun, marks[-1][1], TEST, begun, self._shells)]
        self._marks += marks

    def _plain_words(self, node: Node, marks: list[Mark]) -> list[Word] | None:
        """The words of a line that is one command of plain words to both readers, as most are.

        They agree if both have the same marks. None if they do not, or if it is something else.
        """
        children = node.children
        if node.type != "command" or len(children) != len(marks):
            return None
        words: list[Word] = []
        wanted, place = _NAMES, node.start_byte
        for child, mark in zip(children, marks, strict=True):
            start, end = child.start_byte, child.end_byte
            if mark != (start, end, WORD, place, self._shells):
                return None
            text = self._source[start:end]
            if child.type not in wanted or not PLAIN.fullmatch(text):
                return None
            words.append(Word(source=text, text=text, prefix=text))
            wanted = _ARGUMENTS
        return words

    def _joint(self, node: Node) -> None:
        """Mark an operator between commands."""
        if node.type in JOINTS:
            self._marks.append((node.start_byte, node.end_byte, node.type, 0, self._shells))

    def _gaps(self, children: list[Node]) -> None:
        for left, right in pairwise(children):
            start, end = left.end_byte, right.start_byte
            # Most gaps are one blank.
            if start < end and (end - start > 1 or self._bytes[start] != _SPACE):
                self._gap(start, end)

    def _inside(self, node: Node) -> None:
        """Find commands inside a node that is not a command: all of them may run."""
        for child in node.children:
            if child.child_count or (child.is_named and child.type not in LEAVES):
                self._visit(child)

    # --- words, assignments, redirections -----------------------------------------------

    def _word(self, node: Node) -> Word:
        """A word, and the commands substituted in it."""
        self.steps += 1
        text = self._text(node)
        if self._depth < DEPTH and PLAIN.fullmatch(text):
            # It has no sign that could begin a substitution, whatever the tree says.
            return Word(source=text, text=text, prefix=text)
        if node.child_count:
            if self._depth >= DEPTH:
                self._doubt(node, "it is nested too deep")
                return Word(source=text)
            self._depth += 1
            self._substitutions(node)
            self._depth -= 1
            if self._hides_substitution(node, DEPTH):
                self._doubt(node, "it may substitute a command")
            if node.type == "command_substitution" and self._output is not None:
                return self._output.word(text)
        return read_word(text, self._value_of)

    def _value_of(self, name: str, quoted: bool) -> tuple[Known, ...] | None:
        """The values that a variable may have here; None if they are not known."""
        if name in {"HOME", "PWD"}:
            if self._variables.is_set(name) or (self._level and _sets(name, self._outer)):
                return None
            if name == "HOME":
                return (Known(text="~", tilde=True),)
            dirs = [each for each, _ in self._here.dirs]
            if not dirs or not all(each.startswith("/") for each in dirs):
                return None
            return tuple(Known(text=each) for each in dirs)
        if name not in self._here.given or not (quoted or self._variables.splits):
            return None
        return self._variables.values(name)

    def _hides_substitution(self, node: Node, levels: int) -> bool:
        """Is there a substitution in the text that the tree does not show as one?"""
        if not _LIVE.search(self._bytes, node.start_byte, node.end_byte):
            return False
        if node.type in {"raw_string", "ansi_c_string", "command_substitution"}:
            return False
        if node.type in {"process_substitution", "arithmetic_expansion"}:
            return False
        if not node.child_count or not levels:
            return True
        self.steps += node.child_count
        return any(
            self._hides_substitution(child, levels - 1) for child in node.children if child.is_named
        )

    def _substitutions(self, node: Node) -> None:
        kind = node.type
        if kind in {"command_substitution", "process_substitution"}:
            self._visit(node)
        elif kind == "expansion":
            self._expansion(node)
        elif kind == "arithmetic_expansion":
            self._arithmetic(node)
        else:
            for child in node.children:
                if child.child_count:
                    self.steps += 1
                    self._substitutions(child)

    def _assignment(self, node: Node) -> Assignment | None:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None:
            self._doubt(node, "this assignment is not understood")
            return None
        if name.type == "subscript":
            if not re.fullmatch(r"\w+\[(?:\d+|\"\w+\")\]", self._text(name)):
                self._doubt(node, "it evaluates an index")
            self._inside(name)
        label = self._text(name).partition("[")[0]
        if value is None:
            return Assignment(name=label, value=read_word(""))
        if value.type == "array":
            self._inside(value)
            return Assignment(name=label, value=Word(source=self._text(value)))
        return Assignment(name=label, value=self._word(value))

    def _redirections(self, nodes: Iterable[Node]) -> tuple[tuple[Target, ...], tuple[Target, ...]]:
        reads: list[Target] = []
        writes: list[Target] = []
        fed: tuple[bool, str | None] = (False, None)
        for node in nodes:
            self.steps += 1
            if node.type == "heredoc_redirect":
                self._heredoc(node, reads, writes)
                fed = (True, None if fed[0] else self._heredoc_text(node))
            elif node.type == "herestring_redirect":
                word = self._inside_words(node)
                fed = (True, word.text if word is not None and not fed[0] else None)
            else:
                self._file(node, reads, writes)
                if any(child.type.startswith("<") for child in node.children):
                    fed = (True, None)
        self._text_input = fed
        return tuple(reads), tuple(writes)

    def _no_redirections(self) -> tuple[tuple[Target, ...], tuple[Target, ...]]:
        self._text_input = (False, None)
        return (), ()

    def _feeds(self, redirects: list[Node]) -> tuple[bool, str | None]:
        """Whether redirections give an input, and its text if that is known."""
        fed: tuple[bool, str | None] = (False, None)
        for node in redirects:
            if node.type == "heredoc_redirect":
                fed = (True, None if fed[0] else self._heredoc_text(node))
            elif node.type == "herestring_redirect":
                words = [child for child in node.children if child.is_named]
                text = read_word(self._text(words[-1])).text if len(words) == 1 else None
                fed = (True, None if fed[0] else text)
            elif any(child.type.startswith("<") for child in node.children):
                fed = (True, None)
        return fed

    def _heredoc_text(self, node: Node) -> str | None:
        """The text of a here-document, if it is known: nothing in it is replaced."""
        body = next((child for child in node.children if child.type == "heredoc_body"), None)
        start = next((child for child in node.children if child.type == "heredoc_start"), None)
        if body is None or start is None or node.children[0].type != "<<":
            return None
        text = self._text(body)
        quoted = self._text(start)[:1] in {"'", '"', "\\"}
        return text if quoted or not re.search(r"[$`\\]", text) else None

    def _file(self, node: Node, reads: list[Target], writes: list[Target]) -> None:
        operator = next((c.type for c in node.children if not c.is_named), "")
        targets = [c for c in node.children if c.is_named and c.type != "file_descriptor"]
        for each in targets:
            self._marks.append((each.start_byte, each.end_byte, operator, 0, 0))
        if operator in {">&-", "<&-"}:
            self._marks.append((node.end_byte - 1, node.end_byte, operator[:2], 0, 0))
        if len(targets) != 1:
            if operator not in {">&-", "<&-"} or targets:
                self._doubt(node, "this redirection is not understood")
            for each in targets:
                self._word(each)
            return
        named = self._word(targets[0])
        if (
            operator in {">&", "<&"}
            and named.text is not None
            and re.fullmatch(r"\d+-?|-", named.text)
        ):
            return
        if (named.text in HARMLESS and named.text != "-") or targets[
            0
        ].type == "process_substitution":
            return
        if named.text is not None and named.text.startswith(("/dev/tcp/", "/dev/udp/")):
            self._doubt(node, "it opens a connection")
            return
        target = self._here.target(named)
        if operator in _WRITES:
            writes.append(target)
        if operator in {"<", "<>"}:
            reads.append(target)
        if operator not in _WRITES and operator != "<":
            self._doubt(node, f"the redirection {operator} is not understood")

    def _heredoc(self, node: Node, reads: list[Target], writes: list[Target]) -> None:
        why = check_heredoc(node, self._bytes)
        if why is not None:
            self._doubt(node, why)
        kinds = {child.type: child for child in node.children}
        begun, ended = kinds.get("heredoc_start"), kinds.get("heredoc_end")
        if begun is not None and ended is not None:
            self._marks.append(document_mark(begun.start_byte, begun.end_byte, ended.start_byte))
        for child in node.children:
            self._joint(child)
            if child.type in {"file_redirect", "herestring_redirect"}:
                more = self._redirections([child])
                reads.extend(more[0])
                writes.extend(more[1])
            elif child.type == "heredoc_body":
                self._inside(child)
            elif child.is_named and child.type not in SKIPPED:
                # `cat <<E | rm x`: the rest of the line hangs on the here-document.
                self._visit(child)

    def _inside_words(self, node: Node) -> Word | None:
        """The text of a here-string."""
        words: list[Word] = []
        for child in node.children:
            if child.is_named and child.type != "file_descriptor":
                self._marks.append((child.start_byte, child.end_byte, "<<<", 0, 0))
                words.append(self._word(child))
        return words[0] if len(words) == 1 and not words[0].tilde else None

    def _expansion(self, node: Node) -> None:
        text = self._text(node)
        if re.search(r"@[PEAKakQULu]\}?$", text) or text.startswith("${!"):
            self._doubt(node, "it expands a variable's value again")
        elif _INDEX.match(text) or _OFFSET.match(text):
            self._doubt(node, "it evaluates an index")
        self._inside(node)
