"""The blocking client: the calls and errors of the other one, and when it sends again."""

from __future__ import annotations

import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio.to_thread
import pytest
from msgspec import Raw

from quarterdeck.client import (
    AnswerLost,
    BlockingClient,
    HubAddress,
    HubForbidden,
    HubNotFound,
    HubOffline,
    HubRefused,
)
from quarterdeck.client.attempts import Attempts
from quarterdeck.client.calls import at, get
from quarterdeck.fronts.http import Role
from quarterdeck.protocol.commands import CreateSession, Interrupt, SendPrompt
from quarterdeck.protocol.events import SessionCreated
from quarterdeck.protocol.problems import Problem
from quarterdeck.protocol.sessions import SessionSpec
from support.bounds import SECONDS
from support.front import Front, front
from support.served_deck import free_port

OK = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%s\r\n%s"
STOPPING = b'{"type":"about:blank","title":"stops","status":503,"code":"stopping"}'


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Front]:
    async with front(tmp_path) as running:
        yield running


@pytest.mark.anyio
async def test_it_sends_the_calls_of_the_other_client(served: Front) -> None:
    def use(token: str) -> None:
        client = BlockingClient(HubAddress(address=served.url, token=token))
        command = CreateSession(spec=SessionSpec(directory="/work"), session="s1")
        assert client.submit(command).session == "s1"
        assert client.submit(command).repeated
        assert [each.session for each in client.sessions()] == ["s1"]
        assert client.session("s1").session == "s1"
        assert isinstance(next(client.events("s1")).event, SessionCreated)
        assert client.asks() == ()
        assert [each.name for each in client.machines()] == ["here"]
        assert list(client.audit("s1")) == []
        exported = b"".join(client.download(get(at("s1", "events"), bytes)))
        assert b"session.created" in exported
        with pytest.raises(HubNotFound):
            client.session("nothing")
        with pytest.raises(HubNotFound):
            list(client.download(get(at("nothing", "events"), bytes)))
        wrong = BlockingClient(HubAddress(address=served.url, token="qd_wrong"))
        with pytest.raises(HubForbidden):
            wrong.asks()

    token = served.access.make_token("ada", Role.OWNER)
    await anyio.to_thread.run_sync(use, token)


@contextmanager
def answering(*answers: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """A server that answers one connection after the other; an empty answer is a cut one."""
    requests: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(SECONDS)

        def serve() -> None:
            for answer in answers:
                connection, _ = listener.accept()
                with connection:
                    requests.append(connection.recv(65536))
                    connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", requests
        thread.join(SECONDS)


def _json(body: bytes, headers: bytes = b"") -> bytes:
    return OK % (len(body), headers, body)


def _client(
    address: str, *, seconds: float = SECONDS, lost_seconds: float = SECONDS
) -> BlockingClient:
    where = HubAddress(address=address, token="t")
    return BlockingClient(where, seconds=seconds, lost_seconds=lost_seconds)


@pytest.mark.process
def test_what_can_be_executed_twice_is_sent_again() -> None:
    stopping = OK.replace(b"200 OK", b"503 No") % (len(STOPPING), b"", STOPPING)
    done = _json(b'{"session":"s1"}', b"Quarterdeck-Repeated: 1\r\n")
    with answering(b"", _json(b'{"asks":[]}')) as (address, requests):
        assert _client(address).asks() == ()
        assert len(requests) == 2
    with answering(stopping, b"", done) as (address, requests):
        prompt = SendPrompt(session="s1", prompt="p1", content=Raw(b'"x"'))
        assert _client(address).submit(prompt).session == "s1"
        assert len(requests) == 3
        assert len({each.partition(b"\r\n")[0] for each in requests}) == 1


@pytest.mark.process
def test_what_must_not_be_executed_twice_is_not() -> None:
    with answering(b"") as (address, requests), pytest.raises(AnswerLost, match="went away"):
        _client(address).submit(Interrupt(session="s1"))
    assert len(requests) == 1
    with answering(_json(b"x" * 9)[:-4]) as (address, _), pytest.raises(AnswerLost):
        b"".join(_client(address).download(get("/x", bytes)))


def test_a_hub_that_is_not_there_is_told_at_once() -> None:
    client = _client(f"http://127.0.0.1:{free_port()}")
    with pytest.raises(HubOffline, match="no hub answers"):
        client.asks()


@pytest.mark.process
def test_a_hub_that_comes_back_elsewhere_is_found() -> None:
    with (
        answering(b"") as (old, _),
        answering(_json(b'{"asks":[]}')) as (new, requests),
    ):
        where = HubAddress(address=old, token="t")
        client = BlockingClient(where, find=lambda: HubAddress(address=new, token="u"))
        assert client.asks() == ()
        assert b"Bearer u" in requests[0]


@pytest.mark.process
def test_a_hub_that_does_not_answer_is_not_waited_for_without_end() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(AnswerLost, match="does not answer"):
            _client(address, seconds=0.05, lost_seconds=0).asks()


def test_the_pauses_grow_and_end() -> None:
    away, lost = HubOffline("away"), AnswerLost("lost")
    attempts = Attempts(0.0, 10.0, safe=True)
    assert [attempts.again(away, 0.0) for _ in range(5)] == [0.25, 0.5, 1.0, 2.0, 2.0]
    assert attempts.again(lost, 8.0) == 2.0
    assert attempts.count == 7
    with pytest.raises(AnswerLost):
        attempts.again(lost, 8.1)
    with pytest.raises(AnswerLost):
        Attempts(0.0, 10.0, safe=False).again(lost, 0.0)
    with pytest.raises(HubOffline):
        Attempts(0.0, 10.0, safe=True, patient=False).again(away, 0.0)
    impatient = Attempts(0.0, 10.0, safe=True, patient=False)
    impatient.again(lost, 0.0)
    assert impatient.again(away, 0.0) == 0.5, "it was there"
    stopping = HubRefused(Problem(type="x", title="x", status=503, code="stopping"))
    assert Attempts(0.0, 10.0, safe=False).again(stopping, 0.0) == 0.25
    other = HubRefused(Problem(type="x", title="x", status=500, code="other"))
    with pytest.raises(HubRefused):
        Attempts(0.0, 10.0, safe=True).again(other, 0.0)
