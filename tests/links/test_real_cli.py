"""The links against the real CLIs: what our own other side cannot prove."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import pytest

from quarterdeck import Agent, Options, listen
from quarterdeck.agent.listen import _LaunchedLink
from quarterdeck.claude.environment import child_environment
from quarterdeck.claude.launch import ArgumentFiles, Launch, to_argv
from quarterdeck.domain.errors import LinkClosed
from quarterdeck.links.base import Dropped, Link, Resumed
from quarterdeck.links.subprocess import StopSteps, SubprocessLink
from quarterdeck.links.websocket import CliEndpoint, LinkAccess, WebSocketLink, serve_endpoint
from quarterdeck.runtime.processes import still_alive
from quarterdeck.testing.clis import RealCli, isolated_env
from quarterdeck.testing.model import ScriptedModel
from quarterdeck.testing.script import Gate, ToolUse, play, reply
from quarterdeck.wire.states import State
from support.bounds import SECONDS
from support.clis import DIALLING, VERSIONS
from support.relay import Relay, relay_to
from support.waiting import until

pytestmark = pytest.mark.real_cli

TOKEN = "one-token-for-one-session"
PATH = "/v1/ws/a-session"

MODE_REQUEST = (
    b'{"type":"control_request","request_id":"mode",'
    b'"request":{"subtype":"set_permission_mode","mode":"default"}}\n'
)

Line = dict[str, object]


def prompt(text: str) -> bytes:
    message = {"role": "user", "content": text}
    return json.dumps({"type": "user", "message": message}).encode() + b"\n"


class Reader:
    """Cuts what a link gives into messages; a half line before a resume has no other half."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.drops: list[Dropped] = []
        self.resumes: list[Resumed] = []
        self._rest = b""
        self._lines: list[Line] = []
        self.uuids: set[object] = set()

    async def next(self) -> Line:
        while not self._lines:
            item = await self.link.receive()
            if isinstance(item, Dropped):
                self.drops.append(item)
                continue
            if isinstance(item, Resumed):
                self.resumes.append(item)
                self._rest = b""
                continue
            *lines, self._rest = (self._rest + item).split(b"\n")
            self._lines += [json.loads(line) for line in lines]
            self.uuids |= {line.get("uuid") for line in self._lines}
        return self._lines.pop(0)

    async def until(self, kind: str) -> Line:
        while (message := await self.next())["type"] != kind:
            pass
        return message


class Site:
    """A CLI that dials, the link that it dials to, and a relay between them."""

    def __init__(self, cli: RealCli, model: ScriptedModel, home: Path) -> None:
        self.cli = cli
        self.model = model
        self.home = home
        self.link = WebSocketLink(first=30, grace=30)
        self.attempts = 0
        self.stack = AsyncExitStack()
        self.relay: Relay | None = None

    def route(self, path: str) -> LinkAccess | None:
        self.attempts += 1
        return LinkAccess(self.link, TOKEN) if path == PATH else None

    async def start(self, *, token: str = TOKEN, post: bool = False) -> SubprocessLink:
        """Serve, and start the CLI; its process is a link too, of which only the end is used."""
        port = await self.stack.enter_async_context(serve_endpoint(CliEndpoint(self.route)))
        self.relay = await self.stack.enter_async_context(relay_to(port))
        env = child_environment(
            parent={},
            env=isolated_env(self.home, self.model.url),
            access_token=token,
            post_events=post,
        )
        url = f"ws://127.0.0.1:{self.relay.port}{PATH}"
        process = await SubprocessLink.start(
            self.cli.command,
            to_argv(Launch(sdk_url=url)),
            cwd=self.home,
            env=env,
            steps=StopSteps(input=0.1, term=2),
        )
        self.stack.push_async_callback(process.close)
        self.stack.push_async_callback(self.link.close)
        return process


