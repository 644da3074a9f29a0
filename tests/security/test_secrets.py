"""Secrets of a session: nobody reads them in the API, nor in the list of processes (M6)."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from msgspec import Raw

from quarterdeck.claude.launch import ArgumentFiles, Launch, to_argv
from quarterdeck.fronts.http import Role
from quarterdeck.fronts.http.masks import masked_spec
from quarterdeck.journal import MemoryJournal
from quarterdeck.journal.sqlite import SqliteJournal
from quarterdeck.protocol.events import Sent, SessionCreated
from quarterdeck.protocol.sessions import SessionSpec
from support.front import Front

SECRET = "hunter2-Q9x7-secret"
SERVERS: dict[str, object] = {
    "local": {
        "command": "npx",
        "args": ["-y", "@scope/server", "--token", SECRET, f"--key={SECRET}"],
        "env": {"API_KEY": SECRET},
    },
    "far": {
        "type": "http",
        "url": f"https://ada:{SECRET}@mcp.example/path?key={SECRET}#{SECRET}",
        "headers": {"Authorization": f"Bearer {SECRET}"},
    },
}
SPEC = SessionSpec(
    directory="/work",
    env={"TOKEN": SECRET},
    mcp_servers={name: Raw(msgspec.json.encode(each)) for name, each in SERVERS.items()},
    settings=json.dumps({"env": {"KEY": SECRET}, "apiKeyHelper": f"echo {SECRET}", "model": "x"}),
)
LINES = [
    {
        "type": "control_request",
        "request_id": "1",
        "request": {"subtype": "mcp_set_servers", "servers": SERVERS},
    },
    {
        "type": "control_request",
        "request_id": "2",
        "request": {"subtype": "apply_flag_settings", "settings": {"env": {"KEY": SECRET}}},
    },
    {"type": "update_environment_variables", "variables": {"KEY": SECRET}},
]


def test_m6_a_spec_is_shown_without_its_secrets_and_with_the_rest() -> None:
    shown = masked_spec(SPEC)
    text = msgspec.json.encode(shown).decode()
    assert SECRET not in text
    local = json.loads(bytes(shown.mcp_servers["local"]))
    assert local["args"] == ["-y", "@scope/server", "--token", "…", "…"]
    far = json.loads(bytes(shown.mcp_servers["far"]))
    assert far["url"] == "https://…@mcp.example/path?…"
    assert json.loads(shown.settings or "")["model"] == "x"


async def test_m6_no_route_and_no_stream_shows_a_secret(hub: Front) -> None:
    session = await hub.deck.have_session()
    sent = [
        Sent(run="r", number=number, line=Raw(msgspec.json.encode(line)))
        for number, line in enumerate(LINES, 1)
    ]
    await hub.deck.journal.append(session, sent)
    async with hub.client(Role.VIEWER) as viewer:
        for path in (f"/api/sessions/{session}/events", f"/api/sessions/{session}"):
            answer = await viewer.get(path)
            assert answer.status_code == 200
            assert SECRET not in answer.text
    async with hub.stream(Role.VIEWER) as talk:
        await talk.follow(sessions={session: 0})
        found = await talk.events(3 + len(sent))
    assert "mcp_set_servers" in json.dumps(found)
    assert SECRET not in json.dumps(found)


@pytest.mark.parametrize("engine", ["sqlite", "memory"])
async def test_m6_lines_with_secrets_are_never_forwarded_as_text(
    tmp_path: Path, engine: str
) -> None:
    journal = (
        await SqliteJournal.open(tmp_path / "journal.db") if engine == "sqlite" else MemoryJournal()
    )
    try:
        plain = Sent(run="r", number=1, line=Raw(b'{"type":"user"}'))
        secret = Sent(run="r", number=2, line=Raw(msgspec.json.encode(LINES[0])))
        await journal.append("s1", [SessionCreated(spec=SessionSpec(directory="/w"), by="ada")])
        await journal.append("s1", [plain, plain, secret, plain])
        first = await journal.raw_events("s1", after=1)
        assert first is not None
        assert first.last == 3
        assert await journal.raw_events("s1", after=3) is None
        rest = await journal.raw_events("s1", after=4)
        assert rest is not None
        assert rest.last == 5
    finally:
        await journal.close()


def test_m6_secrets_are_no_arguments_of_a_process() -> None:
    launch = Launch(
        settings=SPEC.settings, mcp_config=(json.dumps({"mcpServers": SERVERS}),), model="opus"
    )
    with ArgumentFiles() as files:
        argv = to_argv(launch, files)
        assert SECRET not in " ".join(argv)
        assert "--model=opus" in argv
        paths = [each.partition("=")[2] for each in argv if "quarterdeck-launch-" in each]
        assert len(paths) == 2
        assert all(SECRET in Path(path).read_text() for path in paths)
        assert all(Path(path).parent.stat().st_mode & 0o077 == 0 for path in paths)
