"""`policy try` tells what the sandbox would do with the files and hosts of a call."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quarterdeck.cli import main
from quarterdeck.cli.local.sandbox_says import sandbox_says
from quarterdeck.policy.needs import Need, NeedKind
from quarterdeck.policy.shell import Target
from quarterdeck.sandbox import Network, NetworkKind, SandboxMode, SandboxSpec

SPEC = SandboxSpec(
    mode=SandboxMode.PROTECT,
    writable=("/project", "/data/trees"),
    read_only=("/project/.git/hooks", "/project/*.lock"),
    hidden=("/home/ada/.ssh", "/data"),
    network=Network(kind=NetworkKind.HOSTS, hosts=("a.example", "*.b.example")),
)


def need(kind: NeedKind, path: str = "", host: str | None = None) -> Need:
    target = Target(source=path, paths=(path,)) if path else None
    return Need(kind=kind, what=path or host or "it", target=target, host=host)


@pytest.mark.parametrize(
    ("kind", "path", "verdict"),
    [
        (NeedKind.EDIT, "/project/src/x", "allowed"),
        (NeedKind.EDIT, "/project/.git/hooks/pre-commit", "read_only"),
        (NeedKind.READ, "/project/.git/hooks/pre-commit", "allowed"),
        (NeedKind.EDIT, "/project/a.lock", "read_only"),
        (NeedKind.EDIT, "/etc/hosts", "read_only"),
        (NeedKind.READ, "/etc/hosts", "allowed"),
        (NeedKind.READ, "~/.ssh/id_rsa", "hidden"),
        (NeedKind.READ, "/data/cli.token", "hidden"),
        (NeedKind.EDIT, "/data/trees/web/x", "allowed"),
        (NeedKind.EDIT, "relative", "unknown"),
        (NeedKind.EDIT, "", "unknown"),
    ],
)
def test_the_deepest_folder_decides_about_a_file(kind: NeedKind, path: str, verdict: str) -> None:
    (answer,) = sandbox_says(SPEC, [need(kind, path)], "/home/ada")
    assert answer.verdict == verdict


@pytest.mark.parametrize(
    ("host", "verdict"),
    [("a.example", "allowed"), ("x.b.example", "allowed"), ("evil.example", "refused")],
)
def test_a_limited_network_refuses_other_hosts(host: str, verdict: str) -> None:
    (answer,) = sandbox_says(SPEC, [need(NeedKind.FETCH, host=host)], "/home/ada")
    assert (answer.access, answer.target, answer.verdict) == ("connect", host, verdict)


def test_what_a_program_does_by_itself_is_not_guessed() -> None:
    assert list(sandbox_says(SPEC, [need(NeedKind.COMMAND)], "/home/ada")) == []


def test_the_command_shows_it_for_people_and_for_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QUARTERDECK_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    policy = tmp_path / "p.toml"
    policy.write_text('[claude]\ndeny = ["Edit(./fixed)"]\n')
    command = "echo x > fixed; echo x > free; cat ~/.ssh/key"
    arguments = ["policy", "try", command, "--policy", str(policy)]
    assert main(arguments) == 0
    said = capfd.readouterr().out
    assert f"  write   {tmp_path}/fixed  refused: it is read-only\n" in said
    assert f"  write   {tmp_path}/free  allowed\n" in said
    assert main([*arguments, "--json"]) == 0
    found = json.loads(capfd.readouterr().out)["sandbox"]
    hidden = [one["target"] for one in found if one["verdict"] == "hidden"]
    assert "~/.ssh/key" in hidden
