"""Variables of a script whose values are known before it runs.

A variable is known where every command of the text that can set it is known: plain assignments of
texts, and loops over words. `collect` looks at the whole text first, so that a value which is set
later, in a loop, is seen too. Whether an assignment has certainly happened is not decided here: the
working directory (`working_dir`) keeps the names that have certainly been set, because both follow
the same paths through a script.

Sound before complete: a command that may set any variable (`eval`, `source`, an unknown one) makes
all of them unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from tree_sitter import Node

from quarterdeck.domain.structs import name_set
from quarterdeck.policy.shell.script import Word
from quarterdeck.policy.shell.word_reader import Known, read_word

MOST_NODES = 4_000
"""Nodes of a syntax tree that are looked at. In a larger one no variable is known."""

MOST_VALUES = 32

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER = re.compile(r"[+-]?[0-9]+")
_SETS_DEFAULT = re.compile(r"\$\{([A-Za-z_]\w*)(?:\[[^\]]*\])?:?=")
_DESCRIPTOR = re.compile(r"\{([A-Za-z_]\w*)\}[<>]")
_SETS_NUMBER = re.compile(r"(?<![=!<>])=(?!=)|\+\+|--")

_SPECIAL = re.compile(
    r"BASH\w*|COMP_\w+|DIRSTACK|EPOCH\w+|EUID|FUNCNAME|GROUPS|HISTCMD|HOME|HOST\w*|IFS|LINENO"
    r"|MACHTYPE|MAPFILE|OLDPWD|OPTARG|OPTIND|OPTERR|OSTYPE|PATH|PIPESTATUS|PPID|PWD|RANDOM|READLINE\w*"
    r"|REPLY|SECONDS|SHELLOPTS|SHLVL|SRANDOM|UID|_|COPROC\w*|COLUMNS|LINES|GLOBIGNORE|CDPATH|PS\d"
    r"|ZSH\w*|TTY\w*|USERNAME|LOGNAME|MATCH|MBEGIN|MEND|ARGV0|ERRNO|GID|EGID|STATUS|KEYTIMEOUT"
    r"|aliases|argv|builtins|cdpath|commands|dirstack|errnos|fignore|fpath|functions|funcstack"
    r"|history|historywords|jobdirs|jobstates|jobtexts|keymaps|mailpath|manpath|match|mbegin|mend"
    r"|module_path|modules|nameddirs|options|parameters|path|patchars|pipestatus|prompt|psvar"
    r"|reswords|saliases|signals|status|sysparams|termcap|terminfo|userdirs|watch|widgets|zsh_\w+"
)
"""Variables that a shell sets, or reads back in another form."""

_SETS_ALL = name_set(
    "eval source . trap alias unalias enable coproc fc bind emulate zmodload autoload functions"
    " vared zparseopts sysread zstat stat strftime print complete compgen compopt disable select"
    " caller history zle bindkey sched"
)
_SETS_OPERANDS = name_set(
    "read mapfile readarray getopts unset wait let integer float local ulimit"
)
_DECLARES = name_set("declare typeset export readonly")
_PLAIN_DECLARING = re.compile(r"-[rxg]+|--")
_THROUGH = name_set("command builtin time noglob nocorrect exec -")

Text = Callable[[Node], str]


class Variables:
    """The variables that one text sets."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._literal: dict[str, list[Known]] = {}
        """Values of variables that are written as plain texts."""
        self._late: dict[str, tuple[Known, ...] | None] = {}
        """The value of a variable that is set once, by a word with other variables."""
        self._unknown: set[str] = set()
        self._all_unknown = False
        self._numbers: dict[str, bool] = {}
        """Whether every value that a variable gets is a number."""
        self._counted: set[str] = set()
        """Variables that get the output of a program that counts."""
        self.functions = False
        """Whether functions are defined: then a program may be another one."""
        self.splits = True
        """Whether words are split at blanks, as usual."""

    # --- what the whole text sets --------------------------------------------------------------

    def collect(self, root: Node, text: Text) -> None:
        """Look at every node that can set a variable."""
        for found in _DESCRIPTOR.finditer(text(root)):
            self._lose(found[1])
        waiting, seen = [root], 0
        while waiting:
            node = waiting.pop()
            seen += 1
            if seen > MOST_NODES:
                self._all_unknown = True
                return
            kind = node.type
            if kind == "variable_assignment":
                if node.parent is None or node.parent.type != "c_style_for_statement":
                    self._assignment(node, text)
            elif kind in {"for_statement", "select_statement"}:
                self._loop(node, text)
            elif kind == "command":
                self._command(node, text)
            elif kind in {"declaration_command", "unset_command"}:
                self._declaration(node, text)
            elif kind == "expansion":
                for found in _SETS_DEFAULT.finditer(text(node)):
                    self._lose(found[1])
            elif kind in {"arithmetic_expansion", "c_style_for_statement"} or (
                kind == "compound_statement" and node.children and node.children[0].type == "(("
            ):
                self._arithmetic(node, text)
            elif kind == "function_definition":
                self.functions = True
            elif kind == "ERROR":
                self._all_unknown = True
            waiting.extend(child for child in node.children if child.child_count)

    def _lose(self, name: str) -> None:
        self._unknown.add(name)
        self._numbers[name] = False

    def _count(self, name: str, *, number: bool) -> None:
        self._counts[name] = self._counts.get(name, 0) + 1
        self._numbers[name] = self._numbers.get(name, True) and number
        if name == "IFS":
            self.splits = False

    def _assignment(self, node: Node, text: Text) -> None:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        whole = text(node)
        label = _NAME.match(whole)
        if name is None or label is None:
            self._all_unknown = True
            return
        if name.type != "variable_name" or not whole.startswith("=", label.end()):
            self._lose(label[0])  # `a[1]=x`, `a+=x`
            return
        if value is None:
            self._count(label[0], number=False)
            self._literal.setdefault(label[0], []).append(Known(text=""))
        elif value.type == "array":
            self._count(label[0], number=False)
            words = [read_word(text(each)) for each in value.children if each.is_named]
            for word in words:
                self._value(label[0], word, pattern=True)
            if not words:
                self._lose(label[0])
        else:
            written = text(value)
            self._count(label[0], number=_is_number(value, written, text))
            if "(" in written and "((" not in written:
                self._counted.add(label[0])
            self._value(label[0], read_word(written), pattern=False)

    def _loop(self, node: Node, text: Text) -> None:
        variable = node.child_by_field_name("variable")
        if variable is None or node.type != "for_statement":
            self._all_unknown = True
            return
        name = text(variable)
        values = [text(each) for each in node.children_by_field_name("value")]
        self._count(name, number=bool(values) and all(map(_NUMBER.fullmatch, values)))
        if not values or text(node).startswith("select"):
            self._lose(name)
        for each in values:
            self._value(name, read_word(each), pattern=True)

    def _value(self, name: str, word: Word, *, pattern: bool) -> None:
        known = values_of(word, pattern=pattern)
        if known is not None:
            self._literal.setdefault(name, []).extend(known)
        else:
            self._late.setdefault(name, None)

    def _command(self, node: Node, text: Text) -> None:
        words = [
            read_word(text(child))
            for child in node.children
            if child.type != "variable_assignment" and not child.type.endswith("_redirect")
        ]
        while words and words[0].literal in _THROUGH:
            words = words[1:]
            while words and (words[0].literal or "").startswith("-"):
                words = words[1:]
        if words:
            self._sets(words)

    def _sets(self, words: list[Word]) -> None:
        name = words[0].literal
        first = words[1] if len(words) > 1 else None
        if name is None or name in _SETS_ALL or name in _DECLARES:
            # A declaration is a node of its own; here it hides behind another command.
            self._all_unknown = True
        elif (
            name in _SETS_OPERANDS
            or (
                name == "printf"
                and first is not None
                and (first.literal is None or first.prefix.startswith("-v"))
            )
            or (name == "set" and any(_may_set_array(word) for word in words[1:]))
        ):
            self._lose_operands(words[1:])

    def _lose_operands(self, words: list[Word]) -> None:
        for word in words:
            if word.literal is None:
                self._all_unknown = True
                return
            for name in _NAME.findall(word.literal):
                self._lose(name)

    def _declaration(self, node: Node, text: Text) -> None:
        words = [text(child) for child in node.children if child.type != "variable_assignment"]
        plain = words[0] in _DECLARES and all(
            _PLAIN_DECLARING.fullmatch(each) or _NAME.fullmatch(each) for each in words[1:]
        )
        if plain:
            return
        if words[0] in {"unset", "unsetenv", "local"} or all(
            re.fullmatch(r"-[aAilurxg]+|[A-Za-z_]\w*", each) for each in words[1:]
        ):
            for name in _NAME.findall(text(node)):
                self._lose(name)
        else:
            self._all_unknown = True
        if any("$" in each or "`" in each for each in words[1:]):
            self._all_unknown = True

    def _arithmetic(self, node: Node, text: Text) -> None:
        if node.type == "c_style_for_statement":
            body = node.child_by_field_name("body")
            end = body.start_byte if body is not None else node.end_byte
            whole = text(node).encode()[: end - node.start_byte].decode(errors="replace")
        else:
            whole = text(node)
        if _SETS_NUMBER.search(whole):
            for name in _NAME.findall(whole):
                self._unknown.add(name)
                self._counts.setdefault(name, 1)
                self._numbers.setdefault(name, True)

    # --- what is known ------------------------------------------------------------------------

    def learn(self, name: str, words: Iterable[Word], *, pattern: bool) -> None:
        """An assignment is reached: its values, as far as they are known by now."""
        if self._late.get(name, ()) is None and self._counts.get(name) == 1:
            found: list[Known] = []
            for word in words:
                known = values_of(word, pattern=pattern)
                if known is None:
                    return
                found += known
            self._late[name] = tuple(found)

    def values(self, name: str) -> tuple[Known, ...] | None:
        """All that a variable may be after it was set; None if that is not known."""
        if self._all_unknown or name in self._unknown or _SPECIAL.fullmatch(name):
            return None
        if name not in self._counts:
            return None
        found = list(self._literal.get(name, ()))
        if name in self._late:
            late = self._late[name]
            if late is None:
                return None
            found += late
        return tuple(dict.fromkeys(found)) if 0 < len(found) <= MOST_VALUES else None

    def is_set(self, name: str) -> bool:
        """Whether this text may set a variable."""
        return self._all_unknown or name in self._counts or name in self._unknown

    def is_number(self, name: str) -> bool:
        """Whether every value that this text gives to a variable is a number."""
        if self._all_unknown or _SPECIAL.fullmatch(name):
            return False
        if name in self._counted and self.functions:
            return False
        return name in self._counts and self._numbers.get(name, False)


