"""What the routes of where sessions work take and give. Above are the routes and the commands.

Like `shapes`, it needs no web framework.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from quarterdeck.domain.structs import Value
from quarterdeck.fronts.http.shapes import Body
from quarterdeck.protocol.machine_requests import TreeAction
from quarterdeck.protocol.projects import Project

Branch = Annotated[str, Meta(min_length=1, max_length=250)]


class WorktreeAction(Body):
    """What is to become of a session's worktree."""

    action: TreeAction
    into: Branch | None = None
    """Merge into this branch and not into the one that the worktree was made from."""
    message: Annotated[str, Meta(min_length=1, max_length=100_000)] | None = None
    """Merge: commit with this message first what is not committed."""


class ProjectShape(Value, omit_defaults=False):
    """A project. The values of its environment are masked."""

    name: str
    defaults: Project


class ProjectList(Value, omit_defaults=False):
    """The projects, by name."""

    projects: tuple[ProjectShape, ...]
