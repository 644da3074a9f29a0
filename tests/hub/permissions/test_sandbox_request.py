"""What the rules of a session ask of its sandbox, and which rules cannot be part of it."""

from __future__ import annotations

import pytest

from quarterdeck.hub.permissions.policies import Policies
from quarterdeck.hub.permissions.sandbox import owners_rules, sandbox_request
from quarterdeck.policy.decide import Rules
from quarterdeck.policy.facts import Private
from quarterdeck.policy.file import read_policy
from quarterdeck.policy.grants import Grant, policy_of
from quarterdeck.policy.policy import Policy
from quarterdeck.policy.presets import preset
from quarterdeck.protocol.sandbox import SandboxOptions
from quarterdeck.protocol.sessions import SessionSpec

SPEC = SessionSpec(directory="/work", project="web")


def policy(text: str) -> Policy:
    loaded = read_policy(text, "test", preset=preset)
    assert loaded.policy is not None, loaded.flaws
    return loaded.policy


def rules(text: str, **more: object) -> Rules:
    return Rules(policies=(policy(text),), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "deny_read", "deny_edit", "allow_edit"),
    [
        ('[claude]\ndeny = ["Read(~/.ssh/**)"]', ("~/.ssh/**",), (), ()),
        ('[claude]\ndeny = ["Edit(/docs/**)", "Write(./x)"]', (), ("./docs/**", "./x"), ()),
        ('[claude]\ndeny = ["Read(*.pem)"]', ("./**/*.pem",), (), ()),
        ('[claude]\nallow = ["Edit(//srv/out/**)"]', (), (), ("/srv/out/**",)),
        ('[claude]\nask = ["Edit(//srv/out/**)"]', (), (), ()),
        ('[[rule]]\nverdict = "deny"\npath = ["//etc/x"]', ("/etc/x",), ("/etc/x",), ()),
        ('[[rule]]\nverdict = "deny"\ntool = "Edit"\npath = ["//etc/x"]', (), ("/etc/x",), ()),
        ('[[rule]]\nverdict = "allow"\ntool = "Edit"\npath = ["//out"]', (), (), ("/out",)),
        # About something that changes while the CLI runs, or about one command or tool only.
        ('[[rule]]\nverdict = "deny"\nbranch = "main"\npath = ["//etc/x"]', (), (), ()),
        ('[[rule]]\nverdict = "deny"\nmode = "plan"\npath = ["//etc/x"]', (), (), ()),
        ('[[rule]]\nverdict = "deny"\ncommand = "cat"\npath = ["//etc/x"]', (), (), ()),
        ('[[rule]]\nverdict = "deny"\ntool = "Bash"\npath = ["//etc/x"]', (), (), ()),
        # Of another project, and of this one.
        ('[[rule]]\nverdict = "deny"\nproject = "api"\ntool = "Read"\npath = ["//x"]', (), (), ()),
        (
            '[[rule]]\nverdict = "deny"\nproject = "web"\ntool = "Read"\npath = ["//x"]',
            ("/x",),
            (),
            (),
        ),
    ],
)
def test_rules_about_paths_that_always_hold_become_part_of_the_sandbox(
    text: str,
    deny_read: tuple[str, ...],
    deny_edit: tuple[str, ...],
    allow_edit: tuple[str, ...],
) -> None:
    made = sandbox_request(SPEC, rules(text))
    assert (made.deny_read, made.deny_edit, made.allow_edit) == (deny_read, deny_edit, allow_edit)


def test_the_hubs_own_files_are_private_and_the_policy_can_only_be_read() -> None:
    private = Private(folders=("/data",), open=("/data/trees",), fixed=("/etc/policy.toml",))
    made = sandbox_request(SPEC, Rules(private=private))
    assert (made.private, made.open, made.deny_edit) == (
        ("/data",),
        ("/data/trees",),
        ("/etc/policy.toml",),
    )


def test_what_the_cli_is_started_with_cannot_be_changed_by_its_agent() -> None:
    spec = SessionSpec(directory="/work", plugin_dirs=("/work/plugin",), mcp_config=("/m.json",))
    held = Policies(private=Private(fixed=("/etc/policy.toml",))).rules_for(spec)
    made = sandbox_request(spec, held)
    assert made.deny_edit == ("/etc/policy.toml", "/m.json", "/work/plugin")
    assert made.deny_read == ()


def test_what_the_session_gives_to_its_cli_counts_too() -> None:
    spec = SessionSpec(
        directory="/work",
        disallowed_tools=("Read(//secret)", "Bash(rm:*)", "not a rule("),
        allowed_tools=("Edit(//srv/out/**)", "Bash"),
        add_dirs=("/more",),
    )
    made = sandbox_request(spec, Rules())
    assert (made.deny_read, made.allow_edit) == (("/secret",), ("/more", "/srv/out/**"))


def test_a_grant_counts_only_without_an_end_and_in_its_project() -> None:
    def grant(id_: str, **more: object) -> Grant:
        rule = (f"Edit(//{id_})",)
        return Grant(id=id_, rules=rule, by="ada", at=1, **more)  # type: ignore[arg-type]

    granted = policy_of(
        [grant("a", project="web"), grant("b", project="api"), grant("c", until=2**45)]
    )
    assert granted is not None
    assert sandbox_request(SPEC, Rules(policies=(granted,))).allow_edit == ("/a",)


@pytest.mark.parametrize(
    ("spec", "network"),
    [
        (SPEC, "all"),
        (SessionSpec(directory="/work", sandbox="strict"), ("docs.example",)),
        (
            SessionSpec(
                directory="/work", sandbox_options=SandboxOptions(network=("registry.example",))
            ),
            ("registry.example", "docs.example"),
        ),
        (
            SessionSpec(directory="/work", sandbox_options=SandboxOptions(network=())),
            ("docs.example",),
        ),
        (
            SessionSpec(
                directory="/work", sandbox="strict", sandbox_options=SandboxOptions(network="all")
            ),
            "all",
        ),
    ],
)
def test_an_allowed_domain_is_added_to_a_limited_network(
    spec: SessionSpec, network: object
) -> None:
    text = '[claude]\nallow = ["WebFetch(domain:docs.example)"]'
    assert sandbox_request(spec, rules(text)).options.network == network


def test_without_a_wish_the_mode_is_protect_and_strict_reaches_the_model_only() -> None:
    assert sandbox_request(SPEC, Rules()).mode == "protect"
    strict = sandbox_request(SessionSpec(directory="/work", sandbox="strict"), Rules())
    assert (strict.mode, strict.options.network) == ("strict", "model")


def test_what_was_granted_with_an_answer_does_not_open_the_sandbox() -> None:
    made = {"by": "oscar", "at": 1, "project": "web"}
    grants = [
        Grant(id="a", rules=("Edit(//answered)",), ask="q1", **made),  # type: ignore[arg-type]
        Grant(id="b", rules=("Edit(//session)",), session="s", **made),  # type: ignore[arg-type]
        Grant(id="c", rules=("Edit(//owners)",), **made),  # type: ignore[arg-type]
    ]
    granted = policy_of(grants)
    assert granted is not None
    other = policy('[claude]\nallow = ["Edit(//file)"]')
    rules_ = owners_rules(Rules(policies=(other, granted)), grants)
    assert sandbox_request(SPEC, rules_).allow_edit == ("/file", "/owners")
    assert owners_rules(Rules(policies=(granted,)), grants[:2]).policies == ()
