"""Photos, documents and voice notes of a message, as content of a prompt.

Pictures and PDF files become blocks of the Messages API, text files become text, voice notes are
written down by a configured service. Other files are refused with what to do instead.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import anyio
import msgspec

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import DECODE_ERRORS, Value
from quarterdeck.fronts.telegram.api import LARGEST_DOWNLOAD
from quarterdeck.fronts.telegram.display import safe_line
from quarterdeck.fronts.telegram.jobs import Job
from quarterdeck.fronts.telegram.message_prompts import Blocks
from quarterdeck.fronts.telegram.types import Document, Message

if TYPE_CHECKING:
    from quarterdeck.fronts.telegram.options import Transcription

PICTURES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
LONGEST_TEXT = 400_000
"""Characters of a text file in a prompt."""
TRANSCRIBE_SECONDS = 120.0


class _Transcript(Value):
    text: str


async def blocks_of(job: Job, messages: tuple[Message, ...]) -> tuple[Blocks, str]:
    """The content blocks of messages, and what was said in them. Raises `UsageError`."""
    blocks: Blocks = []
    said: list[str] = []
    for message in messages:
        if message.photo:
            data = await download(job, message.photo[-1].file_id, message.photo[-1].file_size)
            blocks.append(_picture("image/jpeg", data))
        if message.document is not None:
            blocks.append(await _document(job, message.document))
        if (voice := message.voice or message.audio) is not None:
            said.append(await _written_down(job, voice))
        if message is not messages[0] and (message.text or message.caption):
            said.append(message.text or message.caption)
    return blocks, "\n".join(said)


async def download(job: Job, file_id: str, size: int) -> bytes:
    """A file that a person has sent. Raises `UsageError` if it is too large."""
    if size > LARGEST_DOWNLOAD:
        raise UsageError("the file is too large: Telegram gives bots at most 20 MB")
    file = await job.services.api.get_file(file_id)
    return await job.services.api.download(file)


async def _document(job: Job, document: Document) -> dict[str, object]:
    data = await download(job, document.file_id, document.file_size)
    name = safe_line(document.file_name, 200) or "file"
    if document.mime_type in PICTURES:
        return _picture(document.mime_type, data)
    if document.mime_type == "application/pdf":
        source = {
            "type": "base64",
            "media_type": "application/pdf",
            "data": base64.b64encode(data).decode(),
        }
        return {"type": "document", "source": source, "title": name}
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{name}: only pictures, PDF files and text files can be in a prompt; store others"
            " with the caption: /file put PATH"
        ) from error
    if len(text) > LONGEST_TEXT or "\0" in text:
        raise UsageError(
            f"{name} is too long for a prompt; store it with the caption: /file put PATH"
        )
    return {"type": "text", "text": f"File {name}:\n\n{text}"}


def _picture(kind: str, data: bytes) -> dict[str, object]:
    source = {"type": "base64", "media_type": kind, "data": base64.b64encode(data).decode()}
    return {"type": "image", "source": source}


async def _written_down(job: Job, voice: Document) -> str:
    service = job.messenger.options.transcription
    if service is None:
        raise UsageError(
            "voice notes need a service that writes them down: see «transcription_url»"
        )
    data = await download(job, voice.file_id, voice.file_size)
    text = await transcribe(service, data, voice.file_name or "voice.ogg")
    if not text:
        raise UsageError("nothing could be understood in the voice note")
    job.say(f"🎤 {safe_line(text, 3000)}")
    return text


async def transcribe(service: Transcription, data: bytes, name: str) -> str:
    """What is said in a recording. Raises `UsageError` if the service does not tell."""
    import httpx2

    headers: dict[str, str] = {}
    if service.key_file:
        try:
            key = await anyio.Path(service.key_file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError("the key of the service for voice notes cannot be read") from error
        headers["authorization"] = f"Bearer {key.strip()}"
    try:
        async with httpx2.AsyncClient(timeout=TRANSCRIBE_SECONDS, follow_redirects=False) as client:
            answer = await client.post(
                service.url,
                headers=headers,
                data={"model": service.model},
                files={"file": (name, data)},
            )
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        raise UsageError(
            f"the service for voice notes cannot be reached ({type(error).__name__})"
        ) from error
    if answer.status_code != 200:
        raise UsageError(f"the service for voice notes answered with status {answer.status_code}")
    try:
        return msgspec.json.decode(answer.content, type=_Transcript).text.strip()
    except DECODE_ERRORS as error:
        raise UsageError("the service for voice notes did not answer as expected") from error
