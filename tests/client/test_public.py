"""`Hub`: what a program can rely on, also while the hub is away or an answer is lost."""

from __future__ import annotations

import fcntl
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from msgspec import Raw

from quarterdeck import Allow, Deny, Options, TurnFailed
from quarterdeck.client import (
    AnswerLost,
    Hub,
    HubAsk,
    HubClient,
    HubConflict,
    HubForbidden,
    HubInvalid,
    HubNotFound,
    HubOffline,
    HubSession,
    hub_ask,
)
from quarterdeck.client.asks import hub_ask_of, to_answer
from quarterdeck.client.attempts import is_repeatable
from quarterdeck.client.calls import Call
from quarterdeck.client.local import address_in, local_address
from quarterdeck.domain.errors import Conflict, Forbidden, NotFound, RequestCancelled, UsageError
from quarterdeck.fronts.http import Role
from quarterdeck.protocol import commands as cmd
from quarterdeck.protocol import events as ev
from quarterdeck.protocol.sessions import Budget, SessionSpec
from quarterdeck.protocol.views import AskView
from support.bounds import SECONDS
from support.front import Front, front
from support.waiting import until

pytestmark = pytest.mark.anyio


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Front]:
    async with front(tmp_path) as running:
        yield running


@asynccontextmanager
async def opened(served: Front, role: Role = Role.OWNER, **more: Any) -> AsyncIterator[Hub]:
    token = served.access.make_token(f"the {role.value}", role)
    with anyio.fail_after(SECONDS):
        async with Hub(served.url, token, timeout=SECONDS, **more) as hub:
            yield hub


async def run_turn(served: Front, session: str, prompt: str, **ended: Any) -> None:
    """What the hub journals while a CLI works on a prompt."""
    run = f"run-{session}"
    members: dict[str, Any] = {"failed": False, "outcome": "success", "cost_usd": 0.5, **ended}
    await served.deck.journal.append(
        session,
        [
            ev.PromptSent(prompt=prompt, run=run),
            ev.PromptTaken(prompt=prompt),
            ev.TurnEnded(prompts=(prompt,), **members),
        ],
    )


# --- sessions ------------------------------------------------------------------------------------


async def test_a_session_is_started_from_options_and_its_first_turn_is_read(served: Front) -> None:
    async with opened(served) as hub:
        session = await hub.start(
            Options(cwd="/work", model="opus", title="Nightly"),
            "Run the tests.",
            session="mine",
            budget=Budget(session_usd=2.0),
            auto_approve=("Read",),
        )
        assert isinstance(session, HubSession)
        spec = (await session.read()).spec
        assert (spec.directory, spec.model, spec.name) == ("/work", "opus", "Nightly")
        assert (spec.budget, spec.auto_approve) == (Budget(session_usd=2.0), ("Read",))
        async with session:
            assert session.first is not None
            await run_turn(served, "mine", session.first.prompt, text="All pass.")
            assert await session.first.text() == "All pass."
        again = await hub.start(Options(cwd="/other"), session="mine")
        assert (await again.read()).spec.directory == "/work"
        assert again.first is None
        with pytest.raises(UsageError, match="on another machine the folder must be given"):
            await hub.start()
        with pytest.raises(UsageError, match="must be absolute"):
            await hub.start(Options(cwd="here"))
        with pytest.raises(UsageError, match="sdk_url: a session of the hub cannot have it"):
            await hub.start(Options(cwd="/work", sdk_url="ws://127.0.0.1:1"))
        made = await hub.create(SessionSpec(directory="/work"), prompt="x")
        assert made.first is not None


