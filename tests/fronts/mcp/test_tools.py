"""What agents do to others by the tools of the hub, and what they try in vain."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from msgspec import Raw

from quarterdeck.domain.errors import Conflict, Forbidden, NotFound, QuarterdeckError
from quarterdeck.domain.secrets import mask_tokens
from quarterdeck.fronts.mcp import tools
from quarterdeck.fronts.mcp.looks import LONGEST_TEXT, Found, Pages, SessionInfo, Waited
from quarterdeck.fronts.mcp.server import TOOLS, read_arguments, schema_of
from quarterdeck.fronts.mcp.tools import Arguments
from quarterdeck.hub.agent_tokens import agent_token, read_agent_token
from quarterdeck.hub.hub import Hub
from quarterdeck.hub.permissions.policies import Policies
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.policy.file import read_policy
from quarterdeck.protocol import commands as cmd
from quarterdeck.protocol.events import BudgetReached, PromptQueued, RunStopping
from quarterdeck.protocol.holds import RunningTool
from quarterdeck.protocol.machine_requests import Changes
from quarterdeck.protocol.sessions import Budget, SessionSpec
from support import lines
from support.agent_family import Family
from support.hub_machines import hub_with

pytestmark = pytest.mark.anyio

ON_A_SESSION: dict[str, Callable[[str], Arguments]] = {
    "send": lambda id_: tools.Send(session=id_, text="x"),
    "wait": lambda id_: tools.Wait(session=id_, seconds=1),
    "read": lambda id_: tools.Read(session=id_),
    "changes": lambda id_: tools.GetChanges(session=id_),
    "interrupt": lambda id_: tools.Interrupt(session=id_),
    "stop": lambda id_: tools.Stop(session=id_),
}


async def ids(family: Family, caller: str) -> set[str]:
    found = await family.call(caller, tools.ListSessions())
    assert isinstance(found, list)
    return {each.session for each in found}


# --- whom it reaches -----------------------------------------------------------------------------


async def test_an_agent_lists_and_finds_its_own_tree_only(family: Family) -> None:
    top = await family.person()
    child = await family.spawn(top)
    grandchild = await family.spawn(child)
    other = await family.person()
    stranger = await family.spawn(other)
    assert await ids(family, top) == {child, grandchild}
    assert await ids(family, child) == {grandchild}
    assert await ids(family, other) == {stranger}
    family.found = [top, child, grandchild, other, stranger]
    found = await family.call(child, tools.SearchText(words="secret"))
    assert found == [Found(session=grandchild, event=1, text="secret")]


@pytest.mark.parametrize("name", ON_A_SESSION)
async def test_no_tool_reaches_a_session_outside_of_the_tree(name: str, family: Family) -> None:
    top = await family.person()
    child = await family.spawn(top)
    sibling = await family.spawn(top)
    other = await family.person()
    for target in (child, top, sibling, other, "no-such-session", f"{sibling}.x"):
        with pytest.raises(NotFound):
            await family.call(child, ON_A_SESSION[name](target))
    for session in (top, sibling, other):
        assert not family.run(session).stops
        found = [stored.event for stored in await family.hub.events(session)]
        prompts = [event for event in found if isinstance(event, PromptQueued)]
        assert not any(prompt.by == f"agent:{child}" for prompt in prompts)


async def test_every_tool_but_spawn_and_the_lists_needs_a_session_of_the_tree() -> None:
    assert set(TOOLS) == {"list_sessions", "spawn", "search", *ON_A_SESSION}
    assert "answer" not in TOOLS


# --- what it does --------------------------------------------------------------------------------


async def test_a_child_gets_its_work_in_an_envelope_and_its_answer_comes_back(
    family: Family,
) -> None:
    top = await family.person(name="lead")
    child = await family.spawn(top, "Count the files.", name="counter")
    view = await family.view(child)
    assert (view.lineage, view.person, view.user, view.by) == ((top,), "ada", "ada", f"agent:{top}")
    (queued,) = [
        e.event for e in await family.hub.events(child) if isinstance(e.event, PromptQueued)
    ]
    text = json.loads(bytes(queued.content))
    assert text.startswith(
        f'<message from="agent:{top}" name="lead">\nCount the files.\n</message>'
    )
    assert queued.by == f"agent:{top}"
    await family.turn(child, "There are 7.")
    waited = await family.call(top, tools.Wait(session=child))
    assert isinstance(waited, Waited)
    assert (waited.done, waited.answer, waited.session.state) == (True, "There are 7.", "idle")
    read = await family.call(top, tools.Read(session=child))
    assert isinstance(read, Pages)
    assert "[agent] There are 7." in read.text
    assert read.next is None


async def test_wait_ends_with_the_turn_or_with_its_time(family: Family) -> None:
    top = await family.person()
    child = await family.spawn(top)
    early = await family.call(top, tools.Wait(session=child, seconds=1))
    assert isinstance(early, Waited)
    assert not early.done
    results: list[object] = []

    async def wait() -> None:
        results.append(await family.call(top, tools.Wait(session=child, seconds=100)))

    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        await family.turn(child, "finished")
    (late,) = results
    assert isinstance(late, Waited)
    assert (late.done, late.answer) == (True, "finished")


async def test_a_question_of_a_child_is_seen_and_left_to_people(family: Family) -> None:
    top = await family.person()
    child = await family.spawn(top)
    run = family.run(child)
    await run.take_prompt()
    await run.say(lines.asks_permission("q1", command="rm x"))
    waited = await family.call(top, tools.Wait(session=child))
    assert isinstance(waited, Waited)
    assert waited.session.waits_for_person
    (ask,) = await family.hub.asks(session=child)
    assert ask.opened.request_id == "q1"


async def test_what_comes_back_is_bounded(family: Family) -> None:
    top = await family.person()
    child = await family.spawn(top)
    await family.turn(child, "y" * 100_000)
    waited = await family.call(top, tools.Wait(session=child))
    assert isinstance(waited, Waited)
    assert len(waited.answer) == LONGEST_TEXT
    read = await family.call(top, tools.Read(session=child))
    assert isinstance(read, Pages)
    assert len(read.text) <= 2 * LONGEST_TEXT
    changes = await family.call(top, tools.GetChanges(session=child))
    assert isinstance(changes, Changes)
    assert len(changes.text) == LONGEST_TEXT
    assert changes.text_cut


# --- what a person has stopped -------------------------------------------------------------------


async def test_an_agent_does_not_revive_what_a_person_has_stopped(family: Family) -> None:
    top = await family.person()
    child = await family.spawn(top)
    # As a person, whose stop is journalled before the CLI has ended.
    live = family.hub._sessions[child]
    async with live.in_order():
        for by in ("ada", f"agent:{top}"):
            stopping = RunStopping(run=family.run(child).run, by=by)
            live.note(stopping, None, live.supervisor.now)
            await live.append()
    runs = len(family.machines.runs)
    with pytest.raises(Forbidden, match="only a person"):
        await family.call(top, tools.Send(session=child, text="go on"))
    await family.run(child).end()
    with pytest.raises(Forbidden, match="only a person"):
        await family.call(top, tools.Send(session=child, text="go on"))
    assert len(family.machines.runs) == runs
    await family.hub.submit(cmd.ResumeSession(session=child, by="ada"))
    await family.run(child).greet()
    await family.call(top, tools.Send(session=child, text="go on"))


@pytest.mark.parametrize("ended", [False, True])
async def test_a_person_who_stops_while_an_agent_sends_is_heeded(
    ended: bool, family: Family
) -> None:
    """The agent's prompt passes the check of its tool, and comes to the session after the stop."""
    top = await family.person()
    child = await family.spawn(top)
    await family.turn(child)
    if ended:
        await family.run(child).end()
    runs = len(family.machines.runs)
    checked, sent = anyio.Event(), anyio.Event()
    submit = family.hub.submit

    async def late(command: cmd.AnyCommand) -> cmd.Outcome:
        checked.set()
        await sent.wait()
        return await submit(command)

    family.hub.submit = late  # type: ignore[method-assign]
    refused: list[QuarterdeckError] = []

    async def send() -> None:
        try:
            await family.call(top, tools.Send(session=child, text="go on"))
        except Forbidden as error:
            refused.append(error)

    async with anyio.create_task_group() as group:
        group.start_soon(send)
        await checked.wait()
        if ended:
            await submit(cmd.StopSession(session=child, by="ada"))
        else:
            live = family.hub._sessions[child]
            async with live.in_order():
                stopping = RunStopping(run=family.run(child).run, by="ada")
                live.note(stopping, None, live.supervisor.now)
                await live.append()
        sent.set()
    assert [str(error)[:25] for error in refused] == ["a person has stopped this"]
    assert len(family.machines.runs) == runs
    assert not (await family.view(child)).queued


