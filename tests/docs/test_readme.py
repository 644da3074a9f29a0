"""The README and the tutorial: their examples run as they are written, against the real CLI."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from quarterdeck.testing import RealCli, ScriptedModel, Text, ToolUse, reply
from support.pages import Reader, page
from support.served_deck import free_port

README = page("README.md")
TUTORIAL = page("docs/tutorial/first-agent.md")

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


@pytest.fixture
def reader(tmp_path: Path, model: ScriptedModel, clis: dict[str, RealCli]) -> Reader:
    """A reader with the newest CLI."""
    return Reader(tmp_path, model.url, clis["2.1.325"])


async def test_the_example_of_the_readme_runs(reader: Reader, model: ScriptedModel) -> None:
    (example,) = README.blocks("python")
    notes = reader.cwd.parent / "notes.txt"
    notes.write_text("about lighthouses\n")
    model.enqueue(
        reply("I look around.", ToolUse("Read", {"file_path": str(notes)})),
        ToolUse("Bash", {"command": "touch made"}),
        "It is about lighthouses.",
    )

    said = await reader.run(example.code)

    assert re.fullmatch(r"I look around\.\nIt is about lighthouses\.\n0\.\d{4} USD\n", said)
    # Reading was allowed, the shell was not, and the model was told why.
    assert "about lighthouses" in model.turns[1].body.decode()
    assert not (reader.cwd / "made").exists()
    assert "Only look around today" in model.turns[2].body.decode()


class TestTutorial:
    """Its examples, in their order."""

    async def test_one_question(self, reader: Reader, model: ScriptedModel) -> None:
        model.enqueue("4")
        said = await reader.run(TUTORIAL.blocks("python")[0].code)
        assert re.fullmatch(r"4\n0\.\d{4} USD\n", said)

    async def test_the_answer_while_it_is_written(
        self, reader: Reader, model: ScriptedModel
    ) -> None:
        model.enqueue(Text("ha ", times=3))
        said = await reader.run(TUTORIAL.blocks("python")[1].code)
        assert re.fullmatch(r"ha ha ha \n0\.\d{4} USD\n", said)

    async def test_decisions(self, reader: Reader, model: ScriptedModel) -> None:
        haiku = reader.cwd / "haiku.txt"
        model.enqueue(
            ToolUse("Write", {"file_path": str(haiku), "content": "an old silent pond\n"}),
            ToolUse("Write", {"file_path": str(reader.cwd / "more.txt"), "content": "again\n"}),
            ToolUse("Bash", {"command": f"chmod 400 {haiku}"}),
            ToolUse("Bash", {"command": "git push origin main"}),
            "Done.",
        )

        said = await reader.run(TUTORIAL.blocks("python")[2].code)

        # The second Write was not asked about: the first answer was for always.
        assert said.splitlines() == [
            f"May it? {haiku}",
            f"May it? chmod 400 {haiku}",
            "May it? git push origin main",
            "Done.",
        ]
        assert haiku.read_text() == "an old silent pond\n"
        assert haiku.stat().st_mode & 0o777 == 0o400
        assert (reader.cwd / "more.txt").exists()
        assert "Nothing leaves this machine." in model.turns[-1].body.decode()

    async def test_a_follow_up_and_an_interrupt(self, reader: Reader, model: ScriptedModel) -> None:
        model.enqueue("7", "14", Text("1\n", times=600, delay=0.1))
        said = await reader.run(TUTORIAL.blocks("python")[3].code)
        assert said == "7\n14\nit was stopped\n"
        # The second prompt came with the first one's answer before it.
        assert '"7"' in model.turns[1].body.decode()

    async def test_the_next_day(self, reader: Reader, model: ScriptedModel) -> None:
        model.enqueue("I will.", "Lighthouse.")
        today, tomorrow = TUTORIAL.blocks("python")[4:]
        assert await reader.run(today.code) == "I will.\n"
        assert await reader.run(tomorrow.code) == "Lighthouse.\n"
        assert "Remember this word: lighthouse." in model.turns[1].body.decode()

    async def test_the_doctor(self, reader: Reader) -> None:
        doctor = TUTORIAL.blocks("sh")[1].code.split()
        assert doctor[0] == ".venv/bin/quarterdeck"
        reader.env["QUARTERDECK_SERVER_PORT"] = str(free_port())  # a hub may run on this machine
        said = await reader.shell([str(Path(sys.executable).with_name("quarterdeck")), *doctor[1:]])
        assert "2.1.325" in said
