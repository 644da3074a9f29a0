"""Git worktrees and diffs on the machine where agents work, for the hub's requests."""
