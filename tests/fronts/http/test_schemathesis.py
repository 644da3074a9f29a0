"""Schemathesis over the whole API: no error of the server, no answer that is not documented."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import msgspec
import pytest

from quarterdeck.fronts.http import Role
from quarterdeck.fronts.http.app import openapi_document
from quarterdeck.protocol.commands import CreateSession
from quarterdeck.protocol.sessions import SessionSpec
from support.front import Front, front

pytestmark = [pytest.mark.process, pytest.mark.no_cover]

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
    "negative_data_rejection",
)
SEED = "7"


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Front]:
    """A front with schedules, too."""
    async with front(tmp_path / "data", scheduling=True) as running:
        yield running


def _operations() -> int:
    paths = msgspec.json.decode(openapi_document())["paths"]
    return sum(len(methods) for methods in paths.values())


async def run(
    hub: Front, folder: Path, *, known: dict[str, str], phases: str, examples: int
) -> str:
    """Run it against the front; gives what it says when something was found, else nothing."""
    rows = "".join(f'"path.{name}" = "{value}"\n' for name, value in known.items())
    settings = folder / "schemathesis.toml"
    settings.write_text(f"[parameters]\n{rows}")
    token = hub.access.make_token("me", Role.OWNER)
    with anyio.fail_after(300):
        ended = await anyio.run_process(
            [
                *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(settings)),
                *("run", f"{hub.url}/openapi.json", "--checks", ",".join(CHECKS)),
                *("-H", f"Authorization: Bearer {token}", "--phases", phases),
                *("--max-examples", str(examples), "--seed", SEED, "--no-color"),
                *("--generation-database", "none"),
                # It would take away what the others are about.
                *("--exclude-name", "DELETE /api/sessions/{session_id}"),
                *("--exclude-name", "DELETE /api/token"),
            ],
            check=False,
            cwd=folder,
        )
    said = ended.stdout.decode() + ended.stderr.decode()
    assert f"{_operations() - 2} passed" in said or ended.returncode, said
    return said if ended.returncode else ""


async def test_whatever_is_sent_to_a_session_that_exists_is_answered_as_documented(
    hub: Front, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await hub.deck.submit(CreateSession(spec=SessionSpec(directory="/x"), session="s1", by="me"))
    ask = await hub.deck.ask("s1")
    known = {"session_id": "s1", "ask_id": ask}
    assert not await run(hub, tmp_path, known=known, phases="coverage", examples=1)
    assert {type(command).__name__ for command in hub.deck.submitted} >= {
        "SendPrompt",
        "Control",
        "ForkSession",
        "StopSession",
        "AnswerAsk",
        "ChangeSession",
        "RenameSession",
    }
    assert "Traceback" not in caplog.text


async def test_whatever_is_asked_of_strange_ids_is_answered_as_documented(
    hub: Front, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert not await run(hub, tmp_path, known={}, phases="fuzzing", examples=4)
    assert "Traceback" not in caplog.text
