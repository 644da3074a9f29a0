"""Forms of MCP servers: the fields of a schema, and values from what a person types. Pure.

A schema of an elicitation is flat: texts, numbers, booleans, and choices. Any other field is asked
for as JSON. The schema comes from a server that may send anything, so it is bounded here.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Raw

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import DECODE_ERRORS, Value

MOST_FIELDS = 50
MOST_CHOICES = 40
LONGEST_VALUE = 10_000

FieldKind = Literal["text", "number", "integer", "boolean", "choice", "choices", "json"]


class Choice(Value):
    """One of the values that a field takes."""

    value: str
    label: str


class Field(Value):
    """A field of a form."""

    name: str
    kind: FieldKind
    title: str
    description: str = ""
    required: bool = False
    choices: tuple[Choice, ...] = ()
    least: float | None = None
    """The smallest number, or the shortest text."""
    most: float | None = None


def fields_of(schema: Raw, order: tuple[str, ...] | None = None) -> tuple[Field, ...]:
    """The fields of a form, in their order; none for a schema that is no form. Never raises."""
    try:
        found = msgspec.json.decode(schema, type=dict[str, Any]) if schema else {}
    except DECODE_ERRORS:
        return ()
    properties = found.get("properties")
    if not isinstance(properties, dict):
        return ()
    names = [str(name) for name in properties]
    if order:
        names = [name for name in order if name in properties] + [
            name for name in names if name not in order
        ]
    listed = found.get("required")
    required = set(map(str, listed)) if isinstance(listed, list) else set()
    return tuple(_field(name, properties[name], name in required) for name in names[:MOST_FIELDS])


def _field(name: str, given: object, required: bool) -> Field:
    schema: dict[str, Any] = given if isinstance(given, dict) else {}
    kind, choices = _kind(schema)
    low, high = ("minLength", "maxLength") if kind == "text" else ("minimum", "maximum")
    return Field(
        name=name,
        kind=kind,
        title=str(schema.get("title") or name)[:200],
        description=str(schema.get("description") or "")[:1000],
        required=required,
        choices=choices,
        least=_number(schema.get(low)),
        most=_number(schema.get(high)),
    )


def _kind(schema: dict[str, Any]) -> tuple[FieldKind, tuple[Choice, ...]]:
    if choices := _choices(schema):
        return "choice", choices
    match schema.get("type"):
        case "string":
            return "text", ()
        case "number":
            return "number", ()
        case "integer":
            return "integer", ()
        case "boolean":
            return "boolean", (Choice(value="true", label="Yes"), Choice(value="false", label="No"))
        case "array" if isinstance(schema.get("items"), dict):
            choices = _choices(schema["items"])
            return ("choices", choices) if choices else ("json", ())
        case _:
            return "json", ()


def _choices(schema: dict[str, Any]) -> tuple[Choice, ...]:
    for member in ("oneOf", "anyOf"):
        rows = schema.get(member)
        if isinstance(rows, list) and rows and all(_is_const(row) for row in rows):
            return tuple(
                Choice(value=row["const"], label=str(row.get("title") or row["const"])[:200])
                for row in rows[:MOST_CHOICES]
            )
    values = schema.get("enum")
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        return ()
    names = schema.get("enumNames")
    labels = names if isinstance(names, list) and len(names) == len(values) else values
    pairs = list(zip(values, labels, strict=True))[:MOST_CHOICES]
    return tuple(Choice(value=value, label=str(label)[:200]) for value, label in pairs)


def _is_const(row: object) -> bool:
    return isinstance(row, dict) and isinstance(row.get("const"), str)


def _number(given: object) -> float | None:
    return float(given) if isinstance(given, int | float) and not isinstance(given, bool) else None


def value_of(field: Field, typed: str) -> Raw:
    """The value of a field from what a person typed or chose. Raises `UsageError`."""
    typed = typed.strip()
    if len(typed) > LONGEST_VALUE:
        raise UsageError(f"{field.title}: at most {LONGEST_VALUE} characters are wanted")
    value: object
    match field.kind:
        case "text":
            value = typed
            _check_bounds(field, len(typed), " characters")
        case "number" | "integer":
            value = _parse_number(field, typed)
        case "boolean":
            words = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
            if typed.lower() not in words:
                raise UsageError(f"{field.title}: yes or no")
            value = words[typed.lower()]
        case "choice":
            value = _choice(field, typed)
        case "choices":
            value = [_choice(field, part) for part in typed.split(",") if part.strip()]
        case "json":
            try:
                value = msgspec.json.decode(typed)
            except DECODE_ERRORS as error:
                raise UsageError(f"{field.title}: JSON is wanted: {error}") from error
    return Raw(msgspec.json.encode(value))


def _parse_number(field: Field, typed: str) -> int | float:
    try:
        value = int(typed) if field.kind == "integer" else float(typed.replace(",", "."))
    except ValueError as error:
        word = "a whole number" if field.kind == "integer" else "a number"
        raise UsageError(f"{field.title}: {word} is wanted") from error
    if value != value or value in {float("inf"), float("-inf")}:
        raise UsageError(f"{field.title}: a number is wanted")
    _check_bounds(field, value, "")
    return value


def _check_bounds(field: Field, value: float, unit: str) -> None:
    if field.least is not None and value < field.least:
        raise UsageError(f"{field.title}: at least {field.least:g}{unit}")
    if field.most is not None and value > field.most:
        raise UsageError(f"{field.title}: at most {field.most:g}{unit}")


def _choice(field: Field, typed: str) -> str:
    typed = typed.strip()
    for choice in field.choices:
        if typed.lower() in {choice.value.lower(), choice.label.lower()}:
            return choice.value
    raise UsageError(f"{field.title}: one of {', '.join(each.label for each in field.choices)}")
