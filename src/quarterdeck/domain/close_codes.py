"""The close codes of a WebSocket: what each means to us and to the CLI, and words for people.

The behaviour of CLIs was observed on 2.1.37, 2.1.62 and 2.1.120. The latter two exit at 1002, 4001
and 4003 and reconnect after every other code, including 1000. 2.1.37 always reconnects; no code
stops it.
"""

from __future__ import annotations

# The link is closed on purpose: a CLI from 2.1.62 on exits with 0. 1000 would make it come back.
CLOSED = 4001

# A newer connection of the same session took over. Of the codes after which a CLI comes back,
# since it may be one and the same CLI, which reconnected before we saw its old socket die.
REPLACED = 4000

# Codes that end the session for the dialling side. The first three are the CLI's own list: a
# protocol error, a session that is over, a token that is no longer valid. REPLACED is only in ours:
# our dialler has one connection at a time, so another process took its place, and coming back would
# replace that one in turn, endlessly.
PERMANENT = frozenset({1002, 4001, 4003, REPLACED})


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
