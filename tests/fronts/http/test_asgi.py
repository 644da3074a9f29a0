"""The front's own corner of ASGI, under the server that it runs on."""

from __future__ import annotations

import logging

import anyio
import pytest
from websockets.exceptions import InvalidStatus

from support.front import Front
from support.web_sockets import connect


async def test_a_refused_socket_is_no_error_in_the_servers_log(
    hub: Front, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        for path in ("/api/stream", "/api/nothing"):
            with pytest.raises(InvalidStatus):
                async with connect(f"ws://{hub.host}{path}", proxy=None):
                    pass
        async with hub.client() as client, anyio.create_task_group() as group:
            # The server has been round its loop: what it had to say of the sockets is said.
            group.start_soon(client.get, "/healthz")
    assert [r.getMessage() for r in caplog.records if r.levelno >= logging.ERROR] == []
