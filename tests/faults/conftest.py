"""Where the hubs and runners of these tests come from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support import fault_nursery
from support.fault_nursery import Nursery


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """One for all tests of a worker."""
    with fault_nursery.nursery() as one:
        yield one