async def test_a_query_sends_its_prompt_when_it_is_read(served: Front) -> None:
    id_ = await served.deck.have_session()
    async with opened(served) as hub, hub.session(id_) as session:
        query = session.query("Count.")
        assert await session.prompts() == ()
        await query.send()
        await query.send()
        (queued,) = await session.prompts()
        assert queued.prompt == query.uuid
        await run_turn(served, id_, query.uuid, structured=Raw(b'{"files": 3}'))
        assert await query.output(dict[str, int]) == {"files": 3}
        assert (await query.finish()).cost_usd == 0.5
        with pytest.raises(TurnFailed, match="does not fit"):
            await query.output(dict[str, str])
        chosen = await session.prompt("Again.", id="p1")
        await run_turn(served, id_, "p1", failed=True, outcome="error_during_execution")
        with pytest.raises(TurnFailed, match="error_during_execution"):
            await chosen.text()
        # The same id finds the turn that is over.
        repeated = session.query("Again.", id="p1")
        assert (await repeated.finish()).failed
        plain = await session.prompt("No schema.")
        await run_turn(served, id_, plain.prompt)
        with pytest.raises(TurnFailed, match="no structured output"):
            await plain.output(dict[str, int])


async def test_controls_forks_and_names_are_those_of_an_agent(served: Front) -> None:
    id_ = await served.deck.have_session()
    async with opened(served) as hub:
        session = hub.session(id_)
        await session.set_model("opus")
        await session.set_permission_mode("plan")
        await session.set_effort("high")
        await session.rename("Other")
        assert (await session.read()).name == "Other"
        fork = await session.fork(name="copy")
        assert isinstance(fork, HubSession)
        assert (await fork.read()).parent == id_


# --- questions -----------------------------------------------------------------------------------


async def test_a_function_answers_what_is_open_and_what_comes(served: Front) -> None:
    id_ = await served.deck.have_session()
    first = await served.deck.ask(id_)
    seen: list[str] = []

    async def decide(ask: HubAsk) -> Allow | Deny:
        seen.append(ask.id)
        assert ask.tool_name == "Bash"
        if ask.id == first:
            return Deny("No.")
        raise RuntimeError("broken")

    async with opened(served) as hub, hub.session(id_, decide=decide) as session:
        await session.wait_for(lambda view: view.asks == 0)
        second = await served.deck.ask(id_)
        await session.wait_for(lambda view: view.head > 5 and view.asks == 0)
        assert seen == [first, second]
        answers = [
            shape.event async for shape in hub.audit(id_) if isinstance(shape.event, ev.AskAnswered)
        ]
        assert [answer.allowed for answer in answers] == [False, False]
        assert b"broken" in bytes(answers[1].answer)


async def test_a_function_is_cancelled_when_somebody_else_is_faster(served: Front) -> None:
    id_ = await served.deck.have_session()
    waiting, cancelled = anyio.Event(), anyio.Event()

    async def decide(ask: HubAsk) -> Allow:
        waiting.set()
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()
        raise AssertionError("unreachable")

    async with opened(served) as hub, hub.session(id_) as session:
        session.decide(decide)
        ask = await served.deck.ask(id_)
        await waiting.wait()
        await hub.answer(ask, Deny("Somebody else."))
        await cancelled.wait()
        with pytest.raises(HubConflict) as late:
            await hub.answer(ask, cmd.AllowAnswer())
        assert late.value.code == "already_answered"
        with pytest.raises(NotFound):
            await hub.answer(ask, Allow())


def asked(kind: ev.AskKind = ev.AskKind.TOOL, **request: Any) -> HubAsk:
    body = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "ls"}, **request}
    opened_ = ev.AskOpened(
        ask="s.a",
        run="r",
        request_id="q",
        ask_kind=kind,
        tool=body["tool_name"],
        title="t",
        request=Raw(msgspec.json.encode(body)),
    )
    return hub_ask_of(AskView(session="s", seq=1, at=1, opened=opened_))


