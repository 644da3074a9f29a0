"""`quarterdeck serve`: the whole service in one process, composed here and nowhere else.

Journal, hub, HTTP and the local runner. The runner is a process of its own and outlives the hub:
agents keep working while the hub is stopped, killed or upgraded, and the next hub reconnects.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path

import anyio
import msgspec
from msgspec.structs import replace

from quarterdeck import __version__
from quarterdeck.config import Settings
from quarterdeck.domain.addresses import is_loopback
from quarterdeck.domain.errors import Conflict, LaunchError, UsageError
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
from quarterdeck.fronts.http.tokens import Kind
from quarterdeck.history.service import HistoryService
from quarterdeck.hub.hub import Hub
from quarterdeck.hub.permissions.policies import Policies
from quarterdeck.hub.runners import LOCAL
from quarterdeck.hub.transcript_in_use import TranscriptInUse
from quarterdeck.journal.sqlite import SqliteJournal
from quarterdeck.runner import live_runner, spawn_runner
from quarterdeck.runner.home import LOG
from quarterdeck.runtime.data_dir import data_home
from quarterdeck.runtime.files import replace_file
from quarterdeck.runtime.loop_watch import LoopWatch
from quarterdeck.runtime.tasks import background_tasks
from quarterdeck.service import settings as hub_settings
from quarterdeck.service.config_file import Configuration
from quarterdeck.service.local_hub import (
    CLI_SECRET,
    HUB_FILE,
    RUNNER,
    RUNNER_TOKEN,
    SEARCH,
    HubState,
    agents_in,
    end_runner,
    hub_lock,
    private_in,
)
from quarterdeck.service.local_runner import supervised_runner
from quarterdeck.service.logs import Logs
from quarterdeck.service.notifications import Notifications, notification_settings, run_variables
from quarterdeck.service.reload import watch_config

SECRET_SECONDS = 1.0
RUNNER_SECONDS = 30.0
"""A runner first ends the processes of an earlier one."""
SWITCH_SECONDS = 0.0001
"""How long a thread runs while another one waits. For each commit the journal's thread yields about
ten times: with Python's default of 5 ms a busy loop would delay each step by as much, and with
0.5 ms a commit takes twice as long as with this."""
NO_DECK = "The web app is not built. In the checkout run `make deck`, then start the hub again."
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


class Service(Value):
    """The running service. `address` is its address on this machine."""

    home: Path
    hub: Hub
    access: Access
    address: str
    take: Callable[[Settings], None]
    """Applies settings that can change while it runs."""


def run_serve(configuration: Configuration, *, runner: bool = True, with_link: bool = True) -> int:
    """Serve until a signal comes; returns the exit code."""
    logs = Logs()
    logs.change(configuration.loaded.settings.log)
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        anyio.run(_serve, configuration, logs, runner, with_link)
    finally:
        logs.close()
    return 0


async def _serve(configuration: Configuration, logs: Logs, runner: bool, with_link: bool) -> None:
    home = data_home()
    options = serve_options_of(configuration.loaded.settings, runner=runner)
    options = replace(options, fixed=(configuration.path,))
    async with (
        run_service(home, options) as service,
        LoopWatch().running(),  # what the start itself takes holds up nobody
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
        await until_signal()
        tasks.cancel_scope.cancel()
        going_on = sum(machine.runs for machine in await service.hub.machines())
    _print_stopped(going_on)


def serve_options_of(settings: Settings, *, runner: bool = True) -> ServeOptions:
    """Options from the configuration. Raises `UsageError` for invalid settings."""
    server = settings.server
    encrypted = server.certificate is not None or bool(server.proxies)
    if not encrypted and not server.insecure and not is_loopback(server.host):
        raise UsageError(
            f"host {server.host}: without TLS everybody on the way could read tokens and answers."
            " Give a certificate (--certificate), name the proxy that does TLS (--proxy), or use"
            " --insecure if the network itself is encrypted, such as a VPN"
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


@asynccontextmanager
async def run_service(home: Path, options: ServeOptions) -> AsyncIterator[Service]:
    """The service, while the block runs, with the local runner, which keeps running after it."""
    access = Access(home, places=_places(options))
    with hub_lock(home):
        journal = await SqliteJournal.open(home / "journal.db")
        try:
            notify = notification_settings(options.settings, home)
            hub = Hub(
                journal,
                access.runner_named,
                cli_secret=cli_secret(home),
                elsewhere=TranscriptInUse(),
                run_env=partial(run_variables, notify),
                policies=Policies(
                    home,
                    private=private_in(home, *options.fixed),
                    people=lambda: [(grant.name, grant.role.value) for grant in access.grants()],
                ),
            )
            notifications = Notifications(hub, journal, home, notify, access)
            history = await HistoryService.open(hub, journal, home / SEARCH)
            app = make_app(
                hub,
                access,
                runner_endpoint=hub.runners,
                cli_endpoint=hub.dialled,
                static=built_web(),
                history_service=history,
                metrics=notifications.metrics.page,
                requests=notifications.requests,
                pushing=notifications.push,
                worktree_service=hub.worktree_service,
            )
            _apply(options.settings, hub, history)

            def take(settings: Settings) -> None:
                access.places = _places(replace(options, places=hub_settings.places(settings)))
                notifications.change(notification_settings(settings, home))
                _apply(settings, hub, history)

            async with hub.running(), history.running(), serve(app, options.listen) as bound:
                address = _from_here(bound, options)
                token = runner_token(home, access)
                state = HubState(pid=os.getpid(), address=address, version=__version__)
                replace_file(home / HUB_FILE, msgspec.json.encode(state))
                service = Service(home=home, hub=hub, access=access, address=address, take=take)
                start = partial(_ensure_runner, home, address, token, options)
                runner = (
                    supervised_runner(home / RUNNER, start) if options.runner else nullcontext()
                )
                async with (
                    notifications.running(address),
                    runner,
                    background_tasks() as tasks,
                ):
                    tasks.start_soon(_watch_cli_secret, home, hub)
                    yield service
        finally:
            await journal.close()


def _apply(settings: Settings, hub: Hub, history: HistoryService) -> None:
    """Apply settings to the hub."""
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
    """Take over a secret that `quarterdeck token revoke cli` has replaced."""
    file = home / CLI_SECRET
    known = file.stat().st_mtime_ns
    while True:
        await anyio.sleep(SECRET_SECONDS)
        with suppress(OSError):  # it is being replaced
            if (changed := file.stat().st_mtime_ns) != known:
                hub.dialled.change_secret(cli_secret(home))
                known = changed


def _places(options: ServeOptions) -> Places:
    """The configured names, and the address that it listens on."""
    given, host = options.places, options.listen.host
    hosts = given.hosts if host in _ANYWHERE else (*given.hosts, host)
    return Places.of(hosts=hosts, origins=given.origins, proxies=given.proxies)


def _from_here(bound: str, options: ServeOptions) -> str:
    """The address for this machine's commands and runner.

    With a certificate it must be a name of the certificate: the first configured one.
    """
    host = options.listen.host
    name = _ANYWHERE.get(host, "")
    if options.listen.certificate is not None and options.places.hosts:
        name = options.places.hosts[0]
    if not name:
        return bound
    scheme, _, rest = bound.partition("://")
    return f"{scheme}://{name}:{rest.rpartition(':')[2]}"


def _ensure_runner(home: Path, address: str, token: Path, options: ServeOptions) -> None:
    """Make sure that a runner runs here and dials this hub. Blocks."""
    folder = home / RUNNER
    url = "ws" + address.removeprefix("http")
    living = live_runner(folder)
    if living is not None and living.hub_url != url:
        if agents := agents_in(folder):
            raise Conflict(
                "runner_dials_elsewhere",
                f"the local runner dials {living.hub_url} and still has {len(agents)} agents:"
                " serve there, or end them first with: quarterdeck stop",
            )
        end_runner(folder)
    spawn_runner(folder, url, token, machine=LOCAL, options=_runner_options(options))
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
    )


def runner_token(home: Path, access: Access) -> Path:
    """The file with the local runner's token, created if it is missing."""
    file = home / RUNNER_TOKEN
    if not file.exists() or access.runner_named(file.read_text().strip()) is None:
        replace_file(file, access.make_token(LOCAL, Role.RUNNER).encode())
    return file


