"""From a session's spec and its rules to what a machine is asked for: the sandbox of a run. Pure.

Owns which rules the kernel can hold as well: denials and permissions to read or edit paths that
depend on nothing which changes while the CLI runs. The runner adds what it knows of its machine.
Rules about commands, and rules with a time, a branch, a mode or a cost, are held by the permission
gate alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Literal

from msgspec.structs import replace

from quarterdeck.policy.decide import Rules
from quarterdeck.policy.facts import Facts
from quarterdeck.policy.folders import Base
from quarterdeck.policy.grants import GRANTS, Grant, policy_of
from quarterdeck.policy.paths import PathPattern
from quarterdeck.policy.policy import Policy
from quarterdeck.policy.rules import Rule, Verb
from quarterdeck.policy.specifiers import EDITING, READING, Behavior, RuleError, parse_rule
from quarterdeck.policy.specifiers import Rule as ClaudeRule
from quarterdeck.protocol.sandbox import (
    PROTECT,
    STRICT,
    Network,
    SandboxMode,
    SandboxOptions,
    SandboxRequest,
)
from quarterdeck.protocol.sessions import LOCAL, SessionSpec

MOST_PATHS = 500
"""Paths of each kind that are sent to a machine."""

_BASES = {Base.ROOT: "/", Base.HOME: "~/", Base.SETTINGS: "./", Base.CWD: "./"}


def wanted_mode(spec: SessionSpec) -> SandboxMode:
    """The mode that a session is started in, if its machine can."""
    return spec.sandbox or PROTECT


def sandbox_request(spec: SessionSpec, rules: Rules, by: str = "") -> SandboxRequest:
    """What is asked of the machine of a session. `by` is the person whose session it is."""
    facts = Facts(
        machine=spec.machine or LOCAL,
        project=spec.project or "",
        directory=spec.directory,
        user=by or None,
    )
    denied = list(_rules(rules, spec, facts, Behavior.DENY))
    allowed = list(_rules(rules, spec, facts, Behavior.ALLOW))
    private = rules.private
    deny_edit = _few((*(private.fixed if private else ()), *_paths(denied, "edit")))
    closed = {path.removesuffix("/**") for path in deny_edit}
    return SandboxRequest(
        mode=wanted_mode(spec),
        options=_options(spec, allowed),
        private=private.folders if private else (),
        open=private.open if private else (),
        deny_read=_few(_paths(denied, "read")),
        deny_edit=deny_edit,
        allow_edit=_few(
            path
            for path in (*spec.add_dirs, *_paths(allowed, "edit"))
            if path.removesuffix("/**") not in closed
        ),
    )


def owners_rules(rules: Rules, grants: Iterable[Grant]) -> Rules:
    """The rules without the grants that came with an answer: a person who may only answer must not
    open the sandbox of later runs. Grants of their own are made by owners.
    """
    policies = [policy for policy in rules.policies if policy.name != GRANTS]
    granted = policy_of(grant for grant in grants if grant.ask is None and grant.session is None)
    return replace(rules, policies=(*policies, granted) if granted else tuple(policies))


def _few(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(paths))[:MOST_PATHS]


def _options(spec: SessionSpec, allowed: Iterable[ClaudeRule]) -> SandboxOptions:
    """The options, with the network of the mode and the domains that rules allow."""
    options = spec.sandbox_options or SandboxOptions()
    network: Network = "model" if wanted_mode(spec) == STRICT else "all"
    if options.network is not None:
        network = options.network
    if network == "all":
        return replace(options, network=network)
    hosts = () if network == "model" else network
    domains = (rule.domain for rule in allowed if rule.domain)
    hosts = tuple(dict.fromkeys((*hosts, *domains)))
    return replace(options, network=hosts or "model")


def _rules(
    rules: Rules, spec: SessionSpec, facts: Facts, behavior: Behavior
) -> Iterator[ClaudeRule]:
    """The rules about paths and domains that hold for as long as the CLI runs."""
    for policy in rules.policies:
        yield from _of_policy(policy, facts, behavior)
    texts = spec.disallowed_tools if behavior is Behavior.DENY else spec.allowed_tools
    for text in texts:
        with suppress(RuleError):  # the CLI has an opinion of its own about it
            yield parse_rule(text)


def _of_policy(policy: Policy, facts: Facts, behavior: Behavior) -> Iterator[ClaudeRule]:
    for placed in policy.claude:
        if placed.behavior is behavior:
            yield placed.rule
    verb = Verb.DENY if behavior is Behavior.DENY else Verb.ALLOW
    for rule in policy.rules:
        # Time, branch, mode, cost and subagent are unknown here: a rule about them is left out.
        if rule.verb is verb and rule.where.hold(facts) is True and rule.servers is None:
            yield from _of_rule(rule)


def _of_rule(rule: Rule) -> Iterator[ClaudeRule]:
    what = rule.what
    if what.commands or what.flags or what.without:
        return
    for each in (*what.claude, *what.paths, *what.domains):
        family = "Edit" if each.tool in EDITING else "Read" if each.tool in READING else each.tool
        if rule.tools is None or rule.tools.fit(family):
            yield each


def _paths(rules: Iterable[ClaudeRule], access: Literal["read", "edit"]) -> Iterator[str]:
    tools = READING if access == "read" else EDITING
    for rule in rules:
        if rule.path is not None and rule.tool in tools:
            yield path_text(rule.path)


def path_text(pattern: PathPattern) -> str:
    """A pattern as a machine is sent it. One without a slash holds at every depth."""
    text = pattern.text
    if pattern.names[:1] == ("**",) and text != "**" and not text.startswith("**/"):
        text = f"**/{text}"
    return _BASES[pattern.base] + text
