"""What a text for sqlite3 does beyond its database: SQL, and the shell's own dot commands.

SQL itself has no commands, but sqlite3 adds functions that read and write files or start an editor,
and SQL can open other databases. Dot commands that only show something are listed; any other may
read, write or run something.
"""

from __future__ import annotations

import re

from quarterdeck.domain.structs import name_set
from quarterdeck.policy.shell.code import CodeEffects, merge_effects, unknown

LONGEST = 20_000
"""Longer texts are not read: a person is asked."""

_SHOWS = name_set(
    ".tables .schema .indexes .indices .databases .dbinfo .headers .header .mode .width"
    " .separator .nullvalue .print .echo .stats .timer .show .help .fullschema .explain .eqp .bail"
    " .changes .dump .limit .lint .prompt .quit .exit .version .vfsinfo .vfslist .vfsname .sha3sum"
    " .timeout .scanstats .crnl .progress .recover"
)
"""Dot commands that print or set how things are printed. They may not be shortened here: sqlite3
takes `.sh` for `.shell`."""

_READING = name_set(".read .import .restore .load .cd .open .archive .ar .clone")
_WRITING = name_set(
    ".output .once .backup .save .log .trace .open .archive .ar .clone .restore .session .testcase"
)
_RISKS = name_set(
    "readfile writefile edit load_extension fsdir lsmode attach detach zipfile zipfile_cds sqlar"
    " virtual fts3_tokenizer csv vsv fileio shell_putsnl temp_store_directory data_store_directory"
    " writable_schema trusted_schema"
)
"""Words of SQL by which a file is read or written, or code is loaded."""

_TOKEN = re.compile(
    r"\s+"
    r"|--[^\n]*"
    r"|/\*.*?(?:\*/|$)"
    r"|(?P<text>'(?:[^']|'')*')"
    r'|(?P<name>"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]|[A-Za-z_\x80-\U0010ffff][\w$]*)'
    r"|[\d.][\w.]*"
    r"|[^\w\s'\"`\[]",
    re.DOTALL,
)
_FILE = re.compile(r"[\w/][\w./+-]*")
_ARGUMENT = re.compile(r"'(?P<single>[^']*)'|\"(?P<double>[^\"\\]*)\"|(?P<plain>[^\s'\"]+)")


def read_sqlite(text: str) -> CodeEffects:
    """The effects of one argument of sqlite3 beyond its database."""
    if len(text) > LONGEST:
        return unknown("the text for sqlite3 is too long to be read")
    if text.lstrip().startswith("."):
        return _dot_command(text.strip())
    return _sql(text)


def read_sqlite_input(text: str) -> CodeEffects:
    """The effects of an input of sqlite3: each line may be a dot command, the rest is SQL."""
    if len(text) > LONGEST:
        return unknown("the input of sqlite3 is too long to be read")
    lines = text.splitlines()
    dots = [line for line in lines if line.lstrip().startswith(".")]
    other = "\n".join(line for line in lines if not line.lstrip().startswith("."))
    return merge_effects(_sql(other), *(_dot_command(line.strip()) for line in dots))


def _dot_command(text: str) -> CodeEffects:
    name, _, rest = text.partition(" ")
    if "\n" in text or "\t" in name:
        return unknown("a dot command of several lines")
    given = [
        found.group("single") or found.group("double") or found.group("plain") or ""
        for found in _ARGUMENT.finditer(rest)
    ]
    if name in _SHOWS:
        return CodeEffects()
    files = [each for each in given if not each.startswith(("-", "|"))]
    if name in {".output", ".once"} and _FILE.fullmatch(rest):
        return CodeEffects(writes=(rest,))
    return CodeEffects(
        reads=tuple(files) if name in _READING or name not in _WRITING else (),
        writes=tuple(files) if name in _WRITING or name not in _READING else (),
        runs=(f"sqlite3's {name} may run a program or use other files",),
        scripts=(rest,) if rest and name.startswith((".sh", ".sy")) else (),
    )


def _sql(text: str) -> CodeEffects:
    at = 0
    names: list[str] = []
    texts: list[str] = []
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            return unknown(f"the SQL is not understood: `{text[at]}`")
        at = token.end()
        if token.lastgroup == "text":
            texts.append(token.group()[1:-1].replace("''", "'"))
        elif token.lastgroup == "name":
            names.append(token.group().strip('"`[]').lower())
            texts += [token.group()[1:-1]] if token.group()[0] in '"`[' else []
    # A name may also be written as a text: `from 'fsdir'('.')`.
    found = _RISKS.intersection(names) | _RISKS.intersection(each.lower() for each in texts)
    into = "vacuum" in names and "into" in names
    if not found and not into:
        return CodeEffects()
    words = sorted(found) + (["vacuum into"] if into else [])
    reading = {"readfile", "fsdir", "attach", "csv"} & found
    writing = {"writefile", "attach"} & found or into
    return CodeEffects(
        reads=tuple(texts) if reading else (),
        writes=tuple(texts) if writing else (),
        runs=(f"SQL with {', '.join(words)} may use other files or run code",),
    )
