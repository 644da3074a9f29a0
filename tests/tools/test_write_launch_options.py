"""What is written from the table of launch options is what the table says now."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from quarterdeck.domain.launch_options import CARRIED, OPTIONS

pytestmark = pytest.mark.process


def load() -> ModuleType:
    path = Path(__file__).parents[2] / "tools" / "write_launch_options.py"
    spec = importlib.util.spec_from_file_location("write_launch_options", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tool = load()


def test_the_classes_and_pages_are_what_the_table_says() -> None:
    for path, text in {**tool.classes(), **tool.pages()}.items():
        assert path.read_text(encoding="utf-8") == text, f"{path}: run make options"


def test_each_name_flag_and_member_is_there_once() -> None:
    for names in (
        [option.name for option in OPTIONS],
        [flag for option in OPTIONS for flag in (option.flag, *option.spellings)],
        [member for member, _ in CARRIED],
    ):
        assert sorted(names) == sorted(set(names))
