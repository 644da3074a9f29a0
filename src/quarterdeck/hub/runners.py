"""The runners' end at the hub: their sockets, and the ports of the runs that they hold.

An ASGI app that runners dial with the frames of `protocol.runner_frames`. Owns which machines are
connected, what was requested of them, and what is on its way to each run; it looks into no line.
Above it are the sessions, through `RunPort` and `RunOwner`. The module is long because machines and
the ports of their runs change each other's state.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable

import anyio
import msgspec

from quarterdeck.domain.addresses import is_loopback
from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.domain.errors import JournalError, LaunchError, NotFound, StaleFence
from quarterdeck.domain.ids import new_id
from quarterdeck.hub.machine_requests import MachineRequests
from quarterdeck.hub.ports import RunEnd, RunOwner
from quarterdeck.hub.run_sockets import Gone, NumberedPort, Wire, bearer, next_frame, not_here
from quarterdeck.policy.facts import Private
from quarterdeck.protocol.coded_texts import coded_text
from quarterdeck.protocol.runner_frames import (
    EARLIER,
    PROTOCOL,
    Connection,
    Ended,
    Forget,
    Gap,
    Header,
    Hello,
    Lines,
    Refused,
    Reply,
    RunnerHeader,
    RunReport,
    Start,
    Started,
    Stop,
    Transcript,
    TranscriptQuery,
    Vitals,
    Welcome,
    Written,
)
from quarterdeck.protocol.sandbox import (
    OFF,
    SANDBOX,
    STRICT,
    SandboxMode,
    SandboxRequest,
    old_runner_report,
)
from quarterdeck.protocol.sessions import LOCAL, Origin, SessionSpec
from quarterdeck.protocol.views import MachineView
from quarterdeck.runtime.asgi import Receive, Scope, Send, header, path_of

log = logging.getLogger(__name__)

BAD_FRAME, REPLACED, FORBIDDEN = 4400, 4409, 4403
MOVED = 4410
"""Another hub has the machine: the runner dials again, and is right wherever it arrives."""
TRY_AGAIN = 1013
"""What it said could not be journalled: it keeps that, and says it again."""
USUAL_PLACE = "~/.local/share/quarterdeck"
MOST_CLOSED = 16
"""So many folders a runner may close to agents: each is compared with each call."""
LOST_REASON = CodedText(code=TextCode.MACHINE_LOST)
REFUSED_REASON = CodedText(code=TextCode.MACHINE_REVOKED)


class _Port(NumberedPort):
    """A session's hold on a run that a runner has, or is to have."""

    def __init__(self, runners: Runners, run: str, session: str, machine: str) -> None:
        super().__init__(run, session)
        self.machine = machine
        self.stopping: Stop | None = None
        self.sandbox: SandboxMode = OFF
        """The mode that was asked for, where this hub started the run."""
        self._runners = runners

    def stop(self, *, force: bool = False) -> None:
        self.stopping = Stop(run=self.run, force=force)
        self._runners.send(self.machine, self.stopping)

    def forget(self) -> None:
        self._runners.drop(self)

    def read_transcript(self, wanted: TranscriptQuery) -> None:
        if wanted.earlier and not self._runners.can(self.machine, EARLIER):
            return  # an older runner would answer as for a run that has ended
        if self.wire is not None:  # else it tells its end again, and is asked again
            self.wire.put(wanted)


