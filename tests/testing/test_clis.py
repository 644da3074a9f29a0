"""Which real CLIs are there, how they are started, and the environment that they get."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from quarterdeck.testing import RealCli, installed_clis, isolated_env
from quarterdeck.testing.clis import default_cache
from support.bounds import SECONDS
from support.clis import DIALLING, EXTRA_VERSIONS, PROJECT, VERSIONS

MANIFEST = PROJECT / "tools" / "claude-cli"


def package(cache: Path, name: str, program: str) -> None:
    folder = cache / "node_modules" / name
    folder.mkdir(parents=True)
    (folder / program).touch()


def test_versions_are_found_oldest_first_with_what_starts_them(tmp_path: Path) -> None:
    package(tmp_path, "claude-code-2.1.120-linux-x64", "claude")
    package(tmp_path, "claude-code-2.1.37", "cli.js")
    package(tmp_path, "claude-code-2.1.99", "nothing")
    package(tmp_path, "something-else", "claude")

    found = installed_clis(tmp_path)

    assert list(found) == ["2.1.37", "2.1.120"]
    native, script = found["2.1.120"].command, found["2.1.37"].command
    assert [Path(part).name for part in native] == ["claude"]
    assert [Path(part).name for part in script] == ["node", "cli.js"]


def test_where_nothing_is_installed_nothing_is_found(tmp_path: Path) -> None:
    assert installed_clis(tmp_path) == {}


def test_the_cache_is_found_from_below_and_can_be_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / ".cache" / "claude-cli"
    below = tmp_path / "a" / "b"
    for folder in (cache, below):
        folder.mkdir(parents=True)
    monkeypatch.delenv("QUARTERDECK_CLI_CACHE", raising=False)
    monkeypatch.chdir(below)
    assert default_cache() == cache

    monkeypatch.setenv("QUARTERDECK_CLI_CACHE", str(below))
    assert default_cache() == below


def test_the_environment_inherits_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "somebody's")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "somebody's")

    env = isolated_env(tmp_path, "http://127.0.0.1:1", TERM="xterm", MORE="1")

    assert "somebody's" not in env.values()
    assert "ANTHROPIC_AUTH_TOKEN" not in env
    assert env["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:1"
    assert (env["TERM"], env["MORE"]) == ("xterm", "1")
    assert env["HOME"] == str(tmp_path)
    assert Path(env["TMPDIR"]).is_dir()


def test_the_environment_keeps_what_tunes_the_engine_of_a_cli(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NODE_COMPILE_CACHE", "a folder")
    monkeypatch.setenv("BUN_JSC_useDFGJIT", "1")
    monkeypatch.setenv("BUN_JSC_largeHeapSize", "")
    monkeypatch.setenv("BUN_OPTIONS", "--inspect")

    env = isolated_env(tmp_path, "http://127.0.0.1:1", BUN_JSC_useJIT="0")

    kept = {name: env[name] for name in env if name.startswith(("NODE_", "BUN_"))}
    assert kept == {
        "NODE_COMPILE_CACHE": "a folder",
        "BUN_JSC_useDFGJIT": "1",
        "BUN_JSC_useJIT": "0",
    }


@pytest.mark.parametrize("program", ["bash", "git", "node", "touch"])
def test_the_environment_leads_to_the_programs_that_the_cli_calls(
    tmp_path: Path, program: str
) -> None:
    path = isolated_env(tmp_path, "http://127.0.0.1:1")["PATH"]

    assert any((Path(folder) / program).exists() for folder in path.split(os.pathsep))


def test_only_versions_up_to_2_1_120_dial_a_host_of_ones_own() -> None:
    dialling = [version for version in VERSIONS if RealCli(version, ()).dials]

    assert tuple(dialling) == DIALLING


@pytest.mark.real_cli
def test_every_real_cli_starts_and_says_its_version(
    extra_clis: dict[str, RealCli], tmp_path: Path
) -> None:
    for version, cli in extra_clis.items():
        said = subprocess.run(
            [*cli.command, "--version"],
            env=isolated_env(tmp_path, "http://127.0.0.1:1"),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=True,
        )
        assert said.stdout.startswith(version)


def test_the_lock_has_a_hash_for_every_package_and_names_no_registry() -> None:
    lock = json.loads((MANIFEST / "package-lock.json").read_text())
    packages = {name: entry for name, entry in lock["packages"].items() if name}

    assert packages
    assert [name for name, entry in packages.items() if "integrity" not in entry] == []
    assert [name for name, entry in packages.items() if "resolved" in entry] == []


def test_the_manifest_has_the_versions_that_the_tests_drive() -> None:
    manifest = json.loads((MANIFEST / "package.json").read_text())
    names = [*manifest["dependencies"], *manifest["optionalDependencies"]]

    assert {name.split("-")[2] for name in names} == {*VERSIONS, *EXTRA_VERSIONS}
