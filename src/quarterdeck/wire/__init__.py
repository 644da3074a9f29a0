"""Claude Code's NDJSON protocol, with no I/O."""
