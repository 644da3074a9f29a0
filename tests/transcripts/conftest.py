from __future__ import annotations

from pathlib import Path

import pytest

from support.session_files import Disk


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    """Sessions in a folder of the test's own; the official SDK finds it through the environment."""
    disk = Disk(tmp_path)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(disk.config))
    return disk
