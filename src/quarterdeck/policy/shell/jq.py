r"""jq filters: do they only compute?

jq's language has no commands and no files, except for modules and the environment: `import`,
`include`, `modulemeta`, `env` and `$ENV`. A tokenizer finds those names outside of strings, also
within `\(…)` in a string.
"""

from __future__ import annotations

import re

import msgspec

from quarterdeck.policy.shell.code import CodeEffects, unknown

LONGEST = 20_000
"""Longer filters are not read: a person is asked."""

_TOKEN = re.compile(
    r"\s+"
    r"|(?P<comment>#[^\n]*)"
    r"|(?P<quote>\")"
    r"|(?P<open>\()"
    r"|(?P<close>\))"
    r"|(?P<field>\.[A-Za-z_]\w*)"
    r"|(?P<key>[A-Za-z_]\w*\s*:(?!:))"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|\d[\d.]*(?:[eE][-+]?\d+)?"
    r"|\.\.|[]\[{}.,:;|?!=<>+*/%$@-]"
)
_STRING = re.compile(r'(?:[^"\\]|\\[^(])*')
_RISKS = {
    "import": "loads a module",
    "include": "loads a module",
    "modulemeta": "reads a module",
    "env": "shows the environment",
    "ENV": "shows the environment",
}


_YQ_RISKS = {
    **dict.fromkeys(("load", "load_str", "load_xml", "load_props", "load_base64"), "reads a file"),
    **dict.fromkeys(("env", "strenv", "envsubst", "ENV"), "shows the environment"),
    **dict.fromkeys(("system", "eval"), "may run code"),
    **_RISKS,
}


def read_jq(text: str) -> CodeEffects:
    """The effects of a filter."""
    return _read(text, "jq", _RISKS)


def read_yq(text: str) -> CodeEffects:
    """The effects of a filter of yq. Its language is much the same, with files of its own.

    If there is a file of that name, yq takes the text for the file: `yq .env` shows it.
    """
    found = _read(text, "yq", _YQ_RISKS)
    return msgspec.structs.replace(found, reads=(text,)) if text else found


def _read(text: str, program: str, risks: dict[str, str]) -> CodeEffects:
    if len(text) > LONGEST:
        return unknown(f"{program}'s filter is too long to be read")
    runs: list[str] = []
    at = depth = 0
    inside: list[int] = []
    """The depths of parentheses at which a string goes on."""
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            return unknown(f"{program}'s filter is not understood: `{text[at]}`")
        at = token.end()
        in_string = token.lastgroup == "quote"
        if token.lastgroup == "comment" and token.group().endswith(("\\", "\r")):
            return unknown(f"{program}'s filter has a comment that may continue in the next line")
        if token.lastgroup == "open":
            depth += 1
        elif token.lastgroup == "close":
            in_string = bool(inside) and inside[-1] == depth
            if in_string:
                inside.pop()
            depth -= 1
        elif token.lastgroup == "name":
            risk = risks.get(token.group())
            if risk is not None:
                runs.append(f"{program}'s {token.group()} {risk}")
        if in_string:
            string = _STRING.match(text, at)
            at = string.end() if string is not None else at
            if text.startswith("\\(", at):
                at += 2
                depth += 1
                inside.append(depth)
            elif text.startswith('"', at):
                at += 1
            else:
                return unknown(f"{program}'s filter has a string that is not closed")
    return CodeEffects(runs=tuple(runs))
