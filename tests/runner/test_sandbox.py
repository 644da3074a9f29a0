"""A run in its sandbox: what the kernel refuses, what is reported, and where there is none."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from quarterdeck.claude.launch import ArgumentFiles
from quarterdeck.protocol.sandbox import (
    SandboxOptions,
    SandboxPaths,
    SandboxReport,
    SandboxRequest,
    SandboxState,
)
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.runner.home import Home, RunRecord
from quarterdeck.runner.launch import Prepared
from quarterdeck.runner.sandbox import OwnPaths, clean_up, model_url, refused_rule, spec_for
from quarterdeck.sandbox import Kind, Limits, Probe, SandboxMode
from quarterdeck.sandbox.placeholders import Placeholders
from quarterdeck.testing import fake
from support.boxes import KINDS, require
from support.repositories import git, make_repository
from support.runners import running, spec_of
from support.scripted_hub import ScriptedHub, scripted_hub

pytestmark = pytest.mark.process

SCRIPT = """#!/bin/sh
# Each line of the file beside it is a name and a command; says what became of it.
while IFS='|' read -r name command; do
  if sh -c "$command" >/dev/null 2>&1; then what=done; else what=refused; fi
  printf '{"type":"tried","name":"%s","what":"%s"}\\n' "$name" "$what"
