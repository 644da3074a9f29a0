"""The sockets of other Claude sessions: agents reach them by no tool but the CLI's own."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from quarterdeck.policy.builtin import SOCKETS_RULE, SOURCE
from quarterdeck.policy.calls import short_call
from quarterdeck.policy.decide import Call, Rules, Verdict, decide
from quarterdeck.policy.facts import Private
from quarterdeck.policy.needs import Context
from quarterdeck.policy.presets import PRESETS, preset
from quarterdeck.policy.protected_files import may_name_protected_file, names_protected_file
from quarterdeck.policy.specifiers import Behavior

PLACE = Context(cwd="/home/ada/shop", home="/home/ada")
PRIVATE = Private(folders=("/home/ada/.local/share/quarterdeck",))
ALL = Rules(auto_approve=("Bash", "Read", "Write"), skip_permissions=True, private=PRIVATE)

REACHED = (
    "socat - UNIX-CONNECT:/tmp/cc-socks-0/4711.sock",
    "nc -U /tmp/cc-socks/4711.sock < message.json",
    "nc -U '/tmp/cc-'socks-1000/4711.sock",
    "cd /tmp && nc -U cc-socks-0/4711.sock",
    "cd /tmp/cc-socks && nc -U 4711.sock",
    "nc -U /tmp/cc-s*/4711.sock",
    "nc -U /tmp/c?-socks-[0-9]/4711.sock",
    "nc -U /tmp/{cc-socks,x}/4711.sock",
    "ln -s /tmp/CC-SOCKS-0 innocent",
    """python3 -c 'import socket; socket.socket(1).connect("/tmp/cc-socks-0/4711.sock")' """,
    "ls /tmp/cc-socks-0",
    "Read(/tmp/cc-socks-0/4711.sock)",
    "Write(/var/folders/x/T/cc-socks/4711.sock)",
    'mcp__files__send({"to": "unix:/tmp/cc-socks-0/4711.sock"})',
    'Artifact({"file_path": "/tmp/cc-socks-0/4711.sock"})',
)
FREE = (
    "grep -rn cc-socks docs",
    "ls /tmp",
    "rm -rf /tmp/build-*",
    "cat src/cc-socks-test.py",
    "cat /tmp/cc-socks.md",
    "ls /tmp/c*.txt",
    "Read(/home/ada/shop/cc-socks-notes.md)",
    'TodoWrite({"todos": [{"content": "look at /tmp/cc-socks-0"}]})',
    'Write({"file_path": "/home/ada/shop/a.md", "content": "see /tmp/cc-socks-0/1.sock"})',
)


def decided(call: str, rules: Rules) -> Verdict:
    tool, call_input = short_call(call)
    return decide(Call(tool=tool, input=call_input, context=PLACE), rules)


@pytest.mark.parametrize("call", REACHED)
def test_a_call_that_names_a_socket_is_denied_whatever_holds(call: str) -> None:
    verdict = decided(call, ALL)
    assert (verdict.behavior, verdict.rule, verdict.source) == (
        Behavior.DENY,
        SOCKETS_RULE,
        SOURCE,
    )
    assert "no policy can change that" in verdict.message


@pytest.mark.parametrize("call", FREE)
def test_other_calls_are_decided_as_without_the_rule(call: str) -> None:
    assert decided(call, ALL) == decided(call, replace(ALL, private=None))


@pytest.mark.parametrize("name", PRESETS)
def test_presets_ask_before_an_agent_writes_to_other_sessions_or_lists_them(name: str) -> None:
    found = preset(name)
    assert found is not None
    rules = Rules(policies=(found,), private=PRIVATE, auto_approve=("SendMessage", "ListAgents"))
    for call in (
        'SendMessage({"to": "uds:/tmp/cc-socks-0/1.sock", "message": "go on"})',
        'SendMessage({"to": "work-41", "message": "go on", "recipient_kind": "teammate"})',
        "ListAgents({})",
    ):
        expected = Behavior.ASK
        if name == "read-only" and call.startswith("SendMessage"):
            expected = Behavior.DENY
        assert decided(call, rules).behavior is expected, call


@pytest.mark.parametrize(
    "path", ["/tmp/cc-socks", "/tmp/cc-socks-1000/1.sock", "/var/x/T/CC-Socks-0"]
)
def test_the_folder_of_sockets_is_protected(path: str) -> None:
    assert names_protected_file(path)
    assert not names_protected_file(path.replace("ocks", "ocket").replace("OCKS", "OCKET"))


def test_a_pattern_for_sockets_may_name_a_protected_file() -> None:
    assert may_name_protected_file("/tmp/cc-soc*/4711.sock", hidden=False)
