"""The agent over a link in memory: what goes where, and that nothing waits for ever."""

from __future__ import annotations

import anyio
import pytest

from quarterdeck import Agent, Allow, Deny, Options, Prompt, Query
from quarterdeck.agent.asks import AnyAsk, PlanAsk, QuestionsAsk, ToolAsk
from quarterdeck.domain.errors import (
    LinkClosed,
    RequestRefused,
    RequestTimeout,
    TurnFailed,
    UnsupportedError,
    UsageError,
)
from quarterdeck.links.memory import memory_pair
from quarterdeck.wire.answers import ElicitationAction, ElicitationAnswer
from quarterdeck.wire.commands import GetBinaryVersion
from quarterdeck.wire.messages import Assistant, Result
from quarterdeck.wire.outbound import image_block, text_block
from quarterdeck.wire.permissions import PermissionMode
from quarterdeck.wire.states import State
from support import lines
from support.bounds import SECONDS
from support.far_end import FarEnd, driven

pytestmark = pytest.mark.anyio


async def test_a_query_gives_the_messages_of_its_turn_and_then_its_result() -> None:
    async with driven() as (agent, far), anyio.create_task_group() as tasks:

        async def cli() -> None:
            await far.take_prompt()
            await far.say(lines.assistant("hi", "a1"), lines.result("r1", cost=0.5))

        tasks.start_soon(cli)
        query = agent.query("hello")
        with anyio.fail_after(SECONDS):
            kinds = [type(message).__name__ async for message in query]
        assert kinds == ["Init", "User", "Assistant", "Result"]
        assert query.turn is not None
        assert query.turn.cost_usd == 0.5
        assert query.result is not None
        assert agent.session_id == lines.SESSION


async def test_text_raises_what_went_wrong() -> None:
    async with driven() as (agent, far), anyio.create_task_group() as tasks:

        async def cli() -> None:
            await far.take_prompt()
            await far.say(lines.result("r1", is_error=True, result="credit balance is too low"))

        tasks.start_soon(cli)
        with anyio.fail_after(SECONDS), pytest.raises(TurnFailed, match="credit balance") as failed:
            await agent.query("hello").text()
        assert failed.value.subtype == "success"


async def test_a_queued_prompt_gets_only_the_messages_of_its_own_turn() -> None:
    async with driven() as (agent, far):
        first = await agent.prompt("one")
        one = await far.take_prompt()
        second = await agent.prompt("two")
        two = (await far.read())["uuid"]
        await far.say(lines.assistant("first", "a1"), lines.result("r1"))
        await far.say(lines.init(uuid="i2"), lines.delta("sec", "d2"), lines.echo(two))
        await far.say(lines.assistant("second", "a2"), lines.result("r2"))
        with anyio.fail_after(SECONDS):
            texts = [m.text for m in [m async for m in first] if isinstance(m, Assistant)]
            kinds = [type(m).__name__ async for m in second]
        assert texts == ["first"]
        # The echo comes late: what its turn said before it belongs to it all the same.
        assert kinds == ["Init", "StreamEvent", "User", "Assistant", "Result"]
        assert (one, two) == (first.uuid, second.uuid)


async def test_prompts_that_the_cli_joins_end_together() -> None:
    async with driven() as (agent, far):
        first = await agent.prompt("one")
        await far.take_prompt()
        others = [await agent.prompt(text) for text in ("two", "three")]
        uuids = [(await far.read())["uuid"] for _ in others]
        await far.say(lines.result("r1"), lines.init(uuid="i2"), *map(lines.echo, uuids))
        await far.say(lines.assistant("both", "a2"), lines.result("r2"))
        with anyio.fail_after(SECONDS):
            await first.finish()
            turns = [await query.finish() for query in others]
        assert turns[0] is turns[1]
        assert turns[0].prompts == tuple(uuids)


async def test_messages_gives_everything_also_what_no_prompt_asked_for() -> None:
    async with driven(decide=lambda ask: Deny("no")) as (agent, far):
        seen: list[str] = []

        async def listen(started: anyio.Event) -> None:
            messages = agent.messages()
            started.set()
            async for message in messages:
                seen.append(type(message).__name__)
                if isinstance(message, Result):
                    return

        async with anyio.create_task_group() as tasks:
            started = anyio.Event()
            tasks.start_soon(listen, started)
            await started.wait()
            await anyio.wait_all_tasks_blocked()
            await far.say(lines.init(), lines.asks_permission("q"), lines.result("r"))
        assert seen == ["Init", "ControlRequest", "Result"]


