"""The reference pages of the library and the wire: their examples run as they are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from quarterdeck.testing import RealCli, ScriptedModel
from support.pages import Reader, page

LIBRARY = page("docs/reference/library.md").blocks("python")
WIRE = page("docs/reference/wire.md").blocks("python")

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


@pytest.fixture
def reader(tmp_path: Path, model: ScriptedModel, clis: dict[str, RealCli]) -> Reader:
    """A reader with the newest CLI."""
    return Reader(tmp_path, model.url, clis["2.1.325"])


async def test_a_query_is_read_and_finished(reader: Reader, model: ScriptedModel) -> None:
    model.enqueue("Nothing.")
    said = await reader.run(LIBRARY[1].code)
    assert said.startswith("Nothing.\nFalse 0.")


async def test_all_messages_are_heard_from_the_call_on(
    reader: Reader, model: ScriptedModel
) -> None:
    model.enqueue("Nothing.")
    assert await reader.run(LIBRARY[0].code) == "Nothing.\n"


async def test_a_rule_of_ones_own_can_be_made(reader: Reader) -> None:
    more = """
from msgspec import Raw
from quarterdeck.wire.requests import CanUseTool

asked = CanUseTool(tool_name="Bash", input=Raw(b"{}"))
print(*only_this_kind(ToolAsk("q", asked)).updates[0].rules)
"""
    assert await reader.run(LIBRARY[2].code + more) == "Bash(git status:*)\n"


async def test_a_prompt_with_a_picture_can_be_made(reader: Reader) -> None:
    (reader.cwd / "a.png").write_bytes(b"\x89PNG")
    more = 'print(bytes(about_a_picture(Path("a.png")).message.content).decode())\n'
    said = await reader.run(LIBRARY[3].code + more)
    assert '"media_type":"image/png","data":"iVBORw=="' in said
    assert len(LIBRARY) == 4


async def test_lines_become_messages(reader: Reader) -> None:
    assert await reader.run(WIRE[0].code) == ""


async def test_a_command_gets_its_typed_answer(reader: Reader, model: ScriptedModel) -> None:
    model.enqueue("Hello to you.")
    said = await reader.run(WIRE[1].code)
    assert "Hello to you." in said


async def test_a_peer_drives_a_cli_with_little_around_it(
    reader: Reader, model: ScriptedModel
) -> None:
    model.enqueue("Hello to you.")
    assert await reader.run(WIRE[2].code) == "Hello to you.\ndone\n"
    assert len(WIRE) == 3
