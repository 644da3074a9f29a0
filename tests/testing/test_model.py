"""The scripted model, as an HTTP client sees it and as the real CLIs see it."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import pytest

from quarterdeck.testing.model import ScriptedModel
from quarterdeck.testing.request import ModelRequest, Purpose
from quarterdeck.testing.script import (
    ApiError,
    CutConnection,
    Gate,
    MidStreamError,
    ResponseHeaders,
    Said,
    Stop,
    Text,
    Thinking,
    ToolUse,
    play,
    reply,
)
from support.bounds import SECONDS
from support.clis import VERSIONS, conversation, real_cli
from support.processes import Processes

Json = dict[str, object]

INTERRUPT = {"subtype": "interrupt"}


class Answer:
    """What came back: the status, the headers, the events of a stream, or the body."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes, *, cut: bool) -> None:
        self.status = status
        self.headers = headers
        self.body = body
        self.cut = cut

    @property
    def events(self) -> list[Json]:
        rows = self.body.decode().split("\n\n")
        return [json.loads(row.partition("data: ")[2]) for row in rows if row]

    @property
    def text(self) -> str:
        deltas = [e["delta"] for e in self.events if e["type"] == "content_block_delta"]
        return "".join(d["text"] for d in deltas if isinstance(d, dict) and "text" in d)

    def json(self) -> Json:
        value: Json = json.loads(self.body)
        return value


def _post(url: str, body: bytes, path: str, method: str) -> Answer:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=SECONDS)
    try:
        connection.request(method, path, body)
        response = connection.getresponse()
        cut = False
        try:
            data = response.read()
        except http.client.IncompleteRead as broken:
            data, cut = broken.partial, True
        return Answer(response.status, dict(response.getheaders()), data, cut=cut)
    finally:
        connection.close()


async def post(
    model: ScriptedModel, body: Json | bytes, path: str = "/v1/messages", method: str = "POST"
) -> Answer:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return await anyio.to_thread.run_sync(_post, model.url, data, path, method)


def user(text: str) -> Json:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def assistant(text: str) -> Json:
    return {"role": "assistant", "content": [{"type": "text", "text": text}]}


def ask(*messages: Json | str, stream: bool = True, **more: object) -> Json:
    rows = [user(message) if isinstance(message, str) else message for message in messages]
    return {"model": "m", "stream": stream, "max_tokens": 100, "messages": rows, **more}


# --- what is said -----------------------------------------------------------------------------


async def test_a_stream_has_the_events_of_the_api_in_their_order(model: ScriptedModel) -> None:
    answer = await post(model, ask("hello"))

    assert [event["type"] for event in answer.events] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert answer.text == "echo: hello"


async def test_thinking_and_parallel_tool_calls_are_blocks_of_one_message(
    model: ScriptedModel,
) -> None:
    calls = ToolUse("Bash", {"command": "ls"}), ToolUse("Read", {"file_path": "ü"}, id="toolu_x")
    model.enqueue(reply(Thinking("hm", signature="c2ln"), "text", *calls))

    events = (await post(model, ask("go"))).events

    starts = [e["content_block"] for e in events if e["type"] == "content_block_start"]
    assert [(b["type"], b.get("id")) for b in starts if isinstance(b, dict)] == [
        ("thinking", None),
        ("text", None),
        ("tool_use", "toolu_0001"),
        ("tool_use", "toolu_x"),
    ]
    deltas = [e["delta"] for e in events if e.get("index") == 3 and "delta" in e]
    pieces = [d["partial_json"] for d in deltas if isinstance(d, dict)]
    assert len(pieces) == 2
    assert json.loads("".join(pieces)) == {"file_path": "ü"}
    assert {"type": "signature_delta", "signature": "c2ln"} in [e.get("delta") for e in events]
    assert events[-2]["delta"] == {"stop_reason": "tool_use", "stop_sequence": None}


async def test_without_stream_the_answer_is_one_json_body(model: ScriptedModel) -> None:
    model.enqueue(reply(Text("ab", times=2), MidStreamError(), Stop("max_tokens")))

    answer = (await post(model, ask("hello", stream=False))).json()

    assert answer["content"] == [{"type": "text", "text": "abab"}]
    assert answer["stop_reason"] == "max_tokens"