@pytest.fixture(params=DIALLING)
async def site(
    request: pytest.FixtureRequest, clis: dict[str, RealCli], model: ScriptedModel, tmp_path: Path
) -> AsyncIterator[Site]:
    made = Site(clis[request.param], model, tmp_path)
    async with made.stack:
        yield made


async def end_of(process: SubprocessLink) -> LinkClosed:
    while True:
        try:
            await process.receive()
        except LinkClosed as closed:
            return closed


async def test_a_cli_dials_with_its_token_outlives_drops_and_ends_when_the_link_is_closed(
    site: Site,
) -> None:
    process = await site.start()
    assert site.relay is not None
    reader = Reader(site.link)
    # Before it has connected: kept until then.
    await site.link.send(prompt(play(reply("begun ", Gate(), "ended"))))
    await a_turn_outlives_a_drop_of_its_connection(site, site.relay, reader)
    await a_prompt_that_is_sent_while_the_connection_is_down_is_answered(site, site.relay, reader)
    await site.link.close()
    # 2.1.37 knows no close code: it comes back, is told again, is refused twice, and gives up.
    with anyio.fail_after(SECONDS):
        closed = await end_of(process)
    assert closed.exit_code == 0


async def a_turn_outlives_a_drop_of_its_connection(
    site: Site, relay: Relay, reader: Reader
) -> None:
    await site.model.wait_at_gate()
    while "content_block_stop" not in str(await reader.until("stream_event")):
        pass  # all that it says before the gate, so that the cut hits nothing on its way
    relay.cut()
    while not reader.resumes:
        with anyio.move_on_after(0.1):
            await reader.next()
    # The id is that of the last message which the CLI sent: we know it, so nothing was lost.
    assert reader.resumes[0].last_request_id in reader.uuids
    await site.link.send(MODE_REQUEST)
    await reader.until("control_response")  # the CLI, too, has learned of its new connection
    site.model.release()
    assert (await reader.until("result"))["result"] == "ended"
    assert len(reader.drops) == len(reader.resumes) == 1


async def a_prompt_that_is_sent_while_the_connection_is_down_is_answered(
    site: Site, relay: Relay, reader: Reader
) -> None:
    relay.cut()
    await until(lambda: not site.link.connected)
    await site.link.send(prompt("second"))
    while (await reader.until("result"))["result"] != "echo: second":
        pass  # 2.1.120 sends its old messages again
    assert len(reader.resumes) == 2


async def test_a_cli_with_a_wrong_token_does_not_get_in(site: Site) -> None:
    process = await site.start(token="wrong")
    with anyio.fail_after(SECONDS):
        await until(lambda: site.attempts > 0)
        if site.cli.version == "2.1.120":  # the others go on trying for a while
            await end_of(process)
    assert not site.link.connected


async def test_a_cli_that_posts_its_messages_is_read_from_there(site: Site) -> None:
    await site.start(post=True)
    reader = Reader(site.link)
    await site.link.send(prompt("by post"))
    first = await reader.next()
    assert first["type"] == "system"
    assert (await reader.until("result"))["result"] == "echo: by post"


async def test_an_agent_is_down_while_the_connection_is_and_then_its_turn_ends(site: Site) -> None:
    await site.start()
    relay = site.relay
    assert relay is not None
    async with Agent(link=site.link) as agent:

        def down() -> bool:
            return agent.state is State.DOWN

        query = await agent.prompt(play(reply("begun ", Gate(), "ended")))
        await site.model.wait_at_gate()
        await until(lambda: agent.state is State.WORKING)
        # 2.1.37 gives up after two refusals, so it is not refused: its call is left unanswered.
        patient = site.cli.version != "2.1.37"
        relay.refusing = patient
        if not patient:
            relay.stall()
        relay.cut()
        await until(down)
        tried = relay.connections
        await until(lambda: relay.connections > tried)  # it dials, and does not get through
        assert down()
        relay.refusing = False
        relay.flow()
        await until(lambda: agent.state is State.WORKING)
        # The CLI learns of its connection after us, and what it says before that is lost. It
        # answers once it has learned of it.
        await agent.set_permission_mode("default")
        site.model.release()
        turn = await query.finish()
        assert turn.result is not None
        assert turn.result.result == "ended"
        assert agent.state is State.READY


