"""The web app's types are those that the hub's schema says now."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.bounds import SECONDS

pytestmark = pytest.mark.process

ROOT = Path(__file__).parent.parent.parent


def test_the_decks_types_are_what_the_hubs_schema_says(tmp_path: Path) -> None:
    written = tmp_path / "schema.ts"
    command = [sys.executable, str(ROOT / "tools" / "write_web_types.py"), str(written)]
    subprocess.run(command, check=True, timeout=SECONDS)
    kept = ROOT / "web" / "src" / "api" / "schema.ts"
    assert written.read_text() == kept.read_text(), "the schema has changed: run make types"
