"""A WebSocket client for tests: on a busy machine it is neither impatient nor in need of pongs."""

from __future__ import annotations

from functools import partial

from websockets.asyncio import client

from support.bounds import SECONDS

connect = partial(client.connect, open_timeout=SECONDS, ping_interval=None, proxy=None)
"""As the library's `connect`, which gives up after 10 s, and after 20 s without a pong."""
