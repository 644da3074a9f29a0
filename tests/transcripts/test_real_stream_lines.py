"""What real CLIs say and what they write down are the same messages, in the same words."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import anyio
import pytest

from quarterdeck.testing import ScriptedModel, ToolUse, isolated_env, play, reply
from quarterdeck.transcripts import transcript_lines
from support.bounds import SECONDS
from support.clis import VERSIONS, real_cli

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

FLAGS = ("-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose")
PROMPT = "11111111-1111-4111-8111-111111111111"
SAME = ("type", "parent_tool_use_id", "session_id", "uuid", "isReplay", "tool_use_result")


@pytest.mark.parametrize("version", VERSIONS)
async def test_what_is_recalled_is_what_was_said(
    tmp_path: Path, model: ScriptedModel, version: str
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("in a")
    read = [ToolUse("Read", {"file_path": str(work / name)}) for name in ("a.txt", "none.txt")]
    prompt = play(reply(*read), reply("so far", read[0]), reply("done"))
    line = {"type": "user", "uuid": PROMPT, "message": {"role": "user", "content": prompt}}
    with anyio.fail_after(SECONDS):
        done = await anyio.run_process(
            [*real_cli(version).command, *FLAGS, "--replay-user-messages"],
            input=json.dumps(line).encode() + b"\n",
            cwd=work,
            env=isolated_env(tmp_path / "home", model.url),
            stderr=subprocess.DEVNULL,
        )
    said = [json.loads(each) for each in done.stdout.splitlines()]
    spoken = {each["uuid"]: each for each in said if each["type"] in {"user", "assistant"}}
    found = transcript_lines(said[-1]["session_id"], config_dir=tmp_path / "home" / ".claude")
    recalled = {one.uuid: json.loads(bytes(one.line)) for one in found}
    assert sorted(recalled) == sorted(spoken)
    assert recalled[PROMPT]["isReplay"] is True
    for uuid, message in recalled.items():
        assert message["message"]["content"] == spoken[uuid]["message"]["content"]
        assert {name: message.get(name) for name in SAME} == {
            name: spoken[uuid].get(name) for name in SAME
        }
