"""The tool that loads the official SDK's source: what it takes out of the lock file."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_spec = importlib.util.spec_from_file_location(
    "install_sdk_source", ROOT / "tools" / "install_sdk_source.py"
)
assert _spec is not None
assert _spec.loader is not None
tool = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(tool)


def test_the_archive_is_pinned_by_the_hashes_of_the_lock_file() -> None:
    lines = tool.pinned(tool.LOCK.read_text(), tool.PACKAGE).splitlines()
    assert lines[0].startswith("claude-agent-sdk==")
    assert len(lines) > 1
    assert all(line.strip().startswith("--hash=sha256:") for line in lines[1:])
    assert not lines[-1].endswith("\\")


def test_a_package_that_is_not_locked_is_refused() -> None:
    with pytest.raises(SystemExit, match="nothing is not in the lock file"):
        tool.pinned("other==1 \\\n    --hash=sha256:00\n", "nothing")
