"""What `from quarterdeck import …` gives."""

from __future__ import annotations

import subprocess
import sys

import pytest

import quarterdeck
from support.bounds import SECONDS


@pytest.mark.parametrize("name", quarterdeck.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(quarterdeck, name) is not None
    assert name in dir(quarterdeck)


def test_a_name_that_there_is_not_is_no_attribute() -> None:
    name = "no_such_name"
    with pytest.raises(AttributeError, match=name):
        getattr(quarterdeck, name)


@pytest.mark.process
def test_the_import_alone_loads_nothing_of_ours() -> None:
    code = (
        "import sys, quarterdeck; print([n for n in sys.modules if n.startswith('quarterdeck.')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=SECONDS, check=True
    )
    assert done.stdout.strip() == "[]"
