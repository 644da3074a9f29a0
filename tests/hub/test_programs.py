"""Programs that connect their agents: what they are called, and what a runner may start later."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from msgspec import Raw

from quarterdeck.domain.errors import Conflict
from quarterdeck.domain.ids import new_id
from quarterdeck.hub.hub import Hub
from quarterdeck.hub.programs import name_of
from quarterdeck.hub.runners import BAD_FRAME, address_of
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.protocol import commands as cmd
from quarterdeck.protocol.events import ProgramActed
from quarterdeck.protocol.roles import Role
from quarterdeck.protocol.runner_frames import (
    PROTOCOL,
    Ack,
    Ended,
    Lines,
    Program,
    ProgramAct,
    ProgramLimits,
    Started,
    program_session,
)
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import LOCAL, SessionSpec
from support import lines
from support.bounds import SECONDS
from support.runner_sockets import Socket

pytestmark = pytest.mark.anyio

SESSION = program_session(1.0, "key")
LIMITS = ProgramLimits(
    tools=("Read", "Bash"),
    disallowed_tools=("Bash(git push:*)", "WebFetch"),
    setting_sources=(),
    strict_mcp_config=True,
    max_turns=3,
)


class Token:
    """Whose token it is."""

    def __init__(self, name: str, role: Role = Role.PROGRAM) -> None:
        self.name = name
        self.role = role


TOKENS = {"right": Token(LOCAL), "named": Token("nightly"), "owner": Token("ada", Role.OWNER)}


def hello(**more: Any) -> Program:
    given: dict[str, Any] = {
        "protocol": PROTOCOL,
        "session": SESSION,
        "run": new_id(),
        "key": "key",
        "began": 1.0,
        "name": "report.py",
        "directory": "/work",
        "own_options": False,
        **more,
    }
    return Program(**given)


@asynccontextmanager
async def a_hub() -> AsyncIterator[Hub]:
    hub = Hub(MemoryJournal(), lambda _: None, check_program=TOKENS.get)
    async with hub.run():
        yield hub


async def ended_program(
    hub: Hub, program: Program, *, client: str = "127.0.0.1", **how: str
) -> SessionView:
    """The session of a program that has run one CLI, and has ended."""
    socket = Socket()
    async with socket.on(hub.programs, "/program", client=client, **how):
        socket.say(program)
        assert isinstance(await socket.hear(), Ack)
        socket.say(Started(pid=7, version="2.1.325", directory="/work"))
        socket.say(Lines(first=1), lines.init("2.1.325", uuid="new").rstrip(b"\n"))
        socket.say(Ended(number=2, reason="it is over"))
        with anyio.fail_after(SECONDS):
            while (await hub.session(SESSION)).run is not None:  # noqa: ASYNC110
                await anyio.sleep(0.005)
    return await hub.session(SESSION)


def started_spec(hub: Hub) -> SessionSpec:
    """What the runner of this machine is asked to start."""
    ((_, start),) = hub.runners._starting.values()
    return start.spec


# --- what comes after the program ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "after"),
    [
        ("bypassPermissions", "default"),
        ("auto", "default"),
        ("acceptEdits", "default"),
        ("of-tomorrow", "default"),
        ("plan", "plan"),
        (None, None),
    ],
)
async def test_a_runner_starts_nothing_that_asks_less_because_a_program_said_so(
    mode: str | None, after: str | None
) -> None:
    async with a_hub() as hub:
        view = await ended_program(hub, hello(mode=mode, skip_permissions=True, limits=LIMITS))
        assert not view.spec.skip_permissions
        await hub.submit(cmd.ResumeSession(session=SESSION, by="ada"))
        spec = started_spec(hub)
        assert (spec.mode, spec.skip_permissions) == (after, False)


@pytest.mark.parametrize(
    "command",
    [
        cmd.ResumeSession(session=SESSION, by="ada"),
        cmd.SendPrompt(session=SESSION, prompt="p1", content=Raw(b'"go on"'), by="ada"),
        cmd.ForkSession(session=SESSION, copy="copy", by="ada"),
    ],
    ids=lambda command: type(command).__name__,
)
async def test_what_a_program_forbade_to_its_agent_stays_forbidden(
    command: cmd.AnyCommand,
) -> None:
    async with a_hub() as hub:
        await ended_program(hub, hello(limits=LIMITS))
        await hub.submit(command)
        spec = started_spec(hub)
        for name in LIMITS.__struct_fields__:
            assert getattr(spec, name) == getattr(LIMITS, name), name
        assert (spec.directory, spec.restart) == ("/work", "never")


@pytest.mark.parametrize(
    "more",
    [
        {"own_options": True},
        {"limits": ProgramLimits(setting_sources=("all",))},
    ],
)
@pytest.mark.parametrize("kind", [cmd.ResumeSession, cmd.ForkSession])
async def test_what_a_runner_cannot_forbid_is_not_started_by_it(
    more: dict[str, Any], kind: type[cmd.ResumeSession | cmd.ForkSession]
) -> None:
    async with a_hub() as hub:
        view = await ended_program(hub, hello(**more))
        with pytest.raises(Conflict, match="options that a runner does not have") as refused:
            await hub.submit(kind(session=SESSION, by="ada"))
        assert refused.value.code == "program_options"
        prompt = cmd.SendPrompt(session=SESSION, prompt="p1", content=Raw(b'"x"'), by="ada")
        with pytest.raises(Conflict):
            await hub.submit(prompt)
        assert not hub.runners._starting
        # An owner may do so, in so many words.
        assert view.cli_session is not None
        spec = SessionSpec(directory="/work")
        again = cmd.CreateSession(spec=spec, cli_session=view.cli_session, by="ada")
        await hub.submit(again)
        assert started_spec(hub) == spec


async def test_a_frame_of_an_older_program_may_have_had_any_options() -> None:
    assert Program(
        protocol=PROTOCOL, session="s", run="r", key="k", began=1.0, name="n", directory="/"
    ).own_options


# --- where it was --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("token", "client", "headers"),
    [
        ("named", "127.0.0.1", {}),
        ("owner", "127.0.0.1", {}),
        ("right", "127.0.0.1", {"x_forwarded_for": "10.0.0.7"}),
        ("right", "127.0.0.1", {"forwarded": "for=10.0.0.7"}),
        ("right", "::1", {"via": "1.1 proxy"}),
        ("right", "10.0.0.7", {}),
    ],
)
async def test_who_is_not_certainly_here_is_resumed_nowhere(
    token: str, client: str, headers: dict[str, str]
) -> None:
    async with a_hub() as hub:
        view = await ended_program(hub, hello(), client=client, token=token, **headers)
        assert view.spec.machine == "program"
        with pytest.raises(Conflict, match="a machine that has no runner here"):
            await hub.submit(cmd.ResumeSession(session=SESSION, by="ada"))


def test_an_address_that_a_proxy_of_this_machine_has_told_is_used() -> None:
    """The front puts it in the place of the proxy's, if the configuration names that proxy."""
    headers = [(b"X-Forwarded-For", b"10.0.0.7")]
    assert address_of({"client": ("10.0.0.7", 0), "headers": headers}) == "10.0.0.7"
    assert address_of({"client": ("127.0.0.1", 0), "headers": headers}) is None
    assert address_of({"client": ("127.0.0.1", 0), "headers": []}) == "127.0.0.1"
    assert address_of({"client": None}) is None


