"""The configuration file: found, read, and read again; what is wrong in it changes nothing."""

from __future__ import annotations

import logging
import os
import signal
from pathlib import Path

import anyio
import pytest

from quarterdeck.config import Settings
from quarterdeck.domain.errors import ConfigError, UsageError
from quarterdeck.service.config_file import Configuration, config_path
from quarterdeck.service.reload import reload, watch_config
from support.bounds import SECONDS
from support.served_deck import ServedDeck

pytestmark = pytest.mark.anyio


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "quarterdeck.toml"


def write(file: Path, text: str | None) -> None:
    """Another file in its place, as editors do it; or none."""
    if text is None:
        file.unlink()
        return
    fresh = file.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(file)


def made(file: Path, text: str) -> Configuration:
    write(file, text)
    return Configuration(file, environ={"HOME": "/home/ada"})


def test_the_file_is_where_it_was_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUARTERDECK_HOME", str(tmp_path))
    assert config_path(None, {}) == (tmp_path / "quarterdeck.toml", False)
    assert config_path(None, {"QUARTERDECK_CONFIG": "/etc/q.toml"}) == (Path("/etc/q.toml"), True)
    given = Path("/given.toml")
    assert config_path(given, {"QUARTERDECK_CONFIG": "/etc/q.toml"}) == (given, True)
    assert Configuration(environ={}).loaded.settings == Settings()


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (None, "no such file"),
        (b"a\nb\xff", ":2: not UTF-8"),
        (b"#" * (1024 * 1024 + 1), "larger than 1 MiB"),
    ],
)
def test_a_file_that_cannot_be_read_is_told(file: Path, data: bytes | None, problem: str) -> None:
    if data is not None:
        file.write_bytes(data)
    with pytest.raises(ConfigError, match=problem):
        Configuration(file, environ={})


async def test_a_change_is_taken_over_and_logged_without_its_secrets(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    configuration = made(file, "[log]\nlevel = 'info'\n")
    taken: list[Settings] = []
    write(
        file,
        "[log]\nlevel = 'debug'\n[server]\nport = 1\n"
        "[projects.web]\ndirectory = '/srv'\nenv = { KEY = 'hunter2' }\n",
    )
    await reload(configuration, taken.append)
    assert [settings.log.level for settings in taken] == ["debug"]
    assert caplog.messages == [
        "server.port: 8765 -> 1 (takes effect at the next start)",
        "log.level: info -> debug",
        "projects.web.directory: not there -> /srv",
        "projects.web.env: changed",
    ]
    caplog.clear()
    await reload(configuration, taken.append)
    assert caplog.messages == ["the configuration was read again and has not changed"]


@pytest.mark.parametrize("text", ["[server]\nprot = 1\n", "[server\n", None])
async def test_a_new_version_that_is_wrong_or_gone_changes_nothing(
    file: Path, text: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    configuration = made(file, "[server]\nhosts = ['a']\n")
    taken: list[Settings] = []
    write(file, text)
    await reload(configuration, taken.append)
    assert configuration.loaded.settings.server.hosts == ("a",)
    assert all(settings.server.hosts == ("a",) for settings in taken)
    assert caplog.messages[-1] == (
        "the configuration was not applied; the previous one stays in force"
    )
    assert str(file) in caplog.messages[0]


@pytest.mark.parametrize("error", [UsageError("it cannot be written"), OSError("no room left")])
async def test_settings_that_cannot_be_applied_are_taken_back(
    file: Path, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    configuration = made(file, "")
    write(file, "[log]\nfile = '/none/hub.log'\n")
    taken: list[str | None] = []

    def take(settings: Settings) -> None:
        taken.append(settings.log.file)
        if settings.log.file:
            raise error

    await reload(configuration, take)
    assert taken == ["/none/hub.log", None]
    assert configuration.loaded.settings == Settings()
    assert str(error) in caplog.text


async def test_the_file_is_looked_at_now_and_then_and_at_a_signal(file: Path) -> None:
    configuration = made(file, "")
    taken: list[str] = []
    changed = anyio.Event()

    def take(settings: Settings) -> None:
        taken.append(settings.log.level)
        changed.set()

    async def until_taken() -> None:
        nonlocal changed
        with anyio.fail_after(SECONDS):
            await changed.wait()
        changed = anyio.Event()

    async with anyio.create_task_group() as group:
        group.start_soon(lambda: watch_config(configuration, take, seconds=0.02))
        write(file, "[log]\nlevel = 'debug'\n")
        await until_taken()
        write(file, "[log]\nlevel = 'error'\n")
        await until_taken()
        group.cancel_scope.cancel()
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: watch_config(configuration, take, seconds=60.0))
        await anyio.wait_all_tasks_blocked()
        os.kill(os.getpid(), signal.SIGHUP)
        await until_taken()
        group.cancel_scope.cancel()
    assert taken == ["debug", "error", "error"]


# --- the commands ---


async def test_the_commands_show_check_and_find_the_file(deck: ServedDeck) -> None:
    deck.data.mkdir()
    file = deck.data / "quarterdeck.toml"
    nothing = await deck("config", "path", code=1)
    assert nothing.out == f"{file}\n"
    file.write_text("[server]\nprot = 8\n[log]\nlevel = 'debug'\n")
    wrong = await deck("config", "check", code=1)
    assert wrong.err == f"{file}:2: server.prot: there is no such setting; did you mean port?\n"
    refused = await deck("serve", code=2)
    assert f"{file}:2: server.prot" in refused.err
    file.write_text("[log]\nlevel = 'debug'\n")
    right = await deck("config", "check")
    assert right.out == f"{file} is valid\n"
    shown = await deck.command("config", "show", QUARTERDECK_SERVER_PORT="99")
    assert 'level = "debug"  # line 2' in shown.out
    assert "port = 99  # QUARTERDECK_SERVER_PORT" in shown.out
