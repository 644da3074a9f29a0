"""Prompts that other Claude sessions have sent to a CLI, without the hub. Pure; below `run`.

A CLI from 2.1.224 on has an inbox: a socket to which every process of the same user can write. The
runner has it refuse all messages unless the session's spec allows them. A message that was taken is
recorded here, so that no turn is without a cause, and raises an alarm where it was to be refused.

The CLI names the message in its echo and in the result of the turn. Both are read, since one of
them may be lost with the link. The texts are those of a stranger: they are clipped.
"""

from __future__ import annotations

from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.hub.clip import count_of, id_of, name_of, text_of
from quarterdeck.protocol.events import Alarmed, Event, PeerPrompted
from quarterdeck.wire.base import Message
from quarterdeck.wire.exchange import RecentIds
from quarterdeck.wire.info import Origin, OriginKind
from quarterdeck.wire.messages import Result, User

PEER_PROMPT = "peer_prompt"
"""The code of the alarm."""
REMEMBERED = 64
"""Messages that are remembered, so that the result of a turn does not report one again."""


def peer_prompts(run: str, message: Message, known: RecentIds, *, refused: bool) -> list[Event]:
    """What a line of the CLI tells about a prompt of another session; nothing if that is known."""
    match message:
        case User() | Result():
            origin = message.origin
        case _:
            return []
    if origin is None or origin.kind is not OriginKind.PEER:
        return []
    key = _key(origin)
    if key in known:
        return []
    pid = origin.verified_peer_pid
    found = PeerPrompted(
        run=run,
        message=key,
        sender=text_of(origin.from_),
        name=name_of(origin.name),
        pid=None if pid is None else count_of(pid),
        text=text_of(origin.body),
        refused=refused,
    )
    return [found, alarm(found)] if refused else [found]


def alarm(found: PeerPrompted) -> Alarmed:
    """The alarm about a prompt that was to be refused."""
    coded = CodedText(code=TextCode.PEER_PROMPT, pid=found.pid)
    return Alarmed(alarm=PEER_PROMPT, text="", coded=coded)


def _key(origin: Origin) -> str:
    """The id of a message; without one, the sender and the text."""
    return id_of(origin.msg_id) or text_of(f"{origin.from_ or ''} {origin.body or ''}")
