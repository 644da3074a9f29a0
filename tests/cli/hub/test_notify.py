"""A word to the person who is not looking, which can do no harm."""

from __future__ import annotations

import io
import stat
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest
from msgspec import Raw

from quarterdeck.cli.hub.notify import (
    AWAY_SECONDS,
    LONGEST,
    Channel,
    Notifier,
    argv_of,
    channel_for,
    message_for,
    one_line_of,
    run_program,
)
from quarterdeck.protocol.events import AskKind, AskOpened, Noted, RunEnded, TurnEnded
from support.bounds import SECONDS

pytestmark = pytest.mark.anyio

TURN = TurnEnded(prompts=(), failed=False, outcome="success", cost_usd=0.0)
EVIL = 'x\x1b]0;owned\x07\x1b[2J\r\nrm -rf; $(id) `id` "; do shell script "id"\x9b31m\u202e'


def ask(title: str, kind: AskKind = AskKind.TOOL) -> AskOpened:
    return AskOpened(
        ask="s.a",
        run="r",
        request_id="q",
        ask_kind=kind,
        tool="Bash",
        title=title,
        request=Raw(b"{}"),
    )


class Desk:
    """A notifier, what it wrote, and what it started."""

    def __init__(self, channel: Channel, *, always: bool | None = True, name: str = "one") -> None:
        self.out = io.StringIO()
        self.started: list[Sequence[str]] = []
        self.now = 0.0
        self.notifier = Notifier(
            self.out,
            name,
            self.started.append,
            always=always,
            channel=channel,
            clock=lambda: self.now,
        )


@pytest.mark.parametrize(
    ("env", "channel"),
    [
        ({"TERM_PROGRAM": "iTerm.app"}, Channel(osc=9)),
        ({"TERM_PROGRAM": "WezTerm", "DISPLAY": ":0"}, Channel(osc=9)),
        ({"TERM": "xterm-kitty"}, Channel(osc=9)),
        ({"TERM": "foot-extra"}, Channel(osc=777)),
        ({"VTE_VERSION": "7600"}, Channel(osc=777)),
        ({"TERM": "xterm", "WAYLAND_DISPLAY": "w"}, Channel(program="/usr/bin/notify-send")),
        ({"TERM": "xterm"}, Channel()),
        ({"TERM": "xterm", "DISPLAY": ":0", "SSH_CONNECTION": "1 2 3 4"}, Channel()),
        ({"TMUX": "/x", "TERM_PROGRAM": "iTerm.app"}, Channel()),
        ({"TERM": "screen-256color", "DISPLAY": ":0"}, Channel(program="/usr/bin/notify-send")),
    ],
)
def test_the_way_fits_the_terminal_and_the_desktop(env: dict[str, str], channel: Channel) -> None:
    assert channel_for(env, platform="linux", which=lambda name: f"/usr/bin/{name}") == channel


def test_on_a_mac_it_is_osascript_if_it_is_there() -> None:
    found = channel_for({}, platform="darwin", which=lambda name: f"/usr/bin/{name}")
    assert found == Channel(program="/usr/bin/osascript")
    assert channel_for({}, platform="darwin", which=lambda _: None) == Channel()


def test_a_terminal_is_told_by_its_sequence_and_a_bell() -> None:
    desk = Desk(Channel(osc=9))
    desk.notifier.observe(ask("touch made"))
    assert desk.out.getvalue() == "\x1b]9;one: asks: touch made\a\a"
    desk = Desk(Channel(osc=777), name="a;b")
    desk.notifier.observe(TURN)
    assert desk.out.getvalue() == "\x1b]777;notify;a,b;the turn has ended\a\a"


def test_a_program_gets_the_words_as_arguments_after_the_options() -> None:
    desk = Desk(Channel(program="/usr/bin/notify-send"), name="--icon=x")
    desk.notifier.observe(ask("--hint=x"))
    (argv,) = desk.started
    assert argv[1:] == ["--app-name=quarterdeck", "--", "--icon=x", "asks: --hint=x"]
    argv = argv_of("/usr/bin/osascript", "t", 'x" & do shell script "id')
    assert argv[-3:] == ["--", "t", 'x" & do shell script "id']
    assert all("do shell" not in part for part in argv[:-1])


@pytest.mark.parametrize("channel", [Channel(osc=9), Channel(osc=777), Channel(program="p")])
def test_nothing_that_an_agent_says_is_obeyed(channel: Channel) -> None:
    desk = Desk(channel, name=EVIL)
    desk.notifier.observe(ask(EVIL * 50))
    written = desk.out.getvalue()
    # Our own introduction, and the bells at the end; nothing of its kind in between.
    assert written.count("\x1b") == (1 if channel.osc else 0)
    assert written.count("\a") == (2 if channel.osc else 1)
    assert "\a" not in written.rstrip("\a")
    for part in [written, *(part for argv in desk.started for part in argv)]:
        assert not set("\r\n\x9b\u202e") & set(part)
    assert all(len(part) <= LONGEST for argv in desk.started for part in argv)


def test_a_word_is_one_line_of_bounded_length() -> None:
    assert one_line_of("a\n b\tc") == "a b c"
    assert one_line_of("x" * 1000) == "x" * (LONGEST - 1) + "…"
    assert "\x1b" not in one_line_of(EVIL)


def test_whoever_has_just_typed_is_left_alone() -> None:
    desk = Desk(Channel(), always=False)
    desk.notifier.observe(TURN)
    assert desk.out.getvalue() == ""
    desk.now = AWAY_SECONDS + 1
    desk.notifier.observe(TURN)
    assert desk.out.getvalue() == "\a"
    desk.notifier.note_typing()
    desk.notifier.observe(TURN)
    assert desk.out.getvalue() == "\a"


def test_never_is_never() -> None:
    desk = Desk(Channel(osc=9), always=None)
    desk.now = 1e6
    desk.notifier.observe(TURN)
    assert desk.out.getvalue() == ""


def test_what_is_worth_a_word() -> None:
    died = RunEnded(run="r", reason="it crashed")
    assert message_for(died) == "the agent ended: it crashed"
    assert message_for(RunEnded(run="r", reason="done", clean=True)) is None
    assert message_for(ask("the plan", AskKind.PLAN)) == "has a plan: the plan"
    failed = TurnEnded(prompts=(), failed=True, outcome="error_max_turns", cost_usd=0.0)
    assert message_for(failed) == "the turn failed: error_max_turns"
    assert message_for(Noted(level="info", text="x")) is None


@pytest.mark.process
async def test_a_program_is_run_and_one_that_is_not_there_is_no_loss(tmp_path: Path) -> None:
    program = tmp_path / "notify-send"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/said\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    with anyio.fail_after(SECONDS):
        await run_program(argv_of(str(program), "title", "$(id)"))
        await run_program([str(tmp_path / "none")])
    said = (tmp_path / "said").read_text().splitlines()
    assert said == ["--app-name=quarterdeck", "--", "title", "$(id)"]
