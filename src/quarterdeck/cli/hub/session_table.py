"""The table of sessions that `ps` prints."""

from __future__ import annotations

import time

from rich.text import Text

from quarterdeck.cli.hub.session_order import by_lineage
from quarterdeck.cli.hub.target import short_ids
from quarterdeck.cli.terminal import console as consoles
from quarterdeck.cli.terminal.session_text import session_place
from quarterdeck.cli.terminal.text import age, rough_cost, sandbox_text, session_state
from quarterdeck.protocol.failures import failure_of
from quarterdeck.protocol.sessions import SessionState
from quarterdeck.protocol.views import SessionShape
from quarterdeck.wire.tools import one_line

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
