"""`quarterdeck policy try`: one call for a person, and a corpus for a program, without a hub."""

from __future__ import annotations

import io
import json
from pathlib import Path

import anyio
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from quarterdeck.cli import main
from support.bounds import SECONDS
from support.command_line import COMMAND, Quarterdeck
from support.processes import Processes


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUARTERDECK_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")


def give(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))


def run(capfd: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert main(["policy", "try", *arguments]) == code
    said = capfd.readouterr()
    return said.out + said.err


def test_a_command_is_shown_with_tokens_needs_rules_and_verdict(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    policy = tmp_path / "p.toml"
    policy.write_text(
        "[[rule]]\nname='all'\nverdict='allow'\ntool='Bash'\n"
        "[[rule]]\nname='pushes'\nverdict='ask'\ncommand='git push'\n"
    )
    said = run(capfd, "npm test \"$x\" 'a b' > out && git push", "--policy", str(policy))
    lines = said.splitlines()
    assert lines[0] == "ask  by pushes (p.toml:5)"
    assert "    ask         pushes (p.toml:5)" in lines
    assert "  word        'a b'  (is a b)" in lines
    assert "  redirection >" in lines
    assert "  operator    &&" in lines
    assert "  edit    out  (it is written as output)" in lines
    assert '  "$x"  (at character 10): its value is known only when it runs' in lines


def test_programs_get_json(capfd: pytest.CaptureFixture[str]) -> None:
    found = json.loads(run(capfd, "git push", "--policy", "careful", "--json"))
    assert found["verdict"] == "ask"
    assert [token["text"] for token in found["tokens"]] == ["git", "push"]
    assert found["explanation"]["parts"][0]["what"] == "git push"
    assert found["explanation"]["unknown"] == []


def test_a_command_comes_from_stdin_as_it_is(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    give(monkeypatch, b"cat <<'E'\n$x\nE\n")
    found = json.loads(run(capfd, "-", "--json"))
    assert [token["kind"] for token in found["tokens"]][-1] == "document"
    give(monkeypatch, b"\xff")
    assert "not UTF-8" in run(capfd, "-", code=2)


def test_other_tools_have_an_input(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    input_ = json.dumps({"file_path": f"{tmp_path}/project/.env"})
    said = run(capfd, "--tool", "Read", "--input", input_, "--policy", "careful")
    assert said.startswith("deny  by secrets")
    assert "tokens" not in said


def test_the_folders_decide_and_links_are_followed(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    policy = tmp_path / "p.toml"
    policy.write_text("default = 'ask'\n[[rule]]\nverdict='deny'\npath='~/secret/**'\n")
    (tmp_path / "secret").mkdir()
    (tmp_path / "project" / "link").symlink_to(tmp_path / "secret")
    given = ("--policy", str(policy), "--home", str(tmp_path))
    assert run(capfd, "cat link/key", *given).startswith("deny")
    elsewhere = run(capfd, "cat key", *given, "--cwd", str(tmp_path / "secret"))
    assert elsewhere.startswith("deny")


def test_the_mode_is_a_fact(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    policy = tmp_path / "p.toml"
    policy.write_text("[[rule]]\nverdict='deny'\ncommand='ls'\nmode='plan'\n")
    assert run(capfd, "ls", "--policy", str(policy)).startswith("left to the CLI")
    assert run(capfd, "ls", "--policy", str(policy), "--mode", "plan").startswith("deny")


def test_by_default_it_is_the_policy_of_this_machine(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(capfd, "git push").startswith("left to the CLI")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "policy.toml").write_text("default = 'deny'\n")
    assert run(capfd, "git push").startswith("deny  by default (policy.toml)")


def test_the_hubs_own_files_are_closed_as_in_a_session(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    said = run(capfd, f"cat {tmp_path}/data/journal.db", "--policy", "trusted-repo")
    assert said.startswith("deny  by the hub's own files (built-in)")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give a command, or --tool and --input"),
        (("ls", "--input", "x"), "give a command, or --tool and --input"),
        (("ls", "--tool", "Read"), "give the input of Read with --input"),
        (("ls", "--policy", "nope"), "there is no file and no preset 'nope'"),
        ((" ",), "the command is empty"),
        (("ls", "--batch"), "--batch takes no other options"),
    ],
)
def test_wrong_usage_is_told(
    arguments: tuple[str, ...], said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert said in run(capfd, *arguments, code=2)


def test_a_wrong_policy_is_told_with_its_line(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "p.toml").write_text("\ndefault = 'x'\n")
    assert "p.toml:2: default" in run(capfd, "ls", "--policy", str(tmp_path / "p.toml"), code=2)


# --- many cases -----------------------------------------------------------------------------------


def case(id_: object, command: str, policy: str = "extends = ['careful']", **more: object) -> bytes:
    given = {"id": id_, "policy": policy, "tool": "Bash", "input": {"command": command}}
    return json.dumps({**given, "cwd": "/p", "home": "/h", "local": False, **more}).encode() + b"\n"


def test_each_case_of_a_batch_has_one_line(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        case(1, "git status"),
        case("two", "git push", other="is ignored"),
        b"\n",
        case(3, "cat .env"),
        case(4, "git push", "default = 'cli'"),
        case(5, "cd sub", "default = 'cli'"),
        case(6, "ls", "[[rule]]\nverdict='ask'\nmode='plan'\ncommand='ls'", mode="plan"),
    ]
    give(monkeypatch, b"".join(lines))
    found = [json.loads(line) for line in run(capfd, "--batch").splitlines()]
    assert [(one["id"], one["verdict"]) for one in found] == [
        (1, "allow"),
        ("two", "ask"),
        (3, "deny"),
        (4, "cli"),
        (5, "free"),
        (6, "ask"),
    ]
    assert all(one["reason"] for one in found)


def test_a_rewritten_call_says_what_would_run(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = (
        "[claude]\nallow=['Bash']\n[[rule]]\nverdict='rewrite'\ncommand='git push'\n"
        "flags=['-f']\nrewrite={replace_flags={'-f'='--soft'}}\n"
    )
    give(monkeypatch, case(1, "git push -f", policy))
    (found,) = map(json.loads, run(capfd, "--batch").splitlines())
    assert found["verdict"] == "rewritten"
    assert found["input"] == {"command": "git push --soft"}


def test_a_bad_line_is_told_and_the_rest_goes_on(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        b"nonsense\n",
        case(2, "ls", "\ndefault = 'x'"),
        b'{"id": 3, "policy": "", "input": {}}\n',
        case(4, "ls", cwd="relative"),
        case(5, "git push"),
    ]
    give(monkeypatch, b"".join(lines))
    found = [json.loads(line) for line in run(capfd, "--batch", code=1).splitlines()]
    assert [(one["id"], one.get("line"), one.get("verdict")) for one in found] == [
        (None, 1, None),
        (2, 2, None),
        (3, 3, None),
        (4, 4, None),
        (5, None, "ask"),
    ]
    assert found[1]["error"].startswith("policy:2: default")
    assert "`tool`" in found[2]["error"]
    assert found[3]["error"] == "cwd: expected an absolute path"


def test_a_line_that_is_too_long_is_told(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quarterdeck.cli.local.policy_try.LONGEST_LINE", 300)
    give(monkeypatch, case(1, "x" * 2000) + case(2, "ls"))
    first, second = map(json.loads, run(capfd, "--batch", code=1).splitlines())
    assert (first["line"], first["error"]) == (1, "the line has more than 300 bytes")
    assert second["id"] == 2


def test_a_local_case_follows_links_and_another_does_not(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "project" / "link").symlink_to(tmp_path / "secret")
    policy = f"[[rule]]\nverdict='deny'\npath='/{tmp_path}/secret/**'\n"
    where = {"cwd": str(tmp_path / "project"), "home": str(tmp_path)}
    lines = [case(here, "cat link/key", policy, local=here, **where) for here in (True, False)]
    give(monkeypatch, b"".join(lines))
    found = [json.loads(line) for line in run(capfd, "--batch").splitlines()]
    assert found[0]["verdict"] == "deny"
    assert found[1]["verdict"] != "deny"


@pytest.mark.anyio
@pytest.mark.process
async def test_each_answer_of_a_batch_comes_before_the_next_line_is_read(
    quarterdeck: Quarterdeck, processes: Processes
) -> None:
    command = [*COMMAND, "policy", "try", "--batch"]
    async with await anyio.open_process(command, env=quarterdeck.env) as process:
        processes.started(process.pid)
        assert process.stdin is not None
        assert process.stdout is not None
        answers = BufferedByteReceiveStream(process.stdout)
        with anyio.fail_after(SECONDS):
            for number, line in enumerate((case(0, "git status"), b"no\n", case(2, "git push"))):
                await process.stdin.send(line)
                answer = json.loads(await answers.receive_until(b"\n", 10_000))
                assert answer["id"] == (None if number == 1 else number)
            await process.stdin.aclose()
            assert await process.wait() == 1
