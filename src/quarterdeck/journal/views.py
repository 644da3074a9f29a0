"""The fold of a session's events into its view. Pure.

Owns the meaning of events: a session's state, its open questions, its queue, its cost. The journal
stores the view beside the events; the hub folds what it appends with the same functions. It knows
`protocol` only: other modules read the CLI's lines and make events of them.

The fold is total: it accepts any event in any order and never raises. An event that makes no sense
(a prompt edited after it was sent) changes nothing, and an event is folded once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from msgspec.structs import replace

from quarterdeck.journal import holds as holding
from quarterdeck.journal.accounts import account_for, begin_run, end_run
from quarterdeck.protocol.agent_messages import with_message
from quarterdeck.protocol.events import (
    AskAnswered,
    AskOpened,
    AskWithdrawn,
    CliSession,
    ContextChanged,
    LinkFound,
    LinkLost,
    McpChanged,
    OffersChanged,
    PeerPrompted,
    ProgramActed,
    PromptCancelled,
    PromptChanged,
    PromptQueued,
    PromptSent,
    PromptTaken,
    RunEnded,
    RunStarted,
    RunStarting,
    RunStopping,
    Said,
    SaidBroken,
    SandboxConnection,
    SandboxStarted,
    Sent,
    SessionArchived,
    SessionCreated,
    SessionDeleted,
    SessionRenamed,
    SpecChanged,
    StartAfresh,
    StateChanged,
    Switched,
    TurnEnded,
)
from quarterdeck.protocol.session_view import PromptStage, SessionView
from quarterdeck.protocol.sessions import SessionState, is_agent
from quarterdeck.protocol.stored_events import Stored
from quarterdeck.protocol.views import AskView as AskView
from quarterdeck.protocol.views import LastTurn
from quarterdeck.protocol.views import PromptView as PromptView

VIEW_VERSION = 12
"""The version of the fold. Views of another version are folded again from the events."""

PROMPTS_KEPT = 100
"""How many finished prompts stay in a view, which is written with every change."""
SETTLED_KEPT = 200
"""How many settled questions of runs that go on stay in a view: one is not opened again."""
RUNS_KEPT = 100
"""How many ended runs stay in a view. No event of an older run will come."""


_OVER = frozenset({PromptStage.TAKEN, PromptStage.DONE, PromptStage.CANCELLED})
"""Stages of prompts that will not be sent again."""


_QUIET = (LinkLost, LinkFound, StateChanged, OffersChanged, McpChanged, ContextChanged)
"""Events that come with every restart of the hub and every step of a turn. By themselves they do
not make a session unread."""


def fold(view: SessionView | None, stored: Stored) -> SessionView:
    """The view with one more event."""
    if view is None:
        view = SessionView(session=stored.session, created=stored.at)
    if stored.seq <= view.head or stored.session != view.session:
        return view
    match stored.event:
        case (
            Said(run=view.run, number=number)
            | SaidBroken(run=view.run, number=number)
            | SandboxConnection(run=view.run, number=number)
            | ProgramActed(run=view.run, number=number)
        ):
            said = max(view.said, number)
            return replace(view, head=stored.seq, updated=stored.at, said=said)
        case Sent(run=view.run, number=number):
            sent = max(view.sent, number)
            return replace(view, head=stored.seq, updated=stored.at, sent=sent)
    before = view.state
    view = replace(view, head=stored.seq, updated=stored.at)
    for part in (_session, _run, _prompt, _ask):
        if (changed := part(view, stored)) is not None:
            view = changed
            break
    if isinstance(stored.event, _QUIET):
        first, last = view.quiet
        view = replace(view, quiet=(first if last == stored.seq - 1 else stored.seq, stored.seq))
    if view.state is not before or not view.since:
        view = replace(view, since=stored.at)
    holds = holding.evolve_holds(view.holds, stored.event, stored.at)
    if holds is not view.holds:
        view = replace(view, holds=holds)
    account = account_for(view.account, stored.event, stored.at, view.run)
    return view if account is view.account else replace(view, account=account, cost_usd=account.usd)


def fold_all(view: SessionView | None, stored: Iterable[Stored]) -> SessionView | None:
    """The view with these events; None without any event."""
    for each in stored:
        view = fold(view, each)
    return view


def significant(stored: Iterable[Stored]) -> Iterator[Stored]:
    """The events of one append that must be folded; the others do not change the view.

    A line of a run changes nothing that the next line of the run does not change too. Most events
    are lines: of consecutive lines only the last is folded.
    """
    last: Stored | None = None
    run, number = "", 0
    for each in stored:
        event = each.event
        if type(event) is Said:
            if last is not None and (event.run != run or event.number < number):
                yield last
            last, run, number = each, event.run, event.number
        else:
            if last is not None:
                yield last
                last = None
            yield each
    if last is not None:
        yield last


def ask_view(stored: Stored, opened: AskOpened) -> AskView:
    """The card of a question."""
    return AskView(session=stored.session, seq=stored.seq, at=stored.at, opened=opened)


def _session(view: SessionView, stored: Stored) -> SessionView | None:
    match stored.event:
        case SessionCreated(spec=spec, by=by, parent=parent, lineage=lineage, person=person):
            return replace(
                view,
                spec=spec,
                by=by,
                parent=parent,
                lineage=lineage,
                person=person,
                name=view.name or spec.name or "",
                created=stored.at,
                deleted=False,
            )
        case SessionRenamed(name=name):
            return replace(view, name=name)
        case SessionArchived(archived=archived):
            return replace(view, archived=archived)
        case SpecChanged(spec=spec):
            return replace(view, spec=spec, name=view.name or spec.name or "")
        case SessionDeleted():
            return SessionView(
                session=view.session,
                head=view.head,
                created=view.created,
                updated=view.updated,
                deleted=True,
            )
    return None


def _run(view: SessionView, stored: Stored) -> SessionView | None:
    match stored.event:
        case RunStarting(run=run, machine=machine, origin=origin) as starting if run not in (
            view.run,
            *view.ended_runs,
        ):
            return replace(
                view,
                account=begin_run(view.account, starting),
                holds=holding.begin_run(view.holds, starting),
                run=run,
                run_began=stored.seq,
                machine=machine,
                pid=None,
                version=None,
                directory=None,
                said=0,
                sent=0,
                link_lost=None,
                link_coded=None,
                ended=None,
                stopped_by=None,
                cli_session=view.cli_session if origin.cli_session else None,
                afresh=False,
                mode=starting.mode,
                own_options=starting.own_options,
                model=None,
                effort=None,
                thinking=None,
                sandbox=None,
                cli_state=SessionState.STARTING,
                cli_detail="",
                cli_coded=None,
            )
        case RunStarted(run=view.run, pid=pid, version=version, directory=directory):
            return replace(view, pid=pid, version=version, directory=directory)
        case SandboxStarted(run=view.run, state=state):
            return replace(view, sandbox=state)
        case RunEnded(run=run) as ended:
            return _run_ended(view, run, ended, stored.at)
        case RunStopping(run=run, by=by) if run == view.run or (
            view.run is None and view.ended_runs[-1:] == (run,)
        ):
            kept = view.stopped_by is not None and not is_agent(view.stopped_by)
            return view if kept else replace(view, stopped_by=by)
        case StartAfresh(run=view.run):
            return replace(view, afresh=True)
        case LinkLost(run=view.run, reason=reason, coded=coded):
            return replace(view, link_lost=reason, link_coded=coded)
        case LinkFound(run=view.run):
            return replace(view, link_lost=None, link_coded=None)
        case StateChanged(state=state, detail=detail, coded=coded):
            return replace(view, cli_state=state, cli_detail=detail, cli_coded=coded)
        case Switched() as switched:
            return replace(
                view,
                mode=switched.mode or view.mode,
                model=switched.model or view.model,
                effort=switched.effort or view.effort,
                thinking=switched.thinking or view.thinking,
            )
        case CliSession(cli_session=cli_session):
            return replace(view, cli_session=cli_session)
    return None


def _run_ended(view: SessionView, run: str, ended: RunEnded, at: int) -> SessionView:
    if run in view.ended_runs:
        return view
    view = replace(
        view,
        ended_runs=(*view.ended_runs, run)[-RUNS_KEPT:],
        asks={ask: card for ask, card in view.asks.items() if card.opened.run != run},
        settled={ask: of for ask, of in view.settled.items() if of != run},
    )
    if view.run not in {None, run}:
        return view
    account = end_run(view.account, ended, at)
    return replace(
        view,
        run=None,
        pid=None,
        link_lost=None,
        link_coded=None,
        ended=ended,
        account=account,
        holds=holding.end_run(view.holds),
    )


def _prompt(view: SessionView, stored: Stored) -> SessionView | None:
    match stored.event:
        case PromptQueued(prompt=id_, content=content, by=by) if id_ not in view.prompts:
            prompt = PromptView(prompt=id_, content=content, by=by, at=stored.at)
            if is_agent(by):
                counted = with_message(view.agent_messages, by, stored.at)
                view = replace(view, agent_messages=counted)
            return replace(_set_stage(view, PromptStage.QUEUED, id_), unsent=(*view.unsent, prompt))
        case PromptChanged(prompt=id_, content=content, by=by):
            unsent = (
                replace(old, content=content, by=by) if _is_queued(old, id_) else old
                for old in view.unsent
            )
            return replace(view, unsent=tuple(unsent))
        case PromptCancelled(prompt=id_) if any(_is_unsent(old, id_) for old in view.unsent):
            return _without(_set_stage(view, PromptStage.CANCELLED, id_), id_)
        case PromptSent(prompt=id_, run=run) if any(_is_unsent(old, id_) for old in view.unsent):
            unsent = (replace(old, run=run) if _is_unsent(old, id_) else old for old in view.unsent)
            return replace(_set_stage(view, PromptStage.SENT, id_), unsent=tuple(unsent))
        case PromptTaken(prompt=id_) if any(_is_unsent(old, id_) for old in view.unsent):
            return _without(_set_stage(view, PromptStage.TAKEN, id_), id_)
        case TurnEnded(prompts=ids) as turn:
            done = _without(_set_stage(view, PromptStage.DONE, *ids), *ids)
            last = LastTurn(
                at=stored.at, failed=turn.failed, outcome=turn.outcome, problem=turn.problem
            )
            return replace(done, turns=view.turns + 1, last_turn=last)
        case PeerPrompted():
            return replace(view, peer_prompts=view.peer_prompts + 1)
    return None


def _is_unsent(prompt: PromptView, id_: str) -> bool:
    return prompt.prompt == id_


def _is_queued(prompt: PromptView, id_: str) -> bool:
    return prompt.prompt == id_ and prompt.run is None


def _set_stage(view: SessionView, stage: PromptStage, *ids: str) -> SessionView:
    if not ids:
        return view
    prompts = view.prompts | dict.fromkeys(ids, stage)
    if len(prompts) <= PROMPTS_KEPT:
        return replace(view, prompts=prompts)
    done = (id_ for id_, each in prompts.items() if each in _OVER)
    old = set(islice(done, len(prompts) - PROMPTS_KEPT))
    return replace(
        view,
        prompts={id_: each for id_, each in prompts.items() if id_ not in old},
        prompts_forgotten=view.prompts_forgotten + len(old),
    )


def _without(view: SessionView, *ids: str) -> SessionView:
    return replace(view, unsent=tuple(old for old in view.unsent if old.prompt not in ids))


def _ask(view: SessionView, stored: Stored) -> SessionView | None:
    match stored.event:
        case AskOpened(ask=ask, run=run) as opened:
            if ask in view.asks or ask in view.settled or run in view.ended_runs:
                return view
            return replace(view, asks=view.asks | {ask: ask_view(stored, opened)})
        case AskAnswered(ask=ask) | AskWithdrawn(ask=ask):
            card = view.asks.get(ask)
            if card is None:
                # Settled before it was opened: remembered, so that the order does not matter.
                return _close_ask(view, ask, view.settled.get(ask))
            asks = {id_: other for id_, other in view.asks.items() if id_ != ask}
            return _close_ask(replace(view, asks=asks), ask, card.opened.run)
    return None


def _close_ask(view: SessionView, ask: str, run: str | None) -> SessionView:
    settled = view.settled | {ask: run}
    old = len(settled) - SETTLED_KEPT
    return replace(view, settled=dict(islice(settled.items(), max(old, 0), None)))
