"""A whole hub with its Telegram front in this process, a runner, fake CLIs, and Telegram itself.

One house serves many tests. Each test gets a person of its own: a Telegram user who is paired with
a person of the hub, with a project, a folder and a fake CLI that nobody else uses.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio
from msgspec.structs import replace

from quarterdeck.client import HubClient
from quarterdeck.client.calls import HubAddress
from quarterdeck.config import Settings
from quarterdeck.config.settings import SandboxDefaults
from quarterdeck.fronts.http import Listen, Role
from quarterdeck.fronts.telegram.chats import Binding, Place
from quarterdeck.fronts.telegram.front import FrontSettings, RunningFront, run_front
from quarterdeck.fronts.telegram.jobs import Health
from quarterdeck.fronts.telegram.options import Options
from quarterdeck.protocol.commands import StopSession
from quarterdeck.protocol.projects import Project
from quarterdeck.protocol.views import AskView, SessionShape
from quarterdeck.runner import live_runner
from quarterdeck.runtime.clock import Clock
from quarterdeck.runtime.data_dir import make_private
from quarterdeck.runtime.tasks import background_tasks
from quarterdeck.service.local_hub import RUNNER, end_runner
from quarterdeck.service.service import ServeOptions, Service, run_service
from quarterdeck.testing import fake
from quarterdeck.testing.fake import fake_cli_command
from quarterdeck.testing.telegram.objects import Message
from quarterdeck.testing.telegram.server import BotApiServer
from support.bounds import SECONDS
from support.processes import Processes

SPEED = 40.0
"""How fast the clock of the front and of Telegram runs: its limits are seconds."""
FIRST_USER = 5000
MOST_USERS = 500


class TelegramHouse:
    """What a test of the front gets."""

    def __init__(self, folder: Path, service: Service, telegram: BotApiServer) -> None:
        self.folder = folder
        self.service = service
        self.telegram = telegram
        self.sim = telegram.sim
        self.settings = _settings()
        self.state = folder / "telegram.db"
        """The file of the front's state."""
        self.running = RunningFront(health=Health())
        self.clock = telegram.clock
        self.bot_token = service.access.make_token("telegram", Role.VIEWER)
        self.deck_token = service.access.make_token("deck", Role.OWNER)
        self._users = itertools.count(FIRST_USER)

    @property
    def where(self) -> HubAddress:
        """The hub, as the bot itself sees it."""
        return HubAddress(address=self.service.address, token=self.bot_token)

    def front(self, state: Path | None = None, options: Options | None = None) -> FrontSettings:
        """The settings of a front."""
        users = frozenset(range(FIRST_USER, FIRST_USER + MOST_USERS))
        return FrontSettings(
            token=self.telegram.token,
            options=options or Options(users=users),
            state=state or self.state,
            api=self.telegram.url,
        )

    async def run(self) -> None:
        """Run the front until cancelled. `running` is from then on the one that runs."""
        self.running = RunningFront(health=Health())
        await run_front(self.where, self.front(), clock=self.clock, running=self.running)

    async def clear(self) -> None:
        """End what runs, and forget the people: a runner has a limited number of agents.

        The front asks the hub each minute of its fast clock whether each person still has access.
        """
        if (messenger := self.running.messenger) is not None:
            for user in messenger.state.paired_users():
                messenger.state.unpair(user)
        hub = self.service.hub
        running = [view.session for view in await hub.sessions() if view.run is not None]
        async with anyio.create_task_group() as tasks:
            for session in running:
                tasks.start_soon(hub.submit, StopSession(session=session, by="test"))
        await hub.workers.end_idle()  # those that made an export
        self.settings = replace(self.settings, projects={})
        self.service.take(self.settings)

    async def stranger(self, name: str = "Somebody") -> Guest:
        """A Telegram user who is allowed to talk, and is nobody in the hub."""
        number = next(self._users)
        self.sim.add_user(number, name)
        return Guest(self, number)

    async def person(self, role: Role = Role.OWNER) -> Guest:
        """A Telegram user who is paired with a person, with a project and a CLI of their own."""
        guest = await self.stranger()
        code = self.service.access.make_pairing(guest.name, role)
        guest.type(f"/pair {code}")
        await guest.hears("🤝")
        guest.add_project()
        if role is Role.OWNER:
            guest.type(f"/ctx project {guest.project}")
            await guest.hears("📌")
        else:  # others may not choose where agents work
            assert self.running.messenger is not None
            place = Place(chat=guest.user)
            self.running.messenger.state.bind(place, Binding(project=guest.project))
        return guest