async def test_a_text_of_a_megabyte_and_a_half_arrives_whole(model: ScriptedModel) -> None:
    model.enqueue("x" * 1_500_000, Text("y" * 1000, times=1500))

    assert (await post(model, ask("one"))).text == "x" * 1_500_000
    assert (await post(model, ask("two"))).text == "y" * 1_500_000


# --- faults -----------------------------------------------------------------------------------


async def test_an_error_comes_with_its_status_headers_and_words(model: ScriptedModel) -> None:
    model.enqueue(ApiError(429, "slow down", headers={"retry-after": "7"}))

    answer = await post(model, ask("hello"))

    assert (answer.status, answer.headers["retry-after"]) == (429, "7")
    assert answer.json()["error"] == {"type": "rate_limit_error", "message": "slow down"}


@pytest.mark.parametrize("carried_by_the_prompt", [True, False])
async def test_an_error_lasts_as_often_as_it_says_and_then_the_rest_is_said(
    model: ScriptedModel, carried_by_the_prompt: bool
) -> None:
    due = reply(ApiError(529, times=2), "recovered")
    if not carried_by_the_prompt:
        model.enqueue(due)
    prompt = ask(play(due) if carried_by_the_prompt else "go")

    answers = [await post(model, prompt) for _ in range(3)]

    assert [answer.status for answer in answers] == [529, 529, 200]
    assert answers[-1].text == "recovered"


async def test_an_error_event_ends_a_stream_after_what_was_said(model: ScriptedModel) -> None:
    model.enqueue(reply("before", MidStreamError("overloaded_error", "Overloaded"), "never"))

    answer = await post(model, ask("hello"))

    assert answer.text == "before"
    assert answer.events[-1]["error"] == {"type": "overloaded_error", "message": "Overloaded"}


async def test_a_cut_connection_leaves_the_body_unfinished(model: ScriptedModel) -> None:
    model.enqueue(reply("before", CutConnection()))

    answer = await post(model, ask("hello"))

    assert answer.cut
    assert answer.text == "before"


async def test_headers_of_the_response_can_be_set(model: ScriptedModel) -> None:
    model.enqueue(reply(ResponseHeaders({"x-limit": "1"}), "text"))

    answer = await post(model, ask("hello"))

    assert (answer.headers["x-limit"], answer.text) == ("1", "text")


async def test_other_paths_methods_and_broken_bodies_are_refused(model: ScriptedModel) -> None:
    assert (await post(model, ask("x"), "/v1/models")).status == 404
    assert (await post(model, b"", "/v1/messages", "GET")).status == 404
    assert (await post(model, b"not json")).status == 400
    assert (await post(model, {"messages": [{"content": "no role"}]})).status == 400
    refused = await post(model, ask("PLAY [[{"))
    assert (refused.status, "not JSON" in refused.body.decode()) == (400, True)


# --- which reply --------------------------------------------------------------------------------


async def test_queued_replies_come_in_order_and_then_the_echo(model: ScriptedModel) -> None:
    model.enqueue("first", "second")

    assert [(await post(model, ask("hi"))).text for _ in range(3)] == [
        "first",
        "second",
        "echo: hi",
    ]


async def test_a_queue_can_belong_to_the_conversations_that_open_with_a_text(
    model: ScriptedModel,
) -> None:
    model.enqueue("for all")
    model.enqueue("for the sub", when="count the files")

    assert (await post(model, ask("please count the files"))).text == "for the sub"
    assert (await post(model, ask("hello", assistant("x"), "count the files"))).text == "for all"


async def test_a_prompt_that_carries_a_script_is_answered_by_it_request_by_request(
    model: ScriptedModel,
) -> None:
    script = play("one", "two", "three")
    result: Json = {"type": "tool_result", "tool_use_id": "t", "content": "ran"}
    reminder = {"type": "text", "text": "<system-reminder>x"}
    result_message: Json = {"role": "user", "content": [result, reminder]}
    told = "Output token limit hit. Resume directly"

    first = await post(model, ask("before", assistant("x"), script))
    second = await post(model, ask(script, assistant("one"), result_message))
    halves = [assistant("two"), assistant("two again")]
    third = await post(model, ask(script, assistant("one"), result_message, *halves, told))
    said = assistant("a")
    spent = await post(model, ask(script, said, told, said, told, said, told))
    newer = await post(model, ask(script, assistant("one"), "something else"))

    assert [a.text for a in (first, second, third)] == ["one", "two", "three"]
    assert spent.text == f"echo: {told}"
    assert newer.text == "echo: something else"


