"""Who may do what: roles, rights, and which role has which right.

A *role* belongs to a person or a machine, a *right* to a request. Which right a command needs is in
`command_table`. It does not know how a person logs in.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Role(StrEnum):
    """The role of a token."""

    OWNER = "owner"
    OPERATOR = "operator"
    VIEWER = "viewer"
    RUNNER = "runner"
    """A machine that runs agents. It can use the runner's endpoint only."""
    METRICS = "metrics"
    """A program that reads the metrics only."""
    PROGRAM = "program"
    """A program whose agents run through the hub. It can connect with an agent of its own, and
    answer what that agent asks."""


class Right(StrEnum):
    """What a role allows."""

    READ = "read"
    """Read sessions, their history, open questions, machines, the audit log."""
    STEER = "steer"
    """Prompt, answer, interrupt, stop, resume, rename, archive."""
    MANAGE = "manage"
    """Create, fork and delete sessions, change what is auto-approved, send control requests: each
    can make an agent do anything on its machine, or delete a history."""
    RUN = "run"
    """Connect as a machine."""
    DIAL = "dial"
    """Connect with an agent of one's own (`quarterdeck-claude`), and answer what it asks."""
    MEASURE = "measure"
    """Read the metrics. The right to read includes it."""


RIGHTS: dict[Role, frozenset[Right]] = {
    Role.OWNER: frozenset({Right.READ, Right.STEER, Right.MANAGE, Right.DIAL}),
    Role.OPERATOR: frozenset({Right.READ, Right.STEER}),
    Role.VIEWER: frozenset({Right.READ}),
    Role.RUNNER: frozenset({Right.RUN}),
    Role.METRICS: frozenset({Right.MEASURE}),
    Role.PROGRAM: frozenset({Right.DIAL}),
}


ROLE = "role:"
"""Before the name of a role in a list of people."""


def may_answer(answered_by: Iterable[tuple[str, ...]], name: str, role: str) -> bool:
    """Whether a person may answer. An unknown role matches no list."""
    known = {name, f"{ROLE}{role}"} if role else {name}
    return all(known & set(people) for people in answered_by)