done < "${0%/*}/tries"
read -r line || true
"""


@pytest.fixture(params=KINDS, ids=lambda kind: kind.value)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Kind:
    """A kind that works here, as if it were the only one."""
    wanted: Kind = request.param
    require(wanted)
    monkeypatch.setattr("quarterdeck.sandbox.choose", lambda spec=None: wanted)
    return wanted


def trying(folder: Path, project: Path, tries: dict[str, str]) -> SessionSpec:
    """A session whose CLI tries commands."""
    cli = folder / "cli"
    cli.mkdir()
    (cli / "tries").write_text("".join(f"{name}|{command}\n" for name, command in tries.items()))
    (cli / "claude").write_text(SCRIPT)
    (cli / "claude").chmod(0o755)
    manifest = {"name": "@anthropic-ai/claude-code", "version": fake.NEWEST}
    (cli / "package.json").write_text(json.dumps(manifest))
    home = folder / "cli-home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id_ed25519").write_text("a key\n")
    env = {"HOME": str(home)}
    return SessionSpec(directory=str(project), claude=str(cli / "claude"), env=env)


def repository(folder: Path) -> Path:
    subprocess.run(["git", "init", "-q", str(folder)], check=True, capture_output=True)
    (folder / "there.txt").write_text("old\n")
    return folder


def results(hub: ScriptedHub, run: str) -> dict[str, str]:
    lines = [json.loads(line) for line in hub.runs[run].said]
    return {line["name"]: line["what"] for line in lines if line["type"] == "tried"}


def made_for_it(report: SandboxReport) -> list[str]:
    """The temporary folder of a run."""
    (found,) = [path for path in report.paths.writable if "/quarterdeck-run-" in path]
    return [found]


async def test_a_cli_writes_its_project_and_nothing_else_and_sees_no_secret(
    tmp_path: Path, kind: Kind
) -> None:
    """RUN-15"""
    project, data, home = repository(tmp_path / "work"), tmp_path / "data", tmp_path / "home"
    for folder in (data, tmp_path / "out", tmp_path / "denied"):
        folder.mkdir()
    (data / "cli.token").write_text("a token\n")
    (tmp_path / "denied" / "file").write_text("secret\n")
    (project / "fixed.txt").write_text("old\n")
    tries = {
        "project": "echo new > there.txt",
        "temporary": 'echo new > "$TMPDIR/file"',
        "allowed": f"echo new > {tmp_path}/out/file",
        "hook": "mkdir -p .git/hooks && echo evil > .git/hooks/pre-commit",
        "git config": "git config core.hooksPath /tmp",
        "outside": f"echo new > {tmp_path}/stray",
        "hub": f"cat {data}/cli.token",
        "runner": f"cat {home}/runner.json",
        "spool": f"cat {home}/spool/one/run.json",
        "key": "cat ~/.ssh/id_ed25519",
        "denied to read": f"cat {tmp_path}/denied/file",
        "denied to edit": "echo new > fixed.txt",
    }
    request = SandboxRequest(
        private=(str(data),),
        deny_read=(f"{tmp_path}/denied/**",),
        deny_edit=("./fixed.txt",),
        allow_edit=(f"{tmp_path}/out/**",),
    )
    async with scripted_hub() as hub, running(home, hub.url):
        await hub.start("one", trying(tmp_path, project, tries), sandbox=request)
        report = (await hub.started("one")).sandbox
        assert report is not None
        await hub.until(lambda: len(results(hub, "one")) == len(tries))
        await hub.stop("one")
        await hub.ended("one")
        hub.check()
    tried = results(hub, "one")
    # With bubblewrap, a folder of /tmp is made anew in the temporary folder: `stray` is there.
    done = {name for name, what in tried.items() if what == "done"} - {"outside"}
    assert done == {"project", "temporary", "allowed"}
    assert not (project / ".git" / "hooks" / "pre-commit").exists()
    assert not (tmp_path / "stray").exists()
    assert (project / "there.txt").read_text() == "new\n"
    assert (tmp_path / "out" / "file").read_text() == "new\n"
    assert (project / "fixed.txt").read_text() == "old\n"
    state = report.state
    assert (state.mode, state.kind, state.wanted, state.network) == (
        "protect",
        kind.value,
        "protect",
        "all",
    )
    assert report.paths.writable[0] == str(project)
    assert f"{tmp_path}/cli-home/.ssh" in report.paths.hidden
    # What was made for the sandbox is gone.
    assert not any(map(os.path.exists, made_for_it(report)))
    assert sorted(path.name for path in project.iterdir()) == [".git", "fixed.txt", "there.txt"]


async def test_an_agent_in_a_worktree_commits_there_and_leaves_the_repository_alone(
    tmp_path: Path, kind: Kind
) -> None:
    project = make_repository(tmp_path / "work")
    tries = {
        "commit": "echo text > inner/new && git add inner && git commit -qm made",
        "checkout": f"echo evil > {project}/readme",
        "hook": f"echo evil > {project}/.git/hooks/pre-commit",
        "config": f"git -C {project} config core.hooksPath /tmp",
        "other spools": f"ls {tmp_path}/home/spool",
    }
    person = {"EMAIL": "ada@example.org", "GIT_AUTHOR_NAME": "Ada", "GIT_COMMITTER_NAME": "Ada"}
    spec = trying(tmp_path, project, tries)
    spec = replace(spec, worktree="task", env={**spec.env, **person})
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url):
        await hub.start("one", spec, sandbox=SandboxRequest())
        directory = (await hub.started("one")).directory
        assert directory is not None
        assert directory.startswith(f"{tmp_path}/home/worktrees/")
        await hub.until(lambda: len(results(hub, "one")) == len(tries))
        await hub.stop("one")
        await hub.ended("one")
        hub.check()
    done = {name for name, what in results(hub, "one").items() if what == "done"}
    # With bubblewrap, what is hidden is an empty folder.
    assert done - {"other spools", "checkout"} == {"commit"}
    assert git(project, "log", "-1", "--format=%s", "task") == "made"
    assert git(project, "status", "--porcelain") == ""
    assert not (project / ".git" / "hooks" / "pre-commit").exists()


async def test_a_limited_network_reaches_listed_hosts_only_and_each_is_reported(
    tmp_path: Path, kind: Kind
) -> None:
    """RUN-16"""
    url = "http://refused.example:8080/"
    code = f"import urllib.request as u; u.urlopen('{url}', timeout=20)"
    tries = {"refused": f'{Path("/usr/bin/python3")} -c "{code}"'}
    request = SandboxRequest(options=SandboxOptions(network=("other.example",)))
    spec = trying(tmp_path, repository(tmp_path / "work"), tries)
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url):
        await hub.start("one", spec, sandbox=request)
        report = (await hub.started("one")).sandbox
        assert report is not None
        assert report.state.network == ("other.example",)
        await hub.until(lambda: results(hub, "one"))
        await hub.stop("one")
        await hub.ended("one")
        hub.check()
    assert results(hub, "one") == {"refused": "refused"}
    (entry,) = hub.runs["one"].network
    assert (entry.host, entry.port, entry.allowed) == ("refused.example", 8080, False)


async def test_stop_kill_and_exit_codes_are_reported_as_without_a_sandbox(
    tmp_path: Path, kind: Kind
) -> None:
    """RUN-11, RUN-12"""
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url):
        scripts: dict[str, list[fake.Step]] = {
            "exit": [fake.Exit(3)],
            "stop": [fake.say(fake.result()), fake.ExpectEnd(), fake.Exit(0)],
            "kill": [fake.say(fake.result()), fake.Hang()],
        }
        for run, script in scripts.items():
            spec = spec_of(tmp_path / run, script)
            await hub.start(run, spec, sandbox=SandboxRequest())
            await hub.started(run)
        assert (await hub.ended("exit")).exit_code == 3
        for run, force in (("stop", False), ("kill", True)):
            await hub.until(lambda run=run: hub.runs[run].said)
            await hub.stop(run, force=force)
        assert (await hub.ended("kill")).signal == 9
        assert (await hub.ended("stop")).clean
        hub.check()


async def test_the_next_runner_reports_the_sandbox_of_a_run_that_it_did_not_start(
    tmp_path: Path, kind: Kind
) -> None:
    spec = spec_of(tmp_path / "work", [fake.say(fake.result()), fake.ExpectEnd(), fake.Exit(0)])
    async with scripted_hub() as hub:
        hub.acknowledging = False
        async with running(tmp_path / "home", hub.url):
            await hub.start("one", spec, sandbox=SandboxRequest())
            first = await hub.started("one")
            await hub.stop("one")
            await hub.ended("one")
        (record,) = Home(tmp_path / "home").leftover_runs()
        assert record.sandbox == first.sandbox
        async with running(tmp_path / "home", hub.url):
            await hub.until(lambda: hub.runs["one"].connections > 1)
            await hub.until(lambda: len(hub.runs["one"].started) > 1)
        assert hub.runs["one"].started[-1].sandbox == first.sandbox


def test_options_and_the_facts_of_the_machine_become_one_spec(tmp_path: Path) -> None:
    ready = Prepared(
        command=("claude",),
        argv=(),
        env={"HOME": "/home/ada", "ANTHROPIC_BASE_URL": "http://127.0.0.1:99"},
        directory=str(tmp_path),
        version=None,
        mark="m",
    )
    options = SandboxOptions(
        network=("a.example",),
        memory_mb=100,
        processes=7,
        file_size_mb=2,
        writable=("/srv/out",),
    )
    request = SandboxRequest(mode="strict", options=options, private=("/data",), open=("/data/t",))
    own = OwnPaths(hidden=("/runner",), worktrees="/runner/worktrees")
    spec = spec_for(request, ready, own, "/tmp/quarterdeck-run-1")
    assert spec.limits == Limits(memory=100 * 2**20, processes=7, file_size=2 * 2**20)
    assert spec.mode is SandboxMode.STRICT
    assert spec.network.hosts == ("127.0.0.1:99", "a.example")
    assert {str(tmp_path), "/srv/out", "/tmp/quarterdeck-run-1"} <= set(spec.writable)
    assert {"/data", "/runner", "/home/ada"} <= set(spec.hidden)


@pytest.mark.parametrize(
    ("settings", "env", "expected"),
    [
        (None, {}, None),
        ('{"env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}}', {}, "http://127.0.0.1:1"),
        (
            '{"env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}}',
            {"ANTHROPIC_BASE_URL": "http://127.0.0.1:2"},
            "http://127.0.0.1:2",
        ),
        ('{"env": {"ANTHROPIC_BASE_URL": 7}}', {}, None),
        ("not JSON", {}, None),
    ],
)
def test_the_models_address_is_that_of_the_environment_or_of_the_users_settings(
    tmp_path: Path, settings: str | None, env: dict[str, str], expected: str | None
) -> None:
    (tmp_path / ".claude").mkdir()
    if settings is not None:
        (tmp_path / ".claude" / "settings.json").write_text(settings)
    assert model_url({"HOME": str(tmp_path), **env}) == expected


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/proc/*/environ", "it is of the kernel, and not a file"),
        ("/root/.*", "the CLI needs what is in it"),
        ("/root/**", "the CLI needs what is in it"),
        ("~/.claude/**", "the CLI needs what is in it"),
        ("/**", "the CLI needs what is in it"),
        ("~/.ssh/**", ""),
        ("~/.claude/notes", ""),
        ("/etc/shadow*", ""),
        ("./**/.env", ""),
    ],
)
def test_a_rule_that_would_hide_the_clis_own_folder_is_no_part_of_the_sandbox(
    path: str, why: str
) -> None:
    assert refused_rule(path, {"HOME": "/root"}) == why


def test_what_a_killed_runner_left_in_the_project_and_in_tmp_is_removed(tmp_path: Path) -> None:
    project, temporary = tmp_path / "work", tmp_path / "quarterdeck-run-1"
    project.mkdir()
    temporary.mkdir()
    (temporary / "file").touch()
    (project / "mine").mkdir()
    files = ArgumentFiles()  # not closed: its process was killed
    settings = Path(files.write("settings", "{}"))
    killed = Placeholders([str(project / ".husky")])
    while killed._held:  # as the end of a process does
        os.close(killed._held.pop())
    paths = SandboxPaths(read_only=(str(project / ".husky"), str(project / "mine"), "/nowhere"))
    report = SandboxReport(state=SandboxState(mode="protect", kind="bubblewrap"), paths=paths)
    record = RunRecord(run="r", session="s", mark="m", directory=str(project))
    left = replace(record, sandbox=report, temporary=str(temporary), arguments=files.folder)
    clean_up([record, left])
    assert [path.name for path in project.iterdir()] == ["mine"]
    assert not temporary.exists()
    assert not settings.parent.exists()
    files.close()


def test_only_a_folder_of_ours_is_removed(tmp_path: Path) -> None:
    record = RunRecord(run="r", session="s", mark="m", directory="/", temporary=str(tmp_path))
    clean_up([record, replace(record, temporary=None, arguments=str(tmp_path))])
    assert tmp_path.exists()


# --- where there is none --------------------------------------------------------------------------


@pytest.fixture
def no_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without any kind."""
    missing = (Probe(kind=Kind.BUBBLEWRAP, works=False, why="it is not installed"),)
    monkeypatch.setattr("quarterdeck.sandbox.choose", lambda spec=None: None)
    monkeypatch.setattr("quarterdeck.sandbox.probe", lambda: missing)


