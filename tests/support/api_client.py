"""The whole service on loopback, and one who uses it through its API alone.

The service is what `quarterdeck serve` puts together: journal on disk, hub, HTTP, a runner in a
process of its own. The client speaks plain JSON and uses none of the service's types, as somebody
would who has only the documents.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import httpx
import msgspec
import pytest
from websockets.asyncio.client import ClientConnection

from quarterdeck.claude.launch import Launch, to_argv
from quarterdeck.config import Settings
from quarterdeck.domain.ids import new_id
from quarterdeck.fronts.http import Listen, Role
from quarterdeck.hub.cli_tokens import cli_token
from quarterdeck.links.subprocess import StopSteps, SubprocessLink
from quarterdeck.service.local_hub import RUNNER, end_runner
from quarterdeck.service.service import ServeOptions, Service, cli_secret, run_service
from quarterdeck.testing import RealCli, ScriptedModel, isolated_env
from quarterdeck.testing.script import Said, play
from support.bounds import SECONDS
from support.processes import Processes
from support.web_sockets import connect

Json = dict[str, Any]
_T = TypeVar("_T")


class Refusal(Exception):
    """A problem document."""

    def __init__(self, response: httpx.Response) -> None:
        assert response.headers["content-type"] == "application/problem+json", response.text
        self.problem: Json = response.json()
        assert self.problem["status"] == response.status_code
        super().__init__(self.problem)

    @property
    def code(self) -> str:
        """The word to go by."""
        return str(self.problem["code"])


class Stream:
    """What one connection to `/api/stream` has told so far."""

    def __init__(self) -> None:
        self.events: dict[str, list[Json]] = {}
        self.deltas: list[Json] = []
        self._news = anyio.Event()

    def hear(self, frame: Json) -> None:
        """Take a frame."""
        match frame["t"]:
            case "events":
                for event in frame["events"]:
                    self.events.setdefault(event["session"], []).append(event)
            case "live":
                self.deltas += frame["deltas"]
            case "error":
                raise AssertionError(frame)
        self._news.set()
        self._news = anyio.Event()

    async def until(self, found: Callable[[], _T | None]) -> _T:
        """Wait until the stream has told what is looked for."""
        with anyio.fail_after(SECONDS):
            while (it := found()) is None:
                await self._news.wait()
        return it

    def of(self, session: str, kind: str) -> list[Json]:
        """The events of one kind."""
        rows = self.events.get(session, [])
        return [row["event"] for row in rows if row["event"]["kind"] == kind]

    def live_text(self, session: str) -> str:
        """The text that was told while it was made."""
        return "".join(each["text"] for each in self.deltas if each["session"] == session)

    async def read(self, socket: ClientConnection) -> None:
        """Hear everything, until somebody cancels it."""
        async for data in socket:
            self.hear(msgspec.json.decode(data, type=Json))


async def _beat(socket: ClientConnection, seconds: float) -> None:
    while True:
        await anyio.sleep(seconds)
        await socket.send('{"t":"beat"}')


class Person:
    """Somebody with a token."""

    def __init__(self, http: httpx.AsyncClient, stream: Stream) -> None:
        self._http = http
        self.stream = stream

    async def get(self, path: str, **query: str | int) -> Json:
        """Read. Raises `Refusal`."""
        return _body(await self._http.get(f"/api/{path}", params=query))

    async def post(self, path: str, **body: object) -> Json:
        """Have something done. Raises `Refusal`."""
        return _body(await self._http.post(f"/api/{path}", json=body or None))

    async def patch(self, path: str, **body: object) -> Json:
        """Change something. Raises `Refusal`."""
        return _body(await self._http.patch(f"/api/{path}", json=body))

    async def delete(self, path: str) -> Json:
        """Forget something. Raises `Refusal`."""
        return _body(await self._http.delete(f"/api/{path}"))


def _body(response: httpx.Response) -> Json:
    if response.status_code >= 400:
        raise Refusal(response)
    found: Json = response.json()
    return found


class ApiSeat:
    """One version of the CLI behind the API: started by the runner, or dialled."""

    def __init__(
        self,
        cli: RealCli,
        way: str,
        model: ScriptedModel,
        deck: Service,
        folder: Path,
        ada: Person,
        bob: Person,
        stack: contextlib.AsyncExitStack,
    ) -> None:
        self.way = way
        self.model = model
        self.home, self.work = folder / "home", folder / "work"
        self.ada, self.bob = ada, bob
        self.stream = ada.stream
        self._cli = cli
        self._deck = deck
        self._stack = stack
        self._turns: dict[str, int] = {}
        self._asked: dict[str, int] = {}

    @property
    def deck(self) -> Service:
        """The service itself."""
        return self._deck

    def at(self, work: Path) -> ApiSeat:
        """The same service and people, with another folder to work in and nothing counted yet."""
        work.mkdir()
        other = copy.copy(self)
        other.work, other._turns, other._asked = work, {}, {}
        return other

    async def clear(self) -> None:
        """Forget every session, and what was allowed and set."""
        sessions: list[Json] = []
        for archived in ("false", "true"):
            sessions += (await self.ada.get("sessions", limit=200, archived=archived))["sessions"]
        for session in sessions:
            if session["run"] is not None:
                await self.stop(session["session"])
            await self.ada.delete(f"sessions/{session['session']}")
        (self._deck.home / "policy.toml").unlink(missing_ok=True)
        self._deck.take(Settings())
        await self._deck.hub.workers.end_idle()  # those that wait for the next policy that is tried
        for grant in (await self.ada.get("policy"))["grants"]:
            await self.ada.delete(f"policy/grants/{grant['id']}")

    @property
    def dials(self) -> bool:
        """Whether nobody but the CLI itself starts it."""
        return self.way == "dialled"

    def has(self, patch: int) -> bool:
        """Whether the version is 2.1.`patch` or newer."""
        return int(self._cli.version.rpartition(".")[2]) >= patch

    # --- sessions ------------------------------------------------------------------------------

    async def create(self, *replies: Said) -> str:
        """A session, with a first turn that says this, or without one."""
        if self.dials:
            session = await self.dial(new_id())
            if replies:
                await self.send(session, *replies)
            return session
        env = isolated_env(self.home, self.model.url)
        spec = {"directory": str(self.work), "claude": self._cli.command[-1], "env": env}
        prompt = {"prompt": play(*replies)} if replies else {}
        made = await self.ada.post("sessions", spec=spec, **prompt)
        return str(made["session"])

    async def dial(self, session: str | None, resume: str | None = None) -> str:
        """Start a CLI that dials a session's own path, or without one the root."""
        token = cli_token(cli_secret(self._deck.home), session or "/")
        base = "ws" + self._deck.address.removeprefix("http")
        url = f"{base}/v1/ws/{session}" if session else f"{base}/"
        env = isolated_env(
            self.home,
            self.model.url,
            CLAUDE_CODE_SESSION_ACCESS_TOKEN=token,
            CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING="1",
        )
        known = set(self.stream.events)
        argv = to_argv(Launch(sdk_url=url, resume=resume))
        process = await SubprocessLink.start(
            self._cli.command, argv, cwd=self.work, env=env, steps=StopSteps(input=0.2)
        )
        await self._stack.enter_async_context(process)
        if session in known:
            return str(session)
        return await self.stream.until(
            lambda: next((each for each in self.stream.events if each not in known), None)
        )

    async def state(self, session: str, state: str) -> Json:
        """Wait until a session is in a state; gives the session."""
        with anyio.fail_after(SECONDS):
            while (found := await self.ada.get(f"sessions/{session}"))["state"] != state:
                await self._told(session, found["head"] + 1)
        return found

    async def _told(self, session: str, seq: int) -> None:
        """Wait until the stream has told the event of this number."""

        def there() -> bool | None:
            rows = self.stream.events.get(session, [])
            return True if rows and rows[-1]["seq"] >= seq else None

        await self.stream.until(there)

    async def stop(self, session: str) -> Json:
        """End its CLI, and wait until it is gone."""
        before = await self.ada.get(f"sessions/{session}")
        await self.ada.post(f"sessions/{session}/stop")
        return {**await self.state(session, "ended"), "run": before["run"]}

    async def control(self, session: str, subtype: str, **more: object) -> Json:
        """Send a control request; gives the CLI's answer."""
        request = {"subtype": subtype, **more}
        outcome = await self.ada.post(f"sessions/{session}/control", request=request)
        answer: Json = outcome["answer"]
        return answer

    # --- turns and questions -------------------------------------------------------------------

    async def send(self, session: str, *replies: Said, prompt: str | None = None) -> str:
        """Send a prompt that carries its script; gives its id."""
        body: Json = {"content": play(*replies)} | ({"prompt": prompt} if prompt else {})
        return str((await self.ada.post(f"sessions/{session}/prompts", **body))["prompt"])

    async def turn_ended(self, session: str) -> Json:
        """Wait for the end of the next turn that was not waited for."""
        number = self._turns[session] = self._turns.get(session, 0) + 1

        def ended() -> Json | None:
            turns = self.stream.of(session, "turn.ended")
            return turns[number - 1] if len(turns) >= number else None

        return await self.stream.until(ended)

    async def turn(self, session: str, *replies: Said, prompt: str | None = None) -> Json:
        """Have one turn from its prompt to its end."""
        await self.send(session, *replies, prompt=prompt)
        return await self.turn_ended(session)

    async def ask(self, session: str) -> Json:
        """Wait for the next question; it is listed as open."""
        number = self._asked[session] = self._asked.get(session, 0) + 1

        def opened() -> Json | None:
            asks = self.stream.of(session, "ask.opened")
            return asks[number - 1] if len(asks) >= number else None

        card = await self.stream.until(opened)
        listed = (await self.bob.get("asks", session=session))["asks"]
        assert card["ask"] in [each["opened"]["ask"] for each in listed]
        return card

    async def answer(self, card: Json, answer: str, **more: object) -> Json:
        """Answer a question, as ada."""
        body = {"answer": answer, **more}
        return await self.ada.post(f"asks/{card['ask']}/answer", answer=body)

    def asked(self, session: str) -> int:
        """How many questions nobody has waited for yet."""
        return len(self.stream.of(session, "ask.opened")) - self._asked.get(session, 0)

    async def verdicts(self, session: str, tool: str) -> list[tuple[str, str]]:
        """Who decided what about the calls of a tool, from the audit log."""
        entries = (await self.bob.get("audit", session=session))["events"]
        decided = [row["event"] for row in entries if row["event"]["kind"] == "decided"]
        return [(each["by"], each["verdict"]) for each in decided if each["tool"] == tool]

    # --- at the end ----------------------------------------------------------------------------

    async def check_history(self, session: str) -> None:
        """The stream told the whole history, in order, and the same as the pages have it."""
        pages: list[Json] = []
        after: int | None = 0
        while after is not None:
            page = await self.ada.get(f"sessions/{session}/events", after=after, limit=50)
            pages += page["events"]
            after = page["next"]
        await self._told(session, pages[-1]["seq"])
        told = self.stream.events[session]
        assert [row["seq"] for row in told] == list(range(1, len(told) + 1))
        assert told[: len(pages)] == pages
        numbers: dict[str, list[int]] = {}
        for said in self.stream.of(session, "said"):
            numbers.setdefault(said["run"], []).append(said["number"])
        assert all(found == sorted(set(found)) for found in numbers.values())


