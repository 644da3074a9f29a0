"""The page of the Telegram pictures: texts as they are, styles where they belong."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from quarterdeck.testing.telegram.objects import Entity


def load() -> ModuleType:
    path = Path(__file__).parents[2] / "tools" / "picture_of_telegram.py"
    spec = importlib.util.spec_from_file_location("picture_of_telegram", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


page = load()


@pytest.mark.parametrize(
    ("text", "entities", "html"),
    [
        ("a <b> & c", [], "a &lt;b&gt; &amp; c"),
        ("one two", [("bold", 4, 3)], "one <b>two</b>"),
        ("𝄞 two", [("code", 3, 3)], "𝄞 <code>two</code>"),
        ("abc", [("bold", 0, 3), ("italic", 1, 1)], "<b>a<i>b</i>c</b>"),
        ("x\ny", [("pre", 0, 1)], "<pre>x</pre>y"),
        ("abc", [("unknown", 0, 3)], "abc"),
    ],
)
def test_a_text_has_its_styles(text: str, entities: list[tuple[str, int, int]], html: str) -> None:
    given = [Entity(type=kind, offset=offset, length=length) for kind, offset, length in entities]
    assert page.styled(text, given) == html


def test_a_sign_is_drawn_and_one_without_a_drawing_is_an_error() -> None:
    assert page.drawn("✅ yes").startswith("<svg ")
    with pytest.raises(LookupError, match="U\\+1F995"):
        page.drawn("🦕")
