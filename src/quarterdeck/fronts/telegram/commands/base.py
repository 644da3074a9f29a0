"""What a command of the bot is, and the pieces that several commands use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib import import_module
from keyword import iskeyword

import msgspec
from msgspec import Raw

from quarterdeck.domain.structs import Value
from quarterdeck.fronts.telegram.asks import Press
from quarterdeck.fronts.telegram.display import safe_line
from quarterdeck.fronts.telegram.jobs import Job
from quarterdeck.protocol.commands import Control
from quarterdeck.protocol.failures import Failure, failure_of
from quarterdeck.protocol.sessions import SessionState
from quarterdeck.protocol.views import SessionShape

Handler = Callable[[Job, str], Awaitable[None]]

_STATES: dict[SessionState, str] = {
    SessionState.STARTING: "🟡 starting",
    SessionState.IDLE: "🟢 idle",
    SessionState.WORKING: "🔵 working",
    SessionState.WAITING: "❓ waiting for an answer",
    SessionState.COMPACTING: "🔵 compacting",
    SessionState.RETRYING: "🟠 retrying",
    SessionState.LIMITED: "🟠 rate limited",
    SessionState.DISCONNECTED: "🔴 disconnected",
    SessionState.ENDED: "⚪ ended",
}
_FAILURES: dict[Failure, str] = {
    Failure.NOT_STARTED: "🔴 did not start",
    Failure.CRASHED: "🔴 crashed",
    Failure.LOGIN: "🔴 needs login",
    Failure.TURN: "🔴 failed",
}


class Command(Value):
    """A command: its name, what a person reads about it, and what it does."""

    name: str
    usage: str
    """The arguments, for `/help`."""
    help: str
    home: str
    """The module here that has its function, which has its name."""
    menu: bool = True
    """Whether it is in the menu of the chat."""
    once: bool = False
    """It must not be repeated if it was interrupted: it would do the same again."""

    @property
    def run(self) -> Handler:
        """The function that does it."""
        home = import_module(f"{__package__}.{self.home}")
        found: Handler = getattr(home, f"{self.name}_" if iskeyword(self.name) else self.name)
        return found


def run_button(text: str, line: str) -> Press:
    """A button that runs a command line, for the person who presses it."""
    return Press(text=text, action="run", arg=line)


def session_line(shape: SessionShape) -> str:
    """A session in one line."""
    return f"{state_text(shape)} · {safe_line(shape.name, 60)}"


def state_text(shape: SessionShape) -> str:
    """What a session does, or what went wrong with it."""
    failure = failure_of(shape)
    if failure is not None and not any(task.background for task in shape.holds.tasks):
        return _FAILURES[failure]
    return _STATES.get(shape.state, shape.state.value)


async def control(job: Job, session: str, request: dict[str, object], timeout: float = 30.0) -> Raw:
    """Send a control request to the CLI of a session; gives its answer."""
    hub = await job.hub()
    body = Raw(msgspec.json.encode(request))
    return (await hub.submit(Control(session=session, request=body, timeout=timeout))).answer
