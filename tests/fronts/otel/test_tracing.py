"""Traces of turns, with the SDK's exporters: in memory, and by OTLP to a server on loopback."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from msgspec import Raw
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from quarterdeck.config.settings import TelemetrySettings
from quarterdeck.domain.errors import UsageError
from quarterdeck.fronts.otel import Telemetry, Tracing, run_environment, turns
from quarterdeck.fronts.otel import front as front_module
from quarterdeck.fronts.otel.context import run_ids, turn_ids
from quarterdeck.fronts.otel.settings import read_headers
from quarterdeck.fronts.otel.turns import MOST_SPANS, Turn
from quarterdeck.hub.hub import Hub
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.links.websocket.accept import serve_endpoint
from quarterdeck.protocol import events
from quarterdeck.protocol.commands import CreateSession
from quarterdeck.protocol.runner_frames import PROTOCOL, Hello, Start, frame, read_hub_frame
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.protocol.stored_events import Stored
from support.bounds import SECONDS
from support.pages import page
from support.small_deck import SmallDeck
from support.waiting import until
from support.web_sockets import connect

pytestmark = pytest.mark.anyio

NOWHERE = Telemetry(endpoint="http://127.0.0.1:1/v1/traces")
ENDED = events.TurnEnded(
    prompts=("p",),
    failed=False,
    outcome="success",
    cost_usd=0.5,
    models=(events.ModelTokens(model="large", input=10, output=7, cache_read=90),),
)


def said(run: str, number: int, **line: object) -> events.Said:
    return events.Said(run=run, number=number, line=Raw(json.dumps(line).encode()))


def assistant(
    run: str, number: int, id_: str, *blocks: dict[str, Any], under: str | None = None
) -> events.Said:
    usage = {"input_tokens": 3, "output_tokens": 5, "cache_read_input_tokens": 90}
    message = {
        "id": id_,
        "type": "message",
        "role": "assistant",
        "model": "large",
        "content": [*blocks],
        "stop_reason": "tool_use",
        "usage": usage,
    }
    return said(run, number, type="assistant", message=message, parent_tool_use_id=under)


def call(id_: str, name: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": name, "input": {"secret": "never told"}}


def result(
    run: str, number: int, id_: str, *, error: bool = False, under: str | None = None
) -> events.Said:
    block = {"type": "tool_result", "tool_use_id": id_, "content": "never told", "is_error": error}
    message = {"role": "user", "content": [block]}
    return said(run, number, type="user", message=message, parent_tool_use_id=under)


async def a_turn(deck: SmallDeck, session: str) -> None:
    """A request, two tools of which one is a subagent and one is asked about, and an answer."""
    run = f"run-{session}"
    text = {"type": "text", "text": "never told"}
    steps: list[events.Event] = [
        events.PromptSent(prompt="p", run=run),
        assistant(run, 1, "m1", text),
        assistant(run, 2, "m1", call("t1", "Bash"), call("t2", "Task")),
        events.AskOpened(
            ask=f"{session}.a",
            run=run,
            request_id="r",
            ask_kind=events.AskKind.TOOL,
            tool="Bash",
            title="never told",
            request=Raw(b"{}"),
            tool_use_id="t1",
        ),
        events.AskAnswered(ask=f"{session}.a", by="me", answer=Raw(b"{}"), allowed=True),
        assistant(run, 3, "m2", call("t3", "Read"), under="t2"),
        result(run, 4, "t3", under="t2"),
        assistant(run, 5, "m3", text, under="t2"),
        result(run, 6, "t1", error=True),
        result(run, 7, "t2"),
        assistant(run, 8, "m4", text),
        ENDED,
    ]
    for step in steps:
        await deck.journal.append(session, [step])
        await anyio.sleep(0.002)  # so that the journal's times are apart


def by_name(spans: tuple[ReadableSpan, ...]) -> dict[str, ReadableSpan]:
    return {span.name: span for span in spans}


def span_id(span: ReadableSpan) -> int:
    assert span.context is not None
    return int(span.context.span_id)


async def test_a_turn_is_a_trace_with_its_requests_and_tools_and_nothing_that_was_said(
    tmp_path: Path,
) -> None:
    deck, exporter = SmallDeck(), InMemorySpanExporter()
    session = await deck.have_session("one", project="work")
    front = Tracing(deck, tmp_path, NOWHERE, exporter=exporter)
    async with front.run():
        await a_turn(deck, session)
        with anyio.fail_after(SECONDS):
            await until(lambda: front._place.exported == deck.position)
    spans = exporter.get_finished_spans()
    found = by_name(spans)
    root = found["invoke_agent claude-code"]
    assert root.parent is None
    attributes = dict(root.attributes or {})
    assert attributes["gen_ai.operation.name"] == "invoke_agent"
    assert attributes["gen_ai.provider.name"] == "anthropic"
    assert attributes["quarterdeck.session.id"] == session
    assert attributes["quarterdeck.project"] == "work"
    assert attributes["gen_ai.usage.input_tokens"] == 100
    assert attributes["gen_ai.usage.output_tokens"] == 7
    assert attributes["quarterdeck.turn.cost_usd"] == 0.5
    assert root.links[0].context.span_id == run_ids(f"run-{session}").span
    chats = [span for span in spans if span.name == "chat large"]
    assert len(chats) == 4
    assert all(span.kind is SpanKind.CLIENT for span in chats)
    assert dict(chats[0].attributes or {})["gen_ai.usage.input_tokens"] == 93
    assert dict(chats[0].attributes or {})["gen_ai.response.finish_reasons"] == ("tool_use",)
    bash, task, read = (found[f"execute_tool {name}"] for name in ("Bash", "Task", "Read"))
    assert dict(bash.attributes or {})["gen_ai.tool.call.id"] == "t1"
    assert dict(bash.attributes or {})["gen_ai.tool.name"] == "Bash"
    assert dict(bash.attributes or {})["quarterdeck.ask.allowed"] is True
    assert bash.status.status_code is StatusCode.ERROR
    assert task.status.status_code is StatusCode.UNSET
    # What a subagent does hangs below the tool that it is.
    assert read.parent is not None
    assert read.parent.span_id == span_id(task)
    below = {span.attributes["gen_ai.response.id"]: span for span in chats if span.attributes}
    assert below["m2"].parent is not None
    assert below["m2"].parent.span_id == span_id(task)
    assert below["m4"].parent is not None
    assert below["m4"].parent.span_id == span_id(root)
    assert len({span.context.trace_id for span in spans if span.context}) == 1
    for span in spans:
        assert (root.start_time or 0) <= (span.start_time or 0) <= (span.end_time or 0)
        assert (span.end_time or 0) <= (root.end_time or 0)
    assert "never told" not in "".join(span.to_json() for span in spans)


async def test_a_run_that_ends_in_the_midst_of_a_turn_ends_both(tmp_path: Path) -> None:
    deck, exporter = SmallDeck(), InMemorySpanExporter()
    session = await deck.have_session()
    run = f"run-{session}"
    front = Tracing(deck, tmp_path, NOWHERE, exporter=exporter)
    async with front.run():
        await deck.journal.append(
            session,
            [
                events.PromptSent(prompt="p", run=run),
                assistant(run, 1, "m1", call("t1", "Bash")),
                events.RunEnded(run=run, reason="it crashed", exit_code=1),
            ],
        )
        with anyio.fail_after(SECONDS):
            await until(lambda: front._place.exported == deck.position)
    found = by_name(exporter.get_finished_spans())
    assert found["invoke_agent claude-code"].status.description == "run_ended"
    assert found["execute_tool Bash"].status.description == "unfinished"
    whole = found["run claude-code"]
    assert whole.context is not None
    assert run_environment(run)["TRACEPARENT"] == (
        f"00-{whole.context.trace_id:032x}-{whole.context.span_id:016x}-01"
    )
    assert dict(whole.attributes or {})["process.exit.code"] == 1


async def test_a_turn_under_way_survives_a_restart_and_none_is_exported_twice(
    tmp_path: Path,
) -> None:
    deck = SmallDeck()
    session, other = await deck.have_session(), await deck.have_session()
    run = f"run-{session}"
    first, second = InMemorySpanExporter(), InMemorySpanExporter()
    front = Tracing(deck, tmp_path, NOWHERE, exporter=first)
    async with front.run():
        await deck.journal.append(
            session,
            [events.PromptSent(prompt="p", run=run), assistant(run, 1, "m1", call("t", "Bash"))],
        )
        began = deck.position - 1
        await deck.journal.append(other, [events.PromptSent(prompt="q", run="x"), ENDED])
        with anyio.fail_after(SECONDS):
            await until(lambda: front._place.exported == deck.position)
    assert len(first.get_finished_spans()) == 1
    await deck.journal.append(session, [result(run, 2, "t")])
    front = Tracing(deck, tmp_path, NOWHERE, exporter=second)
    async with front.run():
        await deck.journal.append(session, [ENDED])
        with anyio.fail_after(SECONDS):
            await until(lambda: front._place.exported == deck.position)
    found = by_name(second.get_finished_spans())
    assert set(found) == {"invoke_agent claude-code", "chat large", "execute_tool Bash"}
    assert span_id(found["invoke_agent claude-code"]) == turn_ids(deck.epoch, began).span


async def test_another_journal_begins_anew(tmp_path: Path) -> None:
    (tmp_path / "otel.json").write_text('{"epoch":"another","after":1,"exported":1}')
    deck = SmallDeck()
    session = await deck.have_session()
    await deck.journal.append(session, [events.PromptSent(prompt="p", run="r"), ENDED])
    exporter = InMemorySpanExporter()
    front = Tracing(deck, tmp_path, NOWHERE, exporter=exporter)
    async with front.run():
        await deck.journal.append(session, [events.PromptSent(prompt="q", run="r"), ENDED])
        with anyio.fail_after(SECONDS):
            await until(lambda: front._place.exported == deck.position)
    assert len(exporter.get_finished_spans()) == 1


def test_a_turn_without_end_has_bounded_spans() -> None:
    def stored(position: int, event: events.Event) -> Stored:
        assert isinstance(event, events.AnyEvent)
        return Stored(session="s", seq=1, position=position, at=position, event=event, json=b"")

    turn = Turn("epoch", stored(1, events.PromptSent(prompt="p", run="r")))
    for number in range(MOST_SPANS):
        huge = assistant("r", 1, f"m{number}", call(f"t{number}", "x" * 10_000))
        turn.add(stored(number, huge))
    spans = turn.end(stored(9999, ENDED), SessionView(session="s"), None)
    assert len(spans) == MOST_SPANS + 1
    assert spans[0].attributes["quarterdeck.spans.left_out"] == MOST_SPANS
    assert max(len(span.name) for span in spans) == 200


async def test_spans_reach_a_collector_by_otlp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")  # else spans wait five seconds for company
    bodies: list[tuple[str, bytes]] = []

    async def collect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        rows = dict(row.lower().split(": ", 1) for row in head.split("\r\n")[1:] if row)
        bodies.append((head, await reader.readexactly(int(rows["content-length"]))))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    (tmp_path / "headers").write_text("Authorization: Bearer of-the-collector\n")
    server = await asyncio.start_server(collect, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    telemetry = Telemetry(
        endpoint=f"http://127.0.0.1:{port}/v1/traces", headers_file=str(tmp_path / "headers")
    )
    deck = SmallDeck()
    session = await deck.have_session()
    front = Tracing(deck, tmp_path, telemetry)
    async with server, front.run():
        await a_turn(deck, session)
        with anyio.fail_after(SECONDS):
            await until(lambda: front._place.exported == deck.position)
            await until(lambda: bool(bodies))
    head, body = bodies[0]
    assert head.startswith("POST /v1/traces ")
    assert "bearer of-the-collector" in head.lower()
    request = ExportTraceServiceRequest.FromString(body)
    resource = request.resource_spans[0].resource.attributes
    assert {each.key: each.value.string_value for each in resource}["service.name"] == "quarterdeck"
    names = {span.name for span in request.resource_spans[0].scope_spans[0].spans}
    assert {"invoke_agent claude-code", "chat large", "execute_tool Bash"} <= names


async def test_a_dead_collector_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(front_module, "CLOSE_SECONDS", 0.2)  # so long it is tried, and no longer
    deck = SmallDeck()
    session = await deck.have_session()
    front = Tracing(deck, tmp_path, NOWHERE)
    with anyio.fail_after(SECONDS):
        async with front.run():
            await a_turn(deck, session)
            await until(lambda: front._place.exported == deck.position)


@pytest.mark.process
def test_nothing_of_the_sdk_is_loaded_before_it_is_used() -> None:
    look = (
        "import sys, quarterdeck.fronts.otel;"
        "sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", look], check=False).returncode == 0


@pytest.mark.parametrize(
    "given", [{"endpoint": "collector:4318"}, {"endpoint": "http://x/", "service_name": ""}]
)
def test_what_cannot_be_right_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="telemetry"):
        Telemetry(**given)


def test_a_file_of_headers_is_read_and_never_shown(tmp_path: Path) -> None:
    place = tmp_path / "headers"
    telemetry = Telemetry(endpoint="http://x/", headers_file=str(place))
    with pytest.raises(UsageError, match="No such file"):
        read_headers(telemetry)
    place.write_text("\nX-Key: a:b\n")
    assert read_headers(telemetry) == {"x-key": "a:b"}
    place.write_text("hidden\n")
    with pytest.raises(UsageError, match="line 1") as refused:
        read_headers(telemetry)
    assert "hidden" not in str(refused.value)


def test_every_attribute_and_setting_is_on_the_page() -> None:
    text = page("docs/how-to/send-traces-to-opentelemetry.md").text
    source = inspect.getsource(turns)
    named = set(re.findall(r'"((?:gen_ai|quarterdeck|process|error)\.[a-z_.]+)"', source))
    assert len(named) > 20
    assert sorted(name for name in named if name not in text) == []
    rows = re.findall(r"^\| `(\w+)` \| ", text.partition("\n## ")[0], re.MULTILINE)
    assert sorted(rows) == sorted(field.name for field in msgspec.structs.fields(Telemetry))
    assert sorted(rows) == sorted(field.name for field in msgspec.structs.fields(TelemetrySettings))


async def test_the_runner_is_told_the_parent_of_a_clis_spans_and_the_journal_is_not() -> None:
    journal = MemoryJournal()
    hub = Hub(journal, {"secret": "box"}.get, run_env=run_environment)
    hello = Hello(machine="box", runner="r", protocol=PROTOCOL, version="0", pid=1)
    bearer = {"Authorization": "Bearer secret"}
    async with hub.run(), serve_endpoint(hub.runners) as port:
        url = f"ws://127.0.0.1:{port}/runner"
        with anyio.fail_after(SECONDS):
            async with connect(url, additional_headers=bearer) as socket:
                await socket.send(frame(hello))
                await socket.recv()  # the welcome
                for own in ({}, {"TRACEPARENT": "of the session"}):
                    spec = SessionSpec(directory="/", machine="box", env=own)
                    made = await hub.submit(CreateSession(spec=spec, by="me"))
                    said = await socket.recv()
                    assert isinstance(said, bytes)
                    start, _ = read_hub_frame(said)
                    assert isinstance(start, Start)
                    assert start.spec.env == run_environment(start.run) | own
                    assert (await hub.session(made.session)).spec.env == own
