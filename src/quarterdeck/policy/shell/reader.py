"""`read`: from a command's text to its `Script`.

Walks the syntax tree of tree-sitter, and passes every simple command to `commands`. The tree is not
trusted: tree-sitter repairs text that it cannot parse, and sometimes sees other words than bash
does. Everything uncertain becomes a problem, and a person is asked about problems. `word_reader`
handles quoting and `working_dir` the working directory. It knows no rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import ClassVar

from tree_sitter import Node

from quarterdeck.domain.structs import name_set
from quarterdeck.policy.shell.arithmetic import MOVES, Arithmetic
from quarterdeck.policy.shell.builtins import BUILTINS
from quarterdeck.policy.shell.characters import why_odd
from quarterdeck.policy.shell.commands import RESERVED, UNTOUCHED, Analysis, Simple, analyze
from quarterdeck.policy.shell.environment import lasting_doubt
from quarterdeck.policy.shell.listings import listing_of
from quarterdeck.policy.shell.pieces import DEPTH, SKIPPED
from quarterdeck.policy.shell.script import Assignment, Part, Problem, Script, Word
from quarterdeck.policy.shell.strict import (
    ASSIGNMENT,
    WORD,
    difference,
    plain_marks,
    read_strictly,
)
from quarterdeck.policy.shell.syntax import syntax_tree
from quarterdeck.policy.shell.variables import Variables
from quarterdeck.policy.shell.working_dir import WorkingDir

LIMIT = 16_384
"""Characters of a command that is looked into. A longer one is asked about as a whole."""

LONGEST_KEPT = 512
"""Characters of a command whose analysis is kept for the next time."""

SCRIPTS = 6
"""Levels of scripts within scripts (`bash -c "bash -c …"`)."""

MOST_DOUBTFUL = 2_048
"""Characters of a text that is parsed although it was not understood."""

MOST_INSIDE = 32_768
"""Characters of all scripts within a script together."""

PARTS = 150
"""Simple commands in one text. People write ten."""

_SETTING = re.compile(rb"\$|\(\(|\(\s*\)|\bfunction\b")
"""Where variables, arithmetic or functions may be: else there is nothing to know about them."""

_FUNCTION = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_EVALUATES = re.compile(r"\b(?:eval|source|trap|alias|command|builtin|exec)\b|(?:^|[\s;&|({])\.\s")
MEANINGS = frozenset(BUILTINS) | UNTOUCHED | RESERVED
"""Commands of the shell that are understood here: functions of these names change their meaning."""

_EXPRESSIONS = name_set(
    "binary_expression unary_expression ternary_expression parenthesized_expression"
    " postfix_expression subscript ERROR"
)
_WORDS = name_set(
    "word number string raw_string ansi_c_string translated_string concatenation expansion"
    " simple_expansion command_substitution process_substitution arithmetic_expansion"
    " brace_expression extglob_pattern"
)


def read(command: str, *, cwd: str | None = None, limit: int = LIMIT) -> Script:
    """Analyse a command that would start in the folder `cwd`. Never raises."""
    if len(command) <= LONGEST_KEPT and limit == LIMIT:
        return read_again(command, cwd)
    return _read(command, cwd, limit)


@lru_cache(maxsize=64)
def read_again(command: str, cwd: str | None) -> Script:
    """As `read`, for a short command: the last ones are kept, since one call is read several times,
    to decide about it and to find rules for it. Only the text and the folder make the result.
    """
    return _read(command, cwd, LIMIT)


def _read(command: str, cwd: str | None, limit: int) -> Script:
    if len(command) > limit:
        why = f"it is {len(command)} characters long; at most {limit} are analysed"
        problem = Problem(source="", why=why, span=(0, len(command)))
        return Script(source=command, problems=(problem,))
    reader = _Reader(command, WorkingDir.start(cwd), 0)
    reader.run()
    parts, problems = tuple(reader.parts), tuple(reader.problems)
    return Script(source=command, parts=parts, problems=problems, steps=reader.steps)


class _Reader(Arithmetic):
    """Reads one text. Scripts within it are read by readers of their own, one level deeper."""

    # --- the whole text --------------------------------------------------------------------

    def run(self, span: tuple[int, int] | None = None) -> None:
        """Read the whole text. `span` is its position in the outermost script."""
        self._span = span
        whole = (0, len(self._bytes))
        if (odd := why_odd(self._source)) is not None:
            self._problem(whole, odd)
        text = self._source if self._plain else self._bytes.decode("latin-1")
        outside: tuple[int, str] | None = None
        marks = line = plain_marks(text)
        if marks is None:
            marks, _, outside = read_strictly(text)
        if outside is None and b"<<" in self._bytes:
            for start, end, what, place, _ in marks:
                if what == WORD:
                    self._strict.setdefault(place, []).append((start, end))
        elif outside is not None:
            at, why = outside
            self._problem((at, len(self._bytes)), why)
            if len(self._bytes) > MOST_DOUBTFUL:
                return  # to repair it takes long, and the result is asked about in any case
        root = syntax_tree(self._bytes)
        if root.has_error:
            self._problem(whole, "it cannot be parsed")
        elif line is not None and root.child_count == 1:
            node = root.children[0]
            words = self._plain_words(node, line)
            if words is not None:
                self.steps += 1 + len(words)
                self._simple(node, words, [], [])
                return
        if _SETTING.search(self._bytes):
            self._variables = Variables()
            self._variables.collect(root, self._text)
        self._sequence(root)
        if outside is None and (apart := difference(marks, self._marks)) is not None:
            self._problem(apart[:2], "bash may read it differently")
        if not self.parts and not self.problems and not self._source.strip():
            self._problem(whole, "there is no command in it")

    # --- walking ---------------------------------------------------------------------------

    def _visit(self, node: Node) -> None:
        self.steps += 1
        if len(self.parts) > PARTS:
            if len(self.parts) != self._cut_at:
                self._cut_at = len(self.parts)
                self._doubt(node, f"it has more than {PARTS} parts")
            return
        if self._depth >= DEPTH:
            self._doubt(node, "it is nested too deep")
            return
        self._depth += 1
        kind = node.type
        handler = self._HANDLERS.get(kind)
        if handler is not None:
            handler(self, node)
        elif kind in _WORDS:
            self._word(node)
        elif node.is_named and kind not in SKIPPED:
            self._doubt(node, f"{kind.replace('_', ' ')} is not understood")
            self._inside(node)
        self._depth -= 1

    def _sequence(self, node: Node) -> None:
        """Commands one after the other."""
        end = node.start_byte
        statement: Node | None = None
        before = self._here
        for child in node.children:
            self._gap(end, child.start_byte)
            end = child.end_byte
            self._joint(child)
            kind = child.type
            if kind == "&" and statement is not None:
                self._here = self._loose = before
            elif kind == ";;":
                self._doubt(child, "it is unexpected here")
            if child.is_named:
                statement, before = child, self._loose
                self._here = self._loose
                self._visit(child)
        self._gap(end, node.end_byte)

    def _list(self, node: Node) -> None:
        """`a && b`, `a || b`."""
        children = [child for child in node.children if child.type != "comment"]
        self._gaps(children)
        if len(children) != 3:
            self._doubt(node, "this list is not understood")
            self._inside(node)
            return
        left, operator, right = children
        self._joint(operator)
        self._visit(left)
        passed, either = self._here, self._loose
        if operator.type == "||":
            self._here = self._loose = either
        self._visit(right)
        if operator.type == "||":
            self._here = self._here.union(passed)
        self._loose = self._loose.union(either)

    def _subshell(self, node: Node) -> None:
        """A subshell: changes of the working directory end with it."""
        here, loose = self._here, self._loose
        if node.children[0].type == "`" and b"\\" in self._bytes[node.start_byte : node.end_byte]:
            self._doubt(node, "backslashes have another meaning between backquotes")
        self._shells += 1
        self._output = None
        piped = self._piped
        self._piped = piped or node.children[0].type == ">("
        self._sequence(node)
        self._piped = piped
        self._shells -= 1
        self._here, self._loose = here, loose
        if sum(child.is_named and child.type != "comment" for child in node.children) != 1:
            self._output = None

    def _pipeline(self, node: Node) -> None:
        here, loose = self._here, self._loose
        given = self._input, self._piped
        self._pipes += 1
        self._gaps(node.children)
        for child in node.children:
            self._joint(child)
            if child.type in {"|", "|&"}:
                self._piped = True  # also the first, if a here-document stands before it
            if child.is_named:
                self._here, self._loose = here, loose
                self._output = None
                self._visit(child)
                # Names come only from a simple command: a group may write other things, too.
                plain = child.type in {"command", "redirected_statement"}
                self._input = self._output if plain else None
        self._output = self._input
        self._input, self._piped = given
        self._pipes -= 1
        # The last of a pipeline runs in the shell itself in zsh, and with lastpipe.
        self._here, self._loose = self._here.union(here), self._loose.union(loose)

    def _body(self, node: Node) -> None:
        """Any statement with statements inside: each of them may run, or not."""
        if MOVES.search(self._text(node)):
            self._here = self._loose = self._here.elsewhere() if _loops(node) else self._here
        end = node.start_byte
        here = self._here
        name: str | None = None
        words: list[Word] = []
        for child in node.children:
            self._gap(end, child.start_byte)
            end = child.end_byte
            if child.type == "&":
                self._joint(child)
            if child.type == "variable_name":
                name = self._text(child)
                if (why := lasting_doubt(name)) is not None:
                    self._doubt(child, why)
            elif child.type in _WORDS:
                words.append(self._word(child))
            elif child.is_named:
                if child.type == "do_group" and name is not None:
                    # In the loop, the variable is one of the words.
                    self._variables.learn(name, words, pattern=True)
                    self._loose = self._loose.with_variables([name])
                self._here = self._loose
                self._visit(child)
                self._loose = self._loose.union(here)
        self._here = self._loose

    def _compound(self, node: Node) -> None:
        if node.children and node.children[0].type == "((":
            self._arithmetic(node)
            return
        opened = self._bytes[node.start_byte + 1 : node.start_byte + 2]
        if opened not in {b" ", b"\t", b"\n"} or node.named_child_count == 0:
            # `{}` and `{ls` are names of commands to bash: a group begins with a blank.
            self._doubt(node, "it is not a group of commands")
        self._sequence(node)

    def _function(self, node: Node) -> None:
        """All commands of a function are taken to run. What is around it stays as it is if none of
        them can change that, and if no command that is understood here gets another meaning.
        """
        name = node.child_by_field_name("name")
        called = "?" if name is None else self._text(name)
        if not _FUNCTION.fullmatch(called) or called in MEANINGS or self._level:
            self._doubt(node, f"it defines a function {called}, which later commands may run")
        here = self._here.union(self._loose)
        self._here = self._loose = here.elsewhere()
        for child in node.children:
            if child.is_named and child != name:
                self._visit(child)
        moves = MOVES.search(self._text(node)) or _EVALUATES.search(self._text(node))
        self._here = self._loose = here.elsewhere() if moves else here

    def _look_inside(self, node: Node) -> None:
        self._inside(node)

    def _assignments(self, node: Node) -> None:
        """Assignments with no command: they last."""
        nodes = node.children if node.type == "variable_assignments" else [node]
        place = node.start_byte
        self._marks += [
            (each.start_byte, each.end_byte, ASSIGNMENT, place, self._shells) for each in nodes
        ]
        for each in nodes:
            if each.type != "variable_assignment":
                continue
            made = self._assignment(each)
            if made is None:
                continue
            if (why := lasting_doubt(made.name)) is not None:
                self._doubt(each, why)
            self._gave(made)

    def _gave(self, made: Assignment) -> None:
        """A variable has been set, for all commands that follow."""
        self._variables.learn(made.name, [made.value], pattern=False)
        self._here = self._here.with_variables([made.name])
        self._loose = self._loose.with_variables([made.name])

    def _redirected_statement(self, node: Node) -> None:
        """A statement and its redirections."""
        before = self._here.union(self._loose)
        body = node.child_by_field_name("body")
        redirects = [child for child in node.children if child.type.endswith("_redirect")]
        self._gaps([child for child in node.children if child.type != "heredoc_redirect"])
        if body is not None and body.type == "command":
            self._command(body, redirects)
            return
        kept_around = self._around
        if (fed := self._feeds(redirects))[0]:
            self._around = fed
        if body is not None:
            self._visit(body)
        self._around = kept_around
        kept = self._here, self._loose
        if body is None or body.type not in {"list", "pipeline"}:
            self._here = before.union(self._loose)
        # Else the tree hangs the redirection of a list's last command on the whole list.
        reads, writes = self._redirections(redirects)
        self._here, self._loose = kept
        if reads or writes:
            at = (node.start_byte, node.end_byte)
            bare = Part(
                words=(), text="", forms=(), span=self._chars(at), reads=reads, writes=writes
            )
            self.parts.append(bare)

    def _redirection_only(self, node: Node) -> None:
        """A redirection with no command, as in `$(<file)`."""
        self._simple(node, [], [], [node])

    # --- commands --------------------------------------------------------------------------

    def _command(self, node: Node, redirects: Iterable[Node] = ()) -> None:
        """One simple command: words, assignments, redirections."""
        words: list[Word] = []
        assignments: list[Assignment] = []
        own = list(redirects)
        self._gaps(node.children)
        self._mark_command(node)
        lost = self._lost_words(node)
        for child in node.children:
            kind = child.type
            while lost and lost[0][0] < child.start_byte:
                words.append(self._word_at(lost.pop(0)))
            if kind == "command_name":
                words.append(self._word(child))
            elif kind == "variable_assignment":
                made = self._assignment(child)
                if made is not None:
                    assignments.append(made)
            elif kind.endswith("_redirect"):
                own.append(child)
            elif child.is_named or child.type in {"==", "=~", "$", "="}:
                if kind not in _WORDS and child.is_named:
                    self._doubt(child, f"{kind.replace('_', ' ')} is not understood")
                words.append(self._word(child))
            else:
                self._doubt(child, f"{kind!r} is not understood")
        words += [self._word_at(each) for each in lost]
        self._simple(node, words, assignments, own)

    def _declaration(self, node: Node) -> None:
        """`export`, `declare`, `local`, `readonly`, `typeset`, `unset`."""
        words: list[Word] = []
        self._mark_words(WORD, node.children)
        for child in node.children:
            if child.type == "variable_assignment":
                made = self._assignment(child)
                if made is not None:
                    self._gave(made)
                    source = self._text(child)
                    known = made.value.text is not None
                    text = f"{made.name}={made.value.text}" if known else None
                    words.append(Word(source=source, text=text, prefix=f"{made.name}="))
            else:
                words.append(self._word(child))
        self._gaps(node.children)
        self._simple(node, words, [], [])

    def _simple(
        self, node: Node, words: list[Word], assignments: list[Assignment], own: list[Node]
    ) -> None:
        at = (node.start_byte, node.end_byte)
        reads, writes = self._redirections(own) if own else self._no_redirections()
        fed, text = self._text_input if self._text_input[0] else self._around
        names = None if fed else self._input
        simple = Simple(
            words=tuple(words),
            assignments=tuple(assignments),
            reads=reads,
            writes=writes,
            here=self._here,
            span=self._chars(at),
            input=names,
            text=text,
            fed=fed or self._piped,
        )
        found = analyze(simple)
        self._take(found)
        self._output = None
        # Only a pipe or a substitution passes it on.
        passed_on = self._pipes or self._shells
        if passed_on and words and not writes and not self._variables.functions:
            self._output = listing_of(simple.words, names)
        if found.moves is not None:
            self._loose = self._here.union(found.moves)
            self._here = found.moves
        else:
            self._loose = self._here
        if found.scripts and any(
            inner.via[-1] in {"eval", "trap", "source", "."} and MOVES.search(inner.text)
            for inner in found.scripts
        ):
            self._here = self._loose = self._here.elsewhere()

    def _take(self, found: Analysis) -> None:
        self.steps += found.steps
        self.parts.extend(found.parts)
        self.problems.extend(found.problems)
        for inner in found.scripts:
            self._inside_length[0] += len(inner.text)
            if self._level >= SCRIPTS or self._inside_length[0] > MOST_INSIDE:
                why = "scripts in scripts are nested too deep"
                self.problems.append(Problem(source=inner.text[:200], why=why, span=inner.span))
                continue
            reader = _Reader(inner.text, inner.here.in_a_new_shell(), self._level + 1)
            reader._outer = self._outer
            reader._inside_length = self._inside_length
            reader.run(inner.span)
            self.steps += reader.steps
            self.parts.extend(inner.wrap(part) for part in reader.parts)
            self.problems.extend(reader.problems)

    _HANDLERS: ClassVar[dict[str, Callable[[_Reader, Node], None]]] = {
        "program": _sequence,
        "list": _list,
        "pipeline": _pipeline,
        "negated_command": _body,
        "subshell": _subshell,
        "command_substitution": _subshell,
        "process_substitution": _subshell,
        "compound_statement": _compound,
        "if_statement": _body,
        "elif_clause": _body,
        "else_clause": _body,
        "while_statement": _body,
        "for_statement": _body,
        "c_style_for_statement": Arithmetic.for_numbers,
        "do_group": _sequence,
        "case_statement": _body,
        "case_item": _body,
        "function_definition": _function,
        "redirected_statement": _redirected_statement,
        "file_redirect": _redirection_only,
        "herestring_redirect": _redirection_only,
        "heredoc_redirect": _redirection_only,
        "command": _command,
        "declaration_command": _declaration,
        "unset_command": _declaration,
        "test_command": Arithmetic.test,
        "variable_assignment": _assignments,
        "variable_assignments": _assignments,
        **dict.fromkeys(_EXPRESSIONS, _look_inside),
    }


def _loops(node: Node) -> bool:
    return node.type in {"while_statement", "for_statement", "c_style_for_statement"}
