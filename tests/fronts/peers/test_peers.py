"""Between hubs on one journal, over HTTP: commands, machines and live text; and who may not."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import get_args

import anyio
import anyio.abc
import httpx2
import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

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
from quarterdeck.fronts.http.roles import Person
from quarterdeck.fronts.mcp import tools
from quarterdeck.fronts.mcp.people import PeopleTools, Visitor
from quarterdeck.fronts.peers import (
    Forward,
    LiveFeed,
    PeerClient,
    PeerEndpoint,
    Sealer,
    shared_secret,
)
from quarterdeck.fronts.peers.endpoint import (
    COMMANDS,
    FORWARDED,
    LIVE,
    MACHINES,
    REQUESTS,
    LiveLine,
    Receive,
    Scope,
    Send,
)
from quarterdeck.fronts.peers.forward import MOST_BYTES
from quarterdeck.fronts.peers.messages import (
    Again,
    CarriedError,
    SealedCommand,
    SealedRequest,
    to_carried,
    to_error,
)
from quarterdeck.fronts.peers.rights import OF_REQUESTS, right_for_request
from quarterdeck.fronts.peers.seal import HEADER, WrongHub
from quarterdeck.fronts.peers.seal import SECONDS as SEAL_SECONDS
from quarterdeck.fronts.relay.commands import FrontendCommands
from quarterdeck.fronts.relay.inbound import RequestLine
from quarterdeck.hub.agent_tokens import agent_token
from quarterdeck.hub.fleet import Asker, Fleet, PeerOffline, own_work
from quarterdeck.hub.hub import Hub
from quarterdeck.journal.base import HubPlace, Owner
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.protocol.commands import (
    AnyCommand,
    CreateSession,
    Interrupt,
    Outcome,
    RenameSession,
    ResumeSession,
)
from quarterdeck.protocol.machine_requests import (
    MACHINE_REQUESTS,
    AnyMachineRequest,
    MachineRequestRefused,
    SeeFolders,
)
from quarterdeck.protocol.roles import Right
from quarterdeck.protocol.runner_frames import (
    PROTOCOL,
    Hello,
    MachineRequest,
    Reply,
    Start,
    Welcome,
)
from quarterdeck.protocol.search import Hits, Search
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.protocol.views import Deltas
from quarterdeck.wire.rawjson import EMPTY
from support.bounds import SECONDS
from support.runner_sockets import Socket

pytestmark = pytest.mark.anyio
OWNER = Asker(person="ada", role=Role.OWNER)
VIEWER = Asker(person="ada", role=Role.VIEWER)


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
        forward = Forward(self.client, self.hub.remote_agent)
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
        endpoint = PeerEndpoint(self.hub, self.sealer, self._mcp)
        app = make_app(
            self.hub,
            self.access,
            peers=endpoint,
            mcp=self._mcp,
            worktree_service=self.hub.worktree_service,
        )
        async with self.hub.run(), serve(app, Listen(port=0)) as self.url:
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
        hello = Hello(machine="box", runner="r", protocol=PROTOCOL, version="0", pid=1)
        box.say(replace(hello, can=(MACHINE_REQUESTS,)))
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
                a.hub.live_text.supersede("s")
                a.hub.live_text.add(said)
                await anyio.sleep(0.05)
            a.hub.live_text.supersede("s")
            while b.hub.so_far("s"):  # noqa: ASYNC110
                await anyio.sleep(0.01)
        assert heard
        assert set(heard) == {said}
        assert not a.hub.so_far("s")


async def test_nobody_but_a_hub_can_pass_a_command_and_a_seal_is_good_once(tmp_path: Path) -> None:
    async with served(tmp_path) as (a, b, _):
        rename = Raw(msgspec.json.encode(RenameSession(session="s", name="forged", by="owner")))
        body = msgspec.json.encode(SealedCommand(command=rename, asker=OWNER))

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
        viewer = msgspec.json.encode(SealedCommand(command=rename, asker=VIEWER))
        assert await post(b.sealer.seal("a", "POST", COMMANDS, viewer), viewer) == 409
        assert (await a.hub.session("s")).name == ""
        # So is one that names nobody; only work of the hub itself is without a person.
        nobody = msgspec.json.encode(SealedCommand(command=rename))
        assert await post(b.sealer.seal("a", "POST", COMMANDS, nobody), nobody) == 409
        assert (await a.hub.session("s")).name == ""
        folders = Raw(msgspec.json.encode(SeeFolders(path=None)))
        for asker in (Asker(), VIEWER, Asker(role=Role.OPERATOR), Asker(role=Role.RUNNER)):
            asked = msgspec.json.encode(SealedRequest(machine="box", request=folders, asker=asker))
            assert await post(b.sealer.seal("a", "POST", REQUESTS, asked), asked, REQUESTS) == 409
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
            with pytest.raises(PeerOffline):
                await b.client.submit(owner, rename, OWNER)
        here = Owner(hub="a", fence=1, url=a.url)
        with pytest.raises(Forbidden):
            await b.client.submit(here, rename, VIEWER)
        async with await anyio.create_tcp_listener(local_port=0, local_host="127.0.0.1") as silent:
            port = silent.extra(anyio.abc.SocketAttribute.local_port)

            async def hang_up(stream: anyio.abc.SocketStream) -> None:
                await stream.receive()
                await stream.aclose()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(silent.serve, hang_up)
                lost = Owner(hub="a", fence=1, url=f"http://127.0.0.1:{port}")
                with pytest.raises(PeerOffline):
                    await b.client.submit(lost, rename, OWNER)
                with pytest.raises(Conflict) as unknown:
                    await b.client.submit(lost, Interrupt(session="s", by="ada"), OWNER)
                assert unknown.value.code == "outcome_unknown"
                tasks.cancel_scope.cancel()


@asynccontextmanager
async def changing(change: Callable[[bytes, bytes], bytes], url: str) -> AsyncIterator[str]:
    """An attacker between two hubs: `change` gives what is answered, from question and answer."""

    async def stand_between(stream: anyio.abc.SocketStream) -> None:
        host, port = url.removeprefix("http://").split(":")
        async with stream, await anyio.connect_tcp(host, int(port)) as there:
            question = await stream.receive()
            while b"\r\n\r\n" not in question:
                question += await stream.receive()
            head, _, body = question.partition(b"\r\n\r\n")
            length = next(
                (
                    int(line.partition(b":")[2])
                    for line in head.lower().split(b"\r\n")
                    if line.startswith(b"content-length:")
                ),
                0,
            )
            while len(body) < length:
                body += await stream.receive()
            await there.send(head.replace(b"HTTP/1.1", b"HTTP/1.0") + b"\r\n\r\n" + body)
            answer = b""
            with suppress(anyio.EndOfStream):
                while True:
                    answer += await there.receive()
            await stream.send(change(question, answer))

    async with (
        await anyio.create_tcp_listener(local_port=0, local_host="127.0.0.1") as listener,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(listener.serve, stand_between)
        yield f"http://127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}"
        tasks.cancel_scope.cancel()


async def test_an_answer_that_was_changed_on_the_way_counts_for_nothing(tmp_path: Path) -> None:
    async with served(tmp_path) as (a, b, _):
        kept: list[bytes] = []

        def forge(_: bytes, answer: bytes) -> bytes:
            kept.append(answer)
            for told, forged in (
                (b'"s"', b'"x"'),
                (b"box", b"bax"),
                (b'"conflict"', b'"notfound"'),
            ):
                answer = answer.replace(told, forged)
            return answer

        def refuse(*_: bytes) -> bytes:
            return b'HTTP/1.1 403 No\r\ncontent-length: 24\r\n\r\n{"kind":"again","text":""}'

        def repeat(*_: bytes) -> bytes:
            return kept[0]

        rename = RenameSession(session="s", name="x", by="ada")
        other = ResumeSession(session="s", by="ada")
        for change in (forge, refuse, repeat):
            async with changing(change, a.url) as url:
                between = Owner(hub="a", fence=1, url=url)
                with pytest.raises(PeerOffline):  # what can be repeated is
                    await b.client.submit(between, rename, OWNER)
                with pytest.raises(Conflict) as unknown:  # it may have been done
                    await b.client.submit(between, other, OWNER)
                assert unknown.value.code == "outcome_unknown"
                with pytest.raises(Conflict):
                    await b.client.machines(HubPlace(hub="a", url=url, at=0))
        async with changing(lambda _, answer: answer, a.url) as url:
            found = await b.client.machines(HubPlace(hub="a", url=url, at=0))
            assert [each.name for each in found] == ["box"]


async def test_live_text_that_no_hub_said_is_not_shown(tmp_path: Path) -> None:
    sealer = Sealer(b"k" * 32, "b")
    client = PeerClient(sealer)
    journal = MemoryJournal()
    fleet = Fleet(journal, "", client, hub="b")
    hub = Hub(journal, lambda _: None, fleet=fleet, cli_secret=b"k" * 32)
    line = msgspec.json.encode(LiveLine(delta=Deltas(session="s", message="m", text="forged")))
    heard: list[Deltas] = []
    hub.live(heard.append)
    asked = anyio.Event()

    async def answer(stream: anyio.abc.SocketStream) -> None:
        question = (await stream.receive()).decode()
        seal = question.lower().partition(f"{HEADER}: ")[2].partition("\r\n")[0]
        good = Sealer(b"k" * 32, "a")
        lines = [
            good.seal_line(seal, 0, b"{}").encode() + b" {}",
            good.seal_line(seal, 7, line).encode() + b" " + line,  # at another place
        ]
        async with stream:
            await stream.send(b"HTTP/1.0 200 OK\r\n\r\n" + b"\n".join(lines) + b"\n")
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                await stream.receive()  # until the hub hangs up
        asked.set()

    async with (
        await anyio.create_tcp_listener(local_port=0, local_host="127.0.0.1") as listener,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(listener.serve, answer)
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        await journal.announce("a", f"http://127.0.0.1:{port}")
        tasks.start_soon(LiveFeed(fleet, client, sealer, hub.live_text).run)
        with anyio.fail_after(SECONDS):
            await asked.wait()
        assert heard == []
        tasks.cancel_scope.cancel()
    await client.close()


async def test_each_front_tells_the_owner_of_a_session_for_whom_it_asks(tmp_path: Path) -> None:
    async with served(tmp_path) as (a, b, box):
        asked: list[Asker] = []
        submit, run = b.client.submit, b.client.run

        async def note(owner: Owner, command: AnyCommand, asker: Asker) -> Outcome:
            asked.append(asker)
            return await submit(owner, command, asker)

        async def note_request(
            owner: Owner, machine: str, request: Raw, asker: Asker
        ) -> tuple[bool, bytes]:
            asked.append(asker)
            return await run(owner, machine, request, asker)

        b.client.submit, b.client.run = note, note_request  # type: ignore[method-assign]
        # A frontend at the relay.
        ada = Person(name="ada", role=Role.OPERATOR, grant="g")
        frontend = FrontendCommands(b.hub, ada, {})
        await frontend.call(
            RequestLine(request_id="1", subtype="end_session", request=EMPTY, session_id="s")
        )
        # A person's program that speaks MCP.
        people = PeopleTools(b.hub, changes=b.hub.worktree_service.changes, search=_search)
        eve = Visitor(name="eve", role=Role.OPERATOR)
        await people.call(eve, tools.Stop(session="s"))
        # A page that looks at a folder.
        async with b.person(Role.VIEWER) as viewer, anyio.create_task_group() as tasks:
            tasks.start_soon(viewer.get, "/api/sessions/s/diff")
            with anyio.fail_after(SECONDS):
                while not isinstance(request := await box.hear(), MachineRequest):
                    pass
            refusal = msgspec.json.encode(MachineRequestRefused(code="no_folder", text="none"))
            box.say(Reply(request=request.request, refused=True), refusal)
        assert asked == [
            Asker(person="ada", role=Role.OPERATOR),
            Asker(person="eve", role=Role.OPERATOR),
            Asker(person="ada", role=Role.VIEWER),
        ]
        assert a.hub.view("s") is not None


async def _search(_: Search) -> Hits:
    raise NotImplementedError


def test_each_request_to_a_machine_has_its_right() -> None:
    known = {kind.__struct_config__.tag for kind in get_args(AnyMachineRequest)}
    assert known == set(OF_REQUESTS)
    assert right_for_request(Raw(b'{"errand":"of a newer version"}')) is Right.MANAGE


async def test_work_of_the_hub_itself_needs_no_person_and_a_person_without_rights_is_refused(
    tmp_path: Path,
) -> None:
    async with served(tmp_path) as (a, b, _):
        rename = RenameSession(session="s", name="own", by="a schedule")
        with pytest.raises(Forbidden):
            await b.hub.submit(rename)
        with own_work("schedules"):
            await b.hub.submit(rename)
        assert (await a.hub.session("s")).name == "own"


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
    found = to_error(msgspec.json.decode(msgspec.json.encode(to_carried(error)), type=CarriedError))
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert getattr(found, "code", None) == getattr(error, "code", None)


def test_what_has_moved_meanwhile_is_routed_again_and_the_unknown_is_a_failure() -> None:
    assert isinstance(to_error(to_carried(StaleFence("session s"))), Again)
    assert isinstance(to_error(to_carried(Conflict("moving", "x"))), Again)
    unknown = to_error(CarriedError(kind="newer", text="x"))
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