async def test_a_callable_may_choose_and_what_it_leaves_goes_on_as_usual() -> None:
    def respond(request: ModelRequest) -> Said | None:
        return f"model {request.model}" if "which" in request.last_text else None

    async with ScriptedModel("queued", respond=respond) as model:
        assert (await post(model, ask("which?"))).text == "model m"
        assert (await post(model, ask("hello"))).text == "queued"


async def test_what_a_callable_raises_is_raised_at_the_end_of_the_block() -> None:
    def respond(request: ModelRequest) -> Said:
        raise LookupError("not what the test expected")

    with pytest.raises(LookupError, match="expected"):
        async with ScriptedModel(respond=respond) as model:
            assert (await post(model, ask("hello"))).status == 400


async def test_an_error_in_the_block_is_not_wrapped() -> None:
    with pytest.raises(LookupError, match="own"):
        async with ScriptedModel():
            raise LookupError("own")


@pytest.mark.parametrize(
    ("purpose", "request_"),
    [
        (Purpose.TITLE, ask("fix it", system="Generate a concise, sentence-case title")),
        (Purpose.TITLE, ask("<session>", system=[{"text": "You are naming a coding session"}])),
        (Purpose.PATHS, ask("Command: ls", system="… <filepaths> …")),
        (Purpose.PREFIX, ask("Command: ls", system="Your task is to process Bash commands that")),
        (Purpose.TOPIC, ask("hello", system="… isNewTopic …")),
        (Purpose.QUOTA, ask("quota") | {"max_tokens": 1}),
        (Purpose.SUMMARY, ask("x", "Your task is to create a detailed summary of it")),
        (Purpose.PAGE, ask("Web page content:\n---")),
        (Purpose.SIDE_QUESTION, ask("<system-reminder>This is a side question from the user.")),
    ],
)
async def test_what_the_cli_asks_for_itself_uses_up_no_reply(
    model: ScriptedModel, purpose: Purpose, request_: Json
) -> None:
    model.enqueue("for the turn")

    assert (await post(model, request_)).status == 200
    assert (await post(model, ask("hello"))).text == "for the turn"
    assert [request.purpose for request in model.requests] == [purpose, Purpose.TURN]
    assert [request.number for request in model.turns] == [1]


async def test_tokens_are_counted_without_using_up_a_reply(model: ScriptedModel) -> None:
    model.enqueue("for the turn")

    count = (await post(model, ask("hello"), "/v1/messages/count_tokens")).json()

    assert isinstance(count["input_tokens"], int)
    assert count["input_tokens"] > 0
    assert (await post(model, ask("hello"))).text == "for the turn"


# --- what is seen -------------------------------------------------------------------------------


@pytest.mark.parametrize("user_id", ["user_x_account__session_S-1", '{"session_id":"S-1"}'])
async def test_a_request_is_kept_with_all_that_the_cli_said(
    model: ScriptedModel, user_id: str
) -> None:
    body = ask(
        "hello",
        system=[{"type": "text", "text": "be brief"}],
        tools=[{"name": "Bash", "input_schema": {}}],
        thinking={"type": "enabled", "budget_tokens": 7},
        metadata={"user_id": user_id},
    )

    await post(model, body, "/v1/messages?beta=true")

    (seen,) = model.requests
    assert (seen.model, seen.system, seen.tools) == ("m", "be brief", ("Bash",))
    assert seen.thinking is not None
    assert (seen.thinking.budget_tokens, seen.session_id) == (7, "S-1")
    assert seen.first_prompt == seen.last_text == "hello"
    assert json.loads(seen.body) == body
    assert seen.headers["content-length"] == str(len(seen.body))


async def test_waiting_for_a_request_sees_past_and_future_ones_and_ends(
    model: ScriptedModel,
) -> None:
    await post(model, ask("one"))
    assert (await model.wait_for_request()).last_text == "one"

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(post, model, ask("two"))
        found = await model.wait_for_request(lambda request: request.last_text == "two")
    assert found.number == 1

    with pytest.raises(TimeoutError):
        await model.wait_for_request(after=2, timeout=0.01)


async def test_a_gate_holds_a_stream_until_it_is_released(model: ScriptedModel) -> None:
    model.enqueue(reply("before", Gate("door"), "after"))
    answers: list[Answer] = []

    async def client() -> None:
        answers.append(await post(model, ask("go")))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(client)
        await model.wait_at_gate("door")
        assert not answers
        model.release("door")

    assert answers[0].text == "beforeafter"
    model.enqueue(reply(Gate("door"), "open for good"))
    assert (await post(model, ask("go"))).text == "open for good"


