"""awk programs: do they only print and compute?

A tokenizer for what gawk, mawk and BWK awk have in common, and a walk over the tokens. `>` after
`print` outside of parentheses is a redirection, elsewhere it compares; a `/` begins a pattern where
an operand is expected. A program in which either is not certain is unknown.
"""

from __future__ import annotations

import re

from quarterdeck.domain.structs import Value, name_set
from quarterdeck.policy.shell.code import CodeEffects, unknown

LONGEST = 20_000
"""Longer programs are not read: a person is asked."""

MOST_TEXTS = 50
"""Texts of a program that are taken for names of files."""

_TOKEN = re.compile(
    r"(?P<blank>[ \t]+|\\\n)"
    r"|(?P<comment>#[^\n]*)"
    r"|(?P<newline>\n)"
    r'|(?P<text>"(?:[^"\\\n]|\\[^\n])*")'
    r"|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?![\w.])"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign>\|\||&&|>>|\|&|\+\+|--|[-+*/%^!=<>]=|\*\*=?|[][{}(),;?:!~$<>=+*%^|/-])"
)
_UNSAFE = name_set("system ENVIRON ARGV ARGC SYMTAB FUNCTAB extension")
"""Names by which a program runs commands, sees the environment, or changes the files it reads."""

_UNSURE = name_set("asort asorti PROCINFO")
"""gawk's sorting may call a function by its name, which may be put together."""

_KEYWORDS = name_set(
    "BEGIN END BEGINFILE ENDFILE function func if else while for do break continue next nextfile"
    " exit return delete in print printf switch case default"
)
_BARE = name_set("getline length")
"""After these a `/` may divide or begin a pattern."""

_OPERAND_ENDS = frozenset({"]", "$", ")"})
_CONTROLS = frozenset({"if", "while", "for", "switch"})
_CONTROL_END = ") "
"""The parenthesis after a condition: a statement follows, which may begin with a pattern."""

_LIST_ENDS = frozenset({";", "\n", "}", ""})
_ESCAPE = re.compile(r'\\(["\\/])|\\(.)', re.DOTALL)


class _Token(Value):
    kind: str
    text: str


class _UnreadableError(Exception):
    """The program is not understood; the text says why."""


def read_awk(program: str) -> CodeEffects:
    """The effects of a program."""
    if len(program) > LONGEST:
        return unknown("awk's program is too long to be read")
    try:
        tokens = _tokens(program)
        return _walk(tokens)
    except _UnreadableError as error:
        return unknown(f"awk's program is not understood: {error}")


def _tokens(program: str) -> list[_Token]:
    found: list[_Token] = []
    opened: list[bool] = []
    at = 0
    while at < len(program):
        if program[at] == "/" and _pattern_begins(found, program, at):
            at = _pattern_end(program, at)
            found.append(_Token(kind="pattern", text="/"))
            continue
        token = _TOKEN.match(program, at)
        if token is None or token.lastgroup is None:
            raise _UnreadableError(f"`{program[at]}`")
        at = token.end()
        if token.lastgroup not in {"blank", "comment"}:
            text = token.group()
            if text == "(":
                opened.append(bool(found) and found[-1].text in _CONTROLS)
            elif text == ")":
                control = opened.pop() if opened else True
                text = _CONTROL_END if control else text
            found.append(_Token(kind=token.lastgroup, text=text))
    return found


def _pattern_begins(before: list[_Token], program: str, at: int) -> bool:
    """Does a `/` begin a pattern? Where awks differ, it must be the last one of its line."""
    if not before:
        return True
    last = before[-1]
    unsure = (
        last.text in {_CONTROL_END, "++", "--"}
        or last.text in _BARE
        or last.kind in {"pattern", "text"}
    )
    if unsure:
        stop = program.find("\n", at)
        if "/" in program[at + 1 : len(program) if stop < 0 else stop]:
            raise _UnreadableError("a `/` that may divide or begin a pattern")
        return False
    if last.kind == "name":
        return last.text in _KEYWORDS
    return last.kind != "number" and last.text not in _OPERAND_ENDS


