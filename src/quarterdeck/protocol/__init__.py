"""The contract of the hub: commands, events, sessions, and the frames between hub and runner."""