NO_VARIABLES = Variables()
"""For a text that sets none: it is never changed, as nothing is collected."""


def values_of(word: Word, *, pattern: bool) -> tuple[Known, ...] | None:
    """What a variable is after it was given a word. `pattern`: patterns are expanded, as in a
    loop.
    """
    if word.text is None and not word.texts:
        return None
    texts = (word.text,) if word.text is not None else word.texts
    if word.text is None and not pattern:
        return None  # braces are not expanded in an assignment
    found: list[Known] = []
    for text in texts:
        wild = any(sign in text for sign in "*?[")
        if (wild and not word.glob) or (":~" in text and not pattern):
            return None
        if wild and not pattern and "[" in text:
            return None
        found.append(Known(text=text, tilde=word.tilde, glob=wild, hidden=word.hidden))
    return tuple(found)


def _may_set_array(word: Word) -> bool:
    return word.prefix[1:2] == "A" if word.literal is not None else word.prefix in {"", "-", "+"}


# --- numbers -----------------------------------------------------------------------------------

_COUNTS = re.compile(
    r"(?:wc\s+(?:-[lwcm]+|--lines|--words|--bytes|--chars)(?:\s*<\s*[\w./~-]+)?"
    r"|grep\s+(?:-[A-Za-z]*c[A-Za-z]*)\s+(?:'[^']*'|\"[^\"$`\\]*\"|[\w.-]+)(?:\s+[\w./~-]+)?"
    r"|nproc|id\s+-[ug]|date\s+\+%s|sysctl\s+-n\s+hw\.ncpu|getconf\s+_NPROCESSORS_ONLN)"
    r"(?:\s+2>\s*/dev/null)?"
)
_RECURSES = re.compile(r"-[A-Za-z]*[rRHno][A-Za-z]*")


