"""The table of commands: requests of the client are commands of the server."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest
from msgspec import Raw

from quarterdeck.protocol import commands as cmd
from quarterdeck.protocol.command_table import ROWS, TABLE, right_for, row_of
from quarterdeck.protocol.commands import AnyCommand
from quarterdeck.protocol.roles import Right
from quarterdeck.protocol.sessions import SessionSpec

COMMANDS: list[AnyCommand] = [
    cmd.CreateSession(spec=SessionSpec(directory="/w"), session="s", prompt=Raw(b'"do"')),
    cmd.RenameSession(session="s", name="new"),
    cmd.ArchiveSession(session="s", archived=True),
    cmd.ArchiveSession(session="s", archived=False),
    cmd.ChangeSession(session="s", ask_timeout=3.0),
    cmd.DeleteSession(session="s"),
    cmd.StopSession(session="s"),
    cmd.ResumeSession(session="s"),
    cmd.MoveSession(session="s", machine="box", directory="/w"),
    cmd.ForkSession(session="s", name="copy"),
    cmd.RewindSession(session="s", prompt="p", files=True),
    cmd.Interrupt(session="s"),
    cmd.Control(session="s", request=Raw(b'{"subtype":"x"}'), timeout=5.0),
    cmd.SendPrompt(session="s", prompt="p", content=Raw(b'"do"')),
    cmd.ChangePrompt(session="s", prompt="p", content=Raw(b'"do"')),
    cmd.CancelPrompt(session="s", prompt="p/ä"),
    cmd.AnswerAsk(ask="s.a", answer=cmd.DenyAnswer(message="no")),
]


def test_every_command_has_a_row_and_an_example_here() -> None:
    assert ROWS.keys() == set(get_args(AnyCommand)) == {type(command) for command in COMMANDS}
    routes = [(row.method, row.path) for row in TABLE if not row.shared]
    assert len(routes) == len(set(routes))


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: type(command).__name__)
def test_a_command_comes_out_of_its_own_request(command: AnyCommand) -> None:
    row = row_of(command)
    _, data = row.request(command)
    body = None if row.body is None else msgspec.json.decode(data or b"", type=row.body)
    path = {name: getattr(command, name) for name in row.in_path}
    assert row.parse(path, body) == command


def test_ids_are_escaped_in_the_path() -> None:
    command = cmd.CancelPrompt(session="a b", prompt="p/ä")
    path, body = row_of(command).request(command)
    assert (path, body) == ("/api/sessions/a%20b/prompts/p%2F%C3%A4", None)


def test_who_sends_a_command_is_not_in_its_request() -> None:
    answer = cmd.AnswerAsk(ask="a", answer=cmd.AllowAnswer(), by="me", role="owner")
    _, body = row_of(answer).request(answer)
    assert body == b'{"answer":{"answer":"allow"}}'
    kind = row_of(answer).body
    assert kind is not None
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        msgspec.json.decode(b'{"answer":{"answer":"allow"},"by":"ada"}', type=kind)


@pytest.mark.parametrize("given", [b'{"content":"x"}', b'{"content":"x","prompt":null}'])
def test_a_prompt_without_an_id_gets_one(given: bytes) -> None:
    row = ROWS[cmd.SendPrompt]
    assert row.body is not None
    command = row.parse({"session": "s"}, msgspec.json.decode(given, type=row.body))
    assert isinstance(command, cmd.SendPrompt)
    assert len(command.prompt) > 10
    assert bytes(command.content) == b'"x"'


def test_what_can_make_an_agent_do_anything_needs_the_right_to_manage() -> None:
    manage = {type(command) for command in COMMANDS if right_for(command) is Right.MANAGE}
    assert manage == {
        cmd.CreateSession,
        cmd.MoveSession,
        cmd.ForkSession,
        cmd.DeleteSession,
        cmd.ChangeSession,
        cmd.Control,
    }
