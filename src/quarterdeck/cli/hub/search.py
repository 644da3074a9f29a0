"""`quarterdeck search`: search all sessions."""

from __future__ import annotations

import re
import time
from datetime import datetime
from pathlib import Path

from msgspec.structs import replace
from rich.text import Text

from quarterdeck.cli.exits import Exit
from quarterdeck.cli.hub.history_client import history_of
from quarterdeck.cli.hub.target import SHORT, Target, find_session
from quarterdeck.cli.terminal import console as consoles
from quarterdeck.cli.terminal.output import print_json
from quarterdeck.cli.terminal.text import moment, plain
from quarterdeck.domain.errors import UsageError
from quarterdeck.protocol.search import Hit, Search, Snippet
from quarterdeck.wire.tools import one_line

_AGE = re.compile(r"(\d+(?:\.\d+)?)(min|h|d|w)")
_MILLISECONDS = {"min": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}


def run_search(wanted: Search, limit: int, target: Target, *, json_output: bool) -> int:
    """Print the results, newest first. The exit code is 1 if there are none."""
    client = history_of(target)
    if wanted.session is not None:
        wanted = replace(wanted, session=find_session(client, wanted.session))
    hits = list(client.search(wanted, limit))
    if json_output:
        print_json(hits)
    else:
        console = consoles.stdout()
        for hit in hits:
            console.print(_head(hit), soft_wrap=True)
            console.print(_snippet(hit.snippet), soft_wrap=True)
        if not hits:
            consoles.stderr().print(Text("nothing was found"))
    return Exit.SUCCESS if hits else Exit.FAILED


def when(given: str | None, option: str, *, now: float | None = None) -> int | None:
    """A day, a time, or an age (`7d`, `12h`), in ms since 1970. Raises `UsageError`."""
    if given is None:
        return None
    if age := _AGE.fullmatch(given):
        ago = float(age[1]) * _MILLISECONDS[age[2]]
        return max(0, int((time.time() if now is None else now) * 1000 - ago))
    try:
        return max(0, int(datetime.fromisoformat(given).astimezone().timestamp() * 1000))
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f"{option}: use a day (2026-11-01), a time (2026-11-01T08:30) or an age (7d)"
        ) from error


def project(given: str | None) -> str | None:
    """A project's name; or a folder, if it begins with a dot, a slash or a tilde."""
    if given is None or not given.startswith((".", "/", "~")):
        return given
    return str(Path(given).expanduser().absolute().resolve())


def _head(hit: Hit) -> Text:
    line = Text.assemble((moment(hit.at), "dim"), "  ", (hit.session[:SHORT], "cyan"))
    line.append(f"  {hit.tool or hit.kind.value}", "yellow" if hit.tool else "green")
    line.append(f"  {one_line(hit.name or hit.directory, 60)}")
    line.append(f"  #{hit.seq}", "dim")
    return line


def _snippet(snippet: Snippet) -> Text:
    """The snippet on one line, its matches marked."""
    line = Text("    ")
    last = 0
    for first, end in snippet.ranges:
        line.append(_flat(snippet.text[last:first]), "dim")
        line.append(_flat(snippet.text[first:end]), "bold")
        last = end
    line.append(_flat(snippet.text[last:]), "dim")
    return line


def _flat(text: str) -> str:
    return re.sub(r"\s+", " ", plain(text))