@pytest.mark.usefixtures("no_kind")
async def test_protect_becomes_off_with_the_reason_on_a_machine_without_a_sandbox(
    tmp_path: Path,
) -> None:
    """RUN-15"""
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url):
        await hub.start("one", spec_of(tmp_path, [fake.Exit(0)]), sandbox=SandboxRequest())
        report = (await hub.started("one")).sandbox
        await hub.ended("one")
    assert report is not None
    assert report.state == SandboxState(
        wanted="protect", reason="not_available", detail="bubblewrap: it is not installed"
    )


@pytest.mark.usefixtures("no_kind")
@pytest.mark.parametrize(
    "request_",
    [
        SandboxRequest(mode="strict"),
        SandboxRequest(options=SandboxOptions(network="model")),
        SandboxRequest(options=SandboxOptions(network=())),
    ],
    ids=["strict", "model", "no host"],
)
async def test_what_must_be_in_a_sandbox_is_refused_with_what_to_do(
    tmp_path: Path, request_: SandboxRequest
) -> None:
    """RUN-15"""
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url):
        await hub.start("one", spec_of(tmp_path, [fake.Exit(0)]), sandbox=request_)
        reason = await hub.refusal("one")
    assert "bubblewrap: it is not installed" in reason
    assert "Install bubblewrap" in reason
    assert not Home(tmp_path / "home").leftover_runs()


@pytest.mark.parametrize(
    ("asked", "reason"), [(SandboxRequest(mode="off"), "chosen"), (None, "not_asked")]
)
async def test_without_a_wish_for_one_there_is_none(
    tmp_path: Path, asked: SandboxRequest | None, reason: str
) -> None:
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url):
        await hub.start("one", spec_of(tmp_path, [fake.Exit(0)]), sandbox=asked)
        report = (await hub.started("one")).sandbox
        await hub.ended("one")
    assert report is not None
    assert report.state == SandboxState(reason=reason)
