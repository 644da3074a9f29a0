"""The hub with machines in the hand of the test: sessions, prompts, questions, restarts."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, Literal

import anyio
import pytest
from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.domain.errors import Conflict, NotFound, RequestTimeout, UsageError
from quarterdeck.hub.decisions import commands as decisions
from quarterdeck.hub.hub import Hub
from quarterdeck.hub.ports import RunEnd
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.protocol import commands
from quarterdeck.protocol.events import AskAnswered, Decided, Said, SaidBroken, Sent
from quarterdeck.protocol.sessions import Origin, SessionSpec, SessionState
from support import lines
from support.bounds import SECONDS
from support.hub_machines import TestMachines, hub_with

pytestmark = pytest.mark.anyio
SPEC = SessionSpec(directory="/work")
P1, P2, P3 = (f"00000000-0000-4000-8000-00000000000{n}" for n in (1, 2, 3))


def text(content: str) -> Raw:
    return Raw(json.dumps(content).encode())


async def create(hub: Hub, prompt: str = "hello", **spec: Any) -> str:
    made = SessionSpec(directory="/work", **spec)
    outcome = await hub.submit(
        commands.CreateSession(spec=made, prompt=text(prompt), prompt_id=P1, by="ada")
    )
    return outcome.session


async def test_a_session_is_started_greeted_and_prompted(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    session = await create(hub)
    (run,) = machines.runs
    assert (await hub.session(session)).state is SessionState.STARTING
    await run.greet()
    assert await run.take_prompt() == P1
    assert (await hub.session(session)).state is SessionState.WORKING
    await run.say(lines.assistant("hi", "a"), lines.result("r", cost=0.25))
    view = await hub.session(session)
    assert view.state is SessionState.IDLE
    assert view.cost_usd == 0.25
    assert view.cli_session == lines.SESSION
    said = [e.event for e in await hub.events(session) if isinstance(e.event, Said)]
    assert bytes(said[-1].line) == lines.result("r", cost=0.25).rstrip()


async def test_making_a_session_twice_by_the_same_id_makes_one(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    command = commands.CreateSession(spec=SPEC, session="mine", by="ada")
    assert not (await hub.submit(command)).repeated
    assert (await hub.submit(command)).repeated
    assert len(machines.runs) == 1


async def test_the_prompts_that_wait_are_bounded_in_size(
    deck: tuple[Hub, TestMachines], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decisions, "MOST_WAITING", 1000)
    hub, machines = deck
    session = await create(hub)
    (run,) = machines.runs
    await run.greet()
    await run.take_prompt()

    async def send(prompt: str, size: int) -> None:
        content = text("x" * size)
        await hub.submit(commands.SendPrompt(session=session, prompt=prompt, content=content))

    await send(P2, 2000)  # one may always wait
    with pytest.raises(Conflict, match="at most 1000") as refused:
        await send(P3, 1)
    assert refused.value.code == "queue_full"
    await send(P2, 2000)  # again: it is known
    smaller = commands.ChangePrompt(session=session, prompt=P2, content=text("x" * 400))
    await hub.submit(smaller)
    await send(P3, 400)
    with pytest.raises(Conflict):
        await hub.submit(replace(smaller, content=text("x" * 700)))
    assert len((await hub.session(session)).queued) == 2


async def test_prompts_queue_while_a_turn_runs_and_can_be_changed_and_cancelled(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    session = await create(hub)
    (run,) = machines.runs
    await run.greet()
    await run.take_prompt()
    for name in (P2, P3):
        await hub.submit(commands.SendPrompt(session=session, prompt=name, content=text(name)))
    again = await hub.submit(commands.SendPrompt(session=session, prompt=P2, content=text("x")))
    assert again.repeated
    assert run.read() == []
    assert [prompt.prompt for prompt in (await hub.session(session)).queued] == [P2, P3]
    await hub.submit(commands.ChangePrompt(session=session, prompt=P3, content=text("changed")))
    await hub.submit(commands.CancelPrompt(session=session, prompt=P2))
    await run.say(lines.result("r1"))
    (sent,) = run.read()
    assert sent["uuid"] == P3
    assert sent["message"]["content"] == "changed"
    with pytest.raises(Conflict, match="not in the queue"):
        await hub.submit(commands.CancelPrompt(session=session, prompt=P3))
    with pytest.raises(NotFound):
        await hub.submit(commands.CancelPrompt(session=session, prompt="p9"))


async def test_a_question_waits_is_answered_once_and_audited(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    session = await create(hub)
    (run,) = machines.runs
    await run.greet()
    await run.take_prompt()
    await run.say(lines.asks_permission("q1", command="rm x"))
    (card,) = await hub.asks()
    assert card.opened.tool == "Bash"
    assert (await hub.session(session)).state is SessionState.WAITING
    ask = card.opened.ask
    changed = commands.AllowAnswer(input=Raw(b'{"command":"ls"}'))
    await hub.submit(commands.AnswerAsk(ask=ask, answer=changed, by="ada"))
    (answer,) = run.read()
    assert answer["response"]["response"]["updatedInput"] == {"command": "ls"}
    with pytest.raises(Conflict, match="answered by ada"):
        await hub.submit(commands.AnswerAsk(ask=ask, answer=commands.DenyAnswer(), by="bob"))
    with pytest.raises(NotFound):
        await hub.submit(
            commands.AnswerAsk(ask=f"{session}.x", answer=commands.DenyAnswer(), by="bob")
        )
    assert await hub.asks() == []
    audit = [stored.event for stored in await hub.audit()]
    assert [type(event) for event in audit] == [AskAnswered, Decided]
    assert run.read() == []


async def test_of_many_who_answer_at_once_exactly_one_wins(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    await create(hub)
    (run,) = machines.runs
    await run.greet()
    await run.take_prompt()
    for number in range(200):
        await run.say(lines.asks_permission(f"q{number}"))
        (card,) = await hub.asks()
        won: list[str] = []

        async def answer(name: str, ask: str, won: list[str]) -> None:
            with suppress(Conflict):
                await hub.submit(commands.AnswerAsk(ask=ask, answer=commands.DenyAnswer(), by=name))
                won.append(name)

        async with anyio.create_task_group() as tasks:
            for name in ("ada", "bob", "eve"):
                tasks.start_soon(answer, name, card.opened.ask, won)
        assert len(won) == 1
        assert len(run.read()) == 1


async def test_what_is_on_the_auto_approve_list_is_not_asked(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    session = await create(hub, auto_approve=("Bash",))
    (run,) = machines.runs
    await run.greet()
    await run.take_prompt()
    await run.say(lines.asks_permission("q1", command="ls"))
    (answer,) = run.read()
    assert answer["response"]["response"]["behavior"] == "allow"
    assert await hub.asks() == []
    (decided,) = [e.event for e in await hub.audit(session=session)]
    assert isinstance(decided, Decided)
    assert decided.by == "policy"
    await run.say(
        lines.asks_permission("q2", tool="AskUserQuestion", questions=[{"question": "?"}])
    )
    assert len(await hub.asks()) == 1


async def test_a_withdrawn_question_closes_its_card(deck: tuple[Hub, TestMachines]) -> None:
    hub, machines = deck
    await create(hub)
    (run,) = machines.runs
    await run.greet()
    await run.take_prompt()
    await run.say(lines.asks_permission("q1"))
    (card,) = await hub.asks()
    await run.say(lines.cancels("q1"))
    assert await hub.asks() == []
    with pytest.raises(Conflict, match="withdrawn"):
        await hub.submit(
            commands.AnswerAsk(ask=card.opened.ask, answer=commands.DenyAnswer(), by="ada")
        )


async def test_a_stale_card_still_works_the_session_resumes_and_is_told(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    session = await create(hub)
    run = machines.runs[0]
    await run.greet()
    await run.take_prompt()
    await run.say(lines.asks_permission("q1", tool="ExitPlanMode", plan="1. think"))
    (card,) = await hub.asks()
    await run.end("It was killed.")
    assert (await hub.session(session)).state is SessionState.ENDED
    await hub.submit(
        commands.AnswerAsk(ask=card.opened.ask, answer=commands.PlanAnswer(choice="auto"), by="ada")
    )
    spec, origin = machines.started[-1]
    assert origin == Origin(cli_session=lines.SESSION)
    assert spec.mode == "acceptEdits"
    assert (await hub.session(session)).spec.mode == "acceptEdits"
    await machines.runs[1].greet()
    (prompt,) = machines.runs[1].read()
    assert "1. think" in prompt["message"]["content"]


@pytest.mark.parametrize(
    ("choice", "behavior", "mode"),
    [("auto", "allow", "acceptEdits"), ("manual", "allow", "default"), ("revise", "deny", None)],
)
async def test_a_plan_is_reviewed_in_place(
    deck: tuple[Hub, TestMachines],
    choice: Literal["auto", "manual", "revise"],
    behavior: str,
    mode: str | None,
) -> None:
    hub, machines = deck
    await create(hub)
    (run,) = machines.runs
    await run.greet()
    await run.take_prompt()
    await run.say(lines.asks_permission("q1", tool="ExitPlanMode", plan="1. think"))
    (card,) = await hub.asks()
    assert card.opened.plan == "1. think"
    answer = commands.PlanAnswer(choice=choice, feedback="more")
    await hub.submit(commands.AnswerAsk(ask=card.opened.ask, answer=answer, by="ada"))
    (sent,) = run.read()
    body = sent["response"]["response"]
    assert body["behavior"] == behavior
    if mode:
        assert [update["mode"] for update in body["updatedPermissions"]] == [mode]
    else:
        assert body["message"] == "more"


@pytest.mark.parametrize("silently", [False, True])
async def test_a_plan_may_be_done_in_a_fresh_conversation(
    deck: tuple[Hub, TestMachines], silently: bool
) -> None:
    hub, machines = deck
    session = await create(hub)
    run = machines.runs[0]
    await run.greet()
    await run.take_prompt()
    await run.say(lines.asks_permission("q1", tool="ExitPlanMode", plan="1. think"))
    (card,) = await hub.asks()
    answer = commands.PlanAnswer(choice="fresh")

    async def cli() -> None:
        """Deny, interrupt, end_session: a CLI that goes when it is asked to."""
        while not machines.runs[0].forgotten:
            for line in run.read():
                if line["type"] == "control_request":
                    leaves = line["request"]["subtype"] == "end_session"
                    if not (leaves and silently):
                        await run.say(lines.success_answer(line["request_id"]))
                    if leaves:
                        await run.end("It left.", clean=True)
            await anyio.lowlevel.checkpoint()

    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cli)
            await hub.submit(commands.AnswerAsk(ask=card.opened.ask, answer=answer, by="ada"))
    spec, origin = machines.started[1]
    assert origin == Origin()
    assert spec.mode == "acceptEdits"
    assert machines.runs[1].stops == []  # what was to stop is gone already
    await machines.runs[1].greet()
    (prompt,) = machines.runs[1].read()
    assert "1. think" in prompt["message"]["content"]
    assert (await hub.session(session)).session == session


async def test_control_requests_reach_the_cli_and_bring_its_answer(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    session = await create(hub)
    (run,) = machines.runs
    await run.greet()
    run.read()
    answers: list[bytes] = []

    async def ask() -> None:
        request = Raw(b'{"subtype":"mcp_status"}')
        outcome = await hub.submit(commands.Control(session=session, request=request))
        answers.append(bytes(outcome.answer))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        (line,) = run.read()
        await run.say(lines.success_answer(line["request_id"], {"mcpServers": []}))
    assert json.loads(answers[0]) == {"mcpServers": []}
    silent = commands.Control(
        session=session, request=Raw(b'{"subtype":"mcp_status"}'), timeout=0.05
    )
    with pytest.raises(RequestTimeout):
        await hub.submit(silent)


async def test_lines_that_come_again_are_the_same_lines(deck: tuple[Hub, TestMachines]) -> None:
    hub, machines = deck
    session = await create(hub)
    (run,) = machines.runs
    await run.greet()
    await run.take_prompt()
    await run.say(lines.assistant("one", "a1"))
    before = await hub.events(session)
    said = [line.rstrip() for line in (lines.assistant("one", "a1"), lines.assistant("two", "a2"))]
    await run.owner.run_said(run.run, run.said, said)
    after = await hub.events(session)
    fresh = [e.event for e in after[len(before) :]]
    assert [type(event) for event in fresh] == [Said]


async def test_a_restarted_hub_goes_on_where_the_journal_ends(journal: MemoryJournal) -> None:
    first, machines = hub_with(journal)
    async with first.run():
        session = await create(first)
        (run,) = machines.runs
        await run.greet()
        await run.take_prompt()
        await run.say(lines.asks_permission("q1"), lines.asks_permission("q2"))
        cards = await first.asks()
        await first.submit(
            commands.AnswerAsk(ask=cards[0].opened.ask, answer=commands.DenyAnswer(), by="ada")
        )
        await first.submit(commands.SendPrompt(session=session, prompt=P2, content=text("next")))
    # A new hub, and a runner that has gone on without one.
    second, later = hub_with(journal)
    async with second.run():
        (again,) = later.runs
        assert again.run == run.run
        assert again.written == run.written
        await again.owner.run_found(again.run)
        (card,) = await second.asks()
        assert card.opened.request_id == "q2"
        await second.submit(
            commands.AnswerAsk(ask=card.opened.ask, answer=commands.AllowAnswer(), by="ada")
        )
        await again.say(lines.result("r1"))
        sent = [json.loads(line) for line in again.written.values()]
        assert [line.get("uuid") for line in sent if line["type"] == "user"] == [P1, P2]
        numbers = [
            e.event.number for e in await second.events(session) if isinstance(e.event, Sent)
        ]
        assert numbers == list(range(1, len(numbers) + 1))


async def test_an_ended_session_is_resumed_by_a_prompt(deck: tuple[Hub, TestMachines]) -> None:
    hub, machines = deck
    session = await create(hub)
    run = machines.runs[0]
    await run.greet()
    await run.take_prompt()
    await run.say(lines.result("r"))
    await run.end("It exited.", clean=True, exit_code=0)
    await hub.submit(commands.SendPrompt(session=session, prompt=P2, content=text("more")))
    assert machines.started[1][1] == Origin(cli_session=lines.SESSION)
    with pytest.raises(Conflict, match="process already"):
        await hub.submit(commands.ResumeSession(session=session))


async def test_a_conversation_has_one_owner(deck: tuple[Hub, TestMachines]) -> None:
    hub, machines = deck
    session = await create(hub)
    (run,) = machines.runs
    await run.greet()
    await run.take_prompt()
    with pytest.raises(Conflict, match=session):
        await hub.submit(commands.CreateSession(spec=SPEC, cli_session=lines.SESSION, by="ada"))
    forked = await hub.submit(commands.ForkSession(session=session, name="branch", by="ada"))
    assert machines.started[1][1] == Origin(cli_session=lines.SESSION, fork=True)
    assert (await hub.session(forked.session)).name == "branch"
    assert (await hub.session(forked.session)).parent == session


async def test_a_run_that_could_not_be_started_says_why(deck: tuple[Hub, TestMachines]) -> None:
    hub, machines = deck
    session = await create(hub)
    (run,) = machines.runs
    await run.owner.run_ended(run.run, RunEnd(reason="there is no such folder"))
    view = await hub.session(session)
    assert view.state is SessionState.ENDED
    assert view.detail == "there is no such folder"


async def test_a_session_is_renamed_archived_and_deleted(deck: tuple[Hub, TestMachines]) -> None:
    hub, machines = deck
    session = await create(hub)
    await hub.submit(commands.RenameSession(session=session, name="blue", by="ada"))
    await hub.submit(commands.ArchiveSession(session=session, by="ada"))
    assert await hub.sessions() == []
    assert [view.name for view in await hub.sessions(archived=True)] == ["blue"]
    with pytest.raises(Conflict, match="stop it first"):
        await hub.submit(commands.DeleteSession(session=session, by="ada"))
    await machines.runs[0].end()
    await hub.submit(commands.DeleteSession(session=session, by="ada"))
    with pytest.raises(NotFound):
        await hub.session(session)


async def test_a_question_with_a_time_limit_is_denied_when_nobody_comes(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    await create(hub, ask_timeout=0.01)
    (run,) = machines.runs
    await run.greet()
    await run.take_prompt()
    await run.say(lines.asks_permission("q1"))
    with anyio.fail_after(SECONDS):
        await run.wait_for_write()
    sent = run.read()
    assert sent[0]["response"]["response"]["behavior"] == "deny"


async def test_nonsense_is_refused(deck: tuple[Hub, TestMachines]) -> None:
    hub, _ = deck
    with pytest.raises(NotFound):
        await hub.submit(commands.StopSession(session="nobody"))
    with pytest.raises(UsageError):
        await hub.submit(commands.CreateSession(spec=SPEC, prompt=Raw(b"[]"), by="ada"))
    with pytest.raises(UsageError, match="dot"):
        await hub.submit(commands.CreateSession(spec=SPEC, session="a.b", by="ada"))
    assert await hub.sessions() == []


async def test_a_plan_that_comes_back_too_soon_is_sent_back_by_itself(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    await create(hub, plan_cooldown=30.0)
    (run,) = machines.runs
    await run.greet()
    await run.take_prompt()
    await run.say(lines.asks_permission("q1", tool="ExitPlanMode", plan="1. think"))
    (card,) = await hub.asks()
    revise = commands.PlanAnswer(choice="revise", feedback="more")
    await hub.submit(commands.AnswerAsk(ask=card.opened.ask, answer=revise, by="ada"))
    run.read()
    await run.say(lines.asks_permission("q2", tool="ExitPlanMode", plan="1. think"))
    assert await hub.asks() == []
    (sent,) = run.read()
    assert "too soon" in sent["response"]["response"]["message"]


async def test_a_call_that_the_cli_allows_by_itself_is_seen_and_audited(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    session = await create(hub)
    (run,) = machines.runs
    await run.greet()
    await run.take_prompt()
    seen = {
        "hook_event_name": "PreToolUse",
        "session_id": lines.SESSION,
        "tool_name": "Read",
        "tool_input": {"file_path": "/x"},
        "tool_use_id": "toolu_1",
    }
    await run.say(
        lines.requests("h1", subtype="hook_callback", callback_id="quarterdeck-watch", input=seen)
    )
    (answer,) = run.read()
    assert answer["response"]["response"] == {}
    content = [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "text"}]
    message = {"role": "user", "content": content}
    await run.say(lines.line(type="user", message=message, uuid="u1"), lines.result("r"))
    (entry,) = [stored.event for stored in await hub.audit(session=session)]
    assert isinstance(entry, Decided)
    assert (entry.tool, entry.by, entry.verdict) == ("Read", "cli", "allow")


async def test_a_prompt_whose_cli_died_before_it_took_it_runs_in_the_next_one(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    session = await create(hub)
    run = machines.runs[0]
    await run.greet()
    (first,) = run.read()
    assert first["uuid"] == P1
    await run.end("It was killed.")
    await hub.submit(commands.ResumeSession(session=session, by="ada"))
    await machines.runs[1].greet()
    # Under another uuid: a CLI that has seen the first one would drop it without a word.
    uuid = await machines.runs[1].take_prompt()
    assert uuid != P1
    await machines.runs[1].say(lines.result("r"))
    view = await hub.session(session)
    assert view.prompts[P1].value == "done"
    assert view.unsent == ()


async def test_a_line_that_is_no_clean_json_is_kept_and_understood(
    journal: MemoryJournal,
) -> None:
    first, machines = hub_with(journal)
    async with first.run():
        session = await create(first)
        (run,) = machines.runs
        await run.greet()
        await run.take_prompt()
        odd = lines.asks_permission("q1", command="x").replace(b'"x"', b'"\\ud83d"')
        await run.say(odd, b"Warning: not JSON\n")
        assert len(await first.asks()) == 1
    second, _ = hub_with(journal)
    async with second.run():
        (card,) = await second.asks()
        await second.submit(
            commands.AnswerAsk(ask=card.opened.ask, answer=commands.DenyAnswer(), by="ada")
        )
        assert await second.asks() == []
    kinds = [stored.event for stored in await journal.read(session)]
    assert [event.text for event in kinds if isinstance(event, SaidBroken)] == [
        odd.decode().rstrip(),
        "Warning: not JSON",
    ]
