"""WebSocket close codes, and what each means to us and to the CLI.

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
