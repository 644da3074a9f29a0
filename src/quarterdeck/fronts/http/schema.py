"""JSON Schema of our structs, for the OpenAPI document.

msgspec has such a generator too, but not one that takes raw JSON as a default. Pure. It knows the
kinds of types that our structs are made of and refuses any other: none is described wrongly.
"""

from __future__ import annotations

from collections.abc import Iterable
from inspect import cleandoc
from typing import Any

import msgspec
from msgspec import inspect as kinds

# A schema is JSON of any depth, and only passed on.
Json = dict[str, Any]


def schemas_of(types: Iterable[object]) -> dict[str, Json]:
    """The schemas of these structs and of all that are in them, by their names."""
    waiting = [kinds.type_info(kind) for kind in types]
    made: dict[str, Json] = {}
    found: dict[str, type] = {}
    while waiting:
        kind = waiting.pop()
        if not isinstance(kind, kinds.StructType):
            waiting += _inside(kind)
            continue
        name = kind.cls.__name__
        if found.setdefault(name, kind.cls) is not kind.cls:
            raise TypeError(f"two structs are named {name}")
        if name not in made:
            made[name] = _struct(kind)
            waiting += [field.type for field in kind.fields]
    return dict(sorted(made.items()))


def reference(kind: type) -> Json:
    """A schema that is the one of this struct."""
    return {"$ref": f"#/components/schemas/{kind.__name__}"}


def union_of(kind: object) -> Json:
    """A schema of a union of structs."""
    return _schema(kinds.type_info(kind))


def _inside(kind: kinds.Type) -> list[kinds.Type]:
    match kind:
        case kinds.UnionType(types=types):
            return list(types)
        case kinds.ListType(item_type=item) | kinds.VarTupleType(item_type=item):
            return [item]
        case kinds.TupleType(item_types=items):
            return list(items)
        case kinds.DictType(value_type=value):
            return [value]
        case kinds.Metadata(type=inner):
            return [inner]
        case _:
            return []


def _struct(kind: kinds.StructType) -> Json:
    properties = {field.encode_name: _field(field) for field in kind.fields}
    required = [field.encode_name for field in kind.fields if field.required]
    if kind.tag_field is not None:
        properties = {kind.tag_field: {"const": kind.tag}} | properties
        required = [kind.tag_field, *required]
    made: Json = {"title": kind.cls.__name__, "type": "object", "properties": properties}
    if kind.cls.__doc__:
        made["description"] = cleandoc(kind.cls.__doc__)
    if required:
        made["required"] = required
    if kind.forbid_unknown_fields:
        made["additionalProperties"] = False
    return made


def _field(field: kinds.Field) -> Json:
    made = _schema(field.type)
    default = field.default
    if default is None or isinstance(default, str | int | float):
        return {**made, "default": msgspec.to_builtins(default)}
    return made


def _schema(kind: kinds.Type) -> Json:
    match kind:
        case kinds.AnyType() | kinds.RawType():
            return {}
        case kinds.NoneType():
            return {"type": "null"}
        case kinds.BoolType():
            return {"type": "boolean"}
        case kinds.IntType():
            return {"type": "integer", **_bounds(kind)}
        case kinds.FloatType():
            return {"type": "number", **_bounds(kind)}
        case kinds.StrType(min_length=shortest, max_length=longest, pattern=pattern):
            return {
                "type": "string",
                **_given_bounds(minLength=shortest, maxLength=longest, pattern=pattern),
            }
        case kinds.BytesType():
            return {"type": "string", "contentEncoding": "base64"}
        case kinds.EnumType(cls=cls):
            return {"enum": [member.value for member in cls]}
        case kinds.LiteralType(values=values):
            return {"enum": list(values)}
        case kinds.ListType(item_type=item) | kinds.VarTupleType(item_type=item):
            return {"type": "array", "items": _schema(item)}
        case kinds.TupleType(item_types=items):
            size, first = len(items), [_schema(item) for item in items]
            return {"type": "array", "prefixItems": first, "minItems": size, "maxItems": size}
        case kinds.DictType(value_type=value):
            return {"type": "object", "additionalProperties": _schema(value)}
        case kinds.UnionType(types=types):
            return {"anyOf": [_schema(each) for each in types]}
        case kinds.Metadata(type=inner, extra_json_schema=extra):
            return {**_schema(inner), **(extra or {})}
        case kinds.StructType(cls=cls):
            return reference(cls)
        case _:
            raise TypeError(f"there is no schema for {kind}")


def _bounds(kind: kinds.IntType | kinds.FloatType) -> Json:
    return _given_bounds(
        exclusiveMinimum=kind.gt,
        minimum=kind.ge,
        exclusiveMaximum=kind.lt,
        maximum=kind.le,
        multipleOf=kind.multiple_of,
    )


def _given_bounds(**bounds: float | str | None) -> Json:
    return {name: bound for name, bound in bounds.items() if bound is not None}
