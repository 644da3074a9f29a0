from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from quarterdeck.transcripts import SessionInfo, list_sessions
from support.session_files import Disk, assistant, user

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "read-sessions-on-disk.md"


@pytest.mark.process
def test_the_examples_of_the_how_to_run_as_they_stand(
    disk: Disk, capsys: pytest.CaptureFixture[str]
) -> None:
    disk.session([user(1, "hi"), assistant(2, "there", 1)])
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(examples) == 4
    for number, example in enumerate(examples):
        exec(compile(example, f"example {number}", "exec"), {"__name__": "__main__"})
    assert "user hi" in capsys.readouterr().out
    assert [info.summary for info in list_sessions(config_dir=disk.config)] == ["Find the leak"]


def test_the_how_to_names_every_field_of_a_session() -> None:
    page = PAGE.read_text()
    missing = [f.name for f in msgspec.structs.fields(SessionInfo) if f"`{f.name}`" not in page]
    assert missing == []
