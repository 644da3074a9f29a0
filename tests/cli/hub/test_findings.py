"""A hub whose web app was not built says so, and says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from quarterdeck.cli.hub.findings import look_at_hub
from quarterdeck.cli.local.findings import Level
from quarterdeck.fronts.http import pages
from quarterdeck.service.service import web_hint


@pytest.mark.parametrize("built", [True, False])
def test_a_missing_web_app_is_reported_with_the_command_that_builds_it(
    built: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if built:
        (tmp_path / "index.html").touch()
    monkeypatch.setattr(pages, "_BUILT", tmp_path)
    monkeypatch.setenv("QUARTERDECK_HOME", str(tmp_path / "data"))
    (found,) = [each for each in look_at_hub() if each.topic == "web app"]
    if built:
        assert web_hint() == ""
        assert found.level is Level.OK
    else:
        assert "make deck" in web_hint()
        assert found.level is Level.WARNING
        assert "make deck" in found.advice
    plain = pages.Pages(lambda: b"{}")._find("/")
    assert plain is not None
    assert b"make deck" in plain.body
