"""What on a machine belongs to the hub and not to its agents. Kept from them by `builtin`."""

from __future__ import annotations

from quarterdeck.domain.structs import Value


class Private(Value):
    """What belongs to the hub on the machine of a session, as absolute paths."""

    folders: tuple[str, ...] = ()
    """Closed to every access, with all that is in them."""
    open: tuple[str, ...] = ()
    """Folders in those where agents work: git worktrees."""
    fixed: tuple[str, ...] = ()
    """Files that may be read, but not changed: the policy and the configuration in force."""
