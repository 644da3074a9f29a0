"""The chain of the audit log: each entry is sealed with all that came before it. Pure.

Owns what an entry's digest is, how digests are chained, and how a chain is checked. An engine
stores a `Link` with each entry, in the same transaction, and gives them back in pages; it knows
nothing of what makes a chain good.

A change of an entry, one that is left out, one that was slipped in, and another order all show. Of
a session that was deleted the digests stay, and so does the deletion itself: the chain can be
checked as before. Whoever may write the file can make the whole chain anew; that shows only to
somebody who has kept a `Head` elsewhere, which is why a check gives one.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

import msgspec

from quarterdeck.domain.structs import Value
from quarterdeck.journal.stored import Stored
from quarterdeck.protocol.events import AskAnswered, Decided, Event, SessionDeleted

MOST_FLAWS = 20
"""So many flaws are told one by one. After a change in the middle, one is all there is."""


class Link(Value):
    """An entry's place in the chain. `entry` is None where there is none (any more)."""

    position: int
    session: str
    digest: bytes
    """Empty: an entry that is in the audit log and not in the chain."""
    seal: bytes
    entry: Stored | None = None
    deleted: bool = False
    """The session was deleted: its entries may be gone."""


class Head(Value):
    """How far the chain goes. Two journals with one head have the same audit log up to there."""

    position: int
    seal: str

    def __str__(self) -> str:
        """As it is shown and given: `position:seal`."""
        return f"{self.position}:{self.seal}"


class ChainFlaw(Value):
    """Something that was changed after it was written."""

    position: int
    session: str
    text: str


class Checked(Value, omit_defaults=False):
    """What a check came to. Good: no flaws."""

    entries: int
    """Entries that are there, and as they were written."""
    forgotten: int
    """Entries of deleted sessions: only their digests are left."""
    head: Head
    flaws: tuple[ChainFlaw, ...] = ()

    @property
    def good(self) -> bool:
        """Whether nothing was changed."""
        return not self.flaws


def is_chained(event: Event) -> bool:
    """Whether an event belongs into the chain: decisions, answers, and what took entries away."""
    return isinstance(event, Decided | AskAnswered | SessionDeleted)


def genesis(epoch: str) -> bytes:
    """What the first entry is sealed with. Every journal has its own.

    A journal that was restored from a backup has the epoch that it was born with, a dot, and more:
    the chain in it goes on as it began.
    """
    born = epoch.partition(".")[0]
    return sha256(b"quarterdeck audit\n" + born.encode()).digest()


def digest_of(stored: Stored) -> bytes:
    """The digest of an entry: its place, its time and its bytes."""
    place = msgspec.json.encode((stored.session, stored.seq, stored.position, stored.at))
    return sha256(place + b"\n" + stored.json).digest()


def seal_of(before: bytes, digest: bytes) -> bytes:
    """What seals an entry: its digest and the seal of the entry before."""
    return sha256(before + digest).digest()


class Check:
    """Goes along a chain, a page at a time: `add` the pages, then take the `result`."""

    def __init__(self, epoch: str, expected: Head | None = None) -> None:
        """`expected`: a head that somebody has kept; the chain must lead through it."""
        self._seal = genesis(epoch)
        self._position = 0
        self._expected = expected
        self._entries = 0
        self._forgotten = 0
        self._flaws: list[ChainFlaw] = []

    @property
    def after(self) -> int:
        """The position after which the next page begins."""
        return self._position

    def add(self, links: Iterable[Link]) -> None:
        """Check the links that follow."""
        for link in links:
            if text := self._wrong(link):
                self._flaw(link.position, link.session, text)
            elif link.entry is None:
                self._forgotten += 1
            else:
                self._entries += 1
            # From what is written, so that one change is one flaw and not one for each that follows
            self._seal = link.seal or self._seal
            self._position = link.position
            self._compare(link)

    def result(self) -> Checked:
        """What it came to."""
        expected = self._expected
        if expected is not None and expected.position > self._position:
            self._flaw(expected.position, "", "entries were cut off: this head is not reached")
            self._expected = None
        return Checked(
            entries=self._entries,
            forgotten=self._forgotten,
            head=Head(position=self._position, seal=self._seal.hex()),
            flaws=tuple(self._flaws),
        )

    def _wrong(self, link: Link) -> str:
        if not link.digest:
            return "an entry was put in"
        if seal_of(self._seal, link.digest) != link.seal:
            return "an entry before it was taken out, put in, or changed its place"
        if link.entry is None:
            return "" if link.deleted else "the entry is gone"
        if digest_of(link.entry) != link.digest:
            return "the entry was changed"
        return ""

    def _compare(self, link: Link) -> None:
        """Hold the chain against the head that somebody has kept."""
        expected = self._expected
        if expected is None or link.position < expected.position:
            return
        self._expected = None
        if link.position > expected.position:
            self._flaw(expected.position, "", "the entry of the given head is gone")
        elif link.seal.hex() != expected.seal:
            self._flaw(link.position, link.session, "the chain is another one up to here")

    def _flaw(self, position: int, session: str, text: str) -> None:
        if len(self._flaws) < MOST_FLAWS:
            self._flaws.append(ChainFlaw(position=position, session=session, text=text))


def parse_head(text: str) -> Head | None:
    """A head as it is shown; None if it is none."""
    position, _, seal = text.partition(":")
    if not position.isdecimal() or len(position) > 18 or len(seal) != 64:
        return None
    if not set(seal) <= set("0123456789abcdef"):
        return None
    return Head(position=int(position), seal=seal)
