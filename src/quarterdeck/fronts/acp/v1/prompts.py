"""What an editor sends: prompts as the Messages API has them, and the spec of a session. Pure."""

from __future__ import annotations

import msgspec
from acp import schema
from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.domain.errors import UsageError
from quarterdeck.fronts.acp.v1.settings import with_folder
from quarterdeck.protocol.sessions import SessionSpec

IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What the Messages API takes."""
PDF = "application/pdf"

Block = dict[str, object]
AcpBlock = (
    schema.TextContentBlock
    | schema.ImageContentBlock
    | schema.AudioContentBlock
    | schema.ResourceContentBlock
    | schema.EmbeddedResourceContentBlock
)
McpServer = schema.HttpMcpServer | schema.SseMcpServer | schema.AcpMcpServer | schema.McpServerStdio


def content_of(blocks: list[AcpBlock]) -> Raw:
    """A prompt for the hub. A single text stays a text, so that slash commands work.

    Raises `UsageError` for what the model cannot read.
    """
    found = [each for block in blocks for each in _block(block)]
    if not found:
        raise UsageError("the prompt is empty")
    if len(found) == 1 and found[0]["type"] == "text":
        return Raw(msgspec.json.encode(found[0]["text"]))
    return Raw(msgspec.json.encode(found))


def _block(block: AcpBlock) -> list[Block]:
    match block:
        case schema.TextContentBlock(text=text):
            return [_text(text)] if text else []
        case schema.ImageContentBlock(data=data, mime_type=kind):
            if kind not in IMAGES:
                raise UsageError(f"an image must be one of {', '.join(sorted(IMAGES))}")
            return [_file("image", kind, data)]
        case schema.AudioContentBlock():
            raise UsageError("sound cannot be sent to the model")
        case schema.ResourceContentBlock(uri=uri, name=name):
            return [_text(f"@{_path(uri)}" if uri.startswith("file://") else f"[{name}]({uri})")]
        case schema.EmbeddedResourceContentBlock(resource=resource):
            return _resource(resource)


def _resource(resource: schema.TextResourceContents | schema.BlobResourceContents) -> list[Block]:
    if isinstance(resource, schema.TextResourceContents):
        where = msgspec.json.encode(resource.uri).decode()
        return [_text(f"<context uri={where}>\n{resource.text}\n</context>")]
    kind = resource.mime_type or ""
    if kind in IMAGES:
        return [_file("image", kind, resource.blob)]
    if kind == PDF:
        return [_file("document", kind, resource.blob)]
    raise UsageError(f"a file of the type {kind!r} cannot be sent to the model")


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _file(type_: str, kind: str, data: str) -> Block:
    return {"type": type_, "source": {"type": "base64", "media_type": kind, "data": data}}


def _path(uri: str) -> str:
    from urllib.parse import unquote, urlsplit

    return unquote(urlsplit(uri).path)


# --- sessions ------------------------------------------------------------------------------------


def spec_of(
    defaults: SessionSpec,
    cwd: str,
    more: list[str] | None,
    servers: list[McpServer] | None,
) -> SessionSpec:
    """The spec of a new session: that of the command line, in the editor's folder.

    Raises `UsageError`.
    """
    given = {each.name: _server(each) for each in servers or ()}
    folders = with_folder(defaults, cwd, more or ())
    return replace(defaults, **folders, mcp_servers={**given, **defaults.mcp_servers})


def _server(server: McpServer) -> Raw:
    match server:
        case schema.McpServerStdio(command=command, args=args, env=env):
            variables = {each.name: each.value for each in env}
            config: dict[str, object] = {
                "type": "stdio",
                "command": command,
                "args": args,
                "env": variables,
            }
        case schema.HttpMcpServer(url=url, headers=headers):
            config = {"type": "http", "url": url, "headers": _headers(headers)}
        case schema.SseMcpServer(url=url, headers=headers):
            config = {"type": "sse", "url": url, "headers": _headers(headers)}
        case _:
            raise UsageError("MCP servers of the editor itself cannot be used: name a command")
    return Raw(msgspec.json.encode(config))


def _headers(headers: list[schema.HttpHeader]) -> dict[str, str]:
    return {each.name: each.value for each in headers}
