"""The OpenAPI 3.1 document: the framework's paths and parameters, our schemas.

The routes declare with `documented` what a handler takes, returns and refuses; the document is made
from that and from the structs themselves, once. The framework's own schemas are not used: it knows
neither raw JSON nor that unknown members are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
from litestar.openapi.spec import Schema
from litestar.plugins import OpenAPISchemaPlugin
from litestar.routes import HTTPRoute

from quarterdeck.fronts.http.openapi_texts import EXAMPLES, TAGS, id_of, summary_of, tag_of
from quarterdeck.fronts.http.problems import MEDIA_TYPE
from quarterdeck.fronts.http.schema import Json, reference, schemas_of, union_of
from quarterdeck.protocol.commands import AnyCommand
from quarterdeck.protocol.problems import CODES, Problem
from quarterdeck.protocol.stream_frames import ClientFrame, ServerFrame

if TYPE_CHECKING:
    from litestar import Litestar
    from litestar._openapi.schema_generation import SchemaCreator
    from litestar.typing import FieldDefinition

OPEN_ERRORS = ("bad_request", "host_not_allowed", "origin_not_allowed", "internal", "stopping")
LOGIN_ERRORS = (
    *OPEN_ERRORS,
    "bad_code",
    "too_large",
    "unsupported_media_type",
    "too_many_failures",
)
READ_ERRORS = (
    *OPEN_ERRORS,
    "unauthorized",
    "forbidden",
    "not_found",
    "too_many_failures",
    "journal_unavailable",
)
COMMAND_ERRORS = (
    *READ_ERRORS,
    "conflict",
    "disconnected",
    "cancelled",
    "too_large",
    "unsupported_media_type",
    "unsupported",
    "launch_failed",
    "cli_refused",
    "cli_timeout",
)


UNIONS: dict[str, Any] = {
    "AnyCommand": AnyCommand,
    "ClientFrame": ClientFrame,
    "ServerFrame": ServerFrame,
}
"""Unions that no path names: the commands and the frames of the stream."""


class Documented(msgspec.Struct, frozen=True):
    """What a handler says of itself beyond its signature."""

    errors: tuple[str, ...]
    takes: type[msgspec.Struct] | None = None
    body_optional: bool = False
    gives: type[msgspec.Struct] | None = None
    also_gives: str | None = None
    gives_text: tuple[str, ...] = ()
    """The media types of an answer that is a file, and not JSON."""
    open: bool = False
    """It needs no login."""


def documented(
    errors: tuple[str, ...],
    *,
    takes: type[msgspec.Struct] | None = None,
    body_optional: bool = False,
    gives: type[msgspec.Struct] | None = None,
    also_gives: str | None = None,
    gives_text: tuple[str, ...] = (),
    open: bool = False,  # noqa: A002  (the word that the document has)
) -> dict[str, Documented]:
    """The `opt` of a handler."""
    return {
        "documented": Documented(
            errors=errors,
            takes=takes,
            body_optional=body_optional,
            gives=gives,
            also_gives=also_gives,
            gives_text=gives_text,
            open=open,
        )
    }


class StructNames(OpenAPISchemaPlugin):
    """Has the framework name our structs only; their schemas are put in later."""

    def __init__(self) -> None:
        self.seen: set[type[msgspec.Struct]] = set()

    def is_plugin_supported_field(self, field_definition: FieldDefinition) -> bool:
        """Structs, and nothing else."""
        return not field_definition.is_union and field_definition.is_subclass_of(msgspec.Struct)

    def to_openapi_schema(
        self, field_definition: FieldDefinition, schema_creator: SchemaCreator
    ) -> Schema:
        """A reference by the struct's name."""
        self.seen.add(field_definition.annotation)
        return schema_creator.create_component_schema(
            field_definition, required=[], property_fields={}
        )


def document(app: Litestar, names: StructNames) -> bytes:
    """The whole document, as JSON."""
    made: Json = app.openapi_schema.to_schema()
    handlers = [*_handlers(app)]
    types: set[Any] = {*names.seen, Problem, *UNIONS.values()}
    types |= {kind for _, _, said in handlers for kind in (said.takes, said.gives) if kind}
    made["components"] = {
        "schemas": schemas_of(types) | {name: union_of(kind) for name, kind in UNIONS.items()},
        "securitySchemes": {
            "bearer": {"type": "http", "scheme": "bearer"},
            "cookie": {"type": "apiKey", "in": "cookie", "name": "quarterdeck_*"},
        },
    }
    made["tags"] = [{"name": name, "description": about} for name, about in TAGS.items()]
    for path, method, said in handlers:
        operation = made["paths"][path][method]
        operation["operationId"] = id_of(operation["summary"])  # the framework's is its path
        operation["summary"] = summary_of(operation["description"])
        operation["tags"] = [tag_of(path)]
        _complete(operation, said)
    return msgspec.json.encode(made)


def _handlers(app: Litestar) -> Iterator[tuple[str, str, Documented]]:
    for route in app.routes:
        if isinstance(route, HTTPRoute):
            for method, (handler, _) in route.route_handler_map.items():
                said = handler.opt.get("documented")
                if isinstance(said, Documented):
                    yield route.path_format, method.lower(), said


def _complete(operation: Json, said: Documented) -> None:
    """Put into an operation what only we know of it."""
    operation["security"] = [] if said.open else [{"bearer": []}, {"cookie": []}]
    if said.takes is not None:
        body: Json = {"schema": reference(said.takes)}
        if (example := EXAMPLES.get(operation["operationId"])) is not None:
            body["example"] = example
        operation["requestBody"] = {
            "required": not said.body_optional,
            "content": {"application/json": body},
        }
    responses = operation["responses"]
    responses.pop("400", None)  # the framework's own idea of an error
    good = responses["200"]
    good["description"] = "Done" if said.takes else "The answer"
    if said.gives is not None:
        good["content"] = {"application/json": {"schema": reference(said.gives)}}
    if said.also_gives is not None:
        good["content"][said.also_gives] = {"schema": {"type": "string"}}
    if said.gives_text:
        kinds = (media_type.partition(";")[0] for media_type in said.gives_text)
        good["content"] = {kind: {"schema": {"type": "string"}} for kind in kinds}
    by_status: dict[int, list[str]] = {}
    for code in said.errors:
        by_status.setdefault(CODES[code][0], []).append(code)
    for status, codes in sorted(by_status.items()):
        titles = "; ".join(f"`{code}`: {CODES[code][1]}" for code in codes)
        responses[str(status)] = {
            "description": titles,
            "content": {MEDIA_TYPE: {"schema": reference(Problem)}},
        }
