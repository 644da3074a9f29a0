"""Text that is being generated, for one reader that may be slow. No I/O.

Text in progress is not journalled, so a slow reader cannot read it later. Here it is merged by
block until it is read. If it becomes too much, whole blocks are given up, the oldest first: a
reader never gets a text with a hole in it, and the complete message follows anyway.
"""

from __future__ import annotations

from quarterdeck.domain.structs import Value
from quarterdeck.protocol.stream_frames import Live
from quarterdeck.protocol.views import Deltas

MOST_CHARACTERS = 1024 * 1024
"""Of all blocks that were not read. A message has far fewer."""
MOST_GIVEN_UP = 1000
"""Blocks that are remembered as given up."""
_Block = tuple[str, str, int, bool]


class _Unread(Value):
    first: Deltas
    texts: list[str]
    whole: bool


class LiveReader:
    """The text of one session that its reader has not got yet."""

    def __init__(self, most: int = MOST_CHARACTERS) -> None:
        self._most = most
        self._size = 0
        self._blocks: dict[_Block, _Unread] = {}
        self._given_up: dict[_Block, None] = {}

    def put(self, frame: Live) -> None:
        """Take a frame of the stream."""
        for delta in frame.deltas:
            self._put(delta, whole=frame.whole)
        while self._size > self._most:
            block = next(iter(self._blocks))
            self._drop(block)
            self._given_up[block] = None
            if len(self._given_up) > MOST_GIVEN_UP:
                del self._given_up[next(iter(self._given_up))]

    def _put(self, delta: Deltas, *, whole: bool) -> None:
        block = (delta.session, delta.message, delta.block, delta.thinking)
        if whole:
            self._given_up.pop(block, None)
            self._drop(block)
        elif block in self._given_up:
            return
        unread = self._blocks.get(block)
        if unread is None:
            self._blocks[block] = _Unread(first=delta, texts=[delta.text], whole=whole)
        else:
            unread.texts.append(delta.text)
        self._size += len(delta.text)

    def _drop(self, block: _Block) -> None:
        if (unread := self._blocks.pop(block, None)) is not None:
            self._size -= sum(map(len, unread.texts))

    def take(self) -> list[Live]:
        """What was not read, one frame for each block."""
        unread, self._blocks, self._size = self._blocks, {}, 0
        return [
            Live(
                deltas=(
                    Deltas(
                        session=each.first.session,
                        message=each.first.message,
                        text="".join(each.texts),
                        block=each.first.block,
                        thinking=each.first.thinking,
                    ),
                ),
                whole=each.whole,
            )
            for each in unread.values()
        ]
