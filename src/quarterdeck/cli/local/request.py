"""The request of `quarterdeck run`, and the options and the prompt made from it.

Owns the step from values of the command line to `Options` and `Prompt`, with an error for each
invalid value, before anything is started.
"""

from __future__ import annotations

import mimetypes
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from quarterdeck.agent.options import Options
from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.launch_options import CARRIED
from quarterdeck.wire.base import Part
from quarterdeck.wire.outbound import Prompt, image_block, text_block

LARGEST_IMAGE = 20 * 1024 * 1024
LARGEST_STDIN = 64 * 1024 * 1024

_SIGNATURES = {
    b"\x89PNG": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}


class RunRequest(Struct, frozen=True, kw_only=True):
    """The command line of `run`. `options` has what needs no conversion."""

    prompt: str | None
    images: tuple[Path, ...] = ()
    output_schema: Path | None = None
    env: tuple[str, ...] = ()
    quiet: bool = False
    json: bool = False
    record: Path | None = None
    options: Options = Options()


def launch_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of an agent for those that were given, by the names that sessions have."""
    return {option.name: given[member] for member, option in CARRIED if member in given}


def to_options(request: RunRequest) -> Options:
    """The options of the agent. Raises `UsageError` for invalid values."""
    if request.quiet and request.json:
        raise UsageError("--quiet and --json exclude each other")
    options = request.options
    if options.cwd is not None and not Path(options.cwd).is_dir():
        raise UsageError(f"--cwd: {options.cwd} is not a folder")
    schema = request.output_schema
    return structs.replace(
        options,
        env=_environment(request.env),
        json_schema=None if schema is None else _text(schema, "--output-schema"),
        # Only the end is shown, so no deltas are needed.
        include_partial_messages=options.include_partial_messages and not request.quiet,
    )


def to_prompt(request: RunRequest, *, at_terminal: bool) -> Prompt | None:
    """The prompt, or None for a conversation. Raises `UsageError` if neither is possible."""
    text = request.prompt
    if text == "-" or (text is None and not at_terminal):
        text = _stdin()
        if not text.strip():
            raise UsageError("there is no prompt: no argument, and stdin is empty")
    if text is None:
        if request.images or request.quiet or request.json:
            raise UsageError("--image, --quiet and --json need a PROMPT")
        return None
    if not text.strip():
        raise UsageError("the prompt is empty")
    if not request.images:
        return Prompt.of(text)
    blocks: list[Part] = [_image(path) for path in request.images]
    return Prompt.of([*blocks, text_block(text)])


def _stdin() -> str:
    data = sys.stdin.buffer.read(LARGEST_STDIN + 1)
    if len(data) > LARGEST_STDIN:
        raise UsageError(
            f"stdin has more than {LARGEST_STDIN // 1024 // 1024} MB: too long for a prompt"
        )
    return data.decode("utf-8", "replace")


def _image(path: Path) -> Part:
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_IMAGE + 1)
    except OSError as error:
        raise UsageError(f"--image: {path}: {error.strerror}") from error
    if len(data) > LARGEST_IMAGE:
        raise UsageError(f"--image: {path} is larger than {LARGEST_IMAGE // 1024 // 1024} MB")
    kind = next((kind for head, kind in _SIGNATURES.items() if data.startswith(head)), None)
    kind = kind or mimetypes.guess_type(path.name)[0] or ""
    if not kind.startswith("image/"):
        raise UsageError(f"--image: {path} is not an image")
    return image_block(data, kind)


def _text(path: Path, option: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{option}: cannot read {path}: {error}") from error


def _environment(given: tuple[str, ...]) -> dict[str, str]:
    variables: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise UsageError(f"--env: {each.partition('=')[0]!r} is not of the form NAME=VALUE")
        variables[name] = value
    return variables
