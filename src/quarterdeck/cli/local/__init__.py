"""Commands that need no hub: run, record, replay, doctor, sessions, config, service."""
