"""A session in words, for lists: its name, and where it works."""

from __future__ import annotations

from quarterdeck.protocol.views import SessionShape
from quarterdeck.wire.tools import one_line


def session_name(shape: SessionShape) -> str:
    """The name of a session for people: its folder's where nobody gave one."""
    folder = (shape.spec.directory or shape.directory or "").rstrip("/").rpartition("/")[2]
    return one_line(shape.name, 60) or one_line(shape.spec.project or folder, 60) or "no name"


def session_place(shape: SessionShape) -> str:
    """Where a session works: machine and folder; of a worktree, its repository and branch."""
    machine = f"{shape.machine}:" if shape.machine else ""
    branch = shape.spec.worktree
    where = shape.spec.directory if branch else shape.directory or shape.spec.directory
    project = f"project {shape.spec.project}, " if shape.spec.project else ""
    return one_line(f"{machine}{project}{where}", 200) + (
        f" (branch {one_line(branch, 60)})" if branch else ""
    )
