"""The usual form of a commit: a message in a here-document, by way of `cat`."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import Raw

from quarterdeck.policy.decide import Call, Rules, decide
from quarterdeck.policy.facts import Facts
from quarterdeck.policy.file import read_policy
from quarterdeck.policy.needs import Context

POLICY = """
default = "ask"
[claude]
allow = ["Bash(git commit:*)", "Bash(git add:*)"]
deny = ["Read(./.env)"]
"""


def verdict(command: str) -> str:
    policy = read_policy(POLICY, "test").policy
    assert policy is not None
    given = Raw(msgspec.json.encode({"command": command}))
    context = Context(cwd="/project", settings="/project", home="/home/someone")
    call = Call(tool="Bash", input=given, facts=Facts(mode="default"), context=context)
    return decide(call, Rules(policies=(policy,))).behavior.value


@pytest.mark.parametrize(
    "command",
    [
        "git commit -m \"$(cat <<'EOF'\nFix it\n\nIt was `broken` for $5.\nEOF\n)\"",
        "git add a && git commit -m \"$(cat <<'EOF'\nFix it\nEOF\n)\"",
        "git commit -m a -m \"$(cat <<'EOF'\nb\nEOF\n)\"",
        "git commit -F - <<'EOF'\nFix it\nEOF",
    ],
)
def test_a_message_in_a_here_document_needs_no_rule_of_its_own(command: str) -> None:
    assert verdict(command) == "allow"


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ('git commit -m "$(cat .env)"', "deny"),
        ("git commit -m \"$(cat .env <<'EOF'\nx\nEOF\n)\"", "deny"),
        ("git commit -m \"$(cat <<'EOF' > a\nx\nEOF\n)\"", "ask"),
        ('git commit -m "$(cat < .env)"', "deny"),
        ('git commit -m "$(id)"', "ask"),
        ('git commit -m "$(cat <<EOF\n$(id)\nEOF\n)"', "ask"),
        ("git commit -m $(cat <<'EOF'\n--amend\nEOF\n)", "ask"),
        ("git commit -F .env", "deny"),
    ],
)
def test_anything_else_in_its_place_does(command: str, wanted: str) -> None:
    assert verdict(command) == wanted