async def test_an_agent_goes_on_with_what_has_ended_otherwise(family: Family) -> None:
    top = await family.person()
    child = await family.spawn(top)
    await family.turn(child)
    await family.run(child).end()
    await family.call(top, tools.Send(session=child, text="go on"))
    assert (await family.view(child)).run is not None


async def test_a_call_that_a_killed_hub_has_done_already_is_not_done_again(family: Family) -> None:
    top = await family.person()
    call = RunningTool(call="t1", tool="mcp__quarterdeck__spawn", since=1_800_000_000_000)
    caller = await family.view(top)
    made = [await family.tools.call(caller, tools.Spawn(prompt="go"), call) for _ in range(2)]
    assert isinstance(made[0], SessionInfo)
    assert made[0] == made[1]
    (child,) = await ids(family, top)
    await family.run(child).greet()
    sent = RunningTool(call="t2", tool="mcp__quarterdeck__send", since=1_800_000_000_000)
    for _ in range(2):
        await family.tools.call(caller, tools.Send(session=child, text="more"), sent)
    events = [stored.event for stored in await family.hub.events(child)]
    assert len([event for event in events if isinstance(event, PromptQueued)]) == 2
    # Another call of the same kind is another one.
    other = RunningTool(call="t3", tool="mcp__quarterdeck__spawn", since=1_800_000_000_000)
    await family.tools.call(caller, tools.Spawn(prompt="go"), other)
    assert len(await ids(family, top)) == 2


