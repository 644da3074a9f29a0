"""The sandbox of a session in words, in `ps` and in the audit log."""

from __future__ import annotations

import pytest

from quarterdeck.cli.hub.log import _audit_line
from quarterdeck.cli.hub.spec import sandbox_mode
from quarterdeck.cli.terminal.text import sandbox_text
from quarterdeck.domain.errors import UsageError
from quarterdeck.protocol.events import AnyEvent, SandboxConnection, SandboxStarted
from quarterdeck.protocol.sandbox import NOT_RECORDED, SandboxState
from quarterdeck.protocol.views import EventShape

LIMITED = SandboxState(mode="strict", kind="landlock", wanted="strict", network="model")


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (SandboxState(mode="protect", kind="bubblewrap"), "protect (bubblewrap)"),
        (LIMITED, "strict (landlock, network: model)"),
        (
            SandboxState(mode="protect", kind="bubblewrap", network=("a.example", "b.example")),
            "protect (bubblewrap, network: a.example, b.example)",
        ),
        (NOT_RECORDED, "off, not recorded"),
        (SandboxState(reason="old_runner"), "off, the runner is too old"),
        (SandboxState(reason="of a newer version"), "off"),
    ],
)
def test_a_sandbox_is_told_in_a_few_words(state: SandboxState, text: str) -> None:
    assert sandbox_text(state) == text


def line(event: AnyEvent) -> str:
    shown = _audit_line(EventShape(session="s", seq=1, position=1, at=1, event=event))
    assert shown is not None
    return shown.plain.partition("  s  ")[2]


def test_the_audit_log_tells_of_sandboxes_and_connections() -> None:
    missing = SandboxState(wanted="protect", reason="not_available", detail="no bwrap\x1b[2J")
    assert line(SandboxStarted(run="r", state=LIMITED)) == (
        "sandbox  strict (landlock, network: model)"
    )
    told = line(SandboxStarted(run="r", state=missing))
    assert told.startswith("sandbox  off, the machine cannot make one  (no bwrap")
    assert "\x1b" not in told
    refused = SandboxConnection(
        run="r", number=1, host="evil.example", port=443, allowed=False, count=3
    )
    assert line(refused) == "deny   by sandbox  connection to evil.example:443, 3 times"


def test_a_mode_that_is_none_is_refused_before_anything_is_sent() -> None:
    assert (sandbox_mode(None), sandbox_mode("strict")) == (None, "strict")
    with pytest.raises(UsageError, match="off, protect, strict"):
        sandbox_mode("hard")
