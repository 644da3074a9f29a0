"""Mode, model and effort, prompts and specs, in the words of the protocol. Pure."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from acp import schema

from quarterdeck.domain.errors import UsageError
from quarterdeck.fronts.acp.v1 import settings
from quarterdeck.fronts.acp.v1.prompts import content_of, spec_of
from quarterdeck.protocol.events import ModelTokens, TurnEnded
from quarterdeck.protocol.holds import Offers
from quarterdeck.protocol.roles import Role
from quarterdeck.protocol.sessions import SessionSpec
from support.acp_shapes import known, session


def options(found: Any) -> dict[str, tuple[str, list[str]]]:
    """The present value of each option, and what can be chosen."""
    return {
        each.id: (each.current_value, [choice.value for choice in each.options]) for each in found
    }


def test_mode_model_and_effort_are_options() -> None:
    assert options(settings.config_options(known())) == {
        "mode": ("default", ["default", "acceptEdits", "plan", "dontAsk"]),
        "model": ("default", ["default", "small"]),
        "effort": ("auto", ["auto", "low", "high"]),
    }
    found = options(settings.config_options(known(mode="auto", model="other", effort="high")))
    assert found["mode"][1][0] == "auto", "what holds is there, even if it is not offered"
    assert found["model"] == ("other", ["other", "default", "small"])
    assert "effort" not in found, "this model has none"
    assert options(settings.config_options(known(model="claude-big")))["model"][0] == "default"
    untold = known(offers=Offers(), spec=SessionSpec(directory="/w", model="m", mode="plan"))
    assert options(settings.config_options(untold)) == {
        "mode": ("plan", ["default", "acceptEdits", "plan", "dontAsk"]),
        "model": ("m", ["m"]),
    }


def test_nobody_is_offered_what_they_may_not_choose() -> None:
    operator = known(Role.OPERATOR)
    assert options(settings.config_options(operator)) == {
        "mode": ("default", ["default"]),
        "model": ("default", ["default"]),
        "effort": ("auto", ["auto"]),
    }
    with pytest.raises(UsageError, match="mode: one of default"):
        settings.control_for(operator, "mode", "plan")
    with pytest.raises(UsageError):
        settings.control_for(known(), "mode", "bypassPermissions")
    risky = known(spec=SessionSpec(directory="/w", skip_permissions=True))
    assert settings.control_for(risky, "mode", "bypassPermissions")["mode"] == "bypassPermissions"
    assert "bypassPermissions" in {each.id for each in settings.modes(risky).available_modes}
    with pytest.raises(UsageError, match="there is no option 'env'"):
        settings.control_for(known(), "env", "x")


@pytest.mark.parametrize(
    ("option", "value", "request_"),
    [
        ("mode", "plan", {"subtype": "set_permission_mode", "mode": "plan"}),
        ("model", "small", {"subtype": "set_model", "model": "small"}),
        ("effort", "low", {"subtype": "apply_flag_settings", "settings": {"effortLevel": "low"}}),
        ("effort", "auto", {"subtype": "apply_flag_settings", "settings": {"effortLevel": None}}),
    ],
)
def test_a_choice_is_a_control_request(option: str, value: str, request_: object) -> None:
    assert settings.control_for(known(), option, value) == request_
    shape = settings.with_switch(session(), option, value)
    assert getattr(shape, option) == value


def test_the_agent_says_what_it_can_do() -> None:
    answer = settings.initialize_response("1.2")
    assert answer.protocol_version == 1
    assert answer.agent_capabilities is not None
    assert answer.agent_capabilities.load_session
    assert settings.has_forms(None) is False
    assert settings.has_forms(schema.ClientCapabilities()) is False
    forms = schema.ElicitationCapabilities(form=schema.ElicitationFormCapabilities())
    assert settings.has_forms(schema.ClientCapabilities(elicitation=forms))


def test_a_session_is_in_its_folder_and_in_that_of_its_worktree() -> None:
    tree = session(directory="/trees/one", spec=SessionSpec(directory="/work", worktree="one"))
    assert [settings.is_in(tree, folder) for folder in ("/work/", "/trees/one", "/", "/w")] == [
        True, True, False, False,
    ]  # fmt: skip
    assert settings.session_info(tree).cwd == "/trees/one"


def test_the_tokens_of_a_turn() -> None:
    turn = TurnEnded(prompts=(), failed=False, outcome="completed", cost_usd=0)
    assert settings.usage_of(turn) is None
    models = (
        ModelTokens(model="a", input=1, output=2, cache_read=3, cache_write=4),
        ModelTokens(model="b", input=10),
    )
    usage = settings.usage_of(msgspec.structs.replace(turn, models=models))
    assert usage is not None
    assert (usage.total_tokens, usage.input_tokens, usage.cached_read_tokens) == (20, 11, 3)


# --- prompts -------------------------------------------------------------------------------------

IMAGE = {"type": "image", "mimeType": "image/png", "data": "AAAA"}


def content(*blocks: dict[str, Any]) -> Any:
    request = {"sessionId": "s1", "prompt": blocks}
    return msgspec.json.decode(content_of(schema.PromptRequest.model_validate(request).prompt))


def test_a_text_stays_a_text_and_other_blocks_are_translated() -> None:
    assert content({"type": "text", "text": "/compact now"}) == "/compact now"
    link = {"type": "resource_link", "name": "a b.py", "uri": "file:///work/a%20b.py"}
    assert content(link) == "@/work/a b.py"
    page = {"type": "resource_link", "name": "page", "uri": "https://a.test/"}
    assert content(page) == "[page](https://a.test/)"
    inside = {"type": "resource", "resource": {"uri": "file:///a.py", "text": "x = 1"}}
    assert content({"type": "text", "text": "see"}, inside) == [
        {"type": "text", "text": "see"},
        {"type": "text", "text": '<context uri="file:///a.py">\nx = 1\n</context>'},
    ]
    source = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    assert content(IMAGE) == [{"type": "image", "source": source}]
    for kind, type_ in (("image/png", "image"), ("application/pdf", "document")):
        blob = {"uri": "file:///x", "blob": "AAAA", "mimeType": kind}
        (found,) = content({"type": "resource", "resource": blob})
        assert found == {"type": type_, "source": {**source, "media_type": kind}}


@pytest.mark.parametrize(
    "block",
    [
        {"type": "text", "text": ""},
        {"type": "audio", "mimeType": "audio/wav", "data": "AAAA"},
        {**IMAGE, "mimeType": "image/svg+xml"},
        {"type": "resource", "resource": {"uri": "file:///x", "blob": "AAAA"}},
    ],
)
def test_what_the_model_cannot_read_is_refused(block: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        content(block)


def test_the_spec_of_a_new_session() -> None:
    defaults = SessionSpec(directory="/", model="small", add_dirs=("/more",), policy="team")
    servers = [
        {"name": "files", "command": "serve", "args": ["-x"], "env": [{"name": "A", "value": "b"}]},
        {"type": "http", "name": "web", "url": "https://a.test", "headers": []},
        {"type": "sse", "name": "old", "url": "https://b.test", "headers": [
            {"name": "X", "value": "y"}]},
    ]  # fmt: skip
    given = schema.NewSessionRequest.model_validate(
        {"cwd": "/work", "mcpServers": servers, "additionalDirectories": ["/other"]}
    )
    spec = spec_of(defaults, given.cwd, given.additional_directories, given.mcp_servers)
    assert (spec.directory, spec.model, spec.policy) == ("/work", "small", "team")
    assert spec.add_dirs == ("/more", "/other")
    assert {name: msgspec.json.decode(server) for name, server in spec.mcp_servers.items()} == {
        "files": {"type": "stdio", "command": "serve", "args": ["-x"], "env": {"A": "b"}},
        "web": {"type": "http", "url": "https://a.test", "headers": {}},
        "old": {"type": "sse", "url": "https://b.test", "headers": {"X": "y"}},
    }
    for cwd in ("work", "", "/a\0b"):
        with pytest.raises(UsageError, match="absolute"):
            spec_of(defaults, cwd, None, None)
    inner = schema.AcpMcpServer.model_validate({"type": "acp", "name": "inner", "serverId": "1"})
    with pytest.raises(UsageError, match="MCP servers of the editor"):
        spec_of(defaults, "/work", None, [inner])