def _is_number(node: Node, written: str, text: Text) -> bool:
    """Is a value certainly a number?"""
    if _NUMBER.fullmatch(written.strip("\"'")):
        return True
    inner = node
    if node.type == "string":
        inside = [child for child in node.children if child.is_named]
        if len(inside) != 1 or inside[0].end_byte - inside[0].start_byte != len(written) - 2:
            return False
        inner = inside[0]
    if inner.type == "arithmetic_expansion":
        return True
    return inner.type == "command_substitution" and counts(inner, text)


def counts(node: Node, text: Text) -> bool:
    """Does a substitution certainly give a number: is its last command one that counts?"""
    statements = [child for child in node.children if child.is_named]
    if len(statements) != 1:
        return False
    last = statements[0]
    if last.type == "pipeline":
        last = [child for child in last.children if child.is_named][-1]
    written = text(last).strip()
    if not _COUNTS.fullmatch(written):
        return False
    # `grep -rc` gives a line for each file.
    return not written.startswith("grep") or not any(
        _RECURSES.fullmatch(word) for word in written.split()[1:]
    )


NUMBERS = re.compile(r"\$[?#$!]|\$\{#\w+(?:\[[@*]\])?\}")
"""Expansions that always are numbers."""


def names_in(expression: str) -> Iterator[str]:
    """The variables that an arithmetic expression evaluates."""
    yield from _NAME.findall(NUMBERS.sub("0", expression))
