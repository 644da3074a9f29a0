"""The signal between hubs that something was stored: NOTIFY, from a connection of its own.

Owns two threads. One notifies after commits: what is stored while it notifies is in the next one.
It is never part of the transaction that stores, since a NOTIFY there would make all commits of the
database wait for each other. The other listens. Both connect again by themselves; a signal that is
lost costs a second, since everybody looks every second anyway.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import psycopg

from quarterdeck.journal.postgres.address import Address, Connection

log = logging.getLogger(__name__)

CHANNEL = "quarterdeck"
_NOTIFY = f"BEGIN; SET LOCAL synchronous_commit = off; NOTIFY {CHANNEL}; COMMIT".encode()
"""One message. It does not wait for the disk: an append would wait behind it."""
LISTEN_SECONDS = 0.5
"""How long the listener waits before it looks whether it is to end."""
RETRY_SECONDS = 1.0


class Signals:
    """Tells other hubs, and is told by them."""

    def __init__(self, address: Address, wake: Callable[[], None]) -> None:
        """`wake` is called in a thread when another hub may have stored something."""
        self._address = address
        self._wake = wake
        self._bell = threading.Event()
        self._ending = threading.Event()
        self._own = 0
        self._threads = [
            threading.Thread(target=self._keep, args=(step,), name=name, daemon=True)
            for name, step in (("journal notify", self._notify), ("journal listen", self._listen))
        ]
        for thread in self._threads:
            thread.start()

    def notify(self) -> None:
        """Tell the others, soon."""
        self._bell.set()

    def close(self) -> None:
        """End both threads."""
        self._ending.set()
        self._bell.set()
        for thread in self._threads:
            thread.join()

    def _keep(self, step: Callable[[Connection], None]) -> None:
        """Do a step again and again, on one connection as long as it works."""
        while not self._ending.is_set():
            try:
                with self._address.connect() as connection:
                    while not self._ending.is_set():
                        step(connection)
            except psycopg.Error as error:
                log.debug("the signals between hubs do not work: %s", error)
                self._ending.wait(RETRY_SECONDS)

    def _notify(self, connection: Connection) -> None:
        self._own = connection.info.backend_pid
        self._bell.wait()
        self._bell.clear()
        connection.execute(_NOTIFY, prepare=False)  # at the end, too: it wakes our listener

    def _listen(self, connection: Connection) -> None:
        connection.execute(f"LISTEN {CHANNEL}")
        self._wake()  # something may have come before
        while not self._ending.is_set():
            for notice in connection.notifies(timeout=LISTEN_SECONDS, stop_after=1):
                if notice.pid != self._own:
                    self._wake()