async def test_without_a_callback_every_permission_is_denied() -> None:
    async with driven() as (_, far):
        await far.say(lines.asks_permission("q1"))
        answer = (await far.read())["response"]
        assert answer["request_id"] == "q1"
        assert answer["response"]["behavior"] == "deny"
        assert "callback" in answer["response"]["message"]


async def test_an_allow_goes_back_with_the_whole_input() -> None:
    async with driven(decide=lambda ask: Allow()) as (_, far):
        await far.say(lines.asks_permission("q1", command="ls", timeout=3))
        answer = (await far.read())["response"]["response"]
        assert answer == {"behavior": "allow", "updatedInput": {"command": "ls", "timeout": 3}}


async def test_an_allow_may_change_the_input() -> None:
    async def decide(ask: AnyAsk) -> Allow:
        await anyio.lowlevel.checkpoint()
        return Allow(input={"command": "ls -l"})

    async with driven(decide=decide) as (_, far):
        await far.say(lines.asks_permission("q1"))
        answer = (await far.read())["response"]["response"]
        assert answer["updatedInput"] == {"command": "ls -l"}


async def test_a_callback_that_fails_denies() -> None:
    def decide(ask: AnyAsk) -> Allow:
        raise ZeroDivisionError("oops")

    async with driven(decide=decide) as (agent, far):
        await far.say(lines.asks_permission("q1"))
        answer = (await far.read())["response"]["response"]
        assert answer["behavior"] == "deny"
        assert "oops" in answer["message"]
        assert agent.state is State.READY


async def test_a_callback_that_gives_nonsense_denies() -> None:
    async with driven(decide=lambda ask: "yes") as (_, far):
        await far.say(lines.asks_permission("q1"))
        assert (await far.read())["response"]["response"]["behavior"] == "deny"


async def test_a_decision_to_bypass_permissions_is_refused_unless_the_start_allowed_it() -> None:
    def decide(ask: AnyAsk) -> Allow:
        assert isinstance(ask, PlanAsk)
        return ask.approve(PermissionMode.BYPASS_PERMISSIONS)

    async with driven(decide=decide) as (_, far):
        await far.say(lines.asks_permission("q1", tool="ExitPlanMode", plan="do it"))
        assert (await far.read())["response"]["response"]["behavior"] == "deny"


async def test_questions_and_plans_come_as_what_they_are() -> None:
    kinds: list[type] = []

    def decide(ask: AnyAsk) -> Allow | Deny:
        kinds.append(type(ask))
        match ask:
            case QuestionsAsk():
                return ask.answer({"Which color?": "Blue"})
            case PlanAsk():
                return ask.revise("smaller steps")
            case _:
                return ask.deny()

    question = {"question": "Which color?", "header": "Color", "options": [{"label": "Blue"}]}
    async with driven(decide=decide) as (_, far):
        await far.say(lines.asks_permission("q1", tool="AskUserQuestion", questions=[question]))
        answer = (await far.read())["response"]["response"]
        assert answer["updatedInput"]["answers"] == {"Which color?": "Blue"}
        assert answer["updatedInput"]["questions"] == [question]
        await far.say(lines.asks_permission("q2", tool="ExitPlanMode", plan="big steps"))
        answer = (await far.read())["response"]["response"]
        assert answer == {"behavior": "deny", "message": "smaller steps"}
        await far.say(lines.asks_permission("q3"))
        await far.read()
    assert kinds == [QuestionsAsk, PlanAsk, ToolAsk]


async def test_a_withdrawn_question_stops_whoever_thinks_about_it() -> None:
    asked, stopped = anyio.Event(), anyio.Event()

    async def decide(ask: AnyAsk) -> Allow:
        asked.set()
        try:
            await anyio.sleep_forever()
        finally:
            stopped.set()
        return Allow()

    async with driven(decide=decide) as (agent, far):
        await far.say(lines.asks_permission("q1"))
        with anyio.fail_after(SECONDS):
            await asked.wait()
            assert [ask.request_id for ask in agent.asks] == ["q1"]
            await far.say(lines.cancels("q1"))
            await stopped.wait()
        assert agent.asks == ()


