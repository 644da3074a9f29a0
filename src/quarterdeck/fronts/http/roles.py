"""Who may do what: one table.

A *role* belongs to a person or a machine, a *right* to what is asked for. `RIGHTS` says which role
has which right and `right_for` which right a command needs; nothing else decides about either.
"""

from __future__ import annotations

from enum import StrEnum
from typing import assert_never

from quarterdeck.domain.errors import Forbidden
from quarterdeck.domain.structs import Value
from quarterdeck.protocol.commands import (
    AnswerAsk,
    AnyCommand,
    ArchiveSession,
    CancelPrompt,
    ChangePrompt,
    ChangeSession,
    Control,
    CreateSession,
    DeleteSession,
    ForkSession,
    Interrupt,
    RenameSession,
    ResumeSession,
    SendPrompt,
    StopSession,
)


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


class Person(Value):
    """Whoever asks, as the server knows them. `name` is the `by` of their commands."""

    name: str
    role: Role
    grant: str
    """The id of the token that let them in."""
    expires: float | None = None

    def may(self, right: Right) -> bool:
        """Whether they have a right."""
        return right in RIGHTS[self.role]

    def need(self, right: Right) -> None:
        """Raise `Forbidden` unless they have a right."""
        if not self.may(right):
            raise Forbidden(f"{self.name} is {_article(self.role)} and may not {right.value}")


def right_for(command: AnyCommand) -> Right:
    """The right that a command needs."""
    match command:
        case (
            SendPrompt()
            | ChangePrompt()
            | CancelPrompt()
            | AnswerAsk()
            | Interrupt()
            | StopSession()
            | ResumeSession()
            | RenameSession()
            | ArchiveSession()
        ):
            return Right.STEER
        case CreateSession() | ForkSession() | DeleteSession() | ChangeSession() | Control():
            return Right.MANAGE
        case _:
            assert_never(command)


def _article(role: Role) -> str:
    return f"an {role.value}" if role.value[0] in "aeiou" else f"a {role.value}"
