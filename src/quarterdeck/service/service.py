"""`quarterdeck serve`: the whole service in one process, composed here and nowhere else.

Journal, hub, HTTP and the local runner. The runner is a process of its own and outlives the hub:
agents keep working while the hub is stopped, killed or upgraded, and the next hub reconnects.

The module is long because everything is composed in one place, in the order in which it starts.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio
import msgspec
from msgspec import field
from msgspec.structs import replace

from quarterdeck import __version__
from quarterdeck.config import Settings
from quarterdeck.domain.addresses import is_loopback
from quarterdeck.domain.errors import Conflict, JournalError, LaunchError, UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.fronts.http import (
    Access,
    Listen,
    Places,
    Role,
    built_web,
    login_link,
    make_app,
    serve,
)
from quarterdeck.fronts.http.people import PeopleStore
from quarterdeck.fronts.http.tokens import Kind
from quarterdeck.history.service import HistoryService
from quarterdeck.hub.cli_tokens import CliTokens
from quarterdeck.hub.hub import ORPHANS, Hub
from quarterdeck.hub.new_sessions import CliSessions
from quarterdeck.hub.permissions.policies import Policies
from quarterdeck.hub.transcript_in_use import TranscriptInUse
from quarterdeck.protocol.sessions import LOCAL
from quarterdeck.runner import live_runner, spawn_runner
from quarterdeck.runner.home import LOG
from quarterdeck.runtime.allocator import bound_free_memory
from quarterdeck.runtime.data_dir import PROGRAM_TOKEN, data_home, make_private
from quarterdeck.runtime.duties import alone
from quarterdeck.runtime.files import replace_file
from quarterdeck.runtime.loop_watch import LoopWatch
from quarterdeck.runtime.tasks import background_tasks
from quarterdeck.service import settings as hub_settings
from quarterdeck.service.agents import Agents
from quarterdeck.service.config_file import Configuration
from quarterdeck.service.journal_place import open_configured
from quarterdeck.service.local_hub import (
    CLI_SECRET,
    CLI_TOKENS,
    HUB_FILE,
    RUNNER,
    RUNNER_TOKEN,
    SEARCH,
    HubState,
    agents_in,
    end_runner,
    have_own_token,
    hub_lock,
    keep_own_token,
    private_in,
)
from quarterdeck.service.local_runner import supervised_runner
from quarterdeck.service.logs import Logs
from quarterdeck.service.loops import Loops
from quarterdeck.service.notifications import Notifications, notification_settings, run_variables
from quarterdeck.service.reach import HubReach
from quarterdeck.service.relay import make_relay, relay_lines, relay_port
from quarterdeck.service.reload import watch_config
from quarterdeck.service.schedules import Schedules
from quarterdeck.service.telegram import TelegramBot
from quarterdeck.service.together import SharedStores, Together

if TYPE_CHECKING:  # certificates and QR codes take a tenth of a second to load, and few need them
    from quarterdeck.fronts.http.trust import Trust
    from quarterdeck.service.auto_tls import AutoTls

SECRET_SECONDS = 1.0
JOURNAL_SECONDS = 0.5
"""How often the state of the journal is looked at."""
JOURNAL_MOVED = 75
"""The exit code of a hub whose database is another one: a supervisor is to start it again. It is
`EX_TEMPFAIL` of `sysexits.h`."""
RUNNER_SECONDS = 30.0
"""A runner first ends the processes of an earlier one."""
SWITCH_SECONDS = 0.0001
"""How long a thread runs while another one waits. For each commit the journal's thread yields about
ten times: with Python's default of 5 ms a busy loop would delay each step by as much, and with
0.5 ms a commit takes twice as long as with this."""
NO_WEB_APP = "The web app is not built. In the checkout run `make deck`, then start the hub again."
STARTED_LINE = "Quarterdeck is at"
_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - where to reach it from here


class ServeOptions(Value):
    """Options of the service."""

    listen: Listen
    places: Places = Places()
    runner: bool = True
    claude: str | None = None
    """The only CLI that the local runner starts; None: any that a session names."""
    settings: Settings = Settings()
    """The configuration; the addresses are in `listen` and `places`."""
    fixed: tuple[Path, ...] = ()
    """Files that agents may only read: the configuration."""
    tls: AutoTls | None = None
    """Certificates of our own; `listen` names the files."""


class Service(Value):
    """The running service. `address` is its address on this machine."""

    home: Path
    hub: Hub
    access: Access
    address: str
    take: Callable[[Settings], None]
    """Applies settings that can change while it runs."""
    trouble: Callable[[], JournalError | None] = lambda: None
    """Why the journal can be neither read nor written now."""
    relay: list[str] = field(default_factory=list)
    """What the terminal says about the relay."""
    far: tuple[str, ...] = ()
    """Its addresses for other devices, the best first."""
    tls: AutoTls | None = None
    trust: Trust | None = None


def run_serve(configuration: Configuration, *, runner: bool = True, with_link: bool = True) -> int:
    """Serve until a signal comes, or the database is another one; returns the exit code."""
    logs = Logs()
    logs.change(configuration.loaded.settings.log)
    sys.setswitchinterval(SWITCH_SECONDS)
    bound_free_memory()
    try:
        return anyio.run(_serve, configuration, logs, runner, with_link)
    finally:
        logs.close()


async def _serve(configuration: Configuration, logs: Logs, runner: bool, with_link: bool) -> int:
    home = data_home()
    options = serve_options_of(configuration.loaded.settings, runner=runner)
    options = replace(options, fixed=(configuration.path,))
    async with (
        run_service(home, options) as service,
        LoopWatch().run(),  # what the start itself takes holds up nobody
        anyio.create_task_group() as tasks,
    ):

        def take(settings: Settings) -> None:
            logs.change(settings.log)
            service.take(settings)

        # At a terminal SIGHUP means that the terminal has closed, and ends the process as usual.
        on_signal = not sys.stdin.isatty()
        tasks.start_soon(partial(watch_config, configuration, take, on_signal=on_signal))
        _print_address(service, with_link=with_link)
        # Everything loaded so far stays to the end. A garbage collection of it would block the loop
        # for 60 ms now and then.
        gc.freeze()
        moved = await _until_end(service)
        tasks.cancel_scope.cancel()
        going_on = sum(machine.runs for machine in service.hub.machines_here())
    _print_stopped(going_on)
    if moved is None:
        return 0
    sys.stderr.write(f"{moved}\n")
    return JOURNAL_MOVED


def serve_options_of(settings: Settings, *, runner: bool = True) -> ServeOptions:
    """Options from the configuration. Raises `UsageError` for invalid settings."""
    server = settings.server
    encrypted = server.certificate is not None or server.tls is not None or bool(server.proxies)
    if not encrypted and not server.insecure and not is_loopback(server.host):
        raise UsageError(
            f"host {server.host}: without TLS everybody on the way could read tokens and answers."
            " Use --tls auto, give a certificate (--certificate), name the proxy that does TLS"
            " (--proxy), or use --insecure if the network itself is encrypted, such as a VPN"
        )
    return ServeOptions(
        listen=Listen(
            host=server.host,
            port=server.port,
            certificate=None if server.certificate is None else Path(server.certificate),
            key=None if server.key is None else Path(server.key),
        ),
        places=hub_settings.places(settings),
        runner=runner,
        settings=settings,
    )


async def _with_tls(home: Path, options: ServeOptions) -> ServeOptions:
    """The options, with certificates of our own if that was chosen. Raises `UsageError`."""
    server = options.settings.server
    if server.tls is None:
        return options
    from quarterdeck.service.auto_tls import AutoTls

    tls = await AutoTls.open(home, options.listen.host, server.hosts)
    listen = replace(options.listen, certificate=tls.file.certificate, named=tls.named)
    return replace(options, listen=listen, tls=tls)


@asynccontextmanager
async def _serve_trust(options: ServeOptions) -> AsyncIterator[Trust | None]:
    """What a device needs to trust the hub; its page without TLS is served while the block runs."""
    tls = options.tls
    if tls is None:
        yield None
        return
    from quarterdeck.fronts.http.trust import Trust, serve_trust
    from quarterdeck.service.auto_tls import host_in_url

    trust = Trust(
        certificate=tls.ca.pem,
        title=tls.authority.subject,
        fingerprint=tls.authority.fingerprint,
    )
    name = tls.plain_name
    if name is None:
        yield trust
        return
    listen = options.listen
    port = listen.port + 1 if 0 < listen.port < 65535 else 0
    async with serve_trust(trust.certificate, listen.host, port) as found:
        yield replace(trust, address=f"http://{host_in_url(name)}:{found}/")


@asynccontextmanager
async def run_service(home: Path, options: ServeOptions) -> AsyncIterator[Service]:
    """The service, while the block runs, with the local runner, which keeps running after it."""
    make_private(home)
    with hub_lock(home):
        options = await _with_tls(home, options)
        async with _serve_trust(options) as trust, _run(home, options, trust) as service:
            yield service


@asynccontextmanager
async def _run(home: Path, options: ServeOptions, trust: Trust | None) -> AsyncIterator[Service]:
    access = Access(home, places=_places(options))
    journal = await open_configured(home, options.settings.journal)
    closing: list[Callable[[], None]] = []
    address = ""
    try:
        cli_secret(home)
        together = await Together.open(journal, options.settings, home)
        notify = notification_settings(options.settings, home)
        hub = Hub(
            journal,
            access.runner_named,
            check_program=access.program_named,
            cli_secret=cli_secret(home),
            cli_tokens=CliTokens(cli_secret(home), home / CLI_TOKENS),
            transcripts_in_use=TranscriptInUse(),
            run_env=partial(run_variables, notify),
            policies=Policies(
                home,
                private=private_in(home, *options.fixed),
                people=lambda: [(grant.name, grant.role.value) for grant in access.grants()],
            ),
            fleet=None if together is None else together.fleet,
        )
        machine = LOCAL
        if together is not None and options.runner:
            machine = hub.runners.local = together.machine
        shared = None if together is None else SharedStores.of(together)
        outbox = None if shared is None else shared.webhooks
        notifications = Notifications(hub, journal, home, notify, access, outbox)
        history = await HistoryService.open(hub, journal, home / SEARCH)
        relay = make_relay(hub, access, options.settings)
        telegram = TelegramBot(options.settings)
        loops = Loops(home, hub.worktree_service.resolve, hub.policies)
        starts = None if shared is None else shared.schedules
        schedules = Schedules(hub, home, access, options.settings, loops, starts)
        agents = Agents(hub, history, options.settings)
        people = PeopleStore(home, mirror=None if shared is None else shared.people)
        closing.append(people.close)
        reach = HubReach(options.settings.server, options.tls, lambda: address)
        app = make_app(
            hub,
            access,
            runner_endpoint=hub.runners,
            program_endpoint=hub.programs,
            cli_endpoint=hub.inbound,
            static=built_web(),
            history_service=history,
            metrics=notifications.metrics.page,
            requests=notifications.requests,
            pushing=notifications.push,
            loop_service=loops,
            worktree_service=hub.worktree_service,
            reviews=hub.reviews,
            relay=relay,
            scheduling=schedules.scheduler,
            inbound=schedules.inbound,
            cli_access=hub.cli_access,
            mcp=agents.endpoint,
            more_pages=None if trust is None else trust.pages(),
            people_store=people,
            reaching=reach,
            noting=hub.cli_access.note,
            disk_sessions=CliSessions(hub.runners.requests),
            peers=None if together is None else together.endpoint(hub, agents.endpoint),
            alarming=None if together is None else together.alarms,
            failing=lambda: None if journal.trouble is None else journal.trouble.code,
        )
        if together is not None and shared is not None:
            agents.endpoint.forward = together.forward(hub)
            together.share(
                hub.policies,
                notifications.push.store,
                (shared.people, people),
                (shared.schedules, schedules.scheduler),
            )
        _apply(options.settings, hub, history)

        configured = options.places

        def know_names() -> None:
            access.places = _places(replace(options, places=configured))

        def take(settings: Settings) -> None:
            nonlocal configured
            configured = hub_settings.places(settings)
            if options.tls is not None:
                options.tls.use(settings.server.hosts)
            know_names()
            reach.server = settings.server
            notifications.change(notification_settings(settings, home))
            relay.change(hub_settings.relay_rules(settings))
            telegram.change(settings)
            schedules.change(settings)
            agents.change(settings)
            if together is not None:
                together.change(settings)
            _apply(settings, hub, history)

        async with (
            hub.run(),
            history.run(alone if together is None else together.on_duty),
            agents.endpoint.run(),
            serve(app, options.listen) as bound,
            relay_port(app, options.settings) as relay_address,
        ):
            address = _from_here(bound, options)
            token = runner_token(home, access, machine)
            program_token(home, access)
            state = HubState(
                pid=os.getpid(),
                address=address,
                version=__version__,
                ca_file=None if (ca_file := _authority(options)) is None else str(ca_file),
                far=reach.addresses(),
            )
            await have_own_token(home)
            replace_file(home / HUB_FILE, msgspec.json.encode(state))
            service = Service(
                home=home,
                hub=hub,
                access=access,
                address=address,
                far=state.far,
                take=take,
                trouble=lambda: journal.trouble,
                relay=relay_lines(address, relay_address) if options.settings.relay.enabled else [],
                tls=options.tls,
                trust=trust,
            )
            start = partial(_ensure_runner, home, address, token, options, machine)
            runner = supervised_runner(home / RUNNER, start) if options.runner else nullcontext()
            duty = alone if together is None else together.on_duty
            kept = None if shared is None else shared.telegram
            bot = partial(telegram.run, home, access, address, ca_file, kept)
            async with (
                nullcontext() if together is None else together.run(hub, address),
                notifications.run(address, duty, None if together is None else together.place),
                runner,
                loops.run(access, address, ca_file),
                schedules.scheduler.run(duty),
                background_tasks() as tasks,
            ):
                tasks.start_soon(_watch_cli_secret, home, hub)
                tasks.start_soon(keep_own_token, home)
                tasks.start_soon(duty, "telegram", bot)
                if together is not None:
                    tasks.start_soon(duty, ORPHANS, hub.keep_orphans)
                if options.tls is not None:
                    tasks.start_soon(options.tls.keep, know_names)
                yield service
    finally:
        for close in closing:
            close()
        await journal.close()


def _apply(settings: Settings, hub: Hub, history: HistoryService) -> None:
    """Apply settings to the hub."""
    hub.program_ask_seconds = settings.programs.ask_seconds or None
    hub.change(
        limits=hub_settings.shared_limits(settings), timeouts=hub_settings.timeouts(settings)
    )
    history.retention = hub_settings.retention(settings)
    hub.policies.use(Path(settings.policy.file) if settings.policy.file else None)
    hub.worktree_service.change(
        settings.projects,
        settings.roots.directories,
        hub_settings.session_budget(settings),
        settings.sandbox,
    )


def cli_secret(home: Path) -> bytes:
    """The secret that the tokens of dialling CLIs are derived from; created if it is missing."""
    file = home / CLI_SECRET
    if not file.exists():
        replace_file(file, os.urandom(32))
    return file.read_bytes()


async def _watch_cli_secret(home: Path, hub: Hub) -> None:
    """Take over what `quarterdeck token revoke cli` and `revoke cli.SESSION` have changed."""
    file = home / CLI_SECRET
    known = file.stat().st_mtime_ns
    while True:
        await anyio.sleep(SECRET_SECONDS)
        with suppress(OSError):  # it is being replaced
            if (changed := file.stat().st_mtime_ns) != known:
                hub.inbound.change_secret(cli_secret(home))
                known = changed
            await hub.cli_access.reload()


def _places(options: ServeOptions) -> Places:
    """The configured names, and the address that it listens on."""
    given, host = options.places, options.listen.host
    hosts = given.hosts if host in _ANYWHERE else (*given.hosts, host)
    if (far := options.settings.journal.hub_address) is not None:  # as other hubs call it
        hosts = (*hosts, urlsplit(far).hostname or "")
    tls = options.tls
    return Places.of(
        hosts=hosts if tls is None else (*hosts, *tls.hosts),
        origins=given.origins,
        proxies=given.proxies,
        strict=tls is None,
    )


def _from_here(bound: str, options: ServeOptions) -> str:
    """The address for this machine's commands and runner.

    With a certificate it must be a name of the certificate: the one that other hubs use, or the
    first configured one. Our own certificate has the names of loopback.
    """
    host = options.listen.host
    name = _ANYWHERE.get(host, "")
    if options.tls is None and options.listen.certificate is not None:
        far = options.settings.journal.hub_address
        if far is not None and far.startswith("https://"):
            name = urlsplit(far).hostname or name
        elif options.places.hosts:
            name = options.places.hosts[0]
    if not name:
        return bound
    scheme, _, rest = bound.partition("://")
    return f"{scheme}://{name}:{rest.rpartition(':')[2]}"


def _authority(options: ServeOptions) -> Path | None:
    """The certificate authority that this machine's commands and runner trust alone, if any.

    That of several hubs has signed this hub's certificate, too.
    """
    if options.tls is not None:
        return options.tls.ca.ca_file
    given = options.settings.journal.hub_ca_file
    return None if given is None or options.listen.certificate is None else Path(given)


def _ensure_runner(
    home: Path, address: str, token: Path, options: ServeOptions, machine: str
) -> None:
    """Make sure that a runner runs here and dials this hub. Blocks."""
    folder = home / RUNNER
    url = "ws" + address.removeprefix("http")
    living = live_runner(folder)
    if living is not None and living.hub_url != url:
        if agents := agents_in(folder):
            raise Conflict(
                "runner_dials_elsewhere",
                f"the local runner connects to {living.hub_url} and still has {len(agents)} agents:"
                " serve there, or end them first with: quarterdeck stop",
            )
        end_runner(folder)
    spawn_runner(folder, url, token, machine=machine, options=_runner_options(options))
    # Only then can other commands find it.
    deadline = time.monotonic() + RUNNER_SECONDS
    while live_runner(folder) is None:
        if time.monotonic() > deadline:
            raise LaunchError(f"the runner did not start; see {folder / LOG}")
        time.sleep(0.02)


def _runner_options(options: ServeOptions) -> tuple[str, ...]:
    """Command line options for a new runner; one that is running keeps its own."""
    runner, log = options.settings.runner, options.settings.log
    return (
        *(("--claude", options.claude) if options.claude is not None else ()),
        *("--max-runs", str(runner.max_agents)),
        *("--memory-floor", str(runner.memory_floor_mb)),
        *("--log-level", log.level),
        *("--log-format", log.format),
        *(("--ca-file", str(ca_file)) if (ca_file := _authority(options)) is not None else ()),
    )


def runner_token(home: Path, access: Access, machine: str = LOCAL) -> Path:
    """The file with the local runner's token, created if it is missing."""
    file = home / RUNNER_TOKEN
    if not file.exists() or access.runner_named(file.read_text().strip()) != machine:
        replace_file(file, access.make_token(machine, Role.RUNNER).encode())
    return file