async def test_an_elicitation_that_nobody_sees_is_cancelled_and_not_declined() -> None:
    async with driven() as (_, far):
        await far.say(lines.requests("q", subtype="elicitation", mcp_server_name="s", message="?"))
        assert (await far.read())["response"]["response"] == {"action": "cancel"}


async def test_an_elicitation_can_be_answered() -> None:
    def elicit(request: object) -> ElicitationAnswer:
        return ElicitationAnswer(action=ElicitationAction.DECLINE)

    async with driven(elicit=elicit) as (_, far):
        await far.say(lines.requests("q", subtype="elicitation", mcp_server_name="s", message="?"))
        assert (await far.read())["response"]["response"] == {"action": "decline"}


async def test_a_dialog_that_we_do_not_have_gets_an_error() -> None:
    async with driven() as (_, far):
        request = {"subtype": "request_user_dialog", "dialog_kind": "x", "payload": {}}
        await far.say(lines.requests("q", **request))
        assert (await far.read())["response"]["subtype"] == "error"


async def test_requests_are_answered_while_others_wait() -> None:
    async with driven() as (agent, far), anyio.create_task_group() as tasks:
        answers: list[str] = []

        async def ask(name: str) -> None:
            await agent.set_model(name)
            answers.append(name)

        for name in ("a", "b"):
            tasks.start_soon(ask, name)
        first, second = await far.read_request("set_model"), await far.read_request("set_model")
        await far.say(lines.success_answer(second["request_id"]))
        await anyio.wait_all_tasks_blocked()
        await far.say(lines.success_answer(first["request_id"]))
        await anyio.wait_all_tasks_blocked()
        assert answers == [second["request"]["model"], first["request"]["model"]]


async def test_a_refusal_says_what_the_cli_said() -> None:
    async with driven() as (agent, far), anyio.create_task_group() as tasks:

        async def cli() -> None:
            line = await far.read_request("mcp_toggle")
            await far.say(lines.error_answer(line["request_id"], "Server not found: x"))

        tasks.start_soon(cli)
        with pytest.raises(RequestRefused, match="Server not found: x"):
            await agent.mcp_toggle("x", True)


async def test_a_cli_that_does_not_answer_is_not_waited_for_for_ever() -> None:
    async with driven() as (agent, far):
        with pytest.raises(RequestTimeout, match=r"0\.05 s"):
            await agent.request(GetBinaryVersion(), timeout=0.05)
        line = await far.read_request("get_binary_version")
        assert (await far.read())["type"] == "control_cancel_request"
        # Late, and ignored.
        await far.say(lines.success_answer(line["request_id"]))


async def test_what_the_version_lacks_is_refused_before_it_is_sent() -> None:
    async with driven(version="2.1.62") as (agent, _):
        with pytest.raises(UnsupportedError, match=r"get_context_usage.*2\.1\.62"):
            await agent.context_usage()


async def test_the_death_of_the_cli_ends_every_wait_and_says_why() -> None:
    async with driven() as (agent, far):
        query = await agent.prompt("one")
        await far.take_prompt()
        failures: list[Exception] = []

        async def ask() -> None:
            try:
                await agent.set_model("a")
            except LinkClosed as error:
                failures.append(error)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await far.read_request("set_model")
            far.peer.close("It fell over.", exit_code=1)
            with anyio.fail_after(SECONDS), pytest.raises(LinkClosed, match="fell over"):
                async for _ in query:
                    pass
        assert [str(failure) for failure in failures] == ["It fell over."]
        assert agent.state is State.CLOSED
        with pytest.raises(LinkClosed, match="fell over"):
            await agent.prompt("two")


async def test_a_start_that_fails_says_what_the_cli_said_last() -> None:
    link, peer = memory_pair()
    far = FarEnd(peer)
    failed = lines.result("r", subtype="error_during_execution", errors=["No conversation found"])

    async def cli() -> None:
        await far.read()
        await far.say(failed)
        peer.close("It exited.", exit_code=1)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cli)
        with anyio.fail_after(SECONDS), pytest.raises(LinkClosed, match="No conversation found"):
            async with Agent(link=link):
                pass


async def test_a_cli_that_never_answers_initialize_is_given_up() -> None:
    link, _ = memory_pair()
    with pytest.raises(RequestTimeout, match="initialize"):
        async with Agent(link=link, start_timeout=0.05):
            pass


