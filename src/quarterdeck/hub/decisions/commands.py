"""What follows from a command to a session, and from requests to its CLI. Pure.

Answers to questions are in `answers`.
"""

from __future__ import annotations

from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.claude.forced_settings import check_live_settings
from quarterdeck.domain.errors import Conflict, NotFound
from quarterdeck.hub.decisions.base import (
    NOTHING,
    Decision,
    Done,
    Facts,
    State,
    Steps,
    send_line,
    status_changes,
)
from quarterdeck.hub.decisions.inputs import (
    AskCli,
    BudgetFacts,
    CheckFreed,
    CheckSpending,
    EndProcess,
    GiveUp,
    PromptFacts,
    SendNext,
    StartFacts,
)
from quarterdeck.hub.decisions.starts import begin
from quarterdeck.hub.effects import Expect, StopProcess
from quarterdeck.hub.run_state import RunState
from quarterdeck.hub.supervision import crashes
from quarterdeck.hub.supervision.budgets import sentence
from quarterdeck.hub.turns import sent_prompt
from quarterdeck.protocol import commands as cmd
from quarterdeck.protocol.commands import Outcome
from quarterdeck.protocol.events import (
    BudgetReached,
    PromptCancelled,
    PromptChanged,
    PromptQueued,
    RunStopping,
    SessionArchived,
    SessionRenamed,
    SpecChanged,
)
from quarterdeck.protocol.session_view import SessionView, check_revive
from quarterdeck.protocol.sessions import Origin, SessionSpec, is_agent
from quarterdeck.protocol.views import PromptView
from quarterdeck.wire.command_codec import decode_command
from quarterdeck.wire.commands import ApplyFlagSettings
from quarterdeck.wire.commands import Interrupt as InterruptCli
from quarterdeck.wire.outbound import CheckedBody, Prompt

MOST_WAITING = 48 * 1024 * 1024
"""Bytes of a session's prompts that no turn has taken: two of the largest. They are a part of its
view, which the journal stores whole with each change. One prompt may always wait."""

NOT_RUNNING = ("not_running", "the session has no process; resume it first")


# --- the session itself --------------------------------------------------------------------------


def decide_rename(state: State, command: cmd.RenameSession, facts: Facts) -> Decision[Done]:
    """Give the session another name."""
    del facts
    yield SessionRenamed(name=command.name, by=command.by)
    return Done(outcome=Outcome(session=state.session))


def decide_archive(state: State, command: cmd.ArchiveSession, facts: Facts) -> Decision[Done]:
    """Archive the session, or take it out of the archive."""
    del facts
    if state.view.archived == command.archived:
        return Done(outcome=Outcome(session=state.session, repeated=True))
    yield SessionArchived(archived=command.archived, by=command.by)
    return Done(outcome=Outcome(session=state.session))


def decide_change(state: State, command: cmd.ChangeSession, facts: Facts) -> Decision[Done]:
    """Change the session's spec. A budget may be used up now, or free again."""
    del facts
    yield SpecChanged(spec=_changed_spec(state.view.spec, command), by=command.by)
    then = (CheckSpending(again=True), CheckFreed(), SendNext())
    return Done(outcome=Outcome(session=state.session), then=then)


def _changed_spec(spec: SessionSpec, command: cmd.ChangeSession) -> SessionSpec:
    if command.auto_approve is not None:
        spec = replace(spec, auto_approve=command.auto_approve)
    if command.ask_timeout is not None:
        spec = replace(spec, ask_timeout=command.ask_timeout or None)
    if command.budget is not None:
        spec = replace(spec, budget=command.budget)
    return spec


# --- its process ---------------------------------------------------------------------------------


def decide_resume(state: State, command: cmd.ResumeSession, facts: StartFacts) -> Decision[Done]:
    """Start a process again, where the last one ended."""
    del command
    if state.run is not None:
        raise Conflict("running", "the session has a process already")
    yield from begin(state, facts, Origin(cli_session=state.view.cli_session))
    return Done(outcome=Outcome(session=state.session))


def decide_stop(state: State, command: cmd.StopSession, facts: Facts) -> Decision[Done]:
    """End the process: politely first, and then by its machine."""
    del facts
    view, run = state.view, state.run
    if run is not None:
        yield RunStopping(run=run.run, by=command.by)
        return Done(outcome=Outcome(session=state.session), leave=run.run)
    if crashes.restart_at(view) is None and not _may_be_revived(view, command.by):
        return Done(outcome=Outcome(session=state.session, repeated=True))
    # The last run is over, and another one would be started: in a moment, or by an agent.
    yield RunStopping(run=view.ended_runs[-1], by=command.by)
    return Done(outcome=Outcome(session=state.session))


def _may_be_revived(view: SessionView, by: str) -> bool:
    """Whether a person stops what an agent could go on with: its last run was a moment faster."""
    known = view.stopped_by is not None and not is_agent(view.stopped_by)
    return bool(view.lineage and view.ended_runs) and not known and not is_agent(by)


def decide_end_process(state: State, end: EndProcess, facts: Facts) -> Decision[Done]:
    """A process that was asked to leave: another may have begun in its place."""
    del facts
    yield from ()
    return NOTHING if state.run_of(end.run) is None else Done(effects=(StopProcess(),))


# --- requests to its CLI -------------------------------------------------------------------------


def decide_interrupt(state: State, command: cmd.Interrupt, facts: Facts) -> Decision[Done]:
    """Stop the running turn."""
    del command
    return (yield from decide_request(state, AskCli(command=InterruptCli()), facts))


