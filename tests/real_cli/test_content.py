"""Content: prompts with more than text in them."""

from __future__ import annotations

import base64
import struct
import zlib

import anyio
import msgspec
import pytest

from quarterdeck import Prompt
from quarterdeck.wire.outbound import document_block, image_block, text_block
from quarterdeck.wire.rawjson import dump
from quarterdeck.wire.versions import release
from support.seats import Seat

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


class Source(msgspec.Struct):
    """The bytes of a block, as the API gets them."""

    media_type: str = ""
    data: str = ""


class Sent(msgspec.Struct):
    """A block as the API gets it."""

    type: str
    source: Source | None = None
    text: str = ""


class SentMessage(msgspec.Struct):
    """A message as the API gets it."""

    role: str
    content: str | list[Sent]


class Body(msgspec.Struct):
    """What the API gets."""

    messages: list[SentMessage]


def png(side: int) -> bytes:
    """A square image of one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        whole = kind + data
        return struct.pack(">I", len(data)) + whole + struct.pack(">I", zlib.crc32(whole))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\x20\x80\xc0" * side) * side)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    )


def sent(seat: Seat, kind: str) -> list[Sent]:
    """The blocks of a type in the last prompt that the model got."""
    body = msgspec.json.decode(seat.model.turns[-1].body, type=Body)
    users = [
        m.content for m in body.messages if m.role == "user" and not isinstance(m.content, str)
    ]
    return [block for block in users[-1] if block.type == kind]


async def test_prompts_carry_images_and_documents(seat: Seat) -> None:
    small = png(8)
    pdf = b"%PDF-1.4\n%made up\n"
    async with seat.agent() as agent:
        with anyio.fail_after(30):
            blocks = [text_block("look"), image_block(small, "image/png"), document_block(pdf)]
            assert not (await agent.query(Prompt.of(blocks)).finish()).failed
            assert "look" in [block.text for block in sent(seat, "text")]
            (image,) = sent(seat, "image")
            assert image.source is not None
            assert image.source.data == base64.b64encode(small).decode()
            seat.found("Images in prompts")
            (document,) = sent(seat, "document")
            assert document.source is not None
            assert document.source.data == base64.b64encode(pdf).decode()
            seat.found("Documents in prompts")

            large = image_block(png(2400), "image/png")
            await agent.query(Prompt.of([text_block("large"), large])).finish()
            (image,) = sent(seat, "image")
            assert image.source is not None
            width, _ = struct.unpack(">II", base64.b64decode(image.source.data)[16:24])
            scaled = seat.version >= release(120)
            assert (width <= 2000) is scaled
            # The model is told so in any case, and how to count back.
            assert any("Multiply coordinates by" in block.text for block in sent(seat, "text"))
            answer = "are scaled down" if scaled else "are said to be scaled down, and are not"
            seat.found("Images that are too large", answer)

            broken = image_block(b"no image at all", "image/png")
            await agent.query(Prompt.of([text_block("broken"), broken])).finish()
            replaced = seat.version >= release(325)
            assert (sent(seat, "image") == []) is replaced
            seat.found("Broken images", "are replaced by a note" if replaced else "are passed on")

            # What only the CLI may say in a prompt does not get through.
            stray = dump({"type": "tool_result", "tool_use_id": "toolu_none", "content": "made up"})
            assert not (await agent.query(Prompt.of([text_block("stray"), stray])).finish()).failed
            assert sent(seat, "tool_result") == []
