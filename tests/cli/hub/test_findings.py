"""What the doctor finds about the hub: a web app that was not built, a relay without tokens."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from quarterdeck.cli.hub import demo
from quarterdeck.cli.hub.findings import look_at_hub
from quarterdeck.cli.local.findings import Level
from quarterdeck.fronts.http import pages
from quarterdeck.service import service
from quarterdeck.service.service import web_hint


@pytest.mark.parametrize("built", [True, False])
def test_a_missing_web_app_is_reported_with_the_command_that_builds_it(
    built: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if built:
        (tmp_path / "index.html").touch()
    monkeypatch.setattr(pages, "_BUILT", tmp_path)
    monkeypatch.setenv("QUARTERDECK_HOME", str(tmp_path / "data"))
    (found,) = [each for each in look_at_hub() if each.topic == "web app"]
    if built:
        assert web_hint() == ""
        assert found.level is Level.OK
    else:
        assert "make deck" in web_hint()
        assert found.level is Level.WARNING
        assert "make deck" in found.advice
    plain = pages.Pages(lambda: b"{}")._find("/")
    assert plain is not None
    assert b"make deck" in plain.body


@pytest.mark.parametrize("built", [True, False])
def test_serve_and_demo_name_the_command_that_builds_the_web_app(
    built: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    if built:
        (tmp_path / "index.html").touch()
    monkeypatch.setattr(pages, "_BUILT", tmp_path)
    hub: Any = SimpleNamespace(
        address="http://127.0.0.1:1",
        tls=None,
        trust=None,
        relay=(),
        home=tmp_path,
        access=SimpleNamespace(make_code=lambda _role: "code"),
    )
    service._print_address(hub, with_link=False)
    assert ("make deck" in capfd.readouterr().out) is not built
    demo._print_address(hub)
    assert ("make deck" in capfd.readouterr().out) is not built


@pytest.mark.parametrize(
    ("relay", "level", "text"),
    [
        ("", None, ""),
        ("enabled = false\nallow_origins = ['http://localhost:5173']", None, ""),
        ("enabled = true", Level.OK, "every frontend needs a token"),
        (
            "enabled = true\nallow_origins = ['http://localhost:5173']",
            Level.WARNING,
            "http://localhost:5173 need no token, and may read every session",
        ),
        (
            "enabled = true\nallow_origins = ['http://localhost:5173']\nrole = 'operator'",
            Level.WARNING,
            "answer for you: any program on this machine can claim to be such a page",
        ),
    ],
)
def test_a_relay_that_lets_pages_in_without_a_token_is_warned_about(
    relay: str, level: Level | None, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "data"
    home.mkdir(mode=0o700)
    (home / "quarterdeck.toml").write_text(f"[relay]\n{relay}\n")
    monkeypatch.setenv("QUARTERDECK_HOME", str(home))
    found = [each for each in look_at_hub() if each.topic == "relay"]
    assert [each.level for each in found] == ([] if level is None else [level])
    assert all(text in each.text for each in found)


@pytest.mark.parametrize(
    "origin", ["https://frontend.example", "http://192.168.1.7:5173", "localhost:5173", "*", "null"]
)
def test_only_origins_on_this_machine_can_be_opted_in(
    origin: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "data"
    home.mkdir(mode=0o700)
    (home / "quarterdeck.toml").write_text(f"[relay]\nallow_origins = ['{origin}']\n")
    monkeypatch.setenv("QUARTERDECK_HOME", str(home))
    (problem,) = [each for each in look_at_hub() if each.level is Level.PROBLEM]
    assert problem.topic == "config"
    assert "allow_origins" in problem.text


@pytest.mark.parametrize(
    ("auth", "secret", "mode", "level", "text"),
    [
        ("bearer", "x" * 24, 0o600, Level.OK, "its secret file is private"),
        ("github", "x" * 24, 0o640, Level.WARNING, "other users can read"),
        ("bearer", "x" * 24, 0o602, Level.PROBLEM, "other users can change"),
        ("github", "x" * 23, 0o600, Level.PROBLEM, "24 or more ASCII characters"),
        ("hmac", "x" * 40, 0o600, Level.PROBLEM, "begins with whsec_"),
        ("hmac", None, 0o600, Level.PROBLEM, "No such file"),
    ],
)
def test_a_weak_or_open_secret_of_an_inbound_webhook_is_found_and_not_shown(
    auth: str,
    secret: str | None,
    mode: int,
    level: Level,
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home = tmp_path / "data"
    home.mkdir(mode=0o700)
    file = home / "hook.secret"
    if secret is not None:
        file.write_text(secret)
        file.chmod(mode)
    (home / "quarterdeck.toml").write_text(
        f"[[inbound]]\nname = 'hook'\nprompt = 'x'\ndirectory = '/work'\nauth = '{auth}'\n"
        f"secret_file = '{file}'\n"
    )
    monkeypatch.setenv("QUARTERDECK_HOME", str(home))
    (found,) = [each for each in look_at_hub() if each.topic == "inbound"]
    assert found.level is level
    assert text in found.text
    assert "xxxx" not in f"{found.text} {found.advice}"
