"""Text that is still being made: delivered at once, kept until its message is whole.

Deltas are not journalled. A reader that joins in mid-message gets what has come so far; the whole
message, which is journalled, supersedes it.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from quarterdeck.domain.secrets import mask_tokens, mask_tokens_in
from quarterdeck.protocol.views import Deltas, Piece

Listener = Callable[[Deltas], None]
PieceListener = Callable[[Piece], None]


class Live:
    """The deltas of all sessions."""

    def __init__(self) -> None:
        self._listeners: dict[int, Listener] = {}
        self._count = 0
        self._piece_listeners: dict[int, PieceListener] = {}
        self._so_far: dict[str, dict[tuple[str, int, bool], list[str]]] = {}
        self._near_listeners: dict[int, tuple[Listener, Callable[[str], None]]] = {}
        self._far: set[str] = set()
        """The sessions of other hubs."""

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Have `listener` called with each delta; call what is given back to have it end."""
        self._count += 1
        number = self._count
        self._listeners[number] = listener
        return lambda: self._listeners.pop(number, None) and None

    def listen_to_pieces(self, listener: PieceListener) -> Callable[[], None]:
        """The same for the lines that deltas come in, as they are."""
        self._count += 1
        number = self._count
        self._piece_listeners[number] = listener
        return lambda: self._piece_listeners.pop(number, None) and None

    def listen_near(self, listener: Listener, whole: Callable[[str], None]) -> Callable[[], None]:
        """The deltas of this hub's own sessions, for other hubs; `whole`: a message is whole."""
        for session in self._so_far.keys() - self._far:
            for delta in self.so_far(session):
                listener(delta)
        self._count += 1
        number = self._count
        self._near_listeners[number] = (listener, whole)
        return lambda: self._near_listeners.pop(number, None) and None

    @property
    def pieces_wanted(self) -> bool:
        """Whether there is a listener for pieces: nearly every line of a CLI is one."""
        return bool(self._piece_listeners)

    def add_piece(self, session: str, run: str, number: int, after: int, line: bytes) -> None:
        """A line came that is not journalled. A token of the hub in it is masked."""
        piece = Piece(
            session=session, run=run, number=number, after=after, line=mask_tokens_in(line)
        )
        for listener in tuple(self._piece_listeners.values()):
            listener(piece)

    def add(self, delta: Deltas, *, far: bool = False) -> None:
        """A delta came, or (`far`) was sent by the hub that owns its session.

        A token of the hub is masked where it is whole in one delta.
        """
        if (text := mask_tokens(delta.text)) is not delta.text:
            delta = replace(delta, text=text)
        texts = self._so_far.setdefault(delta.session, {})
        texts.setdefault((delta.message, delta.block, delta.thinking), []).append(delta.text)
        for listener in tuple(self._listeners.values()):
            listener(delta)
        (self._far.add if far else self._far.discard)(delta.session)
        if not far:
            for listener, _ in tuple(self._near_listeners.values()):
                listener(delta)

    def supersede(self, session: str, *, far: bool = False) -> None:
        """A whole message of the session is on its way into the journal, or its turn is over."""
        if self._so_far.pop(session, None) is not None and not far:
            for _, whole in tuple(self._near_listeners.values()):
                whole(session)
        self._far.discard(session)

    def so_far(self, session: str) -> tuple[Deltas, ...]:
        """What has come of the messages that are not whole yet."""
        return tuple(
            Deltas(
                session=session,
                message=message,
                text=mask_tokens("".join(texts)),
                block=block,
                thinking=thinking,
            )
            for (message, block, thinking), texts in self._so_far.get(session, {}).items()
        )
