"""The table of sessions that `ps` prints."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from rich.text import Text

from quarterdeck.cli.hub.target import short_ids
from quarterdeck.cli.terminal import console as consoles
from quarterdeck.cli.terminal.session_text import session_place
from quarterdeck.cli.terminal.text import age, rough_cost, sandbox_text, session_state
from quarterdeck.protocol.failures import failure_of
from quarterdeck.protocol.sessions import SessionState
from quarterdeck.protocol.views import SessionShape
from quarterdeck.wire.tools import one_line


def by_lineage(shapes: Sequence[SessionShape]) -> Iterator[tuple[int, SessionShape]]:
    """The sessions with their levels, those of one level in the order in which they are given."""
    children: dict[str, list[SessionShape]] = {}
    for shape in shapes:
        for parent in shape.lineage[-1:]:
            children.setdefault(parent, []).append(shape)
    listed = {shape.session for shape in shapes}
    roots = [shape for shape in shapes if not listed.intersection(shape.lineage[-1:])]
    seen: set[str] = set()
    # What no root leads to is in a circle, or below one.
    for root in (*roots, *shapes):
        stack = [(0, root)]
        while stack:
            level, shape = stack.pop()
            if shape.session in seen:
                continue
            seen.add(shape.session)
            yield level, shape
            below = children.get(shape.session, ())
            stack += [(level + 1, child) for child in reversed(below)]


STATE_STYLES = {
    SessionState.WAITING: "bold yellow",
    SessionState.WORKING: "green",
    SessionState.ENDED: "dim",
    SessionState.DISCONNECTED: "red",
    SessionState.RETRYING: "red",
}
LEVELS = 4
"""Deeper sessions are not indented further."""


def print_sessions(shapes: list[SessionShape]) -> None:
    """Print a line for each on stdout, indented below the session whose agent started it.

    That there are none is said on stderr.
    """
    if not shapes:
        consoles.stderr().print(Text("no sessions"))
    console = consoles.stdout()
    ids = short_ids(shapes)
    width = max(map(len, ids.values()), default=0)
    now = time.time() * 1000
    for level, shape in by_lineage(shapes):
        state = session_state(shape) + (" (archived)" if shape.archived else "")
        line = Text.assemble((f"{ids[shape.session]:<{width}}", "cyan"), "  ")
        style = STATE_STYLES.get(shape.state, "") if failure_of(shape) is None else "red"
        line.append(f"{state:<15}", style)
        line.append(f"  {rough_cost(shape.cost_usd):>8}  {age(now - shape.updated):>6}", "dim")
        line.append("  " * min(level, LEVELS))
        line.append(f"  {one_line(shape.name, 60)}" if shape.name else "")
        line.append(f"  {session_place(shape)}", "dim")
        if shape.state is SessionState.ENDED and shape.detail:
            line.append(f"  {one_line(shape.detail, 100)}", "dim")
        if shape.run is not None and shape.pid is not None:
            line.append(f"  sandbox: {one_line(sandbox_text(shape.sandbox), 100)}", "dim")
        if shape.budgets:
            line.append("  budget used up", "red")
        for alarm in shape.alarms:
            line.append(f"  {one_line(alarm.text, 100)}", "red")
        if console.is_terminal:
            line.truncate(console.width, overflow="ellipsis")
        console.print(line, soft_wrap=True)
