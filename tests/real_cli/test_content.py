"""Content: prompts with more than text in them.

Rewinding: files go back to what they were before a prompt.
Sizes: large answers, large prompts, and tools that print much.

One session shows it all: its scenes follow each other.
"""

from __future__ import annotations

import base64
import struct
import zlib

import anyio
import msgspec
import pytest

from quarterdeck import Agent, Allow, Prompt, User
from quarterdeck.domain.errors import RequestRefused
from quarterdeck.testing import Text, ToolUse, play, reply
from quarterdeck.wire.content import ImageBlock
from quarterdeck.wire.outbound import document_block, image_block, text_block
from quarterdeck.wire.rawjson import dump
from quarterdeck.wire.versions import release
from support.bounds import SECONDS
from support.scenes import bash, read, write
from support.seats import Seat

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

MEGABYTE = 1024 * 1024


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


async def test_prompts_carry_more_than_words_and_files_are_rewound_to_them(seat: Seat) -> None:
    async with seat.agent(decide=lambda _: Allow(), file_checkpointing=True) as agent:
        with anyio.fail_after(SECONDS):
            await prompts_carry_images_and_documents(seat, agent)
            await images_that_do_not_fit_are_changed(seat, agent)
            seat.theme = "Rewinding"
            await files_are_rewound_to_a_prompt(seat, agent)
            seat.theme = "Sizes"
            await large_messages_come_and_go_whole(seat, agent)


async def prompts_carry_images_and_documents(seat: Seat, agent: Agent) -> None:
    small = png(8)
    pdf = b"%PDF-1.4\n%made up\n"
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

    # What only the CLI may say in a prompt does not get through.
    stray = dump({"type": "tool_result", "tool_use_id": "toolu_none", "content": "made up"})
    assert not (await agent.query(Prompt.of([text_block("stray"), stray])).finish()).failed
    assert sent(seat, "tool_result") == []


def width(image: ImageBlock | Sent) -> int:
    """How wide a PNG is, by its header."""
    assert image.source is not None
    assert image.source.data is not None
    return int(struct.unpack(">II", base64.b64decode(image.source.data)[16:24])[0])


async def images_that_do_not_fit_are_changed(seat: Seat, agent: Agent) -> None:
    large = image_block(png(2400), "image/png")
    query = agent.query(Prompt.of([text_block("large"), large]))
    echoes = [m async for m in query if isinstance(m, User) and m.is_replay]
    (image,) = sent(seat, "image")
    scaled = seat.version >= release(120)
    assert (width(image) <= 2000) is scaled
    # The model is told so in any case, and how to count back.
    assert any("Multiply coordinates by" in block.text for block in sent(seat, "text"))
    answer = "are scaled down" if scaled else "are said to be scaled down, and are not"
    seat.found("Images that are too large", answer)
    (shown,) = [block for block in echoes[0].blocks if isinstance(block, ImageBlock)]
    assert (width(shown) <= 2000) is scaled

    broken = image_block(b"no image at all", "image/png")
    await agent.query(Prompt.of([text_block("broken"), broken])).finish()
    replaced = seat.version >= release(325)
    assert (sent(seat, "image") == []) is replaced
    seat.found("Broken images", "are replaced by a note" if replaced else "are passed on")


async def files_are_rewound_to_a_prompt(seat: Seat, agent: Agent) -> None:
    kept, made = seat.cwd / "kept", seat.cwd / "made"
    kept.write_text("old\n")
    edit = {"file_path": str(kept), "old_string": "old", "new_string": "new"}
    changing = agent.query(
        play(
            read(kept),
            ToolUse("Edit", {**edit}),
            write(made, "more\n"),
            bash(f"echo shell >> {kept}"),
            "changed",
        )
    )
    await changing.finish()
    assert kept.read_text() == "new\nshell\n"
    assert made.exists()

    would = await agent.rewind_files(changing.uuid, dry_run=True)
    assert would.can_rewind
    assert set(would.files_changed) == {str(kept), str(made)}
    assert (would.insertions or 0) + (would.deletions or 0) > 0
    assert made.exists()

    assert (await agent.rewind_files(changing.uuid)).can_rewind
    assert kept.read_text() == "old\n"
    assert not made.exists()
    with pytest.raises(RequestRefused, match="No file checkpoint found"):
        await agent.rewind_files("11111111-2222-4333-8444-555555555555")
    # The conversation is not rewound.
    await agent.query("and now?").finish()
    assert "changed" in seat.model.turns[-1].body.decode()
    seat.found("Rewind files")


async def large_messages_come_and_go_whole(seat: Seat, agent: Agent) -> None:
    answer = play(reply(Text("0123456789abcdef" * 1024, times=96)))
    assert len(await agent.query(answer).text()) == 1.5 * MEGABYTE
    seat.found("Answers of 1.5 MB")

    print_much = bash(f"head -c {5 * MEGABYTE} /dev/zero | tr '\\0' x")
    query = agent.query(play(print_much, "printed"))
    results = [m.tool_use_result async for m in query if isinstance(m, User)]
    largest = max(len(bytes(result)) for result in results)
    whole = seat.version < release(62)
    assert (largest > 5 * MEGABYTE) is whole
    answer = "comes in one line of 5 MB" if whole else "is kept in a file"
    seat.found("Tool output of 5 MB", answer)

    long = "a long prompt " * (2 * MEGABYTE // 14)
    assert not (await agent.query(long).finish()).failed
    assert any(len(request.body) > 2 * MEGABYTE for request in seat.model.requests)
    seat.found("Prompts of 2 MB")