def program_token(home: Path, access: Access) -> Path:
    """The file with the token of this user's programs, created if it is missing."""
    file = home / PROGRAM_TOKEN
    if not file.exists() or access.program_named(file.read_text().strip()) is None:
        replace_file(file, access.make_token(LOCAL, Role.PROGRAM).encode())
    return file


async def until_signal() -> None:
    """Wait for SIGINT or SIGTERM."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            return


async def _until_end(service: Service) -> JournalError | None:
    """Wait for a signal; or for a journal that must be opened again, and give what is wrong."""
    moved: JournalError | None = None
    async with anyio.create_task_group() as tasks:

        async def look() -> None:
            nonlocal moved
            while (found := service.trouble()) is None or found.code != "moved":  # noqa: ASYNC110 - a thread notices it
                await anyio.sleep(JOURNAL_SECONDS)
            moved = found
            tasks.cancel_scope.cancel()

        tasks.start_soon(look)
        await until_signal()
        tasks.cancel_scope.cancel()
    return moved


def _print_address(service: Service, *, with_link: bool) -> None:
    sys.stdout.write(f"{STARTED_LINE} {service.address}\n")
    if service.tls is not None and service.trust is not None:
        from quarterdeck.service.auto_tls import trust_lines

        port = int(service.address.rpartition(":")[2])
        for line in trust_lines(service.tls, service.trust, port, with_code=sys.stdout.isatty()):
            sys.stdout.write(f"{line}\n")
    for line in service.relay:
        sys.stdout.write(f"{line}\n")
    if not with_link:
        sys.stdout.write("For a login link run: quarterdeck token --login\n")
    elif any(grant.kind is Kind.BROWSER for grant in service.access.grants()):
        sys.stdout.write("For a login link for another browser run: quarterdeck token --login\n")
    else:
        code = service.access.make_code()
        sys.stdout.write(f"Log in once, within ten minutes: {login_link(service.address, code)}\n")
        if sys.stdout.isatty():
            sys.stdout.write(far_login(service.far, code))
    sys.stdout.write(web_hint())
    sys.stdout.write("Ctrl-C stops the hub; agents keep running.\n")
    sys.stdout.flush()


def far_login(addresses: Sequence[str], code: str) -> str:
    """A login link for another device with its QR code, for a terminal; empty without an address.

    The code works once: in this link, or in the one for this machine.
    """
    if not addresses:
        return ""
    from quarterdeck.fronts.http.trust import terminal_code

    link = login_link(addresses[0], code)
    return f"Or on another device: {link}\n{terminal_code(link)}"


def web_hint() -> str:
    """A hint for the terminal if the web app is not built; otherwise empty."""
    return "" if built_web() is not None else f"{NO_WEB_APP}\n"


def _print_stopped(going_on: int) -> None:
    rest = "No agent is running."
    if going_on:
        agents, them = ("agent keeps", "it") if going_on == 1 else ("agents keep", "them")
        rest = f"{going_on} {agents} running; `quarterdeck stop` ends {them}."
    sys.stdout.write(f"The hub has stopped. {rest}\n")
    sys.stdout.flush()
