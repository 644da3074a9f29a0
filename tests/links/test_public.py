"""What the package offers, and that the reference page tells all of it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from quarterdeck import links
from quarterdeck.claude import Launch, environment
from quarterdeck.domain import close_codes
from quarterdeck.links import Redial, StopSteps
from support.bounds import SECONDS

PAGE = (Path(__file__).parents[2] / "docs/reference/links.md").read_text()


def test_every_public_name_is_there_and_others_are_not() -> None:
    for name in links.__all__:
        assert getattr(links, name) is not None
    name = "no_such_name"
    with pytest.raises(AttributeError, match=name):
        getattr(links, name)


@pytest.mark.process
def test_links_over_pipes_do_without_the_libraries_of_the_others() -> None:
    code = "import sys, quarterdeck.links; print({'uvicorn', 'websockets'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=SECONDS, check=True
    )
    assert done.stdout.strip() == "set()"


def test_the_page_names_everything_that_can_be_set_and_everything_that_is_passed() -> None:
    fields = [
        field.name for kind in (StopSteps, Redial, Launch) for field in msgspec.structs.fields(kind)
    ]
    variables = [name for names in environment.PASSED.values() for name in names]
    for name in (*fields, *variables, *environment.API_BILLING, *environment.NEVER):
        assert f"`{name}`" in PAGE, name
    for code in (*close_codes.PERMANENT, close_codes.CLOSED, close_codes.REPLACED):
        assert str(code) in PAGE
    for name in links.__all__:
        assert name in PAGE, name


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
def test_the_examples_of_the_page_name_only_what_there_is(block: str) -> None:
    names: dict[str, object] = {}
    exec(compile(block, "links.md", "exec"), names)
    assert callable(names["main"])
