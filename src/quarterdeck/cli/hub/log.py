"""`quarterdeck log` and `quarterdeck audit`: a session's history, and the audit log."""

from __future__ import annotations

from functools import partial
from itertools import islice

import anyio
from rich.text import Text

from quarterdeck.cli.exits import Exit
from quarterdeck.cli.hub.story import Story
from quarterdeck.cli.hub.target import Target, address_later, connect, find_session
from quarterdeck.cli.terminal import console as consoles
from quarterdeck.cli.terminal.output import print_json
from quarterdeck.cli.terminal.screen import Screen
from quarterdeck.cli.terminal.text import call_text, moment, sandbox_text
from quarterdeck.client import Feed
from quarterdeck.protocol.coded_texts import with_texts
from quarterdeck.protocol.events import (
    AskAnswered,
    Decided,
    Noted,
    ProgramActed,
    SandboxConnection,
    SandboxStarted,
)
from quarterdeck.protocol.stream_frames import Live
from quarterdeck.protocol.views import EventShape, SessionShape
from quarterdeck.wire.tools import one_line

_VERDICTS = {"allow": "green", "deny": "red", "ask": "yellow"}


def run_log(given: str, target: Target, *, follow: bool, json_output: bool) -> int:
    """Print a session's history, and follow it on request."""
    client = connect(target)
    session = find_session(client, given)
    printer = _Printer(json_output)
    seen = 0
    for shape in client.events(session):
        printer.events((shape,))
        seen = shape.seq
    if follow:
        anyio.run(_follow, target, session, seen, printer)
    printer.screen.end_line()
    return Exit.SUCCESS


async def _follow(target: Target, session: str, seen: int, printer: _Printer) -> None:
    await Feed(partial(address_later, target), session, seen, printer).run()


class _Printer:
    """Prints events as they come."""

    def __init__(self, json_output: bool) -> None:
        self._json = json_output
        self.screen = Screen(consoles.stdout())
        self._story = Story(self.screen)

    def events(self, shapes: tuple[EventShape, ...]) -> None:
        """Print events."""
        if self._json:
            print_json(shapes)
            return
        for shape in shapes:
            self._story.show(shape)

    def live(self, frame: Live) -> None:
        """Show it; it is no event, so it is not in the JSON."""
        if not self._json:
            self._story.live(frame)

    def view(self, shape: SessionShape) -> None:
        """Not asked for: a log shows events."""

    def connection_lost(self, reason: str) -> None:
        """Report it on stderr."""
        consoles.stderr().print(Text(f"quarterdeck: {reason}; waiting for the hub", "yellow"))

    def connection_made(self) -> None:
        """Print nothing."""


def run_audit(given: str | None, target: Target, *, limit: int, json_output: bool) -> int:
    """Print who or what allowed or denied each call: the last ones, oldest first."""
    client = connect(target)
    session = find_session(client, given) if given else None
    entries = list(islice(client.audit(session), limit))[::-1]
    if json_output:
        print_json(entries)
        return Exit.SUCCESS
    console = consoles.stdout()
    for entry in entries:
        if (line := _audit_line(entry)) is not None:
            console.print(line, soft_wrap=True)
    return Exit.SUCCESS


def _audit_line(entry: EventShape) -> Text | None:
    line = Text.assemble((f"{moment(entry.at)}  {entry.session}  ", "dim"))
    match entry.event:
        case Decided(verdict=verdict, by=by, tool=tool, title=title) as decided:
            reasons = with_texts(decided).reasons
            line.append(f"{verdict:<5}", _VERDICTS.get(verdict, ""))
            line.append(f"  by {one_line(by, 40)}  {call_text(tool, title)}")
            line.append(f"  ({one_line('; '.join(reasons), 300)})" if reasons else "", "dim")
            return line
        case ProgramActed(by=by, act=act, what=what, detail=detail, tool=tool, refused=refused):
            line.append(f"{act:<7}", "red" if refused else "")
            about = f"{what} {tool}" if tool else what
            line.append(f" by {one_line(by, 40)}  {one_line(about, 80)}: {one_line(detail, 300)}")
            return line
        case SandboxStarted(state=state):
            line.append(f"sandbox  {one_line(sandbox_text(state), 200)}")
            line.append(f"  ({one_line(state.detail, 300)})" if state.detail else "", "dim")
            return line
        case SandboxConnection(host=host, port=port, allowed=allowed, count=count):
            verdict = "allow" if allowed else "deny"
            line.append(f"{verdict:<5}", _VERDICTS[verdict])
            times = f", {count} times" if count > 1 else ""
            line.append(f"  by sandbox  connection to {one_line(host, 200)}:{port}{times}")
            return line
        case Noted(about=about) as noted:
            text = with_texts(noted).text
            line.append(f"{one_line(about, 20) or 'access'}  {one_line(text, 300)}")
            return line
        case AskAnswered():
            return None  # the decision that follows has all of it
        case _:
            return None
