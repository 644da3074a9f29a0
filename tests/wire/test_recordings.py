"""What real CLIs said and were told, as `tools/record_fixtures.py` has recorded it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from msgspec import Raw

from quarterdeck import Agent, Allow, AnyAsk, Decision, Query
from quarterdeck.domain.errors import RequestRefused
from quarterdeck.links.recorder import Record
from quarterdeck.links.replay import ReplayLink, read_records
from quarterdeck.wire import codec
from quarterdeck.wire.answers import AllowResult, DenyResult, McpAnswer
from quarterdeck.wire.base import Malformed, Message, Unknown
from quarterdeck.wire.command_base import Command, Empty, UnknownCommand, answer_type, decode_answer
from quarterdeck.wire.commands import EndSession, Initialize
from quarterdeck.wire.control import ControlRequest, ControlResponse
from quarterdeck.wire.hook_outputs import SyncOutput
from quarterdeck.wire.outbound import Answer, Prompt, Request
from quarterdeck.wire.rawjson import members
from quarterdeck.wire.requests import CanUseTool, HookCallback, McpMessage
from quarterdeck.wire.survey import unknown_members
from quarterdeck.wire.system import Init
from quarterdeck.wire.versions import Version, release
from support.bounds import SECONDS
from support.clis import DIALLING, VERSIONS
from support.lossless import lost
from support.waiting import until

FOLDER = Path(__file__).parent.parent / "fixtures" / "recordings"
RECORDINGS = sorted(FOLDER.glob("*.ndjson"))

each_recording = pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.stem)

SHOWN_BY_ALL = """
Assistant ControlCancel ControlRequest ControlResponse Init Result Status StreamEvent User
CompactBoundary
"""
"""The messages that the scenes bring about in every version."""
SHOWN_BY_THE_NEWEST = """
ApiRetry BackgroundTasksChanged CommandLifecycle ControlRequestProgress SessionStateChanged
SessionTitleChanged TaskNotification TaskProgress TaskStarted TaskUpdated ThinkingTokens
"""


def lines(recording: Path, way: str) -> Iterator[bytes]:
    """The lines of one direction: `out` is what the CLI said."""
    for record in read_records(recording.read_bytes(), name=recording.name):
        if record.dir == way:
            yield line_of(record)


def line_of(record: Record) -> bytes:
    assert record.line is not None, "a line that is no text"
    assert not record.partial
    return record.line.encode()


def version_of(recording: Path) -> Version:
    version = Version.parse(recording.name.partition("-")[0])
    assert version is not None
    return version


def test_every_version_was_recorded_on_every_transport_that_it_has() -> None:
    seats = {tuple(recording.name.split("-")[:2]) for recording in RECORDINGS}
    assert seats == {(version, "stdio") for version in VERSIONS} | {
        (version, "ws") for version in DIALLING
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_the_scenes_bring_about_most_of_what_a_cli_can_say(version: str) -> None:
    said = {
        type(codec.from_cli(line)).__name__
        for recording in FOLDER.glob(f"{version}-*.ndjson")
        for line in lines(recording, "out")
    }
    expected = set(SHOWN_BY_ALL.split())
    if version == VERSIONS[-1]:
        expected |= set(SHOWN_BY_THE_NEWEST.split())
    assert expected - said == set()


@each_recording
@pytest.mark.no_cover
def test_what_a_real_cli_said_is_known_and_loses_nothing(recording: Path) -> None:
    for line in lines(recording, "out"):
        message = codec.from_cli(line)
        assert not isinstance(message, Unknown | Malformed), line
        assert unknown_members(message) == [], line
        assert lost(message) == [], line
        assert codec.encode(message) == line


@each_recording
def test_what_a_real_cli_was_told_is_known_and_loses_nothing(recording: Path) -> None:
    for line in lines(recording, "in"):
        message = codec.to_cli(line)
        assert not isinstance(message, Unknown | Malformed), line
        assert unknown_members(message) == [], line
        assert lost(message) == [], line
        assert codec.encode(message) == line


@each_recording
def test_each_answer_of_a_cli_fits_the_request_that_has_its_id(recording: Path) -> None:
    sent = [codec.to_cli(line) for line in lines(recording, "in")]
    commands = {each.request_id: each.request for each in sent if isinstance(each, Request)}
    answers = {each.response.request_id: each for each in sent if isinstance(each, Answer)}
    answered: Counter[str] = Counter()
    for message in map(codec.from_cli, lines(recording, "out")):
        if not isinstance(message, ControlResponse):
            continue
        reply = message.response
        if reply.request_id in answers:  # with `--replay-user-messages` our answers are echoed
            assert reply == answers[reply.request_id].response
            continue
        answered[reply.request_id] += 1
        command = commands[reply.request_id]
        assert not isinstance(command, UnknownCommand)
        if reply.ok:
            assert unknown_answer_members(command, reply.response_json) == []
            decode_answer(command, reply.response_json)
    assert answered.keys() == commands.keys()
    doubled = {commands[request_id].subtype for request_id, times in answered.items() if times > 1}
    # 2.1.37 answers this one twice, with a body and without.
    assert doubled <= ({"set_permission_mode"} if version_of(recording) == release(37) else set())


def unknown_answer_members(command: Command[Any], json: Raw | None) -> list[str]:
    shape = answer_type(type(command))
    if json is None or shape is Empty or not hasattr(shape, "__struct_fields__"):
        return []
    known = {field.encode_name for field in msgspec.structs.fields(shape)}
    untyped: frozenset[str] = getattr(shape, "untyped", frozenset())
    return [f"{command.subtype}.{name}" for name in members(json) if name not in known | untyped]


@each_recording
def test_each_answer_of_ours_fits_the_request_that_has_its_id(recording: Path) -> None:
    said = [codec.from_cli(line) for line in lines(recording, "out")]
    asked = {each.request_id: each.request for each in said if isinstance(each, ControlRequest)}
    for message in map(codec.to_cli, lines(recording, "in")):
        if not isinstance(message, Answer):
            continue
        body = message.response.response_json
        assert body is not None
        match asked[message.response.request_id]:
            case CanUseTool():
                msgspec.json.decode(body, type=AllowResult | DenyResult)
            case HookCallback():
                assert msgspec.json.decode(body, type=SyncOutput) == SyncOutput()
            case McpMessage():
                msgspec.json.decode(body, type=McpAnswer)
            case other:
                raise AssertionError(f"nobody asks that here: {other}")


@each_recording
def test_a_recording_tells_nothing_of_the_machine_that_made_it(recording: Path) -> None:
    text = recording.read_text(encoding="utf-8")
    assert "sk-ant-" not in text
    for folder in re.findall(r'\\"cwd\\":\\"([^"\\]*)', text):
        assert folder == "/tmp/quarterdeck-fixtures/project"
    assert re.findall(r"(?<![\w.~-])/(?:home|root|Users)/", text) == []


class Script:
    """Our side of a recording, to be played again at the moments at which it was played."""

    def __init__(self, records: list[Record]) -> None:
        self.said: list[Message] = []
        self.sent: list[tuple[Prompt | Request, int]] = []
        self._answers: dict[str, Raw | None] = {}
        for record in records:
            if record.dir == "out":
                self.said.append(codec.from_cli(line_of(record)))
            elif record.dir == "in":
                self._take(codec.to_cli(line_of(record)))

    def _take(self, message: Message) -> None:
        match message:
            case Answer():
                self._answers[message.response.request_id] = message.response.response_json
            case Prompt():
                self.sent.append((message, len(self.said)))
            case Request() if not isinstance(message.request, Initialize):
                self.sent.append((message, len(self.said)))
            case _:
                pass

    @property
    def before_leaving(self) -> int:
        """How much the CLI had said when the agent was left."""
        last, before = self.sent[-1]
        ended = isinstance(last, Request) and isinstance(last.request, EndSession)
        return before if ended else len(self.said)

    async def decide(self, ask: AnyAsk) -> Decision:
        """Leave open what was left open. What the answer says does not matter to a replay."""
        if ask.request_id not in self._answers:
            await anyio.sleep_forever()
        return Allow()


class Replay:
    """An agent on a replayed recording, and all that it hears."""

    def __init__(self, recording: Path) -> None:
        records = read_records(recording.read_bytes(), name=recording.name)
        self.version = version_of(recording)
        self.script = Script(records)
        self.heard: list[Message] = []
        self.agent = Agent(
            link=ReplayLink(records), version=self.version, decide=self.script.decide
        )
        self._queries: list[Query] = []

    async def run(self) -> None:
        """Do again what was done, each at the point at which it was done."""
        async with anyio.create_task_group() as tasks:
            # It runs at the first wait of the agent, which has begun by then and said nothing.
            tasks.start_soon(self._listen)
            async with self.agent:
                for message, before in self.script.sent:
                    await self._heard(before)
                    match message:
                        case Prompt():
                            self._queries.append(await self.agent.prompt(message))
                        case Request(request=EndSession()):
                            break  # the agent says so itself when it is left
                        case Request():
                            tasks.start_soon(self._request, message.request)
                await self._heard(self.script.before_leaving)
                for query in self._queries:
                    await query.finish()

    async def _listen(self) -> None:
        async for message in self.agent.messages():
            self.heard += [message]

    async def _heard(self, count: int) -> None:
        await until(lambda: len(self.heard) >= count)

    async def _request(self, command: Command[Any]) -> None:
        with suppress(RequestRefused):  # as it was when it was recorded
            await self.agent.request(command, timeout=SECONDS)


@each_recording
async def test_an_agent_hears_of_a_replay_what_the_cli_said(recording: Path) -> None:
    replay = Replay(recording)
    with anyio.fail_after(SECONDS):
        await replay.run()
    said = replay.script.said
    assert len(replay.heard) >= replay.script.before_leaving
    said = said[: len(replay.heard)]
    assert [type(message) for message in replay.heard] == [type(message) for message in said]
    assert [plain(message) for message in replay.heard] == [plain(message) for message in said]
    assert replay.agent.version == replay.version
    inits = [message for message in said if isinstance(message, Init)]
    assert replay.agent.session_id == inits[-1].session_id


def plain(message: Message) -> Any:
    """A message as JSON, with ids of requests that do not differ from run to run."""
    return json.loads(re.sub(rb'"qd-[0-9a-f]+-(\d+)"', rb'"qd-\1"', codec.encode(message)))