@contextlib.asynccontextmanager
async def api_seat(
    cli: RealCli,
    way: str,
    model: ScriptedModel,
    folder: Path,
    processes: Processes,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[ApiSeat]:
    """Serve, with two people who may do everything and follow everything."""
    data, home, work = folder / "data", folder / "home", folder / "work"
    for made in (data, home, work):
        made.mkdir(mode=0o700)
    be_at_home(cli, home, model, monkeypatch)
    serving = ServeOptions(listen=Listen(port=0))
    async with contextlib.AsyncExitStack() as stack:
        deck = await stack.enter_async_context(run_service(data, serving))
        processes.started(await runner_pid(deck))
        stack.push_async_callback(stop_runner, data / RUNNER)
        stream = Stream()
        ada, bob = [
            Person(await stack.enter_async_context(_http(deck, name)), stream)
            for name in ("ada", "bob")
        ]
        await stack.enter_async_context(_following(deck, stream))
        yield ApiSeat(cli, way, model, deck, folder, ada, bob, stack)


def be_at_home(
    cli: RealCli, home: Path, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Make the machine one on which this CLI is installed, for what nobody told us how to start.

    The model is in the user's own settings: a base URL in the environment is not passed on unless
    the session wants it.
    """
    for name, value in isolated_env(home, model.url).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("QUARTERDECK_CLAUDE", cli.command[-1])
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_bytes(
        msgspec.json.encode(
            {"env": {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "made-up"}}
        )
    )


async def runner_pid(deck: Service) -> int:
    with anyio.fail_after(SECONDS):
        while not (there := await deck.hub.machines()):  # noqa: ASYNC110 (nobody tells of it)
            await anyio.sleep(0.02)
    (machine,) = there
    assert machine.pid is not None
    return machine.pid


async def stop_runner(folder: Path) -> None:
    with anyio.CancelScope(shield=True):
        assert await anyio.to_thread.run_sync(end_runner, folder)


def _http(deck: Service, name: str) -> httpx.AsyncClient:
    headers = {"authorization": f"Bearer {deck.access.make_token(name, Role.OWNER)}"}
    # Certificates take longer to load than most tests take, and this is plain HTTP.
    return httpx.AsyncClient(
        base_url=deck.address, headers=headers, timeout=SECONDS, trust_env=False, verify=False
    )


@contextlib.asynccontextmanager
async def _following(deck: Service, stream: Stream) -> AsyncIterator[None]:
    token = deck.access.make_token("a screen", Role.VIEWER)
    url = "ws" + deck.address.removeprefix("http") + "/api/stream"
    headers = {"authorization": f"Bearer {token}"}
    async with connect(url, additional_headers=headers, max_size=None) as socket:
        hello = msgspec.json.decode(await socket.recv(), type=Json)
        assert hello["t"] == "hello"
        follow = {"t": "follow", "id": "1", "all": True}
        await socket.send(msgspec.json.encode(follow).decode())
        assert msgspec.json.decode(await socket.recv(), type=Json)["t"] == "following"
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stream.read, socket)
            tasks.start_soon(_beat, socket, hello["beat_seconds"])
            try:
                yield
            finally:
                tasks.cancel_scope.cancel()
