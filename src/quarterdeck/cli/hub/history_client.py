"""The hub's past, for commands: search, export, import, retention over HTTP.

Owns the requests. What is printed is known by the commands above; below is `client`.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UNSET

from quarterdeck.cli.hub.target import Target, connect
from quarterdeck.client.blocking_client import BlockingClient
from quarterdeck.client.calls import at, get, send
from quarterdeck.history.imports import ImportReport
from quarterdeck.protocol.retention import RetentionReport
from quarterdeck.protocol.search import Hit, Hits, Search
from quarterdeck.protocol.shapes import NewImport, NewRetention

LONG_SECONDS = 3600.0
"""An import reads every transcript, a retention every event."""
PAGE = 100


class HistoryClient(BlockingClient):
    """A hub's client for what takes long."""

    def search(self, wanted: Search, most: int) -> Iterator[Hit]:
        """What is found, newest first, page by page as it is wanted."""
        given = {
            name: getattr(wanted, name) for name in wanted.__struct_fields__ if name != "words"
        }
        query = {name: value for name, value in given.items() if value not in {None, UNSET}}
        query |= {"q": wanted.words}
        left = most
        while left > 0:
            query["limit"] = min(left, PAGE)
            page = self.call(get("/api/search", Hits, query))
            yield from page.hits
            left -= len(page.hits)
            if page.next is None:
                return
            query["before"] = page.next

    def export(self, session: str, form: str) -> Iterator[bytes]:
        """A session as a file, piece by piece. Raises `LinkRefused` if it breaks off."""
        return self.download(get(at(session, "export"), bytes, {"format": form}))

    def import_sessions(self, wanted: NewImport) -> ImportReport:
        """Take in what the CLI left on the hub's disk."""
        return self.call(send("POST", "/api/import", ImportReport, wanted))

    def retention(self, wanted: NewRetention) -> RetentionReport:
        """What is too much to be kept."""
        return self.call(send("POST", "/api/retention", RetentionReport, wanted))


def history_of(target: Target) -> HistoryClient:
    """A client. Raises `LinkRefused` where no hub runs."""
    return HistoryClient(connect(target).where, seconds=LONG_SECONDS)