async def test_an_agent_is_used_with_async_with_and_once() -> None:
    link, _ = memory_pair()
    idle = Agent(link=link)
    with pytest.raises(UsageError, match="async with"):
        await idle.prompt("hi")
    async with driven() as (agent, _):
        with pytest.raises(UsageError, match="once"):
            await agent.__aenter__()


async def test_an_exception_in_the_block_comes_out_as_it_is() -> None:
    link, peer = memory_pair()
    far = FarEnd(peer)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(far.serve_leave)
        with pytest.raises(ZeroDivisionError):
            async with Agent(link=link):
                raise ZeroDivisionError


async def test_leaving_in_mid_turn_interrupts_and_says_goodbye() -> None:
    link, peer = memory_pair()
    far = FarEnd(peer)
    asked: list[str] = []

    async def cli() -> None:
        await far.greet(claude_code_version="2.1.325")
        await far.take_prompt()
        while True:
            line = await far.read()
            asked.append(line["request"]["subtype"])
            await far.say(lines.success_answer(line["request_id"]))
            if asked[-1] == "end_session":
                peer.close()
                return

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cli)
        async with Agent(link=link) as agent:
            query = await agent.prompt("work")
            async for _ in query:
                break
    assert asked == ["interrupt", "end_session"]


async def test_leaving_ends_what_other_tasks_wait_for() -> None:
    ended: list[str] = []

    async def listen(agent: Agent) -> None:
        async for _ in agent.messages():
            pass
        ended.append("messages")

    async def read(query: Query) -> None:
        with pytest.raises(LinkClosed, match="was closed"):
            await query.finish()
        ended.append("query")

    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks, driven() as (agent, far):
            tasks.start_soon(listen, agent)
            tasks.start_soon(read, await agent.prompt("one"))
            await far.take_prompt()
            await anyio.wait_all_tasks_blocked()
    assert sorted(ended) == ["messages", "query"]
    assert agent.state is State.CLOSED
    with pytest.raises(LinkClosed, match="was closed"):
        await agent.prompt("two")


async def test_a_cancelled_prompt_ends_its_query() -> None:
    async with driven() as (agent, far), anyio.create_task_group() as tasks:
        await agent.prompt("one")
        await far.take_prompt()
        queued = await agent.prompt("two")
        await far.read()

        async def cli() -> None:
            line = await far.read_request("cancel_async_message")
            assert line["request"]["message_uuid"] == queued.uuid
            await far.say(lines.success_answer(line["request_id"], {"cancelled": True}))

        tasks.start_soon(cli)
        assert await agent.cancel_prompt(queued.uuid)
        with anyio.fail_after(SECONDS), pytest.raises(TurnFailed, match="cancelled"):
            await queued.finish()
        assert queued.cancelled
        await far.say(lines.result("r"))


async def test_a_reconnect_asks_for_what_is_open_and_the_agent_goes_on() -> None:
    asked: list[str] = []

    def decide(ask: AnyAsk) -> Deny:
        asked.append(ask.request_id)
        return ask.deny("no")

    async with driven(resumable=True, version="2.1.120", decide=decide) as (agent, far):
        query = await agent.prompt("one")
        await far.take_prompt()
        far.peer.drop()
        far.peer.resume("a uuid that was never seen")
        greeting = await far.read_request("initialize")
        await far.say(
            lines.error_answer(
                greeting["request_id"],
                "Already initialized",
                pending_permission_requests=[
                    {
                        "type": "control_request",
                        "request_id": "q9",
                        "request": {"subtype": "can_use_tool", "tool_name": "Bash", "input": {}},
                    }
                ],
            )
        )
        assert (await far.read())["response"]["request_id"] == "q9"
        await far.say(lines.result("r"))
        with anyio.fail_after(SECONDS):
            await query.finish()
    assert asked == ["q9"]


async def test_images_go_as_blocks() -> None:
    async with driven() as (agent, far):
        await agent.prompt(
            Prompt.of([text_block("what is this?"), image_block(b"\x89PNG", "image/png")])
        )
        content = (await far.read())["message"]["content"]
        assert [block["type"] for block in content] == ["text", "image"]


def test_options_refuse_what_cannot_be() -> None:
    with pytest.raises(UsageError, match="output_type"):
        Options(output_type=int, json_schema="{}")