# --- how much ------------------------------------------------------------------------------------


async def test_two_spawns_at_once_do_not_both_get_the_last_place(family: Family) -> None:
    top = await family.person()
    family.limit(children=1)
    refused: list[Exception] = []

    async def spawn() -> None:
        try:
            await family.call(top, tools.Spawn(prompt="go"))
        except Conflict as error:
            refused.append(error)

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(spawn)
    assert len(refused) == 4
    assert len(await ids(family, top)) == 1


async def test_the_last_generation_cannot_go_on_although_it_has_a_token(family: Family) -> None:
    top = await family.person()
    child = await family.spawn(top)
    grandchild = await family.spawn(child)
    assert not (await family.view(grandchild)).spec.agents
    with pytest.raises(Forbidden):
        await family.call(grandchild, tools.Spawn(prompt="one more"))


async def test_messages_that_go_round_are_stopped(family: Family) -> None:
    top = await family.person()
    family.limit(messages_per_hour=5, family_messages_per_hour=8)
    child = await family.spawn(top)
    grandchild = await family.spawn(child)
    sent = 2
    for _ in range(10):
        for caller, target in ((top, child), (child, grandchild)):
            try:
                await family.call(caller, tools.Send(session=target, text="and you?"))
                sent += 1
            except Conflict:
                pass
    assert sent == 8


async def test_the_count_of_messages_survives_a_restart_and_holds_for_all_hubs() -> None:
    journal = MemoryJournal()
    hub, machines = hub_with(journal)
    async with hub.run():
        family = Family(hub, machines)
        family.limit(messages_per_hour=3, family_messages_per_hour=4)
        top = await family.person()
        child = await family.spawn(top)
        grandchild = await family.spawn(child)
        for _ in range(2):
            await family.call(top, tools.Send(session=child, text="and you?"))
        with pytest.raises(Conflict, match="3 messages"):
            await family.call(top, tools.Send(session=child, text="and you?"))
    hub, machines = hub_with(journal)  # another one, which has seen none of them
    async with hub.run():
        family = Family(hub, machines)
        family.limit(messages_per_hour=3, family_messages_per_hour=4)
        with pytest.raises(Conflict, match="3 messages"):
            await family.call(top, tools.Send(session=child, text="and you?"))
        with pytest.raises(Conflict, match="family"):
            await family.call(child, tools.Send(session=grandchild, text="and you?"))


async def test_two_messages_at_once_are_not_both_the_last_that_is_allowed(family: Family) -> None:
    top = await family.person()
    child = await family.spawn(top)
    family.limit(messages_per_hour=2)
    refused: list[Conflict] = []

    async def send() -> None:
        try:
            await family.call(top, tools.Send(session=child, text="x"))
        except Conflict as error:
            refused.append(error)

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(send)
    assert len(refused) == 4


async def test_what_a_child_spends_counts_for_its_parent_and_stops_the_whole_family(
    family: Family,
) -> None:
    top = await family.person(budget=Budget(session_usd=1.0))
    child = await family.spawn(top)
    sibling = await family.spawn(top, budget_usd=50.0)
    assert (await family.view(sibling)).spec.budget == Budget(session_usd=1.0)
    await family.turn(child, cost=0.6)
    await family.turn(sibling, cost=0.5)
    for session, scope in ((sibling, "family"), (child, "family"), (top, "session")):
        with pytest.raises(Conflict, match="is used up"):
            await family.hub.submit(
                cmd.SendPrompt(session=session, prompt="more", content=Raw(b'"more"'), by="ada")
            )
        if session == sibling:
            found = [e.event for e in await family.hub.events(session)]
            assert [e.scope for e in found if isinstance(e, BudgetReached)] == [scope]
    # Another family is not concerned.
    await family.turn(await family.person(), cost=0.1)


