"""Between hubs on one journal, over HTTP: commands, machines and live text; and who may not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio
import httpx2
import msgspec
import pytest
from msgspec import Raw

from quarterdeck.domain.errors import (
    Conflict,
    Forbidden,
    JournalError,
    LaunchError,
    LinkClosed,
    NotFound,
    QuarterdeckError,
    RequestCancelled,
    RequestRefused,
    RequestTimeout,
    StaleFence,
    UsageError,
    WorkLimit,
)
from quarterdeck.fronts.http import Access, Listen, Role, make_app, serve
from quarterdeck.fronts.peers import (
    Forward,
    LiveFeed,
    PeerClient,
    PeerEndpoint,
    Sealer,
    shared_secret,
)
from quarterdeck.fronts.peers.carried import Again, CarriedError, SealedCommand, carried, raised
from quarterdeck.fronts.peers.endpoint import COMMANDS, LIVE, MACHINES, Receive, Scope, Send
from quarterdeck.fronts.peers.forward import FORWARDED, MOST_BYTES
from quarterdeck.fronts.peers.seal import HEADER, WrongHub
from quarterdeck.fronts.peers.seal import SECONDS as SEAL_SECONDS
from quarterdeck.hub.agent_tokens import agent_token
from quarterdeck.hub.fleet import Fleet, PeerAway
from quarterdeck.hub.hub import Hub
from quarterdeck.journal.base import Owner
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.protocol.commands import CreateSession, Interrupt, RenameSession
from quarterdeck.protocol.roles import Role as AnyRole
from quarterdeck.protocol.runner_frames import PROTOCOL, Hello, Start, Welcome
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.protocol.views import Deltas
from support.bounds import SECONDS
from support.runner_sockets import Socket

pytestmark = pytest.mark.anyio


class Served:
    """A hub with its HTTP front, as `quarterdeck serve` puts it together."""

    def __init__(self, journal: MemoryJournal, secret: bytes, name: str, folder: Path) -> None:
        self.sealer = Sealer(secret, name)
        self.client = PeerClient(self.sealer)
        self.fleet = Fleet(journal, "", self.client, hub=name)
        self.hub = Hub(journal, {"right": "box"}.get, fleet=self.fleet, cli_secret=secret)
        self.access = Access(folder / name)
        self.url = ""
        self.live = LiveFeed(self.fleet, self.client, self.sealer, self.hub.live_text)

    async def _mcp(self, scope: Scope, receive: Receive, send: Send) -> None:
        """What answers agents, as far as the way to it goes."""
        headers = dict(scope["headers"])
        token = headers[b"authorization"].decode().removeprefix("Bearer ")
        known = self.hub.agent_of(token) is not None
        forward = Forward(self.client, self.hub.agent_elsewhere)
        if not known and await forward(token, scope, receive, send):
            return
        body = (await receive())["body"] if known else b"who?"
        told = b" ".join([self.fleet.id.encode(), body, headers.get(b"mcp-protocol-version", b"")])
        status = 200 if known else 401
        head = [(b"content-type", b"text/x"), (b"set-cookie", b"a=b")]
        await send({"type": "http.response.start", "status": status, "headers": head})
        await send({"type": "http.response.body", "body": told})

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        endpoint = PeerEndpoint(self.hub, self.sealer)
        app = make_app(self.hub, self.access, peers=endpoint, mcp=self._mcp)
        async with self.hub.running(), serve(app, Listen(port=0)) as self.url:
            self.fleet.reached_at(self.url)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self.live.run)
                yield
                endpoint.close()
                tasks.cancel_scope.cancel()
            await self.client.close()

    def person(self, role: Role) -> httpx2.AsyncClient:
        token = self.access.make_token("ada", role)
        headers = {"authorization": f"Bearer {token}"}
        return httpx2.AsyncClient(base_url=self.url, headers=headers, timeout=SECONDS)


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[tuple[Served, Served, Socket]]:
    """Two hubs, and a machine at the first one with a session."""
    journal = MemoryJournal()
    secret = await shared_secret(journal)
    assert await shared_secret(journal) == secret
    a = Served(journal, secret, "a", folder)
    b = Served(journal.beside(), secret, "b", folder)
    box = Socket()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(a.running())
        await stack.enter_async_context(b.running())
        await stack.enter_async_context(box.on(a.hub.runners, "/runner"))
        box.say(Hello(machine="box", runner="r", protocol=PROTOCOL, version="0", pid=1))
        assert isinstance(await box.hear(), Welcome)
        spec = SessionSpec(directory="/work", machine="box", agents=True)
        await a.hub.submit(CreateSession(spec=spec, session="s", by="ada"))
        assert isinstance(await box.hear(), Start)
        yield a, b, box


async def test_a_browser_at_the_wrong_hub_notices_nothing(tmp_path: Path) -> None:
    async with served(tmp_path) as (a, b, _):
        async with b.person(Role.OPERATOR) as operator, b.person(Role.VIEWER) as viewer:
            done = await operator.patch("/api/sessions/s", json={"name": "renamed"})
            assert done.status_code == 200, done.text
            assert (await b.hub.session("s")).name == "renamed"
            refused = await viewer.patch("/api/sessions/s", json={"name": "x"})
            assert refused.status_code == 403
            # What the owner says is what the person gets.
            asked = await operator.post(
                "/api/asks/s.none.1/answer", json={"answer": {"answer": "allow"}}
            )
            assert asked.status_code == 404
            machines = (await operator.get("/api/machines")).json()
            assert [each["name"] for each in machines["machines"] if each["connected"]] == ["box"]
            deleted = await operator.delete("/api/sessions/s")
            assert deleted.status_code in {403, 409}
        heard: list[Deltas] = []
        b.hub.live(heard.append)
        said = Deltas(session="s", message="m", text="Hel")
        with anyio.fail_after(SECONDS):
            while not b.hub.so_far("s"):
                a.hub.live_text.superseded("s")
                a.hub.live_text.add(said)
                await anyio.sleep(0.05)
            a.hub.live_text.superseded("s")
            while b.hub.so_far("s"):  # noqa: ASYNC110
                await anyio.sleep(0.01)
        assert heard
        assert set(heard) == {said}
        assert not a.hub.so_far("s")


async def test_nobody_but_a_hub_can_pass_a_command_and_a_seal_is_good_once(tmp_path: Path) -> None:
    async with served(tmp_path) as (a, b, _):
        rename = Raw(msgspec.json.encode(RenameSession(session="s", name="forged", by="owner")))
        body = msgspec.json.encode(SealedCommand(command=rename, role=AnyRole.OWNER))

        async def post(seal: str | None, data: bytes = body, path: str = COMMANDS) -> int:
            headers = {} if seal is None else {HEADER: seal}
            async with httpx2.AsyncClient(base_url=a.url) as client:
                return (await client.post(path, content=data, headers=headers)).status_code

        stranger = Sealer(b"x" * 32, "b")
        late = Sealer(await shared_secret(MemoryJournal()), "b")
        good = b.sealer.seal("a", "POST", COMMANDS, body)
        forged = good[:-1] + ("0" if good[-1] != "0" else "1")
        old = Sealer(b.sealer._secret, "b", clock=lambda: 1.0).seal("a", "POST", COMMANDS, body)
        for seal in (None, "", "a b c", "x" * 5000, forged, old):
            assert await post(seal) == 403
        for other in (stranger, late):
            assert await post(other.seal("a", "POST", COMMANDS, body)) == 403
        assert await post(b.sealer.seal("a", "POST", MACHINES, body)) == 403  # for another path
        assert await post(b.sealer.seal("a", "POST", COMMANDS, b"{}")) == 403  # for another body
        assert await post(b.sealer.seal("c", "POST", COMMANDS, body)) == 421  # for another hub
        assert (await a.hub.session("s")).name == ""
        # A token of an owner is no seal, and a page has no business here.
        async with a.person(Role.OWNER) as owner:
            assert (await owner.post(COMMANDS, content=body)).status_code == 403
            headers = {"origin": a.url, HEADER: b.sealer.seal("a", "POST", COMMANDS, body)}
            assert (await owner.post(COMMANDS, content=body, headers=headers)).status_code == 403
            assert (await owner.get(LIVE)).status_code == 403
        # Rights are checked again here, whatever the first hub thought.
        viewer = msgspec.json.encode(SealedCommand(command=rename, role=AnyRole.VIEWER))
        assert await post(b.sealer.seal("a", "POST", COMMANDS, viewer), viewer) == 409
        assert (await a.hub.session("s")).name == ""
        for wrong in (b"{", b'{"command":{"t":"nothing"}}', b"[" * 10_000):
            assert await post(b.sealer.seal("a", "POST", COMMANDS, wrong), wrong) == 400
        assert await post(b.sealer.seal("a", "POST", "/hub/none", b""), b"", "/hub/none") == 409
        assert await post(good) == 200
        assert await post(good) == 403  # again
        assert (await a.hub.session("s")).name == "forged"


async def test_what_does_not_arrive_is_told_apart_from_what_may_have_been_done(
    tmp_path: Path,
) -> None:
    async with served(tmp_path) as (a, b, _):
        rename = RenameSession(session="s", name="x", by="ada")
        for owner in (
            Owner(hub="a", fence=1),
            Owner(hub="a", fence=1, url="http://127.0.0.1:1"),
            Owner(hub="gone", fence=1, url=a.url),
        ):
            with pytest.raises(PeerAway):
                await b.client.submit(owner, rename, AnyRole.OWNER)
        here = Owner(hub="a", fence=1, url=a.url)
        with pytest.raises(Forbidden):
            await b.client.submit(here, rename, AnyRole.VIEWER)
        async with await anyio.create_tcp_listener(local_port=0, local_host="127.0.0.1") as silent:
            port = silent.extra(anyio.abc.SocketAttribute.local_port)

            async def hang_up(stream: anyio.abc.SocketStream) -> None:
                await stream.receive()
                await stream.aclose()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(silent.serve, hang_up)
                lost = Owner(hub="a", fence=1, url=f"http://127.0.0.1:{port}")
                with pytest.raises(PeerAway):
                    await b.client.submit(lost, rename, None)
                with pytest.raises(Conflict) as unknown:
                    await b.client.submit(lost, Interrupt(session="s", by="ada"), None)
                assert unknown.value.code == "outcome_unknown"
                tasks.cancel_scope.cancel()


@pytest.mark.parametrize(
    "error",
    [
        Conflict("budget_reached", "no more"),
        NotFound("session", "s"),
        RequestRefused("interrupt", "no", code="x"),
        RequestTimeout("interrupt", 3.0),
        RequestCancelled("interrupt", "gone"),
        WorkLimit("busy", "later"),
        JournalError("full", code="full"),
        UsageError("wrong"),
        Forbidden("not you"),
        LaunchError("no CLI"),
        LinkClosed("gone"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_arrive_as_they_were_raised(error: QuarterdeckError) -> None:
    found = raised(msgspec.json.decode(msgspec.json.encode(carried(error)), type=CarriedError))
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert getattr(found, "code", None) == getattr(error, "code", None)


def test_what_has_moved_meanwhile_is_routed_again_and_the_unknown_is_a_failure() -> None:
    assert isinstance(raised(carried(StaleFence("session s"))), Again)
    assert isinstance(raised(carried(Conflict("moving", "x"))), Again)
    unknown = raised(CarriedError(kind="newer", text="x"))
    assert isinstance(unknown, Conflict)
    assert unknown.code == "other_hub_failed"


def test_a_seal_is_for_one_hub_one_time_and_a_short_while() -> None:
    now = 1000.0
    a = Sealer(b"k" * 32, "a", clock=lambda: now)
    b = Sealer(b"k" * 32, "b", clock=lambda: now)
    seal = a.seal("b", "POST", "/x", b"body")
    assert b.open(seal, "POST", "/x")
    with pytest.raises(Forbidden, match="used"):
        b.open(seal, "POST", "/x")
    with pytest.raises(WrongHub):
        b.open(a.seal("c", "POST", "/x", b""), "POST", "/x")
    fresh = a.seal("b", "POST", "/x", b"")
    now += SEAL_SECONDS + 1
    with pytest.raises(Forbidden, match="old"):
        b.open(fresh, "POST", "/x")
    now += SEAL_SECONDS + 1
    assert b.open(a.seal("b", "GET", "/y", b""), "GET", "/y")
    assert len(b._used) == 1


async def test_an_agent_at_the_wrong_hub_is_answered_by_its_own(tmp_path: Path) -> None:
    async with served(tmp_path) as (a, b, _):
        run = (await a.hub.session("s")).run
        assert run is not None
        token = agent_token(a.hub._secret, "s", run)
        headers = {
            "authorization": f"Bearer {token}",
            "mcp-protocol-version": "2025",
            "cookie": "c",
        }
        async with httpx2.AsyncClient(timeout=SECONDS) as agent:

            async def ask(
                body: bytes = b"hello", more: dict[str, str] | None = None
            ) -> httpx2.Response:
                sent = {**headers, **(more or {})}
                return await agent.post(f"{b.url}/mcp", content=body, headers=sent)

            answer = await ask()
            assert (answer.status_code, answer.text) == (200, "a hello 2025")
            assert answer.headers["content-type"] == "text/x"
            assert "set-cookie" not in answer.headers
            # It is passed on once, whole, and only with a token of a run that goes on.
            assert (await ask(more={FORWARDED: "1"})).status_code == 503
            assert (await ask(b"x" * (MOST_BYTES + 1))).status_code == 413
            for wrong in (agent_token(b"x" * 32, "s", run), agent_token(a.hub._secret, "s", "r")):
                refused = await ask(more={"authorization": f"Bearer {wrong}"})
                assert (refused.status_code, refused.text) == (401, "b who? 2025")
            await a.hub._journal.announce("a", "http://127.0.0.1:9")
            assert (await ask()).status_code == 503
