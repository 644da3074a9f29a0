"""Settings that a CLI is started with."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from msgspec import Raw

from quarterdeck.claude.forced_settings import (
    check_live_settings,
    read_settings,
    with_hooks_called,
    with_inbox_refused,
)
from quarterdeck.claude.launch import Launch
from quarterdeck.domain.errors import UsageError

NEWEST = "2.1.325"


def settings_of(launch: Launch) -> object:
    assert isinstance(launch.settings, str)
    return json.loads(launch.settings)


@pytest.mark.parametrize("version", ["2.1.224", NEWEST, "2.2.0", "3.0.1", None])
def test_the_cross_session_inbox_is_refused_where_there_may_be_one(
    version: str | None, tmp_path: Path
) -> None:
    launch = with_inbox_refused(Launch(), version, tmp_path)
    assert settings_of(launch) == {"crossSessionInbound": "refuse"}


def test_a_version_without_that_inbox_is_started_as_it_was_asked_for(tmp_path: Path) -> None:
    assert with_inbox_refused(Launch(), "2.1.223", tmp_path) == Launch()
    launch = Launch(settings="not-read.json")
    assert with_inbox_refused(launch, "2.1.37", tmp_path) is launch


def test_the_settings_of_the_session_are_kept(tmp_path: Path) -> None:
    given = {
        "env": {"A": "ä\u2028"},
        "permissions": {"deny": ["Bash(rm:*)"]},
        "n": 12345678901234567890,
    }
    launch = with_inbox_refused(Launch(model="opus", settings=json.dumps(given)), NEWEST, tmp_path)
    assert settings_of(launch) == {**given, "crossSessionInbound": "refuse"}
    assert launch.model == "opus"


@pytest.mark.parametrize("named", ["own.json", "sub/../own.json", "{folder}/own.json"])
def test_settings_in_a_file_are_read_where_the_cli_starts(named: str, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "own.json").write_text('\ufeff{"model": "opus"}', encoding="utf-8")
    launch = Launch(settings=named.format(folder=tmp_path))
    assert settings_of(with_inbox_refused(launch, NEWEST, tmp_path)) == {
        "model": "opus",
        "crossSessionInbound": "refuse",
    }


def test_a_session_that_says_what_to_do_with_messages_is_obeyed(tmp_path: Path) -> None:
    launch = Launch(settings='{"crossSessionInbound": "hold"}')
    assert with_inbox_refused(launch, NEWEST, tmp_path) is launch


@pytest.mark.parametrize("value", ["accept", "hold", 5, None])
def test_settings_alone_do_not_open_the_inbox_where_it_is_always_refused(
    value: object, tmp_path: Path
) -> None:
    given = json.dumps({"crossSessionInbound": value})
    (tmp_path / "own.json").write_text(given)
    for settings in (given, "own.json"):
        with pytest.raises(UsageError, match="crossSessionInbound needs cross_session as well"):
            with_inbox_refused(Launch(settings=settings), NEWEST, tmp_path, always=True)
        launch = Launch(settings=settings)
        assert with_inbox_refused(launch, "2.1.120", tmp_path, always=True) is launch


def test_settings_that_refuse_the_inbox_themselves_are_kept_as_they_are(tmp_path: Path) -> None:
    launch = Launch(settings='{"crossSessionInbound": "refuse", "model": "opus"}')
    assert with_inbox_refused(launch, NEWEST, tmp_path, always=True) is launch


@pytest.mark.parametrize("text", [None, "[]", "{", "\xff", '{"a": tru}'])
def test_settings_that_cannot_be_read_are_an_error_that_says_so(
    text: str | None, tmp_path: Path
) -> None:
    if text is not None:
        (tmp_path / "own.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError, match="settings: they cannot be read"):
        with_inbox_refused(Launch(settings="own.json"), NEWEST, tmp_path)


@pytest.mark.parametrize("version", ["2.1.37", "2.1.51"])
def test_old_versions_are_told_not_to_leave_out_all_hooks(version: str, tmp_path: Path) -> None:
    launch = with_hooks_called(Launch(), tmp_path, version)
    assert settings_of(launch) == {"env": {"CLAUDE_CODE_SIMPLE": "0"}, "disableAllHooks": False}
    with pytest.raises(UsageError, match="disableAllHooks"):
        with_hooks_called(Launch(settings='{"disableAllHooks": true}'), tmp_path, version)


@pytest.mark.parametrize("version", ["2.1.52", NEWEST, None])
def test_later_versions_leave_out_only_the_hooks_of_settings(
    version: str | None, tmp_path: Path
) -> None:
    launch = with_hooks_called(Launch(settings='{"disableAllHooks": true}'), tmp_path, version)
    assert settings_of(launch) == {"env": {"CLAUDE_CODE_SIMPLE": "0"}, "disableAllHooks": True}


def test_paths_that_begin_at_the_folder_of_the_file_still_do(tmp_path: Path) -> None:
    given = {
        "permissions": {
            "deny": ["Read(/a/**)", "Edit(//b)", "Read(~/c)", "Read(d)", "Bash(/bin/e:*)", "Bash"],
            "allow": ["Write(/f)"],
            "defaultMode": "plan",
        },
        "sandbox": {
            "enabled": True,
            "filesystem": {"denyRead": ["./g", "/h", "~/i", "../j"], "other": True},
        },
    }
    folder = tmp_path / "conf"
    folder.mkdir()
    (folder / "own.json").write_text(json.dumps(given))
    assert read_settings("conf/own.json", tmp_path).keys() == given.keys()
    found = settings_of(with_hooks_called(Launch(settings="conf/own.json"), tmp_path))
    assert found == {
        "permissions": {
            "deny": [
                f"Read(/{folder}/a/**)", "Edit(//b)", "Read(~/c)", "Read(d)", "Bash(/bin/e:*)",
                "Bash",
            ],
            "allow": [f"Write(/{folder}/f)"],
            "defaultMode": "plan",
        },
        "sandbox": {
            "enabled": True,
            "filesystem": {
                "denyRead": [f"{folder}/g", "/h", "~/i", f"{tmp_path}/j"],
                "other": True,
            },
        },
        "env": {"CLAUDE_CODE_SIMPLE": "0"},
    }  # fmt: skip
    text = json.dumps(given)
    assert json.loads(msgspec.json.encode(read_settings(text, tmp_path))) == given


def test_a_folder_that_cannot_be_named_in_a_rule_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "a[b]"
    folder.mkdir()
    (folder / "own.json").write_text('{"permissions":{"deny":["Read(/x)"]}}')
    with pytest.raises(UsageError, match="cannot be in a rule"):
        read_settings(folder / "own.json", tmp_path)
    (folder / "own.json").write_text('{"permissions":{"deny":5},"sandbox":{"filesystem":[]}}')
    assert read_settings(folder / "own.json", tmp_path)["permissions"] == Raw(b'{"deny":5}')


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ('{"env":{"CLAUDE_CODE_SIMPLE":"1"}}', "no rules would hold"),
        ('{"env":{"CLAUDE_CODE_SIMPLE":true}}', "no rules would hold"),
        ('{"env":5}', "env"),
        ('{"crossSessionInbound":"accept"}', "refused here"),
        ('{"crossSessionInbound":null}', "refused here"),
        ("[]", "cannot be read"),
    ],
)
def test_settings_of_a_running_cli_do_not_undo_what_is_forced(settings: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        check_live_settings(Raw(settings.encode()))


def test_other_settings_of_a_running_cli_are_taken() -> None:
    for text in ('{"effortLevel":"low","env":null}', '{"env":{"A":"1"}}', "{}"):
        check_live_settings(Raw(text.encode()))
    check_live_settings(Raw(b'{"crossSessionInbound":"refuse"}'))
    check_live_settings(Raw(b'{"crossSessionInbound":"accept"}'), inbox=True)


def test_hooks_are_called_whatever_the_settings_of_a_repository_say(tmp_path: Path) -> None:
    given = {"env": {"A": "b", "CLAUDE_CODE_SIMPLE": "0"}, "model": "opus"}
    launch = with_hooks_called(Launch(settings=json.dumps(given)), tmp_path)
    assert settings_of(launch) == given
    assert settings_of(with_hooks_called(Launch(), tmp_path)) == {
        "env": {"CLAUDE_CODE_SIMPLE": "0"}
    }


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ('{"env": {"CLAUDE_CODE_SIMPLE": "1"}}', "no rules would hold"),
        ('{"env": {"CLAUDE_CODE_SIMPLE": true}}', "no rules would hold"),
        ('{"env": {"CLAUDE_CODE_SIMPLE": 1}}', "no rules would hold"),
        ('{"env": []}', "settings: env"),
    ],
)
def test_settings_that_switch_the_hooks_off_are_refused(
    settings: str, says: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=says):
        with_hooks_called(Launch(settings=settings), tmp_path)
