"""The close codes of a WebSocket in words for people. What they mean to us is known by `links`."""

from __future__ import annotations

_MEANINGS = {
    1000: "the other end closed it",
    1001: "the other end is going away",
    1002: "the other end reported a protocol error",
    1005: "the other end closed it without a code",
    1006: "the connection broke",
    1008: "the other end refused it",
    1009: "a message was too big",
    1011: "the other end failed, or did not answer a ping",
    1012: "the other end is restarting",
    4000: "another connection took its place",
    4001: "the session is over",
    4003: "the token is no longer valid",
}


def describe_code(code: int) -> str:
    """One clause for a person."""
    return f"{_MEANINGS.get(code, 'the connection was closed')} (close code {code})"
