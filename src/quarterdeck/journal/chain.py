"""The chain of the audit log: each entry is sealed with all that came before it. Pure.

Owns the digest of an entry, the chaining of digests, and the verification of a chain. An engine
stores a `Link` with each entry, in the same transaction, and returns them in pages; it does not
verify them.

A changed, missing, inserted or reordered entry is detected. The digests of a deleted session stay,
and so does the deletion itself, so the chain can still be verified. A person who can write the
file can rebuild the whole chain; only a `Head` that was kept elsewhere detects that, so a check
returns one.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

import msgspec

from quarterdeck.domain.structs import Value
from quarterdeck.protocol.audit import ACCESS, ChainFlaw, Checked, Head
from quarterdeck.protocol.events import (
    AskAnswered,
    Decided,
    Event,
    Noted,
    ProgramActed,
    SandboxConnection,
    SandboxStarted,
    SessionDeleted,
)
from quarterdeck.protocol.stored_events import Stored

MOST_FLAWS = 20
"""The most flaws that are listed. A change in the middle is one flaw."""


class Link(Value):
    """A link of the chain. `entry` is None if the entry does not exist any more."""

    position: int
    session: str
    digest: bytes
    """Empty: the entry is in the audit log but not in the chain."""
    seal: bytes
    entry: Stored | None = None
    deleted: bool = False
    """The session was deleted; its entries may be missing."""


def is_chained(event: Event) -> bool:
    """Whether an event belongs in the chain: the audit log, and deletions."""
    return is_audited(event) or isinstance(event, SessionDeleted)


def is_audited(event: Event) -> bool:
    """Whether an event is in the audit log: decisions, answers, sandboxes and connections, what
    programs did to their agents, and access that was taken back.
    """
    match event:
        case Noted(level=level):
            return level == ACCESS
        case _:
            return isinstance(
                event, Decided | AskAnswered | SandboxStarted | SandboxConnection | ProgramActed
            )


def genesis(epoch: str) -> bytes:
    """The seal before the first entry. Every journal has its own.

    A journal that was restored from a backup has its original epoch, a dot, and an id: its chain
    continues unchanged.
    """
    born = epoch.partition(".")[0]
    return sha256(b"quarterdeck audit\n" + born.encode()).digest()


def digest_of(stored: Stored) -> bytes:
    """The digest of an entry: its numbers, its time and its bytes."""
    place = msgspec.json.encode((stored.session, stored.seq, stored.position, stored.at))
    return sha256(place + b"\n" + stored.json).digest()


def seal_of(before: bytes, digest: bytes) -> bytes:
    """The seal of an entry: its digest and the seal of the entry before."""
    return sha256(before + digest).digest()


class Check:
    """Verifies a chain, a page at a time: `add` the pages, then take the `result`."""

    def __init__(self, epoch: str, expected: Head | None = None) -> None:
        """`expected`: a head that was kept elsewhere; the chain must contain it."""
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
            # From the stored seal, so that one change is one flaw, not one for each later entry
            self._seal = link.seal or self._seal
            self._position = link.position
            self._compare(link)

    def result(self) -> Checked:
        """The result."""
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
        """Compare the chain with the expected head."""
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
    """Parse a head in its text form; None if it is invalid."""
    position, _, seal = text.partition(":")
    if not position.isdecimal() or len(position) > 18 or len(seal) != 64:
        return None
    if not set(seal) <= set("0123456789abcdef"):
        return None
    return Head(position=int(position), seal=seal)
