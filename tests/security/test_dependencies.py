"""Libraries whose internals are used have an upper bound, and the internals are there (L8)."""

from __future__ import annotations

import ast
import inspect
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import packages_distributions, version
from pathlib import Path

import pytest
import tree_sitter_bash
import tree_sitter_toml
from claude_agent_sdk import ClaudeAgentOptions
from litestar import Litestar
from litestar._openapi.schema_generation import SchemaCreator
from mcp.server import MCPServer, Server
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from tree_sitter import Language
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.server import ServerProtocol

from quarterdeck.fronts.http import app as front_app
from quarterdeck.runtime.connection_limits import BoundedHttp
from quarterdeck.runtime.web_server import PatientProtocol
from quarterdeck.sdk_transport import default as sdk_default
from quarterdeck.sdk_transport.launch import SDK_TRANSPORT

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "quarterdeck"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DECLARED: dict[str, Requirement] = {
    canonicalize_name(need.name): need
    for text in (
        *PROJECT["dependencies"],
        *(each for extra in PROJECT["optional-dependencies"].values() for each in extra),
    )
    for need in [Requirement(text)]
}
OF_OTHERS = {
    "mcp-types": "mcp",
    "opentelemetry-api": "opentelemetry-sdk",
    "pydantic": "mcp",
    "pydantic-core": "mcp",
}
"""Packages whose objects we get from one that we declare."""
INTERNAL = {"h11", "litestar", "mcp", "tree-sitter-bash", "tree-sitter-toml", "uvicorn"} | {
    "claude-agent-sdk",
    "websockets",
}
"""Of these we use more than what is documented."""


@cache
def imported() -> tuple[tuple[Path, str], ...]:
    """All modules that our modules import, and from where."""
    return tuple(_imported())


def _imported() -> Iterator[tuple[Path, str]]:
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.Import(names=names):
                    yield from ((file, each.name) for each in names)
                case ast.ImportFrom(module=str(module), level=0):
                    yield file, module


@cache
def packages_of(module: str) -> set[str]:
    """The packages that a module belongs to; none for ours and for those of Python."""
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names or top in {"quarterdeck", "_ctypes", "_signal"}:
        return set()
    return {canonicalize_name(name) for name in _installed().get(top, [top])}


@cache
def _installed() -> Mapping[str, list[str]]:
    return packages_distributions()


def test_l8_every_library_that_is_imported_is_declared() -> None:
    for file, module in imported():
        names = {OF_OTHERS.get(name, name) for name in packages_of(module)}
        assert not names or names & DECLARED.keys(), (file, module)


def test_l8_a_private_module_is_used_only_of_a_library_with_an_upper_bound() -> None:
    found = {
        name
        for _, module in imported()
        if any(part.startswith("_") for part in module.split("."))
        for name in packages_of(module)
    }
    assert found == {"claude-agent-sdk", "litestar"}
    assert found <= INTERNAL


@pytest.mark.parametrize("name", sorted(INTERNAL))
def test_l8_a_library_whose_internals_are_used_has_an_upper_bound(name: str) -> None:
    bounds = {each.operator for each in DECLARED[name].specifier}
    assert "<" in bounds, f"{name}: {DECLARED[name]}"
    assert DECLARED[name].specifier.contains(Version(version(name)))


def test_l8_nobody_reaches_into_another_library() -> None:
    """The linter forbids private members; each exception says why, and is one of these."""
    excused = {
        (file.name, line.strip().partition("#")[0].rpartition(" ")[2])
        for file in SOURCE.rglob("*.py")
        for line in file.read_text(encoding="utf-8").splitlines()
        if "noqa: SLF001" in line and "of the same" not in line
    }
    of_the_sdk = {"launch.py", "default.py"}
    names = {name for name, _ in excused}
    assert names == {"launcher.py", "loop_watch.py", "server.py"} | of_the_sdk, excused


def test_l8_what_is_used_of_uvicorn_and_its_connections_is_there() -> None:
    for ours, base in ((BoundedHttp, H11Protocol), (PatientProtocol, WebSocketsSansIOProtocol)):
        overridden = [
            name
            for name, value in vars(ours).items()
            if inspect.isfunction(value) and f"super().{name}(" in inspect.getsource(value)
        ]
        assert overridden
        for name in overridden:
            wanted = inspect.signature(getattr(base, name)).parameters
            assert [*inspect.signature(getattr(ours, name)).parameters] == [*wanted], name
    text = inspect.getsource(WebSocketsSansIOProtocol)
    for name in ("frames", "queue", "read_paused", "close_sent", "handshake_complete", "conn"):
        assert f"self.{name}" in text, name
    assert callable(WebSocketsSansIOProtocol.handle_parser_exception)
    assert hasattr(ServerProtocol(), "max_message_size")
    assert callable(ServerProtocol.fail)


def test_l8_what_is_used_of_the_other_libraries_is_there() -> None:
    assert "_get_default_plugins" in vars(Litestar)
    assert "_get_default_plugins" in vars(front_app._Api)
    parameters = inspect.signature(SchemaCreator.create_component_schema).parameters
    assert {"required", "property_fields"} <= parameters.keys()
    assert isinstance(MCPServer("x")._lowlevel_server, Server)
    assert [name for name in sdk_default._USED if not hasattr(SDK_TRANSPORT, name)] == []
    made = SDK_TRANSPORT("", ClaudeAgentOptions(cli_path="x"))
    assert {"_cli_path", "_options", "_process"} <= vars(made).keys()


@pytest.mark.parametrize(
    ("language", "files"),
    [
        (tree_sitter_bash.language(), [*(SOURCE / "policy" / "shell").glob("*.py")]),
        (tree_sitter_toml.language(), [SOURCE / "domain" / "toml_lines.py"]),
    ],
    ids=["bash", "toml"],
)
def test_l8_the_nodes_of_a_grammar_that_we_compare_with_exist(
    language: object, files: list[Path]
) -> None:
    grammar = Language(language)
    known = {grammar.node_kind_for_id(number) for number in range(grammar.node_kind_count)}
    compared = {name for file in files for name in _compared_kinds(file)}
    assert compared
    assert compared <= known, compared - known


def _compared_kinds(file: Path) -> Iterator[str]:
    """The texts that the `type` of a node is compared with."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Compare) and _is_type(node.left):
            for right in node.comparators:
                yield from _texts(right)
        if isinstance(node, ast.Match) and _is_type(node.subject):
            for case in node.cases:
                yield from (
                    each.value.value
                    for each in ast.walk(case.pattern)
                    if isinstance(each, ast.MatchValue)
                    and isinstance(each.value, ast.Constant)
                    and isinstance(each.value.value, str)
                )


def _is_type(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "type"


def _texts(node: ast.expr) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each.value
