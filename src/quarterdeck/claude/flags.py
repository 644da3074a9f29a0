"""Which versions of the CLI have the flags of `domain.launch_options`.

Owns facts and no behaviour. `launch` reads them; the reference page lists them; a test tries every
flag on the real CLIs. They are in `flag_versions.toml`, which `tools/find_flags.py` makes from the
published versions. `SINCE` and `UNTIL` have them by option: an option that is in neither works on
all versions that are supported.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec

from quarterdeck.domain.launch_options import OPTIONS

TESTED = ("2.1.37", "2.1.62", "2.1.120", "2.1.325")

TABLE = Path(__file__).with_name("flag_versions.toml")


class _Versions(msgspec.Struct, frozen=True):
    """The generated file: bounds by the name of the flag."""

    asked: tuple[str, ...]
    since: dict[str, str]
    until: dict[str, str]


def _by_option(versions: dict[str, str]) -> dict[str, str]:
    return {each.name: versions[each.flag] for each in OPTIONS if each.flag in versions}


_VERSIONS = msgspec.convert(tomllib.loads(TABLE.read_text(encoding="utf-8")), type=_Versions)

ASKED = _VERSIONS.asked
"""The versions that the bounds were found with, oldest first."""

SINCE: dict[str, str] = _by_option(_VERSIONS.since)
"""The first version that has the flag of an option."""

# From 2.1.121 on the CLI still has --sdk-url, but refuses to dial a host other than its maker's.
UNTIL: dict[str, str] = {**_by_option(_VERSIONS.until), "sdk_url": "2.1.120"}
"""The last version on which an option works."""
