"""Plain values of a command line, taken without Typer's validation.

Typer validates every value with a library that takes longer to load than most commands take to run.
A missing value, a text, a number or a path needs no library. Anything else, and everything that may
be invalid, is left to Typer, with its messages.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, get_args, get_origin

from typer.core import TyperGroup

_UNCLEAR = object()
_NUMBERS = {int: re.compile(r"-?[0-9]{1,15}"), float: re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")}


def take_plain_values(command: Any) -> None:
    """Let a Typer command, and all commands below it, take plain values without validation."""
    command.get_params = partial(_parameters, command.get_params)
    if isinstance(command, TyperGroup):
        for inner in command.commands.values():
            take_plain_values(inner)


def _parameters(get: Callable[..., list[Any]], context: Any) -> list[Any]:
    """A command's parameters. It replaces `get_params`, which adds `--help`."""
    parameters = get(context)
    for parameter in parameters:
        # Versions of Typer without this attribute validate without that library.
        if hasattr(parameter, "type_descriptor") and not isinstance(
            parameter.process_value, partial
        ):
            parameter.process_value = partial(_process, parameter, parameter.process_value)
    return parameters


def _process(parameter: Any, check: Callable[..., object], context: Any, value: object) -> object:
    """The value of a parameter. It replaces `process_value`."""
    found = _take(parameter, value)
    if found is _UNCLEAR:
        return check(context, value)
    return found if parameter.callback is None else parameter.callback(context, parameter, found)


def _take(parameter: Any, value: object) -> object:
    kind, info = parameter.type_descriptor.annotation, parameter.type_descriptor.parameter_info
    several = parameter.nargs != 1 or getattr(parameter, "multiple", False)
    if value is None:
        return _UNCLEAR if parameter.required else () if several else None
    if not several:
        return _plain(value, kind, info)
    if not isinstance(value, list | tuple) or not value or get_origin(kind) is not list:
        return _UNCLEAR
    each = [_plain(one, get_args(kind)[0], info) for one in value]
    return _UNCLEAR if _UNCLEAR in each else each


def _plain(value: object, kind: object, info: Any) -> object:
    """The value in its type, if it is plain."""
    if info.parser is not None or type(value) not in {str, kind}:
        return _UNCLEAR
    if kind is bool:
        return value if isinstance(value, bool) else _UNCLEAR
    if kind is int or kind is float:
        return _number(value, kind, info)
    if not isinstance(value, str) or not _is_text(value):
        return _UNCLEAR
    if kind is str:
        return value
    return _path(value, info) if kind is Path else _UNCLEAR


def _number(value: Any, kind: type[int] | type[float], info: Any) -> object:
    if isinstance(value, str):
        if not _NUMBERS[kind].fullmatch(value):
            return _UNCLEAR
        value = kind(value)
    low = info.min is not None and value < info.min
    high = info.max is not None and value > info.max
    return _UNCLEAR if low or high else value


def _path(value: str, info: Any) -> object:
    """A path without further requirements; if it exists, it must be readable."""
    wanted = info.exists or info.resolve_path or info.writable or info.path_type or info.allow_dash
    if wanted or not info.file_okay or not info.dir_okay or "\0" in value:
        return _UNCLEAR
    return Path(value) if os.access(value, os.R_OK) or not Path(value).exists() else _UNCLEAR


def _is_text(value: str) -> bool:
    """Whether it is text, and not undecodable bytes from the shell."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