async def until_signal() -> None:
    """Wait for SIGINT or SIGTERM."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            return


def _print_address(service: Service, *, with_link: bool) -> None:
    sys.stdout.write(f"{STARTED_LINE} {service.address}\n")
    if not with_link:
        sys.stdout.write("For a login link run: quarterdeck token --login\n")
    elif any(grant.kind is Kind.BROWSER for grant in service.access.grants()):
        sys.stdout.write("For a login link for another browser run: quarterdeck token --login\n")
    else:
        link = login_link(service.address, service.access.make_code())
        sys.stdout.write(f"Log in once, within ten minutes: {link}\n")
    sys.stdout.write(web_hint())
    sys.stdout.write("Ctrl-C stops the hub; agents keep running.\n")
    sys.stdout.flush()


def web_hint() -> str:
    """A hint for the terminal if the web app is not built; otherwise empty."""
    return "" if built_web() is not None else f"{NO_DECK}\n"


def _print_stopped(going_on: int) -> None:
    rest = "No agent is running."
    if going_on:
        agents, them = ("agent keeps", "it") if going_on == 1 else ("agents keep", "them")
        rest = f"{going_on} {agents} running; `quarterdeck stop` ends {them}."
    sys.stdout.write(f"The hub has stopped. {rest}\n")
    sys.stdout.flush()
