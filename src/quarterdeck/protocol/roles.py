"""Who may do what: roles, rights, and which role has which right.

A *role* belongs to a person or a machine, a *right* to a request. Which right a command needs is in
`command_table`. It does not know how a person logs in.
"""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """What somebody is here."""

    OWNER = "owner"
    OPERATOR = "operator"
    VIEWER = "viewer"
    RUNNER = "runner"
    """A machine that runs agents. It has its own socket and sees nothing else."""
    METRICS = "metrics"
    """A program that reads the metrics, and nothing else."""


class Right(StrEnum):
    """What somebody may do."""

    READ = "read"
    """See sessions, their history, open questions, machines, the audit log."""
    STEER = "steer"
    """Prompt, answer, interrupt, stop, resume, rename, put away."""
    MANAGE = "manage"
    """Begin and fork sessions, delete them, change what is auto-approved, send control requests:
    each can make an agent do anything on its machine, or take a history away."""
    RUN = "run"
    """Connect as a machine."""
    MEASURE = "measure"
    """Read the metrics. Whoever may read all may read these too."""


RIGHTS: dict[Role, frozenset[Right]] = {
    Role.OWNER: frozenset({Right.READ, Right.STEER, Right.MANAGE}),
    Role.OPERATOR: frozenset({Right.READ, Right.STEER}),
    Role.VIEWER: frozenset({Right.READ}),
    Role.RUNNER: frozenset({Right.RUN}),
    Role.METRICS: frozenset({Right.MEASURE}),
}