async def test_the_model_can_be_closed_while_a_stream_waits_at_a_gate() -> None:
    with anyio.fail_after(SECONDS):
        async with (
            anyio.create_task_group() as tasks,
            ScriptedModel(reply("before", Gate())) as model,
        ):
            tasks.start_soon(post, model, ask("go"))
            await model.wait_at_gate()


async def test_a_client_that_hangs_up_at_a_gate_leaves_the_model_serving(
    model: ScriptedModel,
) -> None:
    model.enqueue(reply(Gate(), "never heard"))
    body = json.dumps(ask("go")).encode()
    address = urlsplit(model.url)
    stream = await anyio.connect_tcp("127.0.0.1", address.port or 0)
    async with stream:
        head = f"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        await stream.send(head.encode() + body)
        await model.wait_at_gate()

    assert (await post(model, ask("still there?"))).text == "echo: still there?"


def test_as_a_program_it_prints_its_url_plays_the_script_and_ends_on_a_signal(
    tmp_path: Path, processes: Processes
) -> None:
    script = tmp_path / "script.json"
    script.write_text('["scripted"]')
    command = [sys.executable, "-m", "quarterdeck.testing.model", "--script", str(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        processes.started(process.pid)
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            answer = _post(url, json.dumps(ask("hello")).encode(), "/v1/messages", "POST")
            process.send_signal(signal.SIGTERM)
            assert process.wait(10) == 0
        finally:
            process.kill()
    assert answer.text == "scripted"


@pytest.mark.process
def test_as_a_program_it_refuses_a_script_that_is_wrong(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text("[[7]]")
    command = [sys.executable, "-m", "quarterdeck.testing.model", "--script", str(script)]

    ended = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)

    assert ended.returncode == 2
    assert "reply 0" in ended.stderr


# --- the real CLIs ------------------------------------------------------------------------------


@pytest.mark.real_cli
@pytest.mark.parametrize("version", VERSIONS)
async def test_every_real_cli_plays_the_script_of_its_prompts(
    version: str, model: ScriptedModel, tmp_path: Path, processes: Processes
) -> None:
    make = ToolUse("Bash", {"command": "touch made && chmod 600 made", "description": "make"})
    reads = [ToolUse("Read", {"file_path": f"/etc/{name}"}) for name in ("hosts", "hostname")]
    sub = play(reply(ToolUse("Bash", make.input | {"command": "touch sub"})), "sub end")
    task = {"description": "d", "prompt": sub, "subagent_type": "general-purpose"}
    foreground: dict[str, object] = {**task, "run_in_background": False}
    command = real_cli(version).command

    async with conversation(
        command, tmp_path, model.url, processes, CLAUDE_CODE_MAX_RETRIES="1"
    ) as cli:
        assert (await cli.ask("hello"))["result"] == "echo: hello"
        assert (await cli.ask(play(reply(Thinking("hm"), "so", make), "end")))["result"] == "end"
        assert (tmp_path / "work" / "made").exists()
        assert (await cli.ask(play(reply(*reads), "both read")))["result"] == "both read"
        assert (await cli.ask(play(reply(ToolUse("Task", foreground)), "done")))["result"] == "done"
        assert (tmp_path / "work" / "sub").exists()
        overloaded = await cli.ask(play(reply(ApiError(529, times=1), "recovered")))
        assert overloaded["result"] == "recovered"
        failed = await cli.ask(play(ApiError(400, "scripted refusal")))
        assert failed["is_error"] is True
        assert "scripted refusal" in str(failed["result"])
        await cli.ask(play(reply("said", MidStreamError()), "gone on"))
        assert (await cli.ask(play(Text("x" * 1000, times=1500))))["result"] == "x" * 1_500_000
        cli.prompt(play(reply("begun ", Gate(), "never said")))
        await model.wait_at_gate()
        cli.send({"type": "control_request", "request_id": "i", "request": INTERRUPT})
        assert (await cli.until("result"))["subtype"] == "error_during_execution"
        assert (await cli.ask("still there?"))["result"] == "echo: still there?"

    assert any(line["type"] == "stream_event" for line in cli.lines)
    assert all(request.session_id for request in model.turns)