def test_a_question_has_what_is_asked_and_makes_the_answers_that_fit() -> None:
    rule = {
        "type": "addRules",
        "rules": [{"toolName": "Bash"}],
        "behavior": "allow",
        "destination": "session",
    }
    ask = asked(permission_suggestions=[rule])
    assert (ask.id, ask.tool_name, ask.arguments) == ("s.a", "Bash", {"command": "ls"})
    assert json.loads(bytes(ask.input)) == {"command": "ls"}
    assert "ls" in ask.action.title
    assert (ask.plan, ask.questions) == (None, None)
    assert bytes(ask.allow({"command": "pwd"}).input) == b'{"command":"pwd"}'
    assert ask.always(rules=("Bash(ls)",)).rules == ("Bash(ls)",)
    assert ask.deny("no", interrupt=True) == cmd.DenyAnswer(message="no", stop=True)
    accepted = to_answer(ask.opened, Allow(updates=ask.suggestions))
    assert isinstance(accepted, cmd.AllowAnswer)
    assert accepted.updates == (0,)
    with pytest.raises(UsageError, match="only what the CLI suggests"):
        to_answer(asked().opened, Allow(updates=ask.suggestions))

    plan = asked(ev.AskKind.PLAN, tool_name="ExitPlanMode", input={"plan": "Do it."})
    assert plan.plan is not None
    assert plan.plan.plan == "Do it."
    assert [plan.approve().choice, plan.approve(edits=True).choice] == ["manual", "auto"]
    assert plan.approve(fresh=True).choice == "fresh"
    assert plan.revise("More.").feedback == "More."
    assert plan.reject().choice == "reject"
    for decision, choice in (
        (Allow(), "manual"),
        (Deny("x"), "revise"),
        (Deny("x", True), "reject"),
    ):
        answer = to_answer(plan.opened, decision)
        assert isinstance(answer, cmd.PlanAnswer)
        assert answer.choice == choice

    questions = asked(
        ev.AskKind.QUESTIONS,
        tool_name="AskUserQuestion",
        input={"questions": [{"question": "Which?", "header": "h", "options": []}]},
    )
    assert questions.questions is not None
    assert questions.answer({"Which?": ["a", "b"]}).answers == {"Which?": ("a", "b")}
    assert isinstance(to_answer(questions.opened, Deny("x")), cmd.SkipAnswer)
    assert questions.skip() == cmd.SkipAnswer()
    form = asked(ev.AskKind.ELICITATION, subtype="elicitation", mcp_server_name="m", message="?")
    assert (form.request, form.suggestions, bytes(form.input)) == (None, (), b"{}")


# --- following everything ------------------------------------------------------------------------


async def test_all_sessions_are_followed_from_a_position_also_those_that_come(
    served: Front,
) -> None:
    one = await served.deck.have_session("one")
    async with opened(served) as hub, aclosing(hub.follow(0)) as events:
        found = [await anext(events)]
        two = await served.deck.have_session("two")
        while found[-1].session != two:
            found.append(await anext(events))
        assert {shape.session for shape in found} == {one, two}
        middle = found[0].position
        async with aclosing(hub.follow(middle)) as rest:
            assert (await anext(rest)).position == middle + 1
        async with aclosing(hub.follow(10**6)) as beyond:
            with pytest.raises(Conflict, match="another journal"):
                await anext(beyond)
    with pytest.raises(UsageError, match="not open"):
        await anext(hub.follow())


async def test_who_loses_access_is_told_so_also_by_a_follower(served: Front) -> None:
    async with opened(served) as hub, aclosing(hub.follow()) as events:
        for grant in served.access.grants():
            served.access.revoke(grant.id)
        with pytest.raises(HubForbidden):
            await anext(events)


# --- a hub that is away --------------------------------------------------------------------------


