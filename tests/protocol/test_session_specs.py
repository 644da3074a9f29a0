"""What a spec refuses before anything is started, and what it says about its files."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.launch_options import OPTIONS, SWITCHED_BY_US
from quarterdeck.protocol.launch_members import bypass_names, without_bypass
from quarterdeck.protocol.sessions import SessionSpec

PLAIN = SessionSpec(directory="/work")
HELPER = Raw(b'{"description":"d","prompt":"p","new":1}')
BYPASSING = Raw(b'{"description":"d","prompt":"p","permissionMode":"bypassPermissions"}')


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"plugin_dirs": ("plugins",)}, "plugin_dirs: must be an absolute path"),
        ({"plugin_dirs": ("/p",) * 101}, "more than 100"),
        ({"mcp_config": ("servers.json",)}, "mcp_config: must be an absolute path"),
        ({"system_prompt_file": "x"}, "system_prompt_file: must be"),
        ({"debug_file": "/a\0b"}, "debug_file: must be"),
        ({"system_prompt": "a", "system_prompt_file": "/a"}, "cannot be combined"),
        ({"append_system_prompt": "a", "append_system_prompt_file": "/a"}, "cannot be combined"),
        ({"fallback_model": " "}, "fallback_model: it is empty"),
        ({"plan_mode_instructions": "x" * 200_000}, "longer than 120 KiB"),
        ({"thinking_display": "--evil"}, "is not a name"),
        ({"betas": ("a,b",)}, "betas"),
        ({"skills": ("",)}, "skills"),
        ({"setting_sources": ("all",)}, "not one of local, project, user"),
        ({"task_budget": 0}, "task_budget"),
        ({"json_schema": {"type": Raw(b'"array"')}}, 'must be "object"'),
        ({"json_schema": {}}, 'must be "object"'),
        (
            {"json_schema": {"type": Raw(b'"object"'), "x": Raw(b'"' + b"x" * 200_000 + b'"')}},
            "longer than",
        ),
        ({"subagents": {"a": Raw(b"[]")}}, "subagents: 'a'"),
        ({"subagents": {"a": Raw(b'{"prompt":"p"}')}}, "description"),
        ({"subagents": {" ": HELPER}}, "subagents: it is empty"),
        (
            {
                "subagents": {
                    "a": Raw(msgspec.json.encode({"description": "", "prompt": "x" * 200_000}))
                }
            },
            "longer than",
        ),
        ({"extra_args": {"--verbose": None}}, "without dashes"),
        ({"extra_args": {"verbose": None}}, "belongs to the hub"),
        ({"extra_args": {"resume": "x"}}, "belongs to the hub"),
        ({"extra_args": {"bare": None}}, "belongs to the hub"),
        ({"extra_args": {"allowed-tools": "Bash"}}, "use the member allowed_tools"),
        ({"extra_args": {"allowedTools": "Bash"}}, "use the member allowed_tools"),
        ({"extra_args": {"dangerously-skip-permissions": None}}, "member skip_permissions"),
        ({"extra_args": {"new": "a\0"}}, "NUL"),
        ({"extra_args": {"new": "x" * 200_000}}, "longer than"),
    ],
)
def test_what_could_not_be_a_flag_or_is_another_members_is_refused(
    members: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        replace(PLAIN, **members)
    encoded = msgspec.json.encode({"directory": "/work", **members})
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(encoded, type=SessionSpec)


@pytest.mark.parametrize(
    "flag",
    sorted(
        {flag for option in OPTIONS for flag in (option.flag, *option.spellings)}
        | {option.file_flag for option in OPTIONS if option.file_flag}
        | SWITCHED_BY_US
    ),
)
def test_a_flag_that_quarterdeck_can_give_is_refused_among_the_extra_ones(flag: str) -> None:
    with pytest.raises(UsageError, match=r"use the member|belongs to the hub") as refused:
        replace(PLAIN, extra_args={flag.removeprefix("--"): "x"})
    if named := re.search(r"use the member (\w+)", str(refused.value)):
        assert named[1] in SessionSpec.__struct_fields__


def test_what_the_cli_reads_at_its_start_is_told() -> None:
    spec = replace(
        PLAIN,
        settings="/s.json",
        system_prompt_file="/p.md",
        append_system_prompt_file="/a.md",
        mcp_config=("/m.json",),
        plugin_dirs=("/plugins",),
    )
    assert set(spec.launch_paths) == {"/s.json", "/p.md", "/a.md", "/m.json", "/plugins"}
    assert replace(PLAIN, add_dirs=("/work",), debug_file="/d.log").launch_paths == ()
    assert replace(PLAIN, settings='{"a":1}').launch_paths == ()


def test_the_way_of_thinking_is_told_as_a_code_and_a_number_of_tokens_overrides_it() -> None:
    assert PLAIN.thinking is None
    assert replace(PLAIN, thinking_mode="adaptive").thinking == "auto"
    off = replace(PLAIN, thinking_mode="disabled")
    assert off.thinking == "off"
    assert replace(off, max_thinking_tokens=7).thinking == "7"


def test_a_subagent_loses_the_mode_that_bypasses_permissions_and_nothing_else() -> None:
    both = {"a": HELPER, "b": BYPASSING}
    assert bypass_names(both) == ["b"]
    kept = without_bypass(both)
    assert bytes(kept["a"]) == bytes(HELPER)
    assert msgspec.json.decode(kept["b"]) == {"description": "d", "prompt": "p"}
    # A person may take the leave to skip permissions back: the spec stays valid.
    replace(replace(PLAIN, subagents=both, skip_permissions=True), skip_permissions=False)


def test_a_spec_of_an_older_journal_has_the_defaults_of_its_new_members() -> None:
    old = b'{"directory":"/work","model":"opus","mcp_servers":{"a":{"command":"x"}}}'
    spec = msgspec.json.decode(old, type=SessionSpec)
    assert spec.include_partial_messages
    assert (spec.json_schema, spec.subagents, spec.extra_args) == (None, {}, {})
    assert msgspec.json.decode(msgspec.json.encode(spec), type=SessionSpec) == spec
