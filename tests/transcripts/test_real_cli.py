"""Sessions that real CLIs have written, and real CLIs that go on with what we have written."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import anyio
import claude_agent_sdk as official
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from quarterdeck.testing import ScriptedModel, ToolUse, isolated_env, play, reply
from quarterdeck.transcripts import (
    SessionInfo,
    SessionMessage,
    fork_session,
    list_sessions,
    list_subagents,
    project_folder_name,
    project_path,
    rename_session,
    session_info,
    session_messages,
    subagent_messages,
    tag_session,
)
from support.bounds import SECONDS
from support.clis import VERSIONS, real_cli
from support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

_FLAGS = ("-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose")

GOING_ON = ("2.1.62", "2.1.325")
"""Those that are given what we have written: old and new differ in what they make of it."""


class Machine:
    """A home of the test's own, in which CLIs are run for one prompt each."""

    def __init__(self, root: Path, base_url: str, work: Path) -> None:
        self.config = root / "home" / ".claude"
        self.work = work
        self._env = isolated_env(root / "home", base_url)
        work.mkdir(parents=True)

    async def run(
        self, version: str, prompt: str, *flags: str, written: Callable[[str], bool] | None = None
    ) -> str:
        """Give the CLI one prompt, let it end, and give back the session's id.

        An ending CLI does not wait for its subagents' files: `written` says, by the session's id,
        when they are there and it may end.
        """
        line = {"type": "user", "message": {"role": "user", "content": prompt}}
        with anyio.fail_after(SECONDS):
            async with await anyio.open_process(
                [*real_cli(version).command, *_FLAGS, *flags],
                cwd=self.work,
                env=self._env,
                stderr=subprocess.DEVNULL,
            ) as process:
                assert process.stdin is not None
                assert process.stdout is not None
                await process.stdin.send(json.dumps(line).encode() + b"\n")
                said = BufferedByteReceiveStream(process.stdout)
                result: dict[str, object] = {}
                while result.get("type") != "result":
                    result = json.loads(await said.receive_until(b"\n", 10_000_000))
                assert result["subtype"] == "success"
                session_id = result["session_id"]
                assert isinstance(session_id, str)
                if written is not None:
                    await until(lambda: written(session_id))
                await process.stdin.aclose()
                async for _ in said:
                    pass
                await process.wait()
        return session_id

    def info(self, session_id: str) -> SessionInfo:
        info = session_info(session_id, directory=self.work, config_dir=self.config)
        assert info is not None
        return info


@pytest.fixture
def machine(tmp_path: Path, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine(tmp_path, model.url, tmp_path / "Prøve 😀_1")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(machine.config))
    return machine


def _two_reads_at_once(machine: Machine) -> str:
    for name in ("a.txt", "b.txt"):
        (machine.work / name).write_text(f"in {name}")
    reads = [ToolUse("Read", {"file_path": str(machine.work / n)}) for n in ("a.txt", "b.txt")]
    return play(reply(*reads), reply("both read"))


def _spoken(model: ScriptedModel) -> list[str]:
    """The texts of the conversation that the model was sent last."""
    return [text for message in model.turns[-1].messages for text in message.texts]


def _spoken_lines(path: str) -> list[dict[str, object]]:
    """The messages in a file, in the order in which they were written."""
    lines = map(json.loads, Path(path).read_bytes().splitlines())
    return [line for line in lines if line["type"] in {"user", "assistant"}]


def _agrees_with_the_official_sdk(machine: Machine, session_id: str) -> bool:
    ours = session_messages(session_id, config_dir=machine.config)
    theirs = official.get_session_messages(session_id)
    assert [(m.type, m.uuid, json.loads(bytes(m.message))) for m in ours] == [
        (m.type, m.uuid, m.message) for m in theirs
    ]
    info, other = machine.info(session_id), official.get_session_info(session_id)
    assert other is not None
    assert (info.summary, info.first_prompt, info.custom_title, info.cwd, info.git_branch) == (
        other.summary,
        other.first_prompt,
        other.custom_title,
        other.cwd,
        other.git_branch,
    )
    assert other.created_at is not None
    assert info.created_at is not None
    return abs(info.created_at - other.created_at) <= 1


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_session_that_a_real_cli_wrote_is_read_and_goes_on_as_we_have_changed_it(
    machine: Machine, model: ScriptedModel, version: str
) -> None:
    prompt = _two_reads_at_once(machine)
    session_id = await machine.run(version, prompt)

    folder = machine.config / "projects" / project_folder_name(project_path(machine.work))
    assert (folder / f"{session_id}.jsonl").is_file()
    (info,) = list_sessions(machine.work, config_dir=machine.config)
    assert (info.session_id, info.first_prompt, info.cwd) == (
        session_id,
        prompt if len(prompt) <= 200 else prompt[:200].rstrip() + "…",
        str(machine.work),
    )
    messages = session_messages(session_id, config_dir=machine.config)
    said = b"\n".join(bytes(message.message) for message in messages)
    assert all(text in said for text in (b"in a.txt", b"in b.txt", b"both read"))
    assert said.count(b'"tool_result"') == 2
    assert _agrees_with_the_official_sdk(machine, session_id)
    if version in GOING_ON:
        await goes_on_renamed_tagged_and_forked(machine, model, version, session_id, prompt)
    if version == VERSIONS[-1]:
        await a_fork_up_to_a_message_ends_there(machine, model, messages[-1], prompt)


