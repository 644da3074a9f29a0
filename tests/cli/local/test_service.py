"""The unit of the service: right for its manager, with everything quoted, and no secret in it."""

from __future__ import annotations

import plistlib
import shutil
import subprocess
from pathlib import Path

import pytest

from quarterdeck.cli.local.service import LAUNCHD, SYSTEMD, make_unit
from quarterdeck.domain.errors import UsageError
from support.served_deck import ServedDeck


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / 'da"ta 100% $HOME'
    monkeypatch.setenv("QUARTERDECK_HOME", str(home))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "hunter2")
    return home


def test_a_unit_for_systemd_says_what_is_started_and_that_agents_outlive_it(home: Path) -> None:
    text = make_unit(SYSTEMD, Path("/etc/100%/$q.toml")).text
    assert '"serve" "--no-login-link" "--config" "/etc/100%%/$$q.toml"\n' in text
    data = str(home).replace('"', '\\"').replace("%", "%%")
    assert f'Environment="QUARTERDECK_HOME={data}"\n' in text
    assert "\nKillMode=process\n" in text
    assert "\nExecReload=/bin/kill -HUP $MAINPID\n" in text
    assert "hunter2" not in text


@pytest.mark.process
def test_systemd_takes_the_unit(tmp_path: Path, home: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        return  # nothing here that could decide
    unit = tmp_path / "quarterdeck.service"
    unit.write_text(make_unit(SYSTEMD, None).text)
    done = subprocess.run(
        [analyze, "verify", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": str(tmp_path)},
        check=False,
    )
    assert (done.returncode, [line for line in done.stderr.splitlines() if str(unit) in line]) == (
        0,
        [],
    )


def test_a_unit_for_launchd_is_a_property_list(home: Path) -> None:
    made = plistlib.loads(make_unit(LAUNCHD, None).text.encode())
    assert made["ProgramArguments"][-2:] == ["serve", "--no-login-link"]
    assert made["EnvironmentVariables"]["QUARTERDECK_HOME"] == str(home)
    assert made["AbandonProcessGroup"] is True
    assert "hunter2" not in str(made)


def test_what_no_unit_can_say_is_refused(home: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written into a unit"):
        _ = make_unit(SYSTEMD, Path("/a\nExecStartPre=/bin/evil")).text
    with pytest.raises(UsageError, match="systemd or launchd"):
        make_unit("cron", None)


@pytest.mark.anyio
async def test_a_unit_is_written_shown_and_removed(deck: ServedDeck) -> None:
    home = deck.command.home
    # No manager here: its commands are somebody else's.
    deck.command.env["PATH"] = str(home)
    unit = home / ".config/systemd/user/quarterdeck.service"
    printed = await deck("service", "install", "--print", "--manager", "systemd")
    assert "[Service]" in printed.out
    assert not unit.exists()
    await deck("service", "install", "--config", "/none", "--no-start", code=2)
    assert not unit.exists()
    written = await deck("service", "install", "--no-start")
    assert written.out == f"Written: {unit}\n"
    assert unit.read_text() == printed.out
    status = await deck("service", "status")
    assert status.out.startswith(f"unit     {unit}\nsystemd  cannot be queried: ")
    removed = await deck("service", "uninstall")
    assert not unit.exists()
    assert "The data stays in" in removed.out
    await deck("service", "status", code=1)
