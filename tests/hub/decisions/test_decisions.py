"""Each decision by itself: state, input and facts in, events out. No hub, no loop, no journal."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.domain.coded import AlarmAct, CodedText, TextCode
from quarterdeck.domain.errors import Conflict, NotFound, QuarterdeckError, UsageError
from quarterdeck.domain.exits import RUNNER_KILLED
from quarterdeck.hub.decisions import inputs as on
from quarterdeck.hub.decisions.base import Done, Facts, State, collect
from quarterdeck.hub.decisions.lines import LineResult
from quarterdeck.hub.decisions.table import TABLE
from quarterdeck.hub.effects import (
    Acknowledge,
    ReadTranscript,
    StopProcess,
    StoreGrant,
    WriteLine,
    effects,
)
from quarterdeck.hub.lines import read_line
from quarterdeck.hub.permissions.context import Ruling
from quarterdeck.hub.ports import RunEnd
from quarterdeck.hub.run_state import LineReport, RunState
from quarterdeck.hub.supervision.meter import Prices
from quarterdeck.hub.supervision.watchdog import Timeouts
from quarterdeck.journal.base import AskRecord
from quarterdeck.journal.views import fold
from quarterdeck.policy.decide import Behavior, Verdict
from quarterdeck.protocol import commands as cmd
from quarterdeck.protocol import events as ev
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import INBOUND, Origin, SessionSpec
from quarterdeck.protocol.stored_events import Stored
from quarterdeck.protocol.views import AskView
from quarterdeck.wire import commands as wire
from quarterdeck.wire.base import Message
from support import lines
from support.clis import PROJECT

SPEC = SessionSpec(directory="/work", machine="far")
NOW = 1_000_000
P1, P2 = (f"00000000-0000-4000-8000-00000000000{n}" for n in (1, 2))


def stored(event: ev.Event, number: int = 9, at: int = NOW) -> Stored:
    """An event as the journal gives it."""
    assert isinstance(event, ev.AnyEvent)
    json = msgspec.json.encode(event)
    return Stored(session="mine", seq=number, position=number, at=at, event=event, json=json)


def record_of(opened: ev.AskOpened, settled: ev.Event | None = None) -> AskRecord:
    """A question as the journal has it."""
    ask = AskView(session="mine", seq=5, opened=opened, at=NOW)
    return AskRecord(ask=ask, settled=None if settled is None else stored(settled))


class Machine:
    """A session whose events are folded as soon as they are decided. It performs no effects."""

    def __init__(self, spec: SessionSpec = SPEC) -> None:
        self.view: SessionView | None = None
        self.run: RunState | None = None
        self.now = NOW
        self.said = 0
        self.journal: list[ev.Event] = []
        created = ev.SessionCreated(spec=spec, by="ada")
        self.take(on.Create(created=created, origin=Origin()), self.start_facts())

    def start_facts(self, **more: Any) -> on.StartFacts:
        return on.StartFacts(now=self.now, run=f"r{len(self.journal)}", **more)

    @property
    def state(self) -> State:
        return State("mine", self.view, self.run)

    @property
    def id(self) -> str:
        """The id of its run."""
        assert self.run is not None
        return self.run.run

    def decide(self, input_: Any, facts: Facts | None = None) -> tuple[list[ev.Event], Any]:
        """What is decided. The events are in the state of the run, and not in the view."""
        found: list[ev.Event] = []

        def note(event: ev.Event, known: Message | None, at: int) -> LineReport | None:
            found.append(event)
            return None if self.run is None else self.run.evolve(event, at, known)

        facts = facts or Facts(now=self.now)
        done = collect(TABLE[type(input_)].decide(self.state, input_, facts), note, facts.now)
        return found, done

    def take(self, input_: Any, facts: Facts | None = None) -> tuple[list[ev.Event], Any]:
        """The same, and the events are in the view, too."""
        found, done = self.decide(input_, facts)
        for event in found:
            self.journal.append(event)
            number = len(self.journal)
            self.view = fold(self.view, stored(event, number, self.now))
            if isinstance(event, ev.RunStarting):
                self.run = RunState("mine", event.run, self.view.spec)
                self.run.evolve(event, self.now)
            elif isinstance(event, ev.RunEnded):
                self.run = None
        return found, done

    def say(self, line: bytes, ruling: Ruling | None = None) -> tuple[list[ev.Event], LineResult]:
        """A line of the CLI; `ruling` is what the rules say about the request `q1`."""
        assert self.run is not None
        self.said += 1
        said = on.Line(run=self.run.run, number=self.said, read=read_line(line.rstrip()))
        rulings = {} if ruling is None else {"q1": ruling}
        return self.take(said, on.LineFacts(now=self.now, rulings=rulings))


def started() -> Machine:
    """A session whose process is up, and has not answered `initialize`."""
    machine = Machine()
    machine.take(started_input(machine))
    return machine


def started_input(machine: Machine) -> on.Started:
    assert machine.run is not None
    return on.Started(run=machine.run.run, pid=42, version="2.1.325", directory="/work")


def idle() -> Machine:
    machine = started()
    assert machine.run is not None
    (greeting,) = machine.run.peer._ours.open
    machine.say(lines.success_answer(greeting.request_id))
    return machine


def prompted(prompt: str = P1, **more: Any) -> cmd.SendPrompt:
    return cmd.SendPrompt(session="mine", prompt=prompt, content=Raw(b'"go"'), by="ada", **more)


def prompt_facts(**more: Any) -> on.PromptFacts:
    return on.PromptFacts(now=NOW, content=Raw(b'"go"'), run="next", **more)


def busy() -> Machine:
    machine = idle()
    machine.take(prompted(), prompt_facts())
    machine.say(lines.init("2.1.325", "i1"))
    machine.say(lines.echo(P1))
    return machine


def asking() -> Machine:
    machine = busy()
    machine.say(lines.asks_permission("q1"))
    return machine


def ended() -> Machine:
    machine = idle()
    machine.take(*end(machine))
    return machine


def end(machine: Machine, **more: Any) -> tuple[on.Ended, on.EndFacts]:
    assert machine.run is not None
    given = {"number": 9, "reason": "It exited.", **more}
    return (
        on.Ended(run=machine.run.run, end=RunEnd(**given)),
        on.EndFacts(now=NOW, run="next", prices=Prices(), reachable=True),
    )


def kinds(events: list[ev.Event]) -> list[str]:
    return [type(event).__name__ for event in events]


def budget() -> ev.BudgetReached:
    return ev.BudgetReached(scope="session", unit="tokens", limit=10, spent=11)


def spending(*over: ev.BudgetReached) -> on.BudgetFacts:
    return on.BudgetFacts(now=NOW, prices=Prices(), over=over)


SENDS = ["PromptQueued", "PromptSent", "Sent", "StateChanged"]
CASES: dict[
    str, tuple[Callable[[], Machine], Callable[[Machine], Any], Facts | None, list[str]]
] = {
    "a prompt to an idle CLI is sent at once": (idle, lambda _: prompted(), prompt_facts(), SENDS),
    "a prompt in a turn waits": (busy, lambda _: prompted(P2), prompt_facts(), ["PromptQueued"]),
    "a prompt that steers is sent into the turn": (
        busy,
        lambda _: prompted(P2, steer=True),
        prompt_facts(),
        ["PromptQueued", "PromptSent", "Sent"],
    ),
    "a known prompt is nothing": (idle, lambda _: prompted(), prompt_facts(known=True), []),
    "a prompt resumes an ended session": (
        ended,
        lambda _: prompted(),
        prompt_facts(),
        ["PromptQueued", "RunStarting"],
    ),
    "a stop is written down": (
        busy,
        lambda _: cmd.StopSession(session="mine", by="ada"),
        None,
        ["RunStopping"],
    ),
    "a stop of what has ended is nothing": (
        ended,
        lambda _: cmd.StopSession(session="mine"),
        None,
        [],
    ),
    "the same archive again is nothing": (
        ended,
        lambda _: cmd.ArchiveSession(session="mine", archived=False),
        None,
        [],
    ),
    "a process that is up is greeted": (Machine, started_input, None, ["RunStarted", "Sent"]),
    "a process that is told again is not": (started, started_input, None, []),
    "a link that breaks": (
        idle,
        lambda m: on.LinkBroken(run=m.id, why=CodedText(code=TextCode.MACHINE_LOST)),
        None,
        ["LinkLost"],
    ),
    "news of another run are nothing": (
        idle,
        lambda _: on.LinkBroken(run="other", why=CodedText(code=TextCode.MACHINE_LOST)),
        None,
        [],
    ),
    "a process that ends in a question": (
        asking,
        lambda m: end(m)[0],
        end(asking())[1],
        ["AskWithdrawn", "StateChanged", "RunEnded"],
    ),
    "a budget interrupts a turn": (
        busy,
        lambda _: on.CheckSpending(again=True),
        spending(budget()),
        ["Sent", "BudgetReached"],
    ),
    "no budget, no event": (busy, lambda _: on.CheckSpending(again=True), spending(), []),
    "a budget holds the next prompt back": (
        idle,
        lambda _: on.SendNext(),
        spending(budget()),
        [],
    ),
    "a request of a person": (
        idle,
        lambda _: on.AskCli(command=wire.SetModel(model="haiku"), by="ada"),
        None,
        ["Sent"],
    ),
    "a tick of an idle session": (idle, lambda _: on.Tick(), on.StartFacts(now=NOW), []),
    "silence in a turn rings": (
        busy,
        lambda _: on.CheckAlive(),
        on.AliveFacts(now=NOW + 21_000, timeouts=Timeouts(result=20)),
        ["Alarmed"],
    ),
    "silence with a question does not": (
        asking,
        lambda _: on.CheckAlive(),
        on.AliveFacts(now=NOW + 21_000, timeouts=Timeouts(result=20)),
        [],
    ),
    "a machine that cannot start it": (
        Machine,
        lambda m: on.StartFailed(
            run=m.id, why=CodedText(code=TextCode.NOT_STARTED, detail="no such machine")
        ),
        None,
        ["RunEnded"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_decision_gives_these_events(case: str) -> None:
    make, input_of, facts, wanted = CASES[case]
    machine = make()
    input_ = input_of(machine)
    events, _ = machine.decide(input_, facts)
    assert kinds(events) == wanted
    assert {type(event) for event in events} <= set(TABLE[type(input_)].events)


REFUSED: dict[str, tuple[Callable[[], Machine], Any, Facts | None, type[QuarterdeckError], str]] = {
    "a prompt beyond the budget": (
        idle, prompted(), prompt_facts(over=(budget(),)), Conflict, "budget|tokens",
    ),
    "a resume of what runs": (
        idle, cmd.ResumeSession(session="mine"), on.StartFacts(now=NOW), Conflict, "already",
    ),
    "a request without a process": (
        ended, on.AskCli(command=wire.Interrupt()), None, Conflict, "no process",
    ),
    "a request to a run that was": (
        idle, on.AskCli(command=wire.Interrupt(), of="other"), None, Conflict, "no process",
    ),
    "a change of an unknown prompt": (
        idle, cmd.CancelPrompt(session="mine", prompt=P2), prompt_facts(), NotFound, P2,
    ),
    "a change of a prompt that was sent": (
        busy, cmd.CancelPrompt(session="mine", prompt=P1), prompt_facts(known=True), Conflict,
        "queue",
    ),
    "an answer to nothing": (
        idle, cmd.AnswerAsk(ask="mine.a", answer=cmd.AllowAnswer()),
        on.AnswerFacts(now=NOW), NotFound, "mine.a",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_decision_refuses(case: str) -> None:
    make, input_, facts, error, words = REFUSED[case]
    machine = make()
    with pytest.raises(error, match=words):
        machine.decide(input_, facts)


# --- answers -------------------------------------------------------------------------------------


def answer(machine: Machine, given: cmd.Answer) -> cmd.AnswerAsk:
    (ask,) = machine.state.view.asks
    return cmd.AnswerAsk(ask=ask, answer=given, by="ada")


def test_an_answer_goes_to_the_cli_once_and_a_second_one_names_the_first_person() -> None:
    machine = asking()
    command = answer(machine, cmd.AllowAnswer())
    events, done = machine.take(command, on.AnswerFacts(now=NOW))
    assert kinds(events) == ["AskAnswered", "Decided", "Sent", "StateChanged"]
    (written,) = effects(events)
    assert isinstance(written, WriteLine)
    assert b'"behavior":"allow"' in written.line
    assert done.outcome == cmd.Outcome(session="mine", ask=command.ask)
    opened = next(event for event in machine.journal if isinstance(event, ev.AskOpened))
    record = record_of(opened, events[0])
    with pytest.raises(Conflict, match="already answered by ada"):
        machine.decide(command, on.AnswerFacts(now=NOW, record=record))


def test_an_answer_for_the_session_is_given_after_its_grant_is_stored() -> None:
    machine = asking()
    command = answer(machine, cmd.AllowAnswer(scope=cmd.Scope.SESSION))
    facts = on.AnswerFacts(now=NOW, narrowest=("Bash(ls)",))
    events, done = machine.take(command, facts)
    assert events == []
    (given,) = done.then
    assert given.grant.rules == ("Bash(ls)",)
    assert done.effects == (StoreGrant(grant=given.grant),)
    events, _ = machine.take(given, on.StartFacts(now=NOW))
    decided = next(event for event in events if isinstance(event, ev.Decided))
    assert given.grant.id in {each.ref for each in decided.coded}


def test_rules_that_do_not_allow_the_call_and_answers_that_do_not_fit_are_refused() -> None:
    machine = asking()
    wrong = cmd.AllowAnswer(scope=cmd.Scope.SESSION, rules=("Bash(pwd)",))
    with pytest.raises(UsageError, match="would not allow"):
        machine.decide(answer(machine, wrong), on.AnswerFacts(now=NOW, allowed=False))
    with pytest.raises(UsageError, match="PlanAnswer"):
        machine.decide(answer(machine, cmd.PlanAnswer(choice="auto")), on.AnswerFacts(now=NOW))


def test_a_late_answer_resumes_the_session_and_is_its_prompt() -> None:
    machine = asking()
    command = answer(machine, cmd.DenyAnswer(message="not that"))
    card = next(event for event in machine.journal if isinstance(event, ev.AskOpened))
    machine.take(*end(machine))
    facts = on.AnswerFacts(now=NOW, run="next", record=record_of(card))
    first, done = machine.decide(command, facts)
    assert kinds(first) == ["AskAnswered", "PromptQueued", "RunStarting"]
    queued = first[1]
    assert isinstance(queued, ev.PromptQueued)
    assert b"not that" in bytes(queued.content)
    assert done.outcome.prompt == queued.prompt
    assert machine.decide(command, facts)[0] == first, "the same facts, the same ids"
    with pytest.raises(Conflict, match="already answered by bob"):
        machine.decide(command, replace(facts, answered_by="bob"))


def test_a_plan_for_a_new_conversation_ends_this_one_and_begins_the_next_in_one_append() -> None:
    machine = busy()
    plan = {"tool_name": "ExitPlanMode", "input": {"plan": "do it"}, "tool_use_id": "t1"}
    machine.say(lines.requests("q1", subtype="can_use_tool", **plan))
    command = answer(machine, cmd.PlanAnswer(choice="fresh"))
    events, done = machine.take(command, on.AnswerFacts(now=NOW))
    assert kinds(events)[-4:] == ["SpecChanged", "PromptQueued", "StartAfresh", "RunStopping"]
    assert machine.run is not None
    assert done.leave == machine.run.run
    events, _ = machine.take(*end(machine))
    assert kinds(events)[-2:] == ["RunEnded", "RunStarting"]


# --- rules ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("behavior", [Behavior.ALLOW, Behavior.DENY])
def test_a_ruling_answers_the_cli_and_is_in_the_audit(behavior: Behavior) -> None:
    machine = busy()
    verdict = Verdict(behavior=behavior, rule="r", source="s")
    events, _ = machine.say(lines.asks_permission("q1"), Ruling(verdict=verdict, branch="main"))
    decided = next(event for event in events if isinstance(event, ev.Decided))
    assert (decided.verdict, decided.branch) == (behavior.value, "main")
    assert not any(isinstance(event, ev.AskOpened) for event in events)
    assert [type(effect) for effect in effects(events)] == [WriteLine]


# --- the end of a run ----------------------------------------------------------------------------


def test_an_end_that_may_hide_messages_has_the_transcript_read_first() -> None:
    machine = busy()
    machine.say(lines.assistant("words", "a1"))
    input_, facts = end(machine, unheard=True)
    events, done = machine.decide(input_, facts)
    assert events == []
    (wanted,) = done.effects
    assert isinstance(wanted, ReadTranscript)
    assert "a1" in wanted.wanted.known
    events, done = machine.decide(replace(input_, transcript_read=True), facts)
    assert kinds(events)[-1] == "RunEnded"
    assert Acknowledge(number=9) in done.effects
    assert done.then == (on.AfterEnd(),)


def test_a_session_whose_runner_died_in_a_turn_is_resumed_by_a_later_tick() -> None:
    machine = busy()
    machine.take(*end(machine, fault=RUNNER_KILLED))
    tick = on.Tick()
    assert machine.decide(tick, machine.start_facts())[0] == []
    machine.now += 60_000
    assert machine.decide(tick, machine.start_facts(over=(budget(),)))[0] == []
    events, _ = machine.decide(tick, machine.start_facts())
    assert kinds(events) == ["Noted", "RunStarting"]


def test_a_session_that_dialled_does_not_begin_afresh_by_itself() -> None:
    machine = busy()
    assert machine.run is not None
    machine.take(*answer_fresh(machine))
    spec = replace(SPEC, machine=INBOUND)
    machine.run.evolve(ev.SpecChanged(spec=spec, by="cli"), NOW)
    events, _ = machine.decide(*end(machine))
    assert kinds(events)[-2:] == ["RunEnded", "Noted"]


def answer_fresh(machine: Machine) -> tuple[cmd.AnswerAsk, on.AnswerFacts]:
    plan = {"tool_name": "ExitPlanMode", "input": {"plan": "do it"}, "tool_use_id": "t1"}
    machine.say(lines.requests("q1", subtype="can_use_tool", **plan))
    return answer(machine, cmd.PlanAnswer(choice="fresh")), on.AnswerFacts(now=NOW)


def test_a_cli_that_does_not_answer_initialize_is_killed() -> None:
    machine = started()
    assert machine.run is not None
    late = on.NotGreeted(run=machine.run.run, seconds=90)
    events, done = machine.decide(late)
    assert kinds(events) == ["Noted"]
    assert done.effects == (StopProcess(force=True),)
    greeted = idle()
    assert greeted.run is not None
    assert greeted.decide(on.NotGreeted(run=greeted.run.run, seconds=90)) == ([], Done())


# --- effects and the table -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("act", "wanted"),
    [
        ("", []),
        (AlarmAct.RUN_KILLED, [StopProcess(force=True)]),
        (AlarmAct.RUN_ENDED, [StopProcess()]),
    ],
)
def test_an_alarm_that_says_so_ends_the_process(act: str, wanted: list[StopProcess]) -> None:
    alarm = ev.Alarmed(alarm="no_exit", text="", act=act)
    assert list(effects([ev.Noted(level="info", text="…"), alarm])) == wanted


def test_every_input_is_in_the_table() -> None:
    kinds_of_input = set(getattr(on.Input, "__args__"))  # noqa: B009 - a union has no such attribute
    assert set(TABLE) == kinds_of_input


def test_the_docs_show_the_table_as_it_is() -> None:
    path = PROJECT / "tools" / "draw_transitions.py"
    spec = importlib.util.spec_from_file_location("draw_transitions", path)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.PAGE.read_text() == tool.draw(), "run `make docs`"
