"""The pages about loops: their commands and their example run as they are written."""

from __future__ import annotations

import shlex
from pathlib import Path

import anyio
import pytest

from quarterdeck.loop.spec import EXIT_CODES, LoopSpec, Stops
from quarterdeck.testing import RealCli, ScriptedModel, ToolUse
from support.bounds import SECONDS
from support.command_line import Quarterdeck
from support.pages import Reader, page
from support.processes import Processes
from support.repositories import make_repository
from support.served_deck import ServedDeck

HOW_TO = page("docs/how-to/run-a-loop.md")
REFERENCE = page("docs/reference/loop.md")
ID = "01m7gxgn"
"""The id in the commands of the page."""

pytestmark = pytest.mark.anyio


def commands() -> list[list[str]]:
    blocks = HOW_TO.blocks("")
    lines = [line for block in blocks for line in block.code.splitlines()]
    return [shlex.split(line[2:])[1:] for line in lines if line.startswith("$ quarterdeck ")]


def test_every_reason_and_every_setting_is_on_the_page() -> None:
    for reason, code in EXIT_CODES.items():
        assert f"| `{reason}` | {code} |" in REFERENCE.text
    for name in (*LoopSpec.__struct_fields__, *Stops.__struct_fields__):
        assert f"`{name}`" in REFERENCE.text, name


@pytest.mark.real_cli
async def test_the_example_runs(
    tmp_path: Path, model: ScriptedModel, clis: dict[str, RealCli]
) -> None:
    reader = Reader(tmp_path, model.url, clis["2.1.325"])
    model.enqueue("ALL DONE")
    said = await reader.run(REFERENCE.blocks("python")[0].code)
    assert said.endswith("The agent wrote: ALL DONE\nphrase 10 1\n")


@pytest.mark.real_cli
async def test_every_command_of_the_guide_runs(
    tmp_path: Path, model: ScriptedModel, clis: dict[str, RealCli], processes: Processes
) -> None:
    quarterdeck = Quarterdeck(tmp_path, model.url, clis["2.1.325"].command, processes)
    make_repository(quarterdeck.work)
    (quarterdeck.work / "task.md").write_text(HOW_TO.blocks("")[0].code)
    (quarterdeck.work / "check.sh").write_text("test -e mended")
    deck = ServedDeck(quarterdeck, processes)
    await deck.serve()
    verdict = ToolUse("StructuredOutput", {"agree": True, "reason": "right"})
    model.enqueue(verdict, when="Review the work")
    model.enqueue("1. write", when="Make a plan")
    model.enqueue(ToolUse("Write", {"file_path": "mended", "content": "x"}), "written", when="Make")
    model.enqueue("ALL DONE", when="Make")
    model.enqueue("still at it", when="parser")
    loop, codes = "", []
    for words in commands():
        given = [word.replace(ID, loop) if word.startswith(ID) else word for word in words]
        given += ["--api-billing"] if given[1] == "run" else []
        # The command that names no hub of its own stops a loop that waits for nobody.
        done = await quarterdeck(*given)
        codes.append((words[1], done.code))
        if "--detach" in words:
            loop = done.out.strip()
        elif words[1] == "run":
            listed = await quarterdeck("loop", "list", "--local")
            loop = listed.out.split()[0]
    with anyio.fail_after(SECONDS):
        while "person" not in (await quarterdeck("loop", "list")).out:  # noqa: ASYNC110
            await anyio.sleep(0.1)
    await deck.leave()
    quarterdeck.close()
    assert codes == [
        ("run", 11),
        ("list", 0),
        ("show", 0),
        ("show", 0),
        ("continue", 11),
        ("run", 0),
        ("pause", 0),
        ("resume", 0),
        ("stop", 0),
        ("run", 10),
    ]