class _Machine:
    """A machine that has said hello."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.wire: Wire | None = None
        self.hello: Hello | None = None
        self.vitals: Vitals | None = None
        self.clock_ahead_ms: int | None = None
        self.since: int | None = None
        self.address: str | None = None


class Runners:
    """All machines and runs. `owner` gives the session of a run; `check` whose token this is."""

    def __init__(
        self, owner: Callable[[str], RunOwner | None], check: Callable[[str], str | None]
    ) -> None:
        self._owner = owner
        self._check = check
        self._machines: dict[str, _Machine] = {}
        self._ports: dict[str, _Port] = {}
        self._starting: dict[str, tuple[str, Start]] = {}
        self._hub = new_id()
        self.local = LOCAL
        """The name of the hub's own machine."""
        self.claim: Callable[[str], Awaitable[None]] | None = None
        """With several hubs: has the sessions of a machine in memory, before it is compared."""
        self.is_journalled: Callable[[str, RunReport], Awaitable[bool]] | None = None
        """With several hubs: whether the journal has a run that is not in memory."""
        self.requests = MachineRequests(self.send, self._hello_of)

    # --- for the sessions ----------------------------------------------------------------------

    def start(
        self,
        run: str,
        session: str,
        spec: SessionSpec,
        origin: Origin,
        sandbox: SandboxRequest | None = None,
        agent_token: str = "",
    ) -> _Port:
        """Have a CLI started, now or when its machine is there.

        Raises `NotFound`, or `LaunchError` if the machine cannot make the sandbox that must be.
        """
        machine = spec.machine or self.local
        if machine != self.local and machine not in self._machines:
            raise NotFound("machine", machine)
        # An older runner refuses a spec with members that it does not know.
        spec = msgspec.structs.replace(spec, sandbox=None, sandbox_options=None)
        wanted = Start(
            run=run,
            session=session,
            spec=spec,
            origin=origin,
            sandbox=sandbox,
            agent_token=agent_token,
        )
        hello = self._hello_of(machine)
        if hello is not None and (why := _no_sandbox(hello, wanted)) is not None:
            raise LaunchError(coded_text(why))
        port = self._ports[run] = _Port(self, run, session, machine)
        port.sandbox = sandbox.mode if sandbox is not None else OFF
        self._starting[run] = (machine, wanted)
        self.send(machine, wanted)
        return port

    def attach(self, run: str, session: str, machine: str, *, said: int) -> _Port:
        """Take hold again of a run that an earlier hub started."""
        port = self._ports[run] = _Port(self, run, session, machine or LOCAL)
        port.upto = said
        port.lost = True
        return port

    def send(self, machine: str, header: Header, /, *lines: bytes) -> None:
        """Say something to a machine, if it is there."""
        found = self._machines.get(machine)
        if found is not None and found.wire is not None:
            found.wire.put(header, *lines)

    def can(self, machine: str, what: str) -> bool:
        """Whether the runner of a machine is connected, and knows this."""
        hello = self._hello_of(machine)
        return hello is not None and what in hello.can

    def is_connected(self, machine: str) -> bool:
        """Whether the runner of a machine is connected to this hub."""
        return self._hello_of(machine) is not None

    def _hello_of(self, machine: str) -> Hello | None:
        found = self._machines.get(machine)
        return found.hello if found is not None and found.wire is not None else None

    def private_on(self, machine: str) -> Private:
        """What agents on a machine must not touch, as its runner told it when it was last here."""
        found = self._machines.get(machine)
        hello = found.hello if found is not None else None
        reported = hello.closed[:MOST_CLOSED] if hello is not None else ()
        trees = (hello.worktrees,) if hello is not None and hello.worktrees else ()
        # An old runner tells nothing: then the usual place is meant, by its short name.
        return Private(
            folders=(*reported, USUAL_PLACE), open=(*trees, f"{USUAL_PLACE}/far-runner/worktrees")
        )

    def drop(self, port: _Port) -> None:
        """Nothing of this run is needed any more."""
        port.send()
        self._starting.pop(port.run, None)
        if self._ports.pop(port.run, None) is not None:
            self.send(port.machine, Forget(run=port.run))

    def disown(self, name: str) -> None:
        """Another hub has this machine: forget its runs, tell them nothing, close the sockets."""
        for port in [port for port in self._ports.values() if port.machine == name]:
            del self._ports[port.run]
            self._starting.pop(port.run, None)
            if port.wire is not None:
                port.wire.close(MOVED)
                port.wire = None
        machine = self._machines.get(name)
        if machine is not None and machine.wire is not None:
            machine.wire.close(MOVED)
            machine.wire = None
            self.requests.forget_machine(name)

    def machines(self) -> list[MachineView]:
        """The machines that have ever said hello to this hub."""
        return [
            MachineView(
                name=machine.name,
                connected=machine.wire is not None,
                runner=machine.hello.runner if machine.hello else None,
                version=machine.hello.version if machine.hello else None,
                pid=machine.hello.pid if machine.hello else None,
                runs=sum(port.machine == machine.name for port in self._ports.values()),
                memory_available=machine.vitals.memory_available if machine.vitals else None,
                load=machine.vitals.load if machine.vitals else None,
                since=machine.since,
                sandbox=machine.hello is not None and SANDBOX in machine.hello.can,
                clock_ahead_ms=machine.clock_ahead_ms,
            )
            for machine in self._machines.values()
        ]

    def at(self, address: str | None) -> str | None:
        """The machine with this address, if it has a runner. Our own has one, or will have."""
        if address is None:
            return None
        if is_loopback(address):
            return self.local
        there = (m.name for m in self._machines.values() if m.wire and m.address == address)
        return next(there, None)

    # --- the ASGI app --------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one socket of a runner."""
        if scope["type"] != "websocket":
            await not_here(send)
            return
        await receive()  # websocket.connect
        token = bearer(scope)
        machine = self._check(token)
        parts = [part for part in path_of(scope).split("/") if part]
        if machine is None or parts[:1] != ["runner"]:
            await send({"type": "websocket.close", "code": FORBIDDEN})
            return
        await send({"type": "websocket.accept"})
        wire = Wire()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wire.pump, send)
            try:
                match parts[1:]:
                    case []:
                        await self._serve_machine(machine, address_of(scope), wire, receive)
                    case ["runs", run]:
                        await self._serve_run(machine, run, token, wire, receive)
                    case _:
                        raise msgspec.DecodeError(f"nothing is at {path_of(scope)}")
            except Gone:
                pass
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                log.warning("a runner sent an invalid frame: %s", error)
                await wire.end(BAD_FRAME)
            except StaleFence as error:
                log.info("a runner must connect again: %s", error)
                await wire.end(MOVED)
            except JournalError as error:
                log.error("what a runner said is not journalled, and not acknowledged: %s", error)
                await wire.end(TRY_AGAIN)
            tasks.cancel_scope.cancel()

    async def _serve_machine(
        self, name: str, address: str | None, wire: Wire, receive: Receive
    ) -> None:
        hello, _ = await next_frame(receive)
        if not isinstance(hello, Hello):
            raise msgspec.DecodeError("the first frame of a runner is hello")
        if hello.machine != name:
            # A token is for one machine: with it nobody poses as another one.
            raise msgspec.DecodeError(f"a token for {name!r}, and a runner of {hello.machine!r}")
        machine = self._machines.setdefault(hello.machine, _Machine(hello.machine))
        if self.claim is not None:
            await self.claim(hello.machine)
            await self._check_known(hello)
        if machine.wire is not None:
            machine.wire.close(REPLACED)
        machine.wire, machine.hello, machine.address = wire, hello, address
        machine.since = int(time.time() * 1000)
        wire.put(Welcome(hub=self._hub, protocol=PROTOCOL))
        gone = await self._compare(hello)
        if self.claim is None:
            await self._end_gone(gone)
        try:
            while True:
                header, lines = await next_frame(receive)
                if self.claim is not None:
                    await self._end_gone(gone)
                match header:
                    case Refused(run=run, reason=reason, coded=coded):
                        await self._note_refusal(name, run, reason, coded)
                    case Vitals(at=at):
                        machine.vitals = header
                        machine.clock_ahead_ms = at - int(time.time() * 1000) if at else None
                    case Reply():
                        self.requests.take_reply(name, header, lines)
                    case _:
                        raise msgspec.DecodeError(f"{type(header).__name__} on a machine's socket")
        finally:
            if machine.wire is wire:
                machine.wire = None
                self.requests.forget_machine(name)

    async def _note_refusal(
        self, name: str, run: str, reason: str, coded: CodedText | None
    ) -> None:
        """A machine does not start a run. Only the run's own machine can say so."""
        port = self._ports.get(run)
        if port is None:
            return  # it was dropped meanwhile
        if port.machine != name:
            raise msgspec.DecodeError(f"{name!r} refuses the run {run}, which is not its own")
        if (owner := self._owner_of(run)) is not None:
            await owner.run_ended(run, RunEnd(reason=reason, coded=coded))
        self._starting.pop(run, None)

    async def _check_known(self, hello: Hello) -> None:
        """Raise `StaleFence` if the journal has a run of a machine that is not in memory.

        To end it would lose what it has said. The machine dials again, and is then taken anew.
        """
        for report in hello.runs:
            if report.run in self._ports or self.is_journalled is None:
                continue
            if await self.is_journalled(hello.machine, report):
                raise StaleFence(f"run {report.run} of the machine {hello.machine}")

    async def _compare(self, hello: Hello) -> list[_Port]:
        """Set right what the machine has and what we think that it has. Gives what is gone there.

        With several hubs that holds only if the runner has heard our Welcome: this may be its hello
        of long ago, in the socket of a hub that stood still, and the run one of another hub since.
        """
        theirs = {report.run for report in hello.runs}
        mine = [port for port in self._ports.values() if port.machine == hello.machine]
        # All of this is found before anything is waited for: what comes meanwhile is not gone.
        gone = [port for port in mine if port.run not in theirs | set(self._starting)]
        refused: dict[str, CodedText] = {}
        for run, (machine, wanted) in self._starting.items():
            if machine == hello.machine and run not in theirs:
                if (why := _no_sandbox(hello, wanted)) is not None:
                    refused[run] = why
                else:
                    self.send(machine, wanted)
        for port in mine:
            if port.stopping is not None and port not in gone:
                self.send(hello.machine, port.stopping)
        for run in theirs - {port.run for port in mine}:
            log.warning(
                "the machine %s has the run %s, which is no run: it is ended", hello.machine, run
            )
            self.send(hello.machine, Stop(run=run, force=True))
            self.send(hello.machine, Forget(run=run))
        for run, why in refused.items():
            await self._note_refusal(hello.machine, run, "", why)
        return gone

    async def _end_gone(self, gone: list[_Port]) -> None:
        """End the runs that their machine does not know, each once."""
        while gone:
            port = gone[-1]
            owner = self._owner_of(port.run)
            if owner is not None:
                killed = CodedText(code=TextCode.RUNNER_KILLED)
                await owner.run_ended(port.run, RunEnd(reason="", coded=killed))
            gone.pop()

    async def _serve_run(
        self, name: str, run: str, token: str, wire: Wire, receive: Receive
    ) -> None:
        self._port_of(name, run)
        started, _ = await next_frame(receive)
        if not isinstance(started, Started):  # before that it takes nobody's place
            raise msgspec.DecodeError("the first frame of a run is started")
        port, owner = self._port_of(name, run)
        if port.wire is not None:
            port.wire.close(REPLACED)
        port.connect(wire)
        try:
            if port.lost:
                await owner.run_found(run)
                port.lost = False
            await self._take(port, owner, started, [])
            while True:
                header, lines = await next_frame(receive)
                await self._take(port, owner, header, lines)
        finally:
            if port.wire is wire:
                port.wire = None
                if run in self._ports:
                    port.lost = True
                    refused = self._check(token) is None
                    with anyio.CancelScope(shield=True):
                        await self._note_loss(
                            run, owner, REFUSED_REASON if refused else LOST_REASON
                        )

    def _port_of(self, name: str, run: str) -> tuple[_Port, RunOwner]:
        port, owner = self._ports.get(run), self._owner_of(run)
        if port is None or owner is None or port.machine != name:
            raise msgspec.DecodeError(f"nobody knows the run {run}")
        return port, owner

    async def _note_loss(self, run: str, owner: RunOwner, why: CodedText) -> None:
        try:
            await owner.run_lost(run, why)
        except JournalError as error:
            log.error("run %s: it is not journalled that its machine is away: %s", run, error)

    async def _take(
        self, port: _Port, owner: RunOwner, header: RunnerHeader, lines: list[bytes]
    ) -> None:
        match header:
            case Started(pid=pid, version=version, directory=directory, sandbox=sandbox):
                self._starting.pop(port.run, None)
                sandbox = sandbox or old_runner_report(port.sandbox)
                await owner.run_started(port.run, pid, version, directory, sandbox)
            case Connection():
                await owner.run_connected(port.run, header)
            case Lines(first=first):
                await owner.run_said(port.run, first, lines)
            case Written(upto=upto):
                port.note_written(upto)
            case Gap():
                pass  # only deltas were given up, and nobody would have kept them
            case Ended():
                await owner.run_ended(port.run, RunEnd(**msgspec.structs.asdict(header)))
            case Transcript(earlier=True):
                await owner.run_earlier(port.run, lines)
            case Transcript(cli_session=cli_session, last=last):
                await owner.run_transcript(port.run, cli_session, lines, last=last)
            case _:
                raise msgspec.DecodeError(f"{type(header).__name__} on a run's socket")

    def _owner_of(self, run: str) -> RunOwner | None:
        port = self._ports.get(run)
        return self._owner(port.session) if port is not None else None


def _no_sandbox(hello: Hello, wanted: Start) -> CodedText | None:
    """Why a machine must not start a run: the sandbox that it cannot make is a must."""
    if wanted.sandbox is None or wanted.sandbox.mode != STRICT or SANDBOX in hello.can:
        return None
    return CodedText(code=TextCode.NO_SANDBOX, name=hello.machine, other=hello.version)


_FORWARDED = (b"x-forwarded-for", b"forwarded", b"x-real-ip", b"via", b"x-forwarded-host")


def address_of(scope: Scope) -> str | None:
    """Where a connection comes from; None if that is not known.

    What a proxy of this machine passes on is not from this machine. The front has put the address
    in its place that a proxy which it believes has told.
    """
    match scope.get("client"):
        case (str(address), *_):
            passed_on = any(header(scope, name) is not None for name in _FORWARDED)
            return None if passed_on and is_loopback(address) else address
        case _:
            return None