@pytest.mark.parametrize("version", DIALLING)
async def test_closing_a_launched_link_ends_its_cli_at_once_and_without_a_word(
    version: str,
    clis: dict[str, RealCli],
    model: ScriptedModel,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    env = isolated_env(tmp_path, model.url)
    options = Options(claude=clis[version].command, cwd=tmp_path, env=env)
    with anyio.fail_after(SECONDS):
        async with listen() as listener:
            link = await listener.launch(options)
            reader = Reader(link)
            await link.send(prompt("hello"))
            assert (await reader.until("result"))["result"] == "echo: hello"
            await link.close()
            assert isinstance(link, _LaunchedLink)
            await until(lambda: link.closed is not None)
            # 2.1.37 would dial again for 5 s, give up, and end with 0: it is not waited for.
            assert link.closed is not None
            assert link.closed.exit_code == 143 or version != "2.1.37"
            with pytest.raises(LinkClosed):
                await reader.until("nothing more")
    assert caplog.records == []


# --- stdio ---


@pytest.mark.parametrize("version", VERSIONS)
async def test_options_reach_the_cli_also_when_they_are_empty_long_or_look_like_flags(
    version: str, clis: dict[str, RealCli], model: ScriptedModel, tmp_path: Path
) -> None:
    launch = Launch(
        tools=(),
        setting_sources=(),
        append_system_prompt="--continue " + "long " * 40_000 + "to the end",
        settings='{"model": "claude-from-the-settings"}',
        add_dirs=("-a folder",),
    )
    env = child_environment(parent={}, env=isolated_env(tmp_path, model.url))
    (tmp_path / "-a folder").mkdir()
    with anyio.fail_after(SECONDS), ArgumentFiles() as spill:
        async with await SubprocessLink.start(
            clis[version].command, to_argv(launch, spill), cwd=tmp_path, env=env
        ) as link:
            reader = Reader(link)
            await link.send(prompt("hello"))
            init = await reader.until("system")
            while init["subtype"] != "init":
                init = await reader.until("system")
            assert (await reader.until("result"))["result"] == "echo: hello"
            await link.end_input()
            assert (await end_of(link)).exit_code == 0
    assert init["tools"] == []
    assert init["model"] == "claude-from-the-settings"
    asked = json.dumps([str(request) for request in model.requests])
    assert "--continue long long" in asked
    assert "to the end" in asked


@pytest.mark.parametrize("version", VERSIONS)
async def test_no_shell_of_the_cli_survives_the_end_of_its_link(
    version: str, clis: dict[str, RealCli], model: ScriptedModel, tmp_path: Path
) -> None:
    argv = to_argv(Launch(dangerously_skip_permissions=True))
    env = child_environment(parent={}, env=isolated_env(tmp_path, model.url))
    # Some time for SIGTERM, but none for the turn: this tool would take five minutes.
    steps = StopSteps(input=0.1, term=5)
    with anyio.fail_after(SECONDS):
        async with await SubprocessLink.start(
            clis[version].command, argv, cwd=tmp_path, env=env, steps=steps
        ) as link:
            reader = Reader(link)
            await link.send(prompt("hello"))
            assert (await reader.until("result"))["result"] == "echo: hello"
            command = ToolUse("Bash", {"command": "touch begun; sleep 300", "description": "wait"})
            await link.send(prompt(play(reply(command), "never")))
            await until((tmp_path / "begun").exists)
            family = await link._family()
            assert still_alive(family)
        assert not still_alive(family)
        assert not await link._family()
        closed = await end_of(link)
        assert closed.exit_code == 143
        assert "SIGTERM" in closed.reason
