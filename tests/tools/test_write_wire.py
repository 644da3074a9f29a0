"""The declarations of the protocol are those of the catalogue, and a mistake in it is refused."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

WIRE = Path(__file__).parents[2] / "src" / "quarterdeck" / "wire"


def load() -> ModuleType:
    path = Path(__file__).parents[2] / "tools" / "write_wire.py"
    spec = importlib.util.spec_from_file_location("write_wire", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["write_wire"] = module  # msgspec finds the types of members there
    spec.loader.exec_module(module)
    return module


tool = load()


def written(folder: Path, **files: str) -> str:
    """The module `greetings`, made from these files."""
    for name, text in files.items():
        (folder / f"{name.replace('_', '.')}.toml").write_text(text)
    catalogue = tool.read_catalogue(folder)
    module: str = tool.write_module(catalogue["greetings"], catalogue)
    return module


@pytest.mark.process
@pytest.mark.parametrize("module", sorted(tool.read_catalogue()))
def test_a_module_is_what_the_catalogue_says(module: str) -> None:
    catalogue = tool.read_catalogue()
    theme = catalogue[module]
    assert tool.write_module(theme, catalogue) == theme.path.read_text(), "run `make types`"


def test_every_written_module_is_in_the_catalogue() -> None:
    marked = {
        path.stem for path in WIRE.glob("*.py") if "by tools/write_wire.py" in path.read_text()
    }
    assert marked == set(tool.read_catalogue())


@pytest.mark.process
def test_a_module_has_its_parts_in_order_and_imports_what_it_uses(tmp_path: Path) -> None:
    main = """
        doc = "Greetings."
        [GREETINGS]
        table = "Message"
        type = "type[Message]"
        """
    part = """
        [Hello]
        base = "Message"
        tag = "hello"
        doc = "A greeting."
        members = { name = "str", times = { type = "Number", default = "1", name = "count" } }
        checks = [{ member = "name", must_be = "not empty", error = "who?" }]
        """
    assert (
        written(tmp_path, greetings=main, greetings_hello=part)
        == '''\
"""Greetings.

Written by tools/write_wire.py from tools/wire/greetings.toml and its parts; do not edit.
"""

from __future__ import annotations

from msgspec import field

from quarterdeck.domain.errors import UsageError
from quarterdeck.wire.base import Message, Number


class Hello(Message, tag="hello"):
    """A greeting."""

    name: str
    times: Number = field(name="count", default=1)

    def __post_init__(self) -> None:
        if not self.name:
            raise UsageError("who?")


GREETINGS: dict[str, type[Message]] = {
    "hello": Hello,
}
'''
    )


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('[Hello]\ntagg = "hello"', "greetings.toml: Hello: .*`tagg`"),
        ('[Hello.members]\nname = { type = "str", nam = "n" }', "Hello: .*`nam`"),
        ('[Hello]\nmembers = { name = "Nobody" }', "Nobody is in 0 modules"),
        ('[Hello]\nmembers = { name = "Twice" }', "Twice is in 2 modules"),
        ('left_unknown = ["hello"]\n[Hello]\ntag = "hello"', "left unknown, but declared: hello"),
    ],
)
def test_a_mistake_in_the_catalogue_is_refused(tmp_path: Path, text: str, error: str) -> None:
    for other in ("one", "two"):
        (tmp_path / f"{other}.toml").write_text("[Twice]\n")
    with pytest.raises(ValueError, match=error):
        written(tmp_path, greetings=text)


def test_a_name_of_two_parts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"greetings\.toml: Hello is there twice"):
        written(tmp_path, greetings="[Hello]", greetings_hello="[Hello]")