class Guest:
    """Somebody who talks to the bot, in their private chat unless another is named."""

    def __init__(self, house: TelegramHouse, user: int) -> None:
        self.house = house
        self.user = user
        self.name = f"person-{user}"
        self.project = f"p{user}"
        self.work = house.folder / "work" / self.project
        self._heard: set[tuple[int, int]] = set()

    # --- the CLI -------------------------------------------------------------------------------

    def add_project(self) -> None:
        """Have a project in a folder of one's own, with a CLI that echoes."""
        self.work.mkdir(parents=True, exist_ok=True)
        self.play(fake.Initialize(), fake.Serve())
        project = Project(directory=str(self.work), claude=str(self._cli), api_billing=True)
        house = self.house
        projects = {**house.settings.projects, self.project: project}
        house.settings = replace(house.settings, projects=projects)
        house.service.take(house.settings)

    def use_real(self, claude: str, env: dict[str, str], settings: str | None = None) -> None:
        """Have a real CLI from now on."""
        house = self.house
        project = Project(
            directory=str(self.work), claude=claude, env=env, settings=settings, api_billing=True
        )
        projects = {**house.settings.projects, self.project: project}
        house.settings = replace(house.settings, projects=projects)
        house.service.take(house.settings)

    @property
    def _cli(self) -> Path:
        return self.house.folder / f"claude-{self.user}"

    def play(self, *steps: fake.Step, record: Path | None = None) -> None:
        """Have CLIs that are started from now on play this."""
        command = fake_cli_command(steps, folder=self.house.folder, record=record)
        quoted = " ".join(f"'{part}'" for part in command)
        half = self._cli.with_suffix(".part")
        # A fake CLI has the same id of its conversation in every run, and a hub starts no second
        # CLI for a conversation.
        own = "--session-id $(cat /proc/sys/kernel/random/uuid)"
        half.write_text(f'#!/bin/sh\nexec {quoted} "$@" {own}\n')
        half.chmod(0o755)
        half.replace(self._cli)

    # --- talking -------------------------------------------------------------------------------

    def type(
        self,
        text: str,
        *,
        chat: int | None = None,
        thread: int | None = None,
        to: int | None = None,
    ) -> Message:
        """Type a message."""
        return self.house.sim.type(self.user, text, chat, thread, to)

    def press(self, message: Message, button: str, chat: int | None = None) -> str:
        """Press a button of a message."""
        return self.house.sim.press(self.user, message.message_id, button, chat)

    async def hears(
        self, text: str = "", *, chat: int | None = None, thread: int | None = None
    ) -> Message:
        """The first message of the bot with this text that was not heard yet."""
        place = self.user if chat is None else chat

        def look() -> Message | None:
            for message in self.house.sim.from_bot(place, thread):
                if (place, message.message_id) not in self._heard and text in message.shown:
                    return message
            return None

        found = await self.house.telegram.wait_for(look, SECONDS)
        self._heard.add((place, found.message_id))
        return found

    async def sees(
        self, number: int, text: str = "", chat: int | None = None, *, button: str = ""
    ) -> Message:
        """Wait until a message has this text, and this button."""
        place = self.user if chat is None else chat

        def look() -> Message | None:
            for one in self.house.sim.from_bot(place):
                has = not button or button in [each.text for each in one.buttons]
                if one.message_id == number and text in one.shown and has:
                    return one
            return None

        return await self.house.telegram.wait_for(look, SECONDS)

    async def tells(self, text: str, answer: str) -> Message:
        """Type a message, and hear the answer."""
        self.type(text)
        return await self.hears(answer)

    # --- the hub -------------------------------------------------------------------------------

    @asynccontextmanager
    async def hub(self) -> AsyncIterator[HubClient]:
        """The hub as the owner of the machine sees it."""
        house = self.house
        async with HubClient(house.service.address, house.deck_token, timeout=SECONDS) as client:
            yield client

    async def sessions(self) -> list[SessionShape]:
        """The sessions of this guest's project, newest first."""
        async with self.hub() as hub:
            return await self._sessions(hub)

    async def _sessions(self, hub: HubClient) -> list[SessionShape]:
        return [one async for one in hub.sessions() if one.spec.project == self.project]

    async def until(self, holds: Callable[[list[SessionShape]], bool]) -> list[SessionShape]:
        """Wait until the sessions of this guest are as wanted."""
        async with self.hub() as hub:
            with anyio.fail_after(SECONDS):
                while not holds(found := await self._sessions(hub)):  # noqa: ASYNC110 - no event
                    await anyio.sleep(0.02)
        return found

    async def asks(self) -> list[AskView]:
        """The open questions of this guest's sessions."""
        mine = {one.session for one in await self.sessions()}
        async with self.hub() as hub:
            return [ask for ask in await hub.asks() if ask.session in mine]


def _settings() -> Settings:
    return Settings(sandbox=SandboxDefaults(mode="off"))


@asynccontextmanager
async def telegram_house(
    folder: Path, processes: Processes, *, front: bool = True
) -> AsyncIterator[TelegramHouse]:
    """The house, while the block runs; without a front if the test runs it itself."""
    home = folder / "data"
    make_private(home)
    options = ServeOptions(listen=Listen(host="127.0.0.1", port=0), settings=_settings())
    async with AsyncExitStack() as stack:
        telegram = await stack.enter_async_context(BotApiServer(clock=Clock(speed=SPEED)))
        service = await stack.enter_async_context(run_service(home, options))
        living = live_runner(home / RUNNER)
        assert living is not None
        processes.started(living.pid)
        house = TelegramHouse(folder, service, telegram)
        stack.push_async_callback(anyio.to_thread.run_sync, end_runner, home / RUNNER)
        tasks = await stack.enter_async_context(background_tasks())
        if front:
            tasks.start_soon(house.run)
        yield house
