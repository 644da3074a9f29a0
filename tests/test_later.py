"""Packages whose names are loaded when they are first used have all that they promise."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

from support.bounds import SECONDS

PACKAGES = [
    "quarterdeck",
    "quarterdeck.agent",
    "quarterdeck.fronts.http",
    "quarterdeck.journal",
    "quarterdeck.links",
    "quarterdeck.links.websocket",
    "quarterdeck.runner",
    "quarterdeck.wire",
]


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_has_every_name_that_it_promises(package: str) -> None:
    module = import_module(package)
    for name in module.__all__:
        # It is the thing, and no module that happens to have the same name.
        assert type(getattr(module, name)) is not type(sys), name
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        _ = module.nothing


@pytest.mark.process
def test_a_package_loads_no_module_before_it_is_needed() -> None:
    program = f"""
import sys
from importlib import import_module
for package in {PACKAGES[1:]}:
    import_module(package)
    print(*(name for name in sys.modules if name.startswith(package + ".")))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, timeout=SECONDS, check=True
    )
    assert done.stdout.split() == []