async def goes_on_renamed_tagged_and_forked(
    machine: Machine, model: ScriptedModel, version: str, session_id: str, first: str
) -> None:
    before = session_messages(session_id, config_dir=machine.config)
    rename_session(session_id, "Größe 😀", config_dir=machine.config)
    tag_session(session_id, "red", config_dir=machine.config)
    fork = fork_session(session_id, config_dir=machine.config)
    assert machine.info(fork).summary == "Größe 😀 (fork)"

    for resumed in (session_id, fork):
        assert await machine.run(version, "and more", "--resume", resumed) == resumed
        spoken = _spoken(model)
        assert spoken[-1] == "and more"
        assert {first, "both read"} <= set(spoken)
        # 2.1.62 itself forgets one of two parallel calls, also in a session that nobody touched.
        results = [b for m in model.turns[-1].messages for b in m.blocks if b.type == "tool_result"]
        assert len(results) == (1 if version == "2.1.62" else 2)
        after = session_messages(resumed, config_dir=machine.config)
        assert [bytes(m.message) for m in after[:-2]] == [bytes(m.message) for m in before]
        assert [m.type for m in after[-2:]] == ["user", "assistant"]
        assert _agrees_with_the_official_sdk(machine, resumed)
    assert (machine.info(session_id).summary, machine.info(session_id).tag) == ("Größe 😀", "red")
    assert machine.info(fork).summary == "Größe 😀 (fork)"


async def a_fork_up_to_a_message_ends_there(
    machine: Machine, model: ScriptedModel, answer: SessionMessage, first: str
) -> None:
    """`answer` ends the session's first turn; there has been a second one since."""
    session_id = answer.session_id
    *_, last = session_messages(session_id, config_dir=machine.config)
    assert b"echo: and more" in bytes(last.message)
    fork = fork_session(session_id, up_to_message_id=answer.uuid, config_dir=machine.config)
    await machine.run(VERSIONS[-1], "three", "--resume", fork)
    spoken = _spoken(model)
    assert {first, "both read", "three"} <= set(spoken)
    assert "and more" not in spoken


@pytest.mark.parametrize("version", ["2.1.37", "2.1.325"])
async def test_the_subagents_of_a_real_session_are_listed_and_read(
    machine: Machine, version: str
) -> None:
    task = {"description": "look", "prompt": "the task", "subagent_type": "general-purpose"}
    prompt = play(reply(ToolUse("Task", {**task, "run_in_background": False})), reply("done"))

    def written(session_id: str) -> bool:
        agents = list_subagents(session_id, config_dir=machine.config)
        return any(b"echo: the task" in Path(agent.path).read_bytes() for agent in agents)

    session_id = await machine.run(version, prompt, written=written)
    (agent,) = list_subagents(session_id, config_dir=machine.config)
    assert official.list_subagents(session_id) == [agent.agent_id]
    ours = subagent_messages(session_id, agent.agent_id, config_dir=machine.config)
    theirs = official.get_subagent_messages(session_id, agent.agent_id)
    assert [(m.uuid, m.parent_tool_use_id) for m in ours] == [
        (m.uuid, m.parent_tool_use_id) for m in theirs
    ]
    assert b"the task" in bytes(ours[0].message)
    first, *_, last = _spoken_lines(agent.path)
    assert ours[-1].uuid == last["uuid"]
    # 2.1.37 does not wait until a line is written before it writes the next one: under load the
    # answer can stand before its prompt, and the official SDK then reads the prompt alone.
    in_order = first["type"] == "user"
    assert (b"echo: the task" in bytes(ours[-1].message)) == in_order
    assert in_order or version == "2.1.37"


@pytest.mark.parametrize("version", ["2.1.37", "2.1.325"])
async def test_the_sessions_of_a_project_with_a_long_path_are_found(
    tmp_path: Path, model: ScriptedModel, version: str
) -> None:
    path = tmp_path / ("d" * (225 - len(str(tmp_path)))) / "deep"
    machine = Machine(tmp_path, model.url, path)
    session_id = await machine.run(version, "far down")
    found = list_sessions(machine.work, config_dir=machine.config)
    assert [info.session_id for info in found] == [session_id]
    (folder,) = (machine.config / "projects").iterdir()
    assert (folder.name == project_folder_name(project_path(path))) == (version != "2.1.37")
