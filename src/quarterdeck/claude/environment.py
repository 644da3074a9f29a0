"""The environment of a CLI process: built from an allow list, with a reason for each variable.

Owns which of our variables reach the child, and why. It never reads, prints or checks a value.

A variable that is on no list is not passed. So secrets of other programs in the hub's environment
never reach an agent that can run `env`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec

from quarterdeck.domain.errors import UsageError

# Reason → variables. A name that ends in `*` is a prefix.
PASSED: Mapping[str, tuple[str, ...]] = {
    "the machine and the user": (
        "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "TERM", "COLORTERM", "XDG_*",
    ),
    "the language": ("LANG", "LANGUAGE", "LC_*"),
    "network access": (
        "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
        "http_proxy", "https_proxy", "all_proxy", "no_proxy",
        "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE", "GIT_SSL_CAINFO",
    ),
    "the user's git and ssh": (
        "SSH_AUTH_SOCK", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME",
        "GIT_COMMITTER_EMAIL", "GIT_CONFIG_GLOBAL", "GIT_SSH_COMMAND",
    ),
    "development tools": (
        "VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "NVM_DIR", "CARGO_HOME", "RUSTUP_HOME",
        "GOPATH", "GOROOT", "JAVA_HOME",
    ),
    "the settings of Claude Code": (
        "CLAUDE_CONFIG_DIR", "ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING",
        "DISABLE_AUTOUPDATER", "IS_SANDBOX",
    ),
    "the login of the subscription": ("CLAUDE_CODE_OAUTH_TOKEN",),
}  # fmt: skip

# A base URL goes with the key: a subscription's token must not go to another host unasked.
API_BILLING: tuple[str, ...] = (
    "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_CUSTOM_HEADERS",
)  # fmt: skip

# It says "you run inside Claude Code": a CLI that sees it behaves as a nested one, or refuses.
NEVER = frozenset({"CLAUDECODE"})

# The name that the CLI uses itself without a terminal. Some versions behave differently for an
# unknown name.
ENTRYPOINT = "sdk-cli"


class Passed(msgspec.Struct, frozen=True):
    """One variable of the child's environment, and why it is there. Never its value."""

    name: str
    why: str


def child_environment(
    *,
    env: Mapping[str, str] | None = None,
    api_billing: bool = False,
    file_checkpointing: bool = False,
    access_token: str | None = None,
    post_events: bool = False,
    entrypoint: str = ENTRYPOINT,
    parent: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Build the environment for a CLI process.

    `env` is the caller's own and overrides everything but `NEVER`. `api_billing` passes the API
    key, if there is one; without it the CLI uses its login. `access_token` is the bearer token of a
    CLI that dials (`--sdk-url`), and `post_events` makes that CLI send its messages by POST.
    `parent` is the environment to choose from, by default that of this process.
    """
    plan = _plan(
        os.environ if parent is None else parent,
        env or {},
        api_billing=api_billing,
        ours=_ours(file_checkpointing, access_token, post_events, entrypoint),
    )
    return {name: value for name, (value, _) in plan.items()}


def explain_environment(
    *,
    env: Mapping[str, str] | None = None,
    api_billing: bool = False,
    file_checkpointing: bool = False,
    access_token: str | None = None,
    post_events: bool = False,
    entrypoint: str = ENTRYPOINT,
    parent: Mapping[str, str] | None = None,
) -> tuple[Passed, ...]:
    """What `child_environment` would pass, and why, sorted by name and without any value."""
    plan = _plan(
        os.environ if parent is None else parent,
        env or {},
        api_billing=api_billing,
        ours=_ours(file_checkpointing, access_token, post_events, entrypoint),
    )
    return tuple(Passed(name, why) for name, (_, why) in sorted(plan.items()))


def _ours(
    file_checkpointing: bool, access_token: str | None, post_events: bool, entrypoint: str
) -> dict[str, str]:
    """The variables that Quarterdeck sets itself."""
    ours = {
        "CLAUDE_CODE_ENTRYPOINT": entrypoint,
        "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1",
    }
    if file_checkpointing:
        ours["CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING"] = "true"
    if access_token is not None:
        ours["CLAUDE_CODE_SESSION_ACCESS_TOKEN"] = access_token
    if post_events:
        ours["CLAUDE_CODE_POST_FOR_SESSION_INGRESS_V2"] = "1"
    return ours


def _plan(
    parent: Mapping[str, str], env: Mapping[str, str], *, api_billing: bool, ours: dict[str, str]
) -> dict[str, tuple[str, str]]:
    """Name → value and reason; a later source wins over an earlier one."""
    plan: dict[str, tuple[str, str]] = {}
    for why, names in PASSED.items():
        for name in parent:
            if _is_listed(name, names):
                plan[name] = (parent[name], f"inherited: {why}")
    if api_billing:
        for name in API_BILLING:
            if name in parent:
                plan[name] = (parent[name], "inherited: API billing is on")
    for name, value in ours.items():
        plan[name] = (value, "set by Quarterdeck")
    for name, value in env.items():
        _check(name, value)
        plan[name] = (value, "given by the caller")
    for name in NEVER:
        plan.pop(name, None)
    return plan


def _is_listed(name: str, names: tuple[str, ...]) -> bool:
    return any(
        name.startswith(entry[:-1]) if entry.endswith("*") else name == entry for entry in names
    )


def _check(name: str, value: str) -> None:
    """Refuse invalid names and values here; the operating system's message would be less clear."""
    if not name or "=" in name or "\0" in name:
        raise UsageError(f"env: {name!r} is not a valid name of a variable")
    if "\0" in value:
        raise UsageError(f"env: the value of {name} contains a NUL character")
