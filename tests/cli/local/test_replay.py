"""`record` and `replay`: what was seen once can be seen again, without any CLI."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quarterdeck.cli import main
from quarterdeck.testing.script import ToolUse, play
from support.command_line import Quarterdeck


@pytest.mark.anyio
@pytest.mark.real_cli
async def test_a_recording_is_shown_as_the_run_was(quarterdeck: Quarterdeck) -> None:
    edit = ToolUse("Write", {"file_path": "new.txt", "content": "one\ntwo\n"})
    options = ("--", "--api-billing", "--mode", "acceptEdits")
    ran = await quarterdeck("record", "it.ndjson", play(edit, "fin"), *options)
    assert ran.code == 0, ran.err
    assert "+two" in ran.out
    shown = await quarterdeck("replay", "it.ndjson", QUARTERDECK_CLAUDE="/nowhere")
    assert shown.code == 0
    assert shown.out.startswith("> PLAY")
    assert shown.out.partition("\n\n")[2] == ran.out
    passed = await quarterdeck("replay", "--json", "it.ndjson")
    records = [
        json.loads(line) for line in (quarterdeck.work / "it.ndjson").read_text().splitlines()
    ]
    said = [record["line"] for record in records if record["dir"] == "out"]
    assert passed.out.splitlines() == said


def _recording(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_a_recording_is_replayed_at_its_own_pace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    lines = [f'{{"dir":"out","t":{t},"line":"{{}}"}}' for t in (0, 2000, 60_000)]
    file = _recording(tmp_path / "r", *lines)
    assert main(["replay", "--speed", "2", str(file)]) == 0
    assert slept == [1.0, 5.0]


def test_the_end_of_a_cli_that_died_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    end = '{"dir":"meta","t":9,"event":"closed","reason":"It was killed.","exit_code":9}'
    file = _recording(tmp_path / "r", '{"dir":"meta","t":0,"event":"start"}', end)
    assert main(["replay", str(file)]) == 0
    assert "the CLI exited: It was killed." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is empty"),
        ("no json\n", "line 1"),
        ('{"dir":"out","t":1,"base64":"!"}\n', "line 1"),
    ],
)
def test_what_is_no_recording_gives_1_and_says_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, words: str
) -> None:
    file = tmp_path / "r"
    file.write_text(content)
    assert main(["replay", str(file)]) == 1
    assert words in capsys.readouterr().err
