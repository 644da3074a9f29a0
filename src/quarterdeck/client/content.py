"""What a prompt may be for a program, and the JSON that the hub takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Raw, Struct

Content = str | Raw | Sequence[Mapping[str, object] | Struct]
"""A text, content blocks of the Messages API, or their JSON."""


def content_of(prompt: Content) -> Raw:
    """A prompt as JSON."""
    return prompt if isinstance(prompt, Raw) else Raw(msgspec.json.encode(prompt))
