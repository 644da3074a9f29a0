"""The decisions about a session: pure functions from state, input and facts to events."""
