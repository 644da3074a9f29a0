"""Reloading the configuration when its file changes, or on SIGHUP.

Owns when that happens, and what is logged. `Configuration` is below; the caller's `take` applies
the settings. An invalid file is reported once, and changes nothing.
"""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable

import anyio
import anyio.to_thread

from quarterdeck.config.settings import Settings
from quarterdeck.domain.errors import ConfigError, QuarterdeckError
from quarterdeck.service.config_file import Configuration

log = logging.getLogger("quarterdeck.config")

SECONDS = 1.0
"""How often the file is checked: as often as the hub's clock ticks."""


async def watch_config(
    configuration: Configuration,
    take: Callable[[Settings], None],
    *,
    on_signal: bool = True,
    seconds: float = SECONDS,
) -> None:
    """Reload for ever; runs in a task of its own."""
    wanted = [anyio.Event()]
    async with anyio.create_task_group() as group:
        if on_signal:
            group.start_soon(_watch_signals, wanted)
        while True:
            with anyio.move_on_after(seconds):
                await wanted[0].wait()
            if wanted[0].is_set() or configuration.changed:
                wanted[0] = anyio.Event()
                await reload(configuration, take)


async def reload(configuration: Configuration, take: Callable[[Settings], None]) -> None:
    """Read the file again, apply the settings, and log the changes."""
    before = configuration.loaded
    try:
        changes = await anyio.to_thread.run_sync(configuration.reload)
        take(configuration.loaded.settings)
    except Exception as error:  # noqa: BLE001 - a bad configuration does not end the hub
        configuration.loaded = before
        take(before.settings)
        _log_problems(error)
        log.error("the configuration was not applied; the previous one stays in force")
        return
    for change in changes:
        later = " (takes effect at the next start)" if change.at_start else ""
        log.info("%s%s", change.text, later)
    if not changes:
        log.info("the configuration was read again and has not changed")


def _log_problems(error: Exception) -> None:
    match error:
        case ConfigError(problems=problems):
            for problem in problems:
                log.error("%s", problem)
        case QuarterdeckError():
            log.error("%s", error)
        case _:
            log.error("cannot apply the configuration", exc_info=error)


async def _watch_signals(wanted: list[anyio.Event]) -> None:
    with anyio.open_signal_receiver(signal.SIGHUP) as signals:
        async for _ in signals:
            wanted[0].set()
