"""Which hub a command talks to, and which session or question it means.

The hub of this machine's user by default; another by `--hub` and `--token-file`. Ids may be cut
short as long as only one thing begins so. Above are the commands; below is the `client`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from quarterdeck.client.blocking_client import BlockingClient
from quarterdeck.client.calls import HubAddress
from quarterdeck.domain.errors import LinkRefused, NotFound, UsageError
from quarterdeck.domain.ids import is_id
from quarterdeck.domain.structs import Value
from quarterdeck.protocol.views import AskView, SessionShape
from quarterdeck.runtime.data_dir import data_home
from quarterdeck.service.local_hub import live_hub, own_token

SHORT = 8
"""The least of an id that is shown: it tells two sessions apart that began in different seconds."""


class Target(Value):
    """A hub, as the command line names it. All empty: the one of this machine."""

    hub: str | None = None
    token_file: Path | None = None
    insecure: bool = False
    ca_file: Path | None = None

    @property
    def is_here(self) -> bool:
        """Whether it is the hub of this machine."""
        return self.hub is None


def connect(target: Target) -> BlockingClient:
    """A client. Raises `LinkRefused` where no hub runs, `UsageError` for half a target."""
    return BlockingClient(address_of(target), find=lambda: address_of(target))


async def address_later(target: Target) -> HubAddress:
    """The same for a feed, which looks for the hub again after each lost connection."""
    import anyio.to_thread  # a command that sends one request needs no event loop

    return await anyio.to_thread.run_sync(address_of, target)


def address_of(target: Target) -> HubAddress:
    """The address and the token. Raises `LinkRefused`, `UsageError`."""
    if target.hub is not None:
        return HubAddress(
            address=target.hub,
            token=_token(target),
            insecure=target.insecure,
            ca_file=target.ca_file,
        )
    if target.token_file is not None:
        raise UsageError("--token-file needs --hub")
    if target.ca_file is not None:
        raise UsageError("--ca-file needs --hub")
    home = data_home(create=False)
    state = live_hub(home)
    if state is None:
        raise LinkRefused("no hub runs on this machine; start one with: quarterdeck serve")
    # Our own hub: `serve` has checked where it listens.
    return HubAddress(
        address=state.address,
        token=own_token(home),
        insecure=True,
        ca_file=None if state.ca_file is None else Path(state.ca_file),
    )


def _token(target: Target) -> str:
    if target.token_file is None:
        raise UsageError("--hub needs --token-file, made there with: quarterdeck token")
    try:
        token = target.token_file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--token-file: {target.token_file} cannot be read: {error}") from error
    if not token or not token.isascii() or not token.isprintable():
        raise UsageError(f"--token-file: there is no token in {target.token_file}")
    return token


def find_session(client: BlockingClient, given: str) -> str:
    """The id of the session that begins so, or has exactly this name."""
    if is_id(given):
        return given
    if not given:
        raise UsageError("which session? Its id is empty")
    # What was put away is looked at only if nothing else is meant: `ps` does not show it.
    for archived in (False, True):
        shapes = list(client.sessions(archived=archived))
        if found := _one_of(given, ((shape.session, shape.name) for shape in shapes)):
            return found
    raise NotFound("session", given)


def find_ask(client: BlockingClient, given: str) -> tuple[str, AskView | None]:
    """The id of the open question that begins so, and its card.

    An id that is whole is passed on when it is not open: a late answer is the hub's to judge. A
    session will do where one question of it is open; both parts of an id may be cut short.
    """
    session, _, rest = given.partition(".")
    cards = {card.opened.ask: card for card in client.asks(ended=True)}
    if given in cards:
        return given, cards[given]
    if rest and is_id(rest) and session:
        return given, None
    if rest and session:
        both = [ask for ask in cards if _begins(ask, session.lower(), rest.lower())]
        if len(both) == 1:
            return both[0], cards[both[0]]
    named = [(ask, "") for ask in cards] if given else []
    if not (found := _one_of(given, named)):
        of_session = find_session(client, given)
        found = _one_of(of_session, named)
    if found is None:
        raise NotFound("open question", given)
    return found, cards[found]


def _one_of(given: str, known: Iterable[tuple[str, str]]) -> str | None:
    known = list(known)
    for matching in (
        [id_ for id_, _ in known if id_ == given],
        [id_ for id_, _ in known if id_.startswith(given.lower())],
        [id_ for id_, name in known if name == given],
    ):
        if len(matching) == 1:
            return matching[0]
        if matching:
            some = ", ".join(matching[:4])
            raise UsageError(f"{given!r} may be {len(matching)} different ones: {some}")
    return None


def _begins(ask: str, session: str, rest: str) -> bool:
    of_session, _, own = ask.partition(".")
    return of_session.startswith(session) and own.startswith(rest)


def short_ids(shapes: Iterable[SessionShape]) -> dict[str, str]:
    """The shortest beginning of each session's id that is like no other's."""
    return shorten({shape.session for shape in shapes})


def short_asks(asks: Iterable[str]) -> dict[str, str]:
    """The same for ids of questions: that of the session alone where it has only one of them."""
    by_session: dict[str, set[str]] = {}
    for ask in asks:
        session, _, own = ask.partition(".")
        by_session.setdefault(session, set()).add(own)
    sessions = shorten(by_session)
    short: dict[str, str] = {}
    for session, owns in by_session.items():
        for own, beginning in shorten(owns).items():
            whole = f"{session}.{own}" if own else session
            short[whole] = (
                sessions[session] if len(owns) == 1 else f"{sessions[session]}.{beginning}"
            )
    return short


def shorten(given: Iterable[str]) -> dict[str, str]:
    """The shortest beginning of each id that is like no other's."""
    ids = sorted(given)
    short: dict[str, str] = {}
    for before, id_, after in zip(chain([""], ids), ids, chain(ids[1:], [""]), strict=False):
        length = 1 + max(_common(before, id_), _common(id_, after))
        short[id_] = id_[: max(SHORT, length)]
    return short


def _common(one: str, other: str) -> int:
    length = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        length += 1
    return length
