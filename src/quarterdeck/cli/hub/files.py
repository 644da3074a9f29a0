"""`quarterdeck export`, `import` and `retention`."""

from __future__ import annotations

import sys
from codecs import getincrementaldecoder
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from rich.text import Text

from quarterdeck.cli.exits import Exit
from quarterdeck.cli.hub.history_client import history_of
from quarterdeck.cli.hub.target import SHORT, Target, find_session
from quarterdeck.cli.terminal import console as consoles
from quarterdeck.cli.terminal.output import print_json, write_all
from quarterdeck.cli.terminal.text import count, moment
from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.marks import mark_invisible
from quarterdeck.history.imports import ImportedSession, ImportOutcome
from quarterdeck.protocol.shapes import NewImport, NewRetention
from quarterdeck.wire.tools import one_line

FORMS = ("markdown", "html", "json")
_ENDINGS = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".json": "json",
    ".ndjson": "json",
    ".jsonl": "json",
}
_STYLES = {
    ImportOutcome.NEW: "green",
    ImportOutcome.MORE: "green",
    ImportOutcome.RUNNING: "yellow",
    ImportOutcome.BROKEN: "red",
}


def run_export(
    given: str, file: Path | None, form: str | None, target: Target, *, force: bool
) -> int:
    """Write a session to a file, or to stdout."""
    if form is not None and form not in FORMS:
        raise UsageError(f"--format: one of {', '.join(FORMS)}")
    to_stdout = file is None or str(file) == "-"
    chosen = form or ("markdown" if to_stdout else _by_ending(file))
    if file is not None and not to_stdout and file.exists() and not force:
        raise UsageError(f"{file} exists already; --force overwrites it")
    client = history_of(target)
    pieces = client.export(find_session(client, given), chosen)
    if file is None or to_stdout:
        sys.stdout.flush()
        for piece in _readable(pieces) if sys.stdout.isatty() else pieces:
            write_all(sys.stdout.fileno(), piece)
    else:
        _write(file, pieces)
    return Exit.SUCCESS


def _readable(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """An export for a terminal: what an agent wrote must not control it.

    A file gets the text as it is.
    """
    decoder = getincrementaldecoder("utf-8")(errors="replace")
    rest = ""
    for piece in chain(pieces, (None,)):
        rest += decoder.decode(piece or b"", final=piece is None)
        # Up to the end of a line: a mark depends on the characters around it.
        *lines, rest = rest.split("\n") if piece is not None else (*rest.split("\n"), "")
        yield "".join(f"{mark_invisible(line)}\n" for line in lines).encode()


def _by_ending(file: Path | None) -> str:
    form = _ENDINGS.get(file.suffix.lower()) if file is not None else None
    if form is None:
        raise UsageError(f"{file}: unknown suffix; add --format {'|'.join(FORMS)}")
    return form


def _write(file: Path, pieces: Iterator[bytes]) -> None:
    """Write all or nothing: half an export would look like a whole one."""
    part = file.with_name(f"{file.name}.part")
    try:
        with part.open("wb") as out:
            for piece in pieces:
                out.write(piece)
        part.replace(file)
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)


def run_import(
    sessions: list[str],
    directory: str | None,
    target: Target,
    *,
    dry_run: bool,
    json_output: bool,
) -> int:
    """Import the CLI's sessions on the hub's disk; print the result for each."""
    client = history_of(target)
    if directory is not None and target.is_here:
        directory = str(Path(directory).expanduser().absolute())
    wanted = NewImport(directory=directory, sessions=tuple(sessions), dry_run=dry_run)
    report = client.import_sessions(wanted)
    if json_output:
        print_json(report.sessions)
        return Exit.SUCCESS
    console = consoles.stdout()
    for each in report.sessions:
        # Known sessions are not listed, unless they were named.
        if each.outcome is not ImportOutcome.KNOWN or sessions:
            console.print(_import_line(each), soft_wrap=True)
    counts = Counter(each.outcome.value for each in report.sessions)
    outcomes = ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items()))
    would = "would be: " if dry_run else ""
    text = f"{count(len(report.sessions), 'session')} in {report.folder}"
    consoles.stderr().print(
        Text(text + (f": {would}{outcomes}" if outcomes else "")), soft_wrap=True
    )
    return Exit.SUCCESS


def _import_line(each: ImportedSession) -> Text:
    line = Text.assemble((f"{each.outcome.value:<7}", _STYLES.get(each.outcome, "dim")))
    line.append(f"  {(each.session or '')[:SHORT]:<{SHORT}}", "cyan")
    line.append(f"  {each.cli_session}", "dim")
    if each.messages:
        line.append(f"  {count(each.messages, 'message')}")
    line.append(f"  {one_line(each.name, 60)}" if each.name else "")
    line.append(f"  {one_line(each.directory, 100)}" if each.directory else "", "dim")
    if each.detail:
        style = "red" if each.outcome is ImportOutcome.BROKEN else "yellow"
        line.append(f"  ({one_line(each.detail, 300)})", style)
    return line


def run_retention(wanted: NewRetention, target: Target, *, json_output: bool) -> int:
    """Print which sessions go, or would go."""
    report = history_of(target).retention(wanted)
    if json_output:
        print_json([report])
        return Exit.SUCCESS
    console = consoles.stdout()
    for leaving in report.leaving:
        line = Text.assemble((leaving.session[:SHORT], "cyan"), f"  {size(leaving.bytes):>9}")
        line.append(f"  {moment(leaving.updated)}", "dim")
        line.append(f"  {one_line(leaving.name, 60)}  {leaving.reason}")
        console.print(line, soft_wrap=True)
    verb = "would go" if report.dry_run else "went"
    consoles.stderr().print(
        Text(
            f"{len(report.leaving)} of {count(report.sessions, 'session')} {verb},"
            f" {size(report.freed_bytes)} of {size(report.bytes)}"
        ),
        soft_wrap=True,
    )
    return Exit.SUCCESS


def size(number: int) -> str:
    """Bytes, for people."""
    value = float(number)
    for unit in ("B", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"
