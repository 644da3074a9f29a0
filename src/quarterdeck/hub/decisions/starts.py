"""How a run begins: what its process is started with, and when it may not be. Pure."""

from __future__ import annotations

from msgspec.structs import replace

from quarterdeck.domain.errors import Conflict
from quarterdeck.hub.decisions.base import NOTHING, Decision, Done, Facts, State, Steps
from quarterdeck.hub.decisions.inputs import Adopt, Create, StartFacts
from quarterdeck.protocol.events import Event, RunStarting, SpecChanged, Switched
from quarterdeck.protocol.modes import resumed_spec
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import INBOUND, PROGRAM, Origin, SessionSpec


def check_machine(spec: SessionSpec, session: str) -> None:
    """Raise `Conflict` if no runner can start a CLI: its machine is unknown."""
    if spec.machine == PROGRAM:
        raise Conflict(
            "program_ended",
            f"the agent of {session} belonged to a program on a machine that has no runner here:"
            " start the program again, or start a runner there before it connects",
        )
    if spec.machine == INBOUND:
        raise Conflict(
            "dial_again",
            f"the CLI of {session} connected from a machine that has no runner here: have it"
            f" connect again, as `quarterdeck token --cli --session {session}` says, or start a"
            " runner there before it connects",
        )


def check_options(view: SessionView) -> None:
    """Raise `Conflict` if a runner would start the CLI with fewer restrictions than its program."""
    if view.own_options:
        raise Conflict(
            "program_options",
            f"the program of {view.session} started its agent with options that a runner does not"
            " have, such as settings: start the program again, or have an owner continue with the"
            f" conversation {view.cli_session or ''} in a new session",
        )


def begin(
    state: State,
    facts: StartFacts,
    origin: Origin,
    *events: Event,
    written: tuple[str, ...] | None = None,
    spec: SessionSpec | None = None,
) -> Steps:
    """Begin a run, together with the events that it is begun for. Raises `Conflict`.

    A conversation goes on in the mode that holds in it; `spec` says another way to start.
    """
    spec = spec or next_spec(state.view, origin, events)
    check_machine(spec, state.session)
    if state.stored is not None:
        check_options(state.view)
    yield from events
    yield RunStarting(
        run=facts.run,
        machine=spec.machine or "",
        origin=origin,
        mode=spec.mode,
        skip_permissions=spec.skip_permissions,
        written=facts.written if written is None else written,
    )


def next_spec(view: SessionView, origin: Origin, events: tuple[Event, ...] = ()) -> SessionSpec:
    """What the next process is started with, after events that are not journalled yet."""
    spec, mode = view.spec, view.mode
    for event in events:
        match event:
            case SpecChanged(spec=changed):
                spec = changed
            case Switched(mode=str(switched)):
                mode = switched
            case _:
                pass
    return spec if origin.cli_session is None else resumed_spec(spec, mode)


def spec_of(view: SessionView, starting: RunStarting) -> SessionSpec:
    """The spec that a process is started with, after the event that says so.

    One that is requested again later skips permissions only if the session still may.
    """
    return replace(view.spec, mode=starting.mode)


def decide_create(state: State, create: Create, facts: StartFacts) -> Decision[Done]:
    """A session begins: what made it, and its process."""
    created = create.created
    yield from begin(state, facts, create.origin, created, *create.more, spec=created.spec)
    return NOTHING


def decide_adopt(state: State, adopt: Adopt, facts: Facts) -> Decision[Done]:
    """A process that the hub did not start. A session has one process at most: nothing happens if
    it has one.
    """
    del facts
    if state.run is None:
        if state.stored is None:
            yield adopt.created
        yield adopt.starting
    return NOTHING
