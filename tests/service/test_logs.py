"""Logs say what happened, for people or for machines, and never a secret."""

from __future__ import annotations

import json
import logging
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest

from quarterdeck.config.settings import LogSettings
from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.secrets import redact
from quarterdeck.fronts.http import Access, Role
from quarterdeck.service.logs import Logs

log = logging.getLogger("quarterdeck.test")


@pytest.fixture
def logs() -> Iterator[Logs]:
    before = logging.getLogger().level, logging.getLogger("quarterdeck").level
    made = Logs()
    yield made
    made.close()
    logging.getLogger().setLevel(before[0])
    logging.getLogger("quarterdeck").setLevel(before[1])


SECRETS = [
    "Authorization: Bearer hunter2hunter2",
    "(b'authorization', b'Basic aHVudGVyMmh1bnRlcjI=')",
    '{"authorization": "Custom hunter2hunter2 and more"}',
    "Cookie: quarterdeck_0a1b=hunter2hunter2; other=hunter2",
    "set-cookie: quarterdeck_0a1b=hunter2hunter2",
    "x-api-key: hunter2hunter2",
    "ANTHROPIC_API_KEY=hunter2hunter2 claude",
    "CLAUDE_CODE_SESSION_ACCESS_TOKEN='hunter2hunter2'",
    "password: hunter2hunter2",
    '{"client_secret": "hunter2hunter2"}',
    "https://ada:hunter2hunter2@git.example/x",
    "sk-ant-api03-hunter2hunter2",
    "ghp_hunter2hunter2hunter2",
    "eyJhbGciOiJI.hunter2hunter2.hunter2",
]


@pytest.mark.parametrize("text", SECRETS)
def test_what_looks_like_a_secret_is_hidden(text: str) -> None:
    assert "hunter2" not in redact(text)
    assert "…" in redact(text)


def test_our_own_tokens_are_hidden_and_their_grant_is_not(tmp_path: Path) -> None:
    access = Access(tmp_path)
    token, code = access.make_token("ada", Role.OWNER), access.make_code()
    (grant, _) = access.grants()
    said = redact(f"login with {token}, or at http://127.0.0.1:8765/login#{code} today")
    assert token not in said
    assert code not in said
    assert f"qd_{grant.id}_…" in said
    assert said.endswith(" today")


@pytest.mark.parametrize(
    "text",
    [
        "run 01m7gqcvkbzk7w5q20qct52zg8: refused: not enough memory",
        "quarterdeck.toml:3: server.prot: there is no such setting",
        "webhook https://hooks.example/path answered 500",
        "tokens: 1234 in, 99 out",
        "the token file cannot be read",
    ],
)
def test_what_is_no_secret_can_be_read(text: str) -> None:
    assert redact(text) == text


def test_a_log_file_is_private_and_has_what_its_level_lets_through(
    logs: Logs, tmp_path: Path
) -> None:
    file = tmp_path / "logs" / "hub.log"
    logs.change(LogSettings(file=str(file)))
    log.debug("too fine")
    log.info("let in: qd_0123456789ab_%s", "hunter2hunter2")
    logging.getLogger("uvicorn").info("every connection")
    logging.getLogger("uvicorn").warning("something of others")
    lines = file.read_text().splitlines()
    assert [line.split(" ", 2)[2] for line in lines] == [
        "INFO quarterdeck.test: let in: qd_0123456789ab_…",
        "WARNING uvicorn: something of others",
    ]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@contextmanager
def not_heard_by_pytest() -> Iterator[None]:
    """Its workers cannot pass on a text that is no UTF-8, and end."""
    root = logging.getLogger()
    theirs = [each for each in root.handlers if type(each).__module__.startswith("_pytest")]
    for handler in theirs:
        root.removeHandler(handler)
    try:
        yield
    finally:
        for handler in theirs:
            root.addHandler(handler)


def test_json_lines_have_one_object_each_with_the_exception_redacted_too(
    logs: Logs, tmp_path: Path
) -> None:
    file = tmp_path / "hub.log"
    logs.change(LogSettings(file=str(file), format="json", level="debug"))
    with not_heard_by_pytest():
        try:
            raise ValueError("Bearer hunter2hunter2\nsecond line \udcff")
        except ValueError:
            log.exception("it failed\nbadly")
    (line,) = file.read_text().splitlines()
    entry = json.loads(line)
    assert (entry["level"], entry["logger"]) == ("error", "quarterdeck.test")
    assert entry["message"] == "it failed\nbadly"
    assert "ValueError" in entry["exception"]
    assert "hunter2" not in line


def test_level_format_and_file_change_while_it_runs(logs: Logs, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    logs.change(LogSettings(file=str(one), level="error"))
    log.warning("not yet")
    logs.change(LogSettings(file=str(one), level="warning", format="json"))
    log.warning("now")
    logs.change(LogSettings(file=str(two)))
    log.warning("elsewhere")
    assert [json.loads(line)["message"] for line in one.read_text().splitlines()] == ["now"]
    assert two.read_text().endswith("elsewhere\n")


def test_a_file_that_cannot_be_written_is_refused_and_the_log_goes_on(
    logs: Logs, tmp_path: Path
) -> None:
    good = tmp_path / "good"
    logs.change(LogSettings(file=str(good)))
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"log.file: cannot write "):
        logs.change(LogSettings(file=str(tmp_path / "file" / "hub.log")))
    log.info("still here")
    assert "still here" in good.read_text()


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_message_controls_no_terminal_and_looks_like_no_other_entry(
    logs: Logs, tmp_path: Path, form: Literal["text", "json"]
) -> None:
    file = tmp_path / "log"
    logs.change(LogSettings(file=str(file), format=form))
    forged = "2026-01-31 12:00:00,000 INFO quarterdeck.hub: all is well"
    log.warning("an agent said: %s", f"\x1b[2J\u202e\x9b1m\r\n{forged}")
    written = file.read_text()
    assert "⟨U+001B⟩[2J⟨U+202E⟩⟨U+009B⟩1m⟨U+000D⟩" in written
    assert not set(written) & set("\x1b\u202e\x9b\r")
    assert not [line for line in written.splitlines() if line.startswith(forged)]
    assert "all is well" in written