def _pattern_end(program: str, at: int) -> int:
    """The index after a pattern. awks differ on a `/` within brackets."""
    found = at + 1
    inside = False
    while found < len(program):
        character = program[found]
        if character == "\n":
            break
        if character == "\\":
            found += 2
            continue
        if inside:
            if character == "]":
                inside = False
            elif character in {"/", "["} and not program.startswith("[:", found):
                raise _UnreadableError("a pattern with unusual brackets")
            elif character == "[":
                stop = program.find(":]", found)
                if stop < 0 or not program[found + 2 : stop].isalpha():
                    raise _UnreadableError("a pattern with unusual brackets")
                found = stop + 1
        elif character == "/":
            return found + 1
        elif character == "[":
            inside = True
            # The first character after `[` or `[^` may be a `]`.
            if program.startswith("^", found + 1):
                found += 1
            if program.startswith("]", found + 1):
                raise _UnreadableError("a pattern with unusual brackets")
        found += 1
    raise _UnreadableError("a pattern is not closed")


def _walk(tokens: list[_Token]) -> CodeEffects:
    reads: list[str | None] = []
    writes: list[str | None] = []
    runs: list[str] = []
    depth = 0
    asked = False
    printing: int | None = None
    """The depth of parentheses of the `print` that is being read."""
    for at, token in enumerate(tokens):
        match token.text if token.kind in {"sign", "name", "newline"} else "":
            case "(":
                depth += 1
            case ")" | ") ":
                depth -= 1
            case "print" | "printf":
                printing = depth
            case ";" | "\n" | "{" | "}":
                printing, asked = None, False
            case "getline":
                # Any `<` after it in the statement counts: its variable may be `$(i+1)`.
                asked = True
            case "|" | "|&":
                runs.append(f"awk's `{token.text}` runs a command")
            case ">>":
                writes.append(_file(tokens, at))
            case ">" if printing is not None and depth <= printing:
                writes.append(_file(tokens, at))
            case "<" if asked:
                reads.append(_file(tokens, at))
            case name if name in _UNSAFE:
                runs.append(f"awk's {name} may run commands or reach other files")
            case name if name in _UNSURE and not _sorts_plainly(tokens, at):
                runs.append(f"awk's {name} may call functions")
    if depth:
        raise _UnreadableError("parentheses are not closed")
    scripts: list[str] = []
    if runs:
        # Any text may be the name of a file, or a command.
        texts = [_plain(each.text) for each in tokens if each.kind == "text"][:MOST_TEXTS]
        reads.extend(text for text in texts if text)
        scripts.extend(_commands(tokens))
    return CodeEffects(
        reads=tuple(reads), writes=tuple(writes), runs=tuple(runs), scripts=tuple(scripts)
    )


def _commands(tokens: list[_Token]) -> list[str]:
    """The commands of `system("…")`, `"…" | getline` and `print | "…"`."""
    found: list[str] = []
    for at, token in enumerate(tokens):
        before = [each.text for each in tokens[max(0, at - 2) : at]]
        after = tokens[at + 1].text if at + 1 < len(tokens) else ""
        named = before == ["system", "("] or before[-1:] in (["|"], ["|&"]) or after in {"|", "|&"}
        text = _plain(token.text) if token.kind == "text" and named else None
        if text:
            found.append(text)
    return found


def _file(tokens: list[_Token], at: int) -> str | None:
    """The file after a redirection, if it is a constant; None if it is known only at run time."""
    if at + 1 >= len(tokens):
        return None
    named = tokens[at + 1]
    after = tokens[at + 2].text if at + 2 < len(tokens) else ""
    if named.kind not in {"text", "number"} or after not in _LIST_ENDS | {")", _CONTROL_END}:
        return None
    if named.kind == "number":
        return named.text if named.text.isdigit() and not named.text.startswith("0") else None
    return _plain(named.text)


def _plain(quoted: str) -> str | None:
    """The value of a constant text; None if it has unusual escapes."""
    text = quoted[1:-1]
    if any(each.group(1) is None for each in _ESCAPE.finditer(text)):
        return None
    return _ESCAPE.sub(r"\1", text)


def _sorts_plainly(tokens: list[_Token], at: int) -> bool:
    """`PROCINFO["sorted_in"] = "@…"`, or a sort without a function."""
    texts = [each.text for each in tokens[at : at + 6]]
    if texts[0] == "PROCINFO":
        plain = texts[1:5] == ["[", '"sorted_in"', "]", "="] and len(texts) > 5
        return plain and texts[5].startswith('"@')
    depth = commas = 0
    for token in tokens[at + 1 : at + 200]:
        depth += (token.text == "(") - (token.text.strip() == ")")
        commas += token.text == "," and depth == 1
        if not depth:
            return commas < 2
    return False