async def test_the_account_of_a_family_survives_a_restart() -> None:
    journal = MemoryJournal()
    hub, machines = hub_with(journal)
    async with hub.run():
        family = Family(hub, machines)
        top = await family.person(budget=Budget(session_usd=1.0))
        child = await family.spawn(top)
        await family.turn(child, cost=1.5)
    hub, _ = hub_with(journal)
    async with hub.run():
        for session in (top, child):
            with pytest.raises(Conflict, match="is used up"):
                await hub.submit(
                    cmd.SendPrompt(session=session, prompt="more", content=Raw(b'"more"'))
                )


# --- arguments and tokens ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("spawn", "{}"),
        ("spawn", '{"prompt": ""}'),
        ("spawn", '{"prompt": "x", "directory": "/"}'),
        ("spawn", '{"prompt": "x", "policy": "none"}'),
        ("spawn", '{"prompt": "x", "skip_permissions": true}'),
        ("spawn", '{"prompt": "x", "by": "ada"}'),
        ("spawn", '{"prompt": "x", "worktree": "main"}'),
        ("spawn", '{"prompt": "x", "budget_usd": 0}'),
        ("spawn", '{"prompt": "x", "budget_usd": -1}'),
        ("send", '{"session": "s"}'),
        ("send", '{"session": "s", "text": "x", "from": "ada"}'),
        ("wait", '{"session": "s", "seconds": 100000}'),
        ("wait", '{"session": "s", "seconds": 0}'),
        ("read", '{"session": "s", "after": -1}'),
        ("answer", '{"ask": "a"}'),
        ("list_sessions", '{"session": "other"}'),
        ("list_sessions", "[]"),
    ],
)
def test_what_a_tool_does_not_take_is_refused(name: str, given: str) -> None:
    with pytest.raises(QuarterdeckError):
        read_arguments(name, given.encode())


@pytest.mark.parametrize("name", TOOLS)
def test_every_tool_has_a_schema_and_a_description(name: str) -> None:
    schema = schema_of(TOOLS[name])
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert "$ref" not in json.dumps(schema)
    assert TOOLS[name].__doc__


def test_a_token_is_masked_as_other_tokens_are() -> None:
    token = agent_token(b"secret", "s1", "r1")
    assert token not in mask_tokens(f"my token is {token}, use it")
    assert token.rpartition("_")[2] not in mask_tokens(token)


def test_a_token_names_its_run_and_cannot_be_changed() -> None:
    token = agent_token(b"secret", "s1", "r1")
    found = read_agent_token(b"secret", token)
    assert found is not None
    assert (found.session, found.run) == ("s1", "r1")
    other = agent_token(b"other", "s1", "r1")
    for wrong in (other, token + "A", token[:-3], "", "qd_", token.replace("qd_", "qx_"), "é" * 50):
        assert read_agent_token(b"secret", wrong) is None


async def test_the_token_of_a_run_is_worth_nothing_for_another_or_when_it_has_ended() -> None:
    hub = Hub(MemoryJournal(), lambda _: None, cli_secret=b"secret")
    async with hub.run():
        spec = SessionSpec(directory="/work", agents=True)
        session = (await hub.submit(cmd.CreateSession(spec=spec, by="ada"))).session
        run = (await hub.session(session)).run
        assert run is not None
        view = hub.agent_of(agent_token(b"secret", session, run))
        assert view is not None
        assert view.session == session
        assert hub.agent_of(agent_token(b"secret", session, "another")) is None
        plain = SessionSpec(directory="/work")
        other = (await hub.submit(cmd.CreateSession(spec=plain, by="ada"))).session
        of_other = (await hub.session(other)).run
        assert of_other is not None
        assert hub.agent_of(agent_token(b"secret", other, of_other)) is None


async def test_a_policy_gives_these_tools_to_its_sessions_and_no_policy_does_not(
    tmp_path: Path,
) -> None:
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "directors.toml").write_text("agents = true\n")
    hub, _ = hub_with(MemoryJournal(), policies=Policies(tmp_path))
    async with hub.run():
        await hub.policies.refresh()
        for policy, expected in (("directors", True), ("careful", False), (None, False)):
            spec = SessionSpec(directory="/work", policy=policy)
            made = await hub.submit(cmd.CreateSession(spec=spec, by="ada"))
            assert (await hub.session(made.session)).spec.agents is expected, policy


@pytest.mark.parametrize("value", ["false", '"yes"', "1"])
def test_a_policy_says_true_or_nothing(value: str) -> None:
    assert read_policy(f"agents = {value}\n", "p").flaws