def decide_control(state: State, command: cmd.Control, facts: Facts) -> Decision[Done]:
    """Send a control request.

    Raises `UsageError` for settings that undo what its machine forces on the CLI.
    """
    request = decode_command(command.request)
    if isinstance(request, ApplyFlagSettings):
        check_live_settings(request.settings, inbox=state.view.spec.cross_session)
    return (yield from decide_request(state, AskCli(command=request, by=command.by), facts))


def decide_request(state: State, ask: AskCli, facts: Facts) -> Decision[Done]:
    """A request for the CLI, whose answer its caller waits for."""
    del facts
    run = state.run
    if run is None or (ask.of and run.run != ask.of):
        raise Conflict(*NOT_RUNNING)
    request_id, line = run.peer.request_line(ask.command)
    yield from send_line(run, line, ask.by)
    expected = Expect(request_id=request_id, subtype=ask.command.subtype)
    return Done(effects=(expected,), request=request_id)


def decide_give_up(state: State, given_up: GiveUp, facts: Facts) -> Decision[Done]:
    """Cancel a request: no caller waits for its answer."""
    del facts
    if state.run is not None:
        yield from send_line(state.run, state.run.peer.cancel_line(given_up.request_id))
    return NOTHING


# --- prompts -------------------------------------------------------------------------------------


def decide_prompt(state: State, command: cmd.SendPrompt, facts: PromptFacts) -> Decision[Done]:
    """Queue a prompt, and send it as soon as no turn runs. An ended session is resumed.

    One that can be sent at once is sent with the same append that queues it.
    """
    view, run = state.view, state.run
    if facts.known:
        repeated = Outcome(session=state.session, prompt=command.prompt, repeated=True)
        return Done(outcome=repeated)
    if is_agent(command.by):  # here, and not only by its caller: a person may have been faster
        check_revive(view)
    check_room(view, facts.content)
    if facts.over:
        raise Conflict("budget_reached", sentence(facts.over[0]))
    done = Done(outcome=Outcome(session=state.session, prompt=command.prompt))
    queued = PromptQueued(prompt=command.prompt, content=facts.content, by=command.by)
    if run is None:
        yield from begin(state, facts, Origin(cli_session=view.cli_session), queued)
        return done
    yield queued
    if command.steer and run.steerable and not view.afresh:
        yield from send_prompt(run, queued.prompt, queued.content, facts.now, steered=True)
    elif next_unsent(view, run) is None and may_send(view, run, facts.over):
        yield from send_prompt(run, queued.prompt, queued.content, facts.now)
    else:
        return replace(done, then=(SendNext(),))
    return done


def decide_change_prompt(
    state: State, command: cmd.ChangePrompt, facts: PromptFacts
) -> Decision[Done]:
    """Change a prompt that has not been sent yet."""
    check_queued(state.view, command.prompt, known=facts.known)
    check_room(state.view, facts.content, instead_of=command.prompt)
    yield PromptChanged(prompt=command.prompt, content=facts.content, by=command.by)
    return Done(outcome=Outcome(session=state.session, prompt=command.prompt))


def decide_cancel_prompt(
    state: State, command: cmd.CancelPrompt, facts: PromptFacts
) -> Decision[Done]:
    """Cancel a prompt that has not been sent yet."""
    check_queued(state.view, command.prompt, known=facts.known)
    yield PromptCancelled(prompt=command.prompt, by=command.by)
    return Done(outcome=Outcome(session=state.session, prompt=command.prompt))


def decide_send_next(state: State, send: SendNext, facts: BudgetFacts) -> Decision[Done]:
    """Send the oldest queued prompt, if the CLI is ready for it."""
    del send
    view, run = state.view, state.run
    if run is None or not may_send(view, run, facts.over):
        return NOTHING
    following = next_unsent(view, run)
    if following is not None:
        again = following.run is not None
        yield from send_prompt(run, following.prompt, following.content, facts.now, again=again)
    return NOTHING


def may_send(view: SessionView, run: RunState, over: tuple[BudgetReached, ...]) -> bool:
    """Whether a prompt would begin at once, and may."""
    return run.idle and not view.afresh and not over


def next_unsent(view: SessionView, run: RunState) -> PromptView | None:
    """The oldest prompt that was not given to this run."""
    return next((one for one in view.unsent if one.run != run.run), None)


def send_prompt(
    run: RunState,
    prompt: str,
    content: Raw,
    at: int,
    *,
    again: bool = False,
    steered: bool = False,
) -> Steps:
    """Send a prompt, whose content is that of `content_of`.

    `again`: it was given to an earlier run, which ended before it took it.
    """
    again = again or run.peer.has_used(prompt)
    uuid, event = sent_prompt(run.run, prompt, run.sent + 1, again=again, steered=steered)
    message = Prompt(message=CheckedBody(content=content), uuid=uuid)
    _, line = run.peer.prompt_line(message)
    yield event
    yield from send_line(run, line, message=message)
    yield from status_changes(run, at)


def check_room(view: SessionView, content: Raw, instead_of: str = "") -> None:
    """Raise `Conflict` if too much waits already."""
    waiting = [len(memoryview(each.content)) for each in view.unsent if each.prompt != instead_of]
    if waiting and sum(waiting) + len(memoryview(content)) > MOST_WAITING:
        text = f"the prompts that wait for a turn have {sum(waiting)} bytes; at most {MOST_WAITING}"
        raise Conflict("queue_full", text)


def check_queued(view: SessionView, prompt: str, *, known: bool) -> None:
    """Raise `NotFound` for an unknown prompt, and `Conflict` for one that was sent."""
    if not known:
        raise NotFound("prompt", prompt)
    if all(queued.prompt != prompt for queued in view.queued):
        raise Conflict("not_queued", "the prompt is not in the queue any more")