@pytest.fixture
def losing(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Loses answers, after the hub has executed what was asked: `{path's end: how often}`."""
    lost: dict[str, int] = {}
    plain = HubClient.call

    async def call(self: HubClient, wanted: Call[Any]) -> Any:
        try:
            return await plain(self, wanted)
        finally:
            for end in lost:
                if lost[end] and wanted.path.partition("?")[0].endswith(end):
                    lost[end] -= 1
                    raise AnswerLost("the connection broke")

    monkeypatch.setattr(HubClient, "call", call)
    return lost


async def test_a_command_whose_answer_was_lost_is_executed_once(
    served: Front, losing: dict[str, int]
) -> None:
    async with opened(served) as hub:
        losing["/sessions"] = 2
        session = await hub.start(Options(cwd="/work"), "go", session="one")
        assert [shape.session async for shape in hub.sessions()] == ["one"]
        losing["/prompts"] = 1
        query = session.query("more")
        async with session:
            await query.send()
            assert [each.prompt for each in await session.prompts()][-1] == query.prompt
            assert len(await session.prompts()) == 1
        losing["/fork"] = 1
        await session.fork()
        assert len([shape async for shape in hub.sessions()]) == 2
        ask = await served.deck.ask("one")
        losing["/answer"] = 1
        outcome = await hub.answer(ask, cmd.AllowAnswer())
        assert outcome.repeated
        await session.stop()
        losing["/resume"] = 1
        assert (await session.resume()).session == "one"
        await session.stop()
        assert (await session.move("box", "/work")).session == "one"
        await session.stop()
        losing["/one"] = 1
        assert (await session.delete()).session == "one"


async def test_an_answer_of_somebody_else_is_not_taken_for_ones_own(
    served: Front, losing: dict[str, int]
) -> None:
    id_ = await served.deck.have_session()
    ask = await served.deck.ask(id_)
    async with opened(served) as hub, opened(served, Role.OPERATOR) as other:
        await other.answer(ask, Deny("no"))
        losing["/answer"] = 1
        with pytest.raises(HubConflict):
            await hub.answer(ask, cmd.AllowAnswer())


async def test_what_must_not_happen_twice_is_not_sent_twice(
    served: Front, losing: dict[str, int]
) -> None:
    id_ = await served.deck.have_session()
    async with opened(served) as hub:
        losing["/interrupt"] = 1
        with pytest.raises(AnswerLost):
            await hub.session(id_).interrupt()
        await hub.session(id_).interrupt()


def test_which_commands_can_be_sent_again() -> None:
    def control(**request: str) -> cmd.Control:
        return cmd.Control(session="s", request=Raw(msgspec.json.encode(request)))

    spec = SessionSpec(directory="/")
    for command, again in (
        (cmd.CreateSession(spec=spec), False),
        (cmd.CreateSession(spec=spec, session="s"), True),
        (cmd.ForkSession(session="s"), False),
        (cmd.ForkSession(session="s", copy="c"), True),
        (control(subtype="set_model"), True),
        (control(subtype="side_question"), False),
        (control(), False),
        (cmd.Control(session="s", request=Raw(b"[")), False),
        (cmd.Interrupt(session="s"), False),
        (cmd.RewindSession(session="s", prompt="p", files=True, dry_run=False), True),
        (cmd.RewindSession(session="s", prompt="p", conversation=True, dry_run=False), False),
        (cmd.StopSession(session="s"), True),
    ):
        assert is_repeatable(command) is again, command


async def test_a_hub_that_stays_away_is_told_so_in_the_end(tmp_path: Path) -> None:
    async with front(tmp_path) as served, opened(served, away_seconds=0.3) as hub:
        assert (await hub.health()).ok
        hub._find = lambda: msgspec.structs.replace(hub.where, address="http://127.0.0.1:9")
        await hub.locate()
        with pytest.raises(HubOffline, match="no hub answers"):
            await hub.session("x").interrupt()


# --- errors --------------------------------------------------------------------------------------


async def test_errors_are_of_the_kind_that_the_library_has(served: Front) -> None:
    async with opened(served) as hub, opened(served, Role.VIEWER) as viewer:
        with pytest.raises(HubNotFound) as missing:
            await hub.session("nobody").read()
        assert isinstance(missing.value, NotFound)
        with pytest.raises(HubInvalid) as invalid:
            await hub.submit(cmd.SendPrompt(session="x", prompt="", content=Raw(b"7")))
        assert isinstance(invalid.value, UsageError)
        with pytest.raises(HubForbidden) as forbidden:
            await viewer.start(Options(cwd="/work"))
        assert isinstance(forbidden.value, Forbidden)
        id_ = await served.deck.have_session()
        with pytest.raises(HubConflict) as conflict:
            await hub.session(id_).delete()
        assert isinstance(conflict.value, Conflict)
        assert conflict.value.code == "running"
        async with hub.session(id_) as session:
            with pytest.raises(UsageError, match="has no event 99 yet"):
                await anext(session.events(99))
            query = await session.prompt("x")
            await session.cancel_prompt(query.prompt)
            with pytest.raises(RequestCancelled):
                await query.finish()


# --- which hub -----------------------------------------------------------------------------------


@contextmanager
def local_hub(home: Path, url: str, token: str) -> Iterator[None]:
    """A data folder as that of a hub that serves."""
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "hub.json").write_text(json.dumps({"pid": 1, "address": url, "version": "0"}))
    (home / "cli.token").write_text(f"{token}\n")
    with (home / "hub.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


async def test_the_local_hub_is_found_by_its_data_folder(
    served: Front, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "data"
    monkeypatch.setenv("QUARTERDECK_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(HubOffline, match="quarterdeck serve"):
        async with Hub():
            pass
    token = served.access.make_token("me", Role.OWNER)
    with local_hub(home, served.url, token), anyio.fail_after(SECONDS):
        async with Hub() as hub:
            assert (await hub.whoami()).name == "me"
            session = await hub.start()
            assert (await session.read()).spec.directory == str(tmp_path)
            relative = await hub.start(Options(cwd="sub"))
            assert (await relative.read()).spec.directory == str(tmp_path / "sub")
        (home / "cli.token").write_text("\n")
        with pytest.raises(UsageError, match="no token"):
            local_address()
        (home / "cli.token").unlink()
        with pytest.raises(UsageError, match="cannot be read"):
            local_address()
        monkeypatch.setenv("QUARTERDECK_RUN_1", "1")
        with pytest.raises(Forbidden):
            local_address()


async def test_a_hub_is_named_by_its_address_or_by_the_environment(
    served: Front, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    file.write_text(served.access.make_token("me", Role.OWNER))
    async with Hub(served.url, token_file=file) as hub:
        assert (await hub.whoami()).name == "me"
        # Who renews a token replaces the file.
        file.write_text(served.access.make_token("me too", Role.OWNER))
        await hub.locate()
        assert (await hub.whoami()).name == "me too"
    monkeypatch.setenv("QUARTERDECK_URL", served.url)
    monkeypatch.setenv("QUARTERDECK_TOKEN_FILE", str(file))
    async with Hub() as hub:
        assert (await hub.whoami()).name == "me too"
    assert address_in({}) is None
    with pytest.raises(UsageError, match="neither"):
        address_in({"QUARTERDECK_URL": served.url})
    half: tuple[dict[str, Any], ...] = ({"token": "t"}, {"ca_file": "x"})
    for given in half:
        with pytest.raises(UsageError, match="for an address"):
            Hub(**given)
    wrong: tuple[dict[str, Any], ...] = ({}, {"token": "t", "token_file": file})
    for both in wrong:
        with pytest.raises(UsageError, match="either"):
            Hub(served.url, **both)


async def test_a_script_asks_without_an_event_loop(
    served: Front, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    file.write_text(served.access.make_token("script", Role.OWNER))
    with pytest.raises(UsageError, match="an event loop is running"):
        hub_ask("x")

    made: list[cmd.CreateSession] = []
    plain = served.deck._create

    async def create(command: cmd.CreateSession, parent: str | None = None) -> cmd.Outcome:
        made.append(command)
        return await plain(command, parent)

    monkeypatch.setattr(served.deck, "_create", create)

    async def work() -> None:
        await until(lambda: bool(made))
        (command,) = made
        assert command.session is not None
        assert command.prompt_id is not None
        await run_turn(served, command.session, command.prompt_id, text="Four.")

    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work)
            reply = await anyio.to_thread.run_sync(
                lambda: hub_ask(
                    "2+2?", SessionSpec(directory="/work"), address=served.url, token_file=file
                )
            )
    assert (reply.text, reply.cost_usd) == ("Four.", 0.5)
    assert (await served.deck.session(reply.session)).run is None
