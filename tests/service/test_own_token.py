"""The hub keeps a token for the programs of this user."""

from __future__ import annotations

import logging
from pathlib import Path

import anyio
import pytest

from quarterdeck.fronts.http.tokens import TokenFile
from quarterdeck.runtime.local_hub import CLI_TOKEN
from quarterdeck.service import local_hub
from support.bounds import SECONDS
from support.waiting import until

pytestmark = pytest.mark.anyio


async def test_a_token_is_there_before_the_hub_is_found_and_again_when_it_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await local_hub.have_own_token(tmp_path)
    file = tmp_path / CLI_TOKEN
    first = file.read_text()
    await local_hub.have_own_token(tmp_path)
    assert file.read_text() == first
    assert len(list(TokenFile(tmp_path).grants())) == 1
    file.unlink()
    monkeypatch.setattr(local_hub, "CHECK_SECONDS", 0.01)
    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(local_hub.keep_own_token, tmp_path)
            await until(file.exists)
            tasks.cancel_scope.cancel()


async def test_a_hub_in_an_agents_process_has_none_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("QUARTERDECK_RUN_x", "1")
    with caplog.at_level(logging.WARNING):
        await local_hub.have_own_token(tmp_path)
    assert not (tmp_path / CLI_TOKEN).exists()
    assert "no token for programs" in caplog.text