# --- what it is called ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("token", "claimed", "name"),
    [
        ("named", "anything", "program nightly"),
        ("right", "nightly", "local's program nightly"),
        ("owner", "nightly", "ada's program nightly"),
        ("right", "", "local's program program"),
        ("right", "a\nb", "local's program program"),
        ("right", "x" * 200, "local's program " + "x" * 100),
    ],
)
def test_no_program_has_the_name_of_anothers_token(token: str, claimed: str, name: str) -> None:
    assert name_of(TOKENS[token], claimed) == name


@pytest.mark.parametrize("more", [{"directory": "not/absolute"}, {"began": 1e308}, {"began": -1.0}])
async def test_what_is_no_session_is_a_bad_frame(more: dict[str, Any]) -> None:
    async with a_hub() as hub:
        socket = Socket()
        async with socket.on(hub.programs, "/program"):
            socket.say(hello(**more))
            assert await socket.closed() == BAD_FRAME


async def test_what_a_program_tells_of_itself_is_one_short_line() -> None:
    async with a_hub() as hub:
        socket = Socket()
        async with socket.on(hub.programs, "/program"):
            socket.say(hello(name="\x1b[2J" + "n" * 500))
            assert isinstance(await socket.hear(), Ack)
            long = "\x1b[31m" + "x" * 5000
            socket.say(ProgramAct(number=1, act=long, what=long, detail=long, tool=long))
            with anyio.fail_after(SECONDS):
                while not (entries := await hub.audit(session=SESSION)):  # noqa: ASYNC110
                    await anyio.sleep(0.005)
        (entry,) = [each.event for each in entries]
        assert isinstance(entry, ProgramActed)
        view = await hub.session(SESSION)
        for text, most in (
            *((each, 100) for each in (entry.act, entry.what, entry.tool, view.name)),
            (entry.detail, 300),
        ):
            assert text is not None
            assert len(text) <= most
            assert text.isprintable()
