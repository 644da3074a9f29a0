from __future__ import annotations

import pytest

from quarterdeck.claude.environment import child_environment, explain_environment
from quarterdeck.domain.errors import UsageError

PARENT = {
    "PATH": "/bin",
    "HOME": "/home/somebody",
    "LC_TIME": "de_DE",
    "XDG_RUNTIME_DIR": "/run",
    "https_proxy": "http://proxy",
    "CLAUDE_CONFIG_DIR": "/config",
    "CLAUDECODE": "1",
    "ANTHROPIC_API_KEY": "secret-key",
    "ANTHROPIC_AUTH_TOKEN": "secret-token",
    "ANTHROPIC_BASE_URL": "http://gateway",
    "DATABASE_PASSWORD": "secret-database",
    "PATHOLOGY": "a name that only begins like a listed one",
}


def test_only_listed_variables_are_inherited() -> None:
    made = child_environment(parent=PARENT)
    assert made == {
        "PATH": "/bin",
        "HOME": "/home/somebody",
        "LC_TIME": "de_DE",
        "XDG_RUNTIME_DIR": "/run",
        "https_proxy": "http://proxy",
        "CLAUDE_CONFIG_DIR": "/config",
        "CLAUDE_CODE_ENTRYPOINT": "sdk-cli",
        "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1",
    }


def test_the_api_key_is_passed_only_when_api_billing_is_on() -> None:
    billed = child_environment(parent=PARENT, api_billing=True)
    assert billed["ANTHROPIC_API_KEY"] == "secret-key"
    assert billed["ANTHROPIC_AUTH_TOKEN"] == "secret-token"
    assert billed["ANTHROPIC_BASE_URL"] == "http://gateway"


def test_the_callers_own_variables_win_but_never_make_a_nested_cli() -> None:
    made = child_environment(
        parent=PARENT, env={"HOME": "/elsewhere", "CLAUDECODE": "1", "CLAUDE_CODE_ENTRYPOINT": "me"}
    )
    assert made["HOME"] == "/elsewhere"
    assert made["CLAUDE_CODE_ENTRYPOINT"] == "me"
    assert "CLAUDECODE" not in made


def test_what_was_asked_for_is_set() -> None:
    made = child_environment(
        parent={}, file_checkpointing=True, access_token="t", post_events=True, entrypoint="mine"
    )
    assert made == {
        "CLAUDE_CODE_ENTRYPOINT": "mine",
        "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1",
        "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING": "true",
        "CLAUDE_CODE_SESSION_ACCESS_TOKEN": "t",
        "CLAUDE_CODE_POST_FOR_SESSION_INGRESS_V2": "1",
    }


def test_the_explanation_names_every_variable_with_its_reason_and_no_value() -> None:
    explained = explain_environment(parent=PARENT, api_billing=True, env={"MINE": "secret-mine"})
    made = child_environment(parent=PARENT, api_billing=True, env={"MINE": "secret-mine"})
    assert [passed.name for passed in explained] == sorted(made)
    reasons = {passed.name: passed.why for passed in explained}
    assert reasons["MINE"] == "given by the caller"
    assert reasons["ANTHROPIC_API_KEY"] == "inherited: API billing is on"
    assert reasons["CLAUDE_CODE_ENTRYPOINT"] == "set by Quarterdeck"
    assert reasons["PATH"].startswith("inherited: ")
    assert "secret" not in repr(explained)


def test_the_environment_of_this_process_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_TEST", "yes")
    monkeypatch.setenv("SOME_SECRET", "no")
    made = child_environment()
    assert made["LC_TEST"] == "yes"
    assert "SOME_SECRET" not in made


@pytest.mark.parametrize("env", [{"": "x"}, {"A=B": "x"}, {"A\0": "x"}, {"A": "x\0"}])
def test_a_variable_that_no_process_can_have_is_refused(env: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="env"):
        child_environment(parent={}, env=env)
