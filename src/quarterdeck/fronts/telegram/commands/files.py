"""Commands about files: get one, store one, export the session."""

from __future__ import annotations

import base64
import posixpath

import msgspec

from quarterdeck.domain.errors import UsageError
from quarterdeck.fronts.telegram.api import LARGEST_UPLOAD, Upload
from quarterdeck.fronts.telegram.commands.base import control
from quarterdeck.fronts.telegram.display import safe_line
from quarterdeck.fronts.telegram.jobs import Job
from quarterdeck.fronts.telegram.media import download
from quarterdeck.fronts.telegram.text import plain
from quarterdeck.wire.commands import FileContents

FORMS = {"markdown": "md", "html": "html", "json": "ndjson"}


async def file(job: Job, rest: str) -> None:
    """Send a file of the session, or store a document that was sent."""
    word, _, path = rest.partition(" ")
    path = path.strip()
    match word:
        case "get" if path:
            await _get(job, path)
        case "put":
            await _put(job, path)
        case _:
            raise UsageError("/file get PATH, or a document with the caption /file put PATH")


async def _get(job: Job, path: str) -> None:
    """A file as the agent itself may read it: the CLI applies the session's rules."""
    session = await job.session()
    request: dict[str, object] = {
        "subtype": "read_file",
        "path": path,
        "encoding": "base64",
        "max_bytes": LARGEST_UPLOAD,
    }
    answer = await control(job, session, request, 60.0)
    try:
        found = msgspec.json.decode(answer, type=FileContents)
        data = (
            base64.b64decode(found.contents)
            if found.encoding == "base64"
            else found.contents.encode()
        )
    except (msgspec.DecodeError, ValueError) as error:
        raise UsageError(f"the CLI did not give the file: {error}") from error
    if found.truncated:
        raise UsageError("the file is too large: bots can send at most 50 MB")
    if not data:
        raise UsageError("the file is empty")
    name = posixpath.basename(path)[:120] or "file"
    job.say(plain(safe_line(path, 200)), file=Upload(name=name, data=data), session=session)


async def _put(job: Job, path: str) -> None:
    session = await job.session()
    message = job.message
    holder = message if message is not None and (message.document or message.photo) else job.replied
    if holder is None or not (holder.document or holder.photo):
        raise UsageError("send a document with the caption /file put PATH, or reply so to one")
    name = "photo.jpg"
    if holder.document is not None:
        name = posixpath.basename(holder.document.file_name) or "file"
        data = await download(job, holder.document.file_id, holder.document.file_size)
    else:
        data = await download(job, holder.photo[-1].file_id, holder.photo[-1].file_size)
    target = path or name
    if target.endswith("/"):
        target += name
    hub = await job.hub()
    stored = await hub.session(session).put_file(target, data)
    job.say(f"💾 Stored: {safe_line(stored.path, 300)} ({len(data):,} bytes)", session=session)


async def export(job: Job, rest: str) -> None:
    """The session as a file."""
    form = rest.lower() or "markdown"
    if form not in FORMS:
        raise UsageError(f"/export {' | '.join(FORMS)}")
    session = await job.session()
    hub = await job.hub()
    shape = await hub.session(session).read()
    try:
        data = await hub.session(session).export(form, largest=LARGEST_UPLOAD)
    except UsageError as error:
        raise UsageError("the export is too large: bots can send at most 50 MB") from error
    name = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in shape.name)
    upload = Upload(name=f"{name[:60].strip('-') or 'session'}.{FORMS[form]}", data=data)
    job.say(plain(safe_line(shape.name, 200)), file=upload, session=session)
