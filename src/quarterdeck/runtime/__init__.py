"""The operating system: files. Knows nothing of agents, sessions or the protocol."""
