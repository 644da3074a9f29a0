"""The bill of materials names exactly what the lock files pin, and is part of the wheel."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from support.bounds import SECONDS

ROOT = Path(__file__).parents[2]
SBOM = ROOT / "requirements" / "sbom.cdx.json"
Json = dict[str, Any]


@pytest.fixture(scope="module")
def bill() -> Json:
    found: Json = json.loads(SBOM.read_text())
    return found


def of_kind(bill: Json, kind: str) -> dict[str, Json]:
    parts = [each for each in bill["components"] if each["purl"].startswith(f"pkg:{kind}/")]
    return {f"{each['name']}@{each['version']}": each for each in parts}


@pytest.mark.process
def test_it_is_what_the_tool_makes_of_the_locks_now() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import write_sbom, sys; sys.stdout.write(write_sbom.encoded())"],
        cwd=ROOT / "tools",
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    assert done.stdout == SBOM.read_text(), "run: make sbom"


def test_it_follows_the_schema() -> None:
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(SBOM.read_text()) is None


def test_every_python_package_is_pinned_so_in_the_lock(bill: Json) -> None:
    lock = "\n" + (ROOT / "requirements" / "dev.lock").read_text()
    parts = of_kind(bill, "pypi")
    for name, part in parts.items():
        begin = lock.index("\n" + name.replace("@", "==")) + 1
        entry = lock[begin:].split("\n", 1)[1]
        pinned = []
        for line in entry.splitlines():
            if not line.startswith("    --hash=sha256:"):
                break
            pinned.append(line.partition("sha256:")[2].split()[0])
        assert [each["content"] for each in part["hashes"]] == pinned, name
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {canonicalize_name(Requirement(each).name) for each in project["dependencies"]}
    assert wanted <= {each["name"] for each in parts.values() if each["scope"] == "required"}
    assert "pytest" not in {each["name"] for each in parts.values()}


def test_every_package_of_the_web_app_is_pinned_so_in_the_lock(bill: Json) -> None:
    packages = json.loads((ROOT / "web" / "package-lock.json").read_text())["packages"]
    built = {
        f"{folder.rpartition('node_modules/')[2]}@{each['version']}": each
        for folder, each in packages.items()
        if folder and not each.get("dev") and not each.get("devOptional")
    }
    parts = of_kind(bill, "npm")
    assert parts.keys() == built.keys()
    for name, part in parts.items():
        digest = base64.b64decode(built[name]["integrity"].partition("-")[2]).hex()
        assert part["hashes"] == [{"alg": "SHA-512", "content": digest}]
        if "license" in built[name]:
            assert part["licenses"] == [{"expression": built[name]["license"]}]


def test_every_package_has_a_licence(bill: Json) -> None:
    assert [each["name"] for each in bill["components"] if "licenses" not in each] == []


def test_each_part_is_needed_by_another_and_nothing_is_named_that_is_missing(bill: Json) -> None:
    refs = {each["bom-ref"] for each in bill["components"]}
    needed = {ref for each in bill["dependencies"] for ref in each["dependsOn"]}
    assert needed == refs
    assert {each["ref"] for each in bill["dependencies"]} <= refs | {"quarterdeck"}


@pytest.mark.process
@pytest.mark.heavy
def test_the_wheel_has_it_where_tools_look_for_it(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        env=os.environ | {"HATCH_BUILD_NO_HOOKS": "true"},  # the web app takes long to build
        capture_output=True,
        timeout=SECONDS,
        check=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [each for each in archive.namelist() if ".dist-info/sboms/" in each]
        assert archive.read(name) == SBOM.read_bytes()
