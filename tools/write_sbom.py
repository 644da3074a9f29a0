"""Write the software bill of materials: every package that a user of the wheel runs.

    python tools/write_sbom.py

CycloneDX 1.6, from the lock files, which have versions and hashes: `requirements/dev.lock` for
Python, `web/package-lock.json` for what is built into the web app. Licences and the graph of
dependencies are in the installed packages, so that it needs the environment of `make setup`. The
file is part of the wheel (`.dist-info/sboms/`). It has no date and no random number: the same locks
make the same file, and a test compares them.
"""

from __future__ import annotations

import base64
import json
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib import metadata
from itertools import product
from pathlib import Path
from typing import Any

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PYTHON_LOCK = ROOT / "requirements" / "dev.lock"
WEB_LOCK = ROOT / "web" / "package-lock.json"
SBOM = ROOT / "requirements" / "sbom.cdx.json"

Json = dict[str, Any]

_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_EXPRESSION = re.compile(r"[A-Za-z0-9.+-]+( (AND|OR|WITH) [A-Za-z0-9.+-]+)*")
_LICENCES = {
    "Apache Software License": "Apache-2.0",
    "MIT License": "MIT",
    "ISC License (ISCL)": "ISC",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
"""The names that package indexes use, and those of SPDX."""
_BY_FILE = {"agent-client-protocol": "Apache-2.0", "khroma": "MIT", "pyromark": "MIT"}
"""Packages whose metadata have no licence, and what their licence file says."""
PLATFORMS = (("linux", "Linux"), ("darwin", "Darwin"))
VERSIONS = ("3.11", "3.12", "3.13", "3.14")


def main() -> int:
    """Write it."""
    SBOM.write_text(encoded(), encoding="utf-8")
    print(f"{SBOM.relative_to(ROOT)}: {len(document()['components'])} components")
    return 0


def encoded() -> str:
    """The file's content."""
    return json.dumps(document(), indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def document() -> Json:
    """The bill of materials."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    python, python_graph = _python(project)
    web, web_graph = _web()
    own = {
        "type": "application",
        "bom-ref": "quarterdeck",
        "name": "quarterdeck",
        "version": _own_version(),
        "description": project["description"],
        "licenses": [{"expression": project["license"]}],
        "purl": f"pkg:pypi/quarterdeck@{_own_version()}",
    }
    roots = [ref for ref in (*python_graph.pop("quarterdeck"), *web_graph.pop("")) if ref]
    graph = {"quarterdeck": roots, **python_graph, **web_graph}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": own},
        "components": [*python, *web],
        "dependencies": [
            {"ref": ref, "dependsOn": sorted(set(needs))} for ref, needs in sorted(graph.items())
        ],
    }


# --- Python ---------------------------------------------------------------------------------------


def locked_python() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Version and hashes of each package of the lock file, by name."""
    found: dict[str, tuple[str, tuple[str, ...]]] = {}
    name = ""
    for line in PYTHON_LOCK.read_text(encoding="utf-8").splitlines():
        if pin := _PIN.match(line):
            name = canonicalize_name(pin[1])
            found[name] = (pin[2], ())
        for digest in _HASH.findall(line):
            version, digests = found[name]
            found[name] = (version, (*digests, digest))
    return found


def _python(project: Json) -> tuple[list[Json], dict[str, list[str]]]:
    locked = locked_python()
    needed: dict[str, set[str]] = {}
    """Each package, with the extras that are wanted of it."""
    graph: dict[str, list[str]] = {"quarterdeck": []}
    optional = [text for texts in project["optional-dependencies"].values() for text in texts]
    first = [Requirement(text) for text in (*project["dependencies"], *optional)]
    required = {canonicalize_name(Requirement(text).name) for text in project["dependencies"]}
    waiting = [("quarterdeck", need) for need in first]
    while waiting:
        parent, need = waiting.pop()
        name = canonicalize_name(need.name)
        if name not in locked:
            continue  # for a platform that is not ours
        version, _ = locked[name]
        graph.setdefault(parent, []).append(_python_ref(name, version))
        known = needed.get(name)
        if known is not None and need.extras <= known:
            continue
        needed[name] = (known or set()) | need.extras
        waiting += [(_python_ref(name, version), each) for each in _needs(name, needed[name])]
    always = _reached(graph, [_python_ref(name, locked[name][0]) for name in required])
    components = [
        _component(
            "pypi",
            name,
            locked[name][0],
            _python_licence(name, locked[name][0]),
            [("SHA-256", digest) for digest in locked[name][1]],
            optional=_python_ref(name, locked[name][0]) not in always,
        )
        for name in sorted(needed)
    ]
    return components, graph


def _needs(name: str, extras: Iterable[str]) -> Iterator[Requirement]:
    """What a package needs on any platform and version of Python that is supported."""
    here = {name: str(value) for name, value in default_environment().items()}
    environments = [
        here
        | {"python_version": version, "python_full_version": f"{version}.0"}
        | {"sys_platform": platform, "platform_system": system, "extra": extra}
        for version, (platform, system), extra in product(VERSIONS, PLATFORMS, ("", *extras))
    ]
    for text in metadata.requires(name) or ():
        need = Requirement(text)
        if need.marker is None or any(need.marker.evaluate(each) for each in environments):
            yield need


def _python_licence(name: str, version: str) -> str:
    found = metadata.metadata(name)
    if found["Version"] != version:
        sys.exit(f"{name} {found['Version']} is installed, but {version} is locked: make setup")
    if "License-Expression" in found:
        return found["License-Expression"]
    for classifier in found.get_all("Classifier") or ():
        if classifier.startswith("License :: OSI Approved :: "):
            words: str = classifier.rpartition(" :: ")[2]
            return _LICENCES.get(words, words)
    return found["License"].partition("\n")[0] if "License" in found else ""


def _python_ref(name: str, version: str) -> str:
    return f"pkg:pypi/{name}@{version}"


def _own_version() -> str:
    text = (ROOT / "src" / "quarterdeck" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'__version__ = "([^"]+)"', text)
    assert found is not None
    return found[1]


# --- the web app ----------------------------------------------------------------------------------


def locked_web() -> dict[str, Json]:
    """The packages that are built into the web app, by their folder in the lock file."""
    packages: dict[str, Json] = json.loads(WEB_LOCK.read_text(encoding="utf-8"))["packages"]
    return {
        folder: package
        for folder, package in packages.items()
        if not package.get("dev") and not package.get("devOptional")
    }


def _web() -> tuple[list[Json], dict[str, list[str]]]:
    packages = locked_web()
    graph = {
        _web_ref(folder, package) if folder else "": [
            _web_ref(there, packages[there])
            for kind in ("dependencies", "optionalDependencies")
            for name in (package.get(kind) or {})
            if (there := _resolved(packages, folder, name)) is not None
        ]
        for folder, package in packages.items()
    }
    components = [
        _component(
            "npm",
            _web_name(folder),
            package["version"],
            package.get("license", ""),
            [_integrity(package["integrity"])],
        )
        for folder, package in sorted(packages.items())
        if folder
    ]
    # A version that is there twice is one component.
    return list({each["bom-ref"]: each for each in components}.values()), graph


def _resolved(packages: dict[str, Json], folder: str, name: str) -> str | None:
    """Where a package finds another one: in its own folder, or above."""
    while True:
        place = f"{folder}/node_modules/{name}" if folder else f"node_modules/{name}"
        if place in packages:
            return place
        if not folder:
            return None
        folder = folder.rpartition("/node_modules/")[0] if "/node_modules/" in folder else ""


def _web_name(folder: str) -> str:
    return folder.rpartition("node_modules/")[2]


def _web_ref(folder: str, package: Json) -> str:
    return f"pkg:npm/{_web_name(folder).replace('@', '%40')}@{package['version']}"


def _integrity(text: str) -> tuple[str, str]:
    kind, _, value = text.partition("-")
    return {"sha512": "SHA-512", "sha256": "SHA-256"}[kind], base64.b64decode(value).hex()


# --- both -----------------------------------------------------------------------------------------


def _component(
    kind: str,
    name: str,
    version: str,
    licence: str,
    hashes: list[tuple[str, str]],
    *,
    optional: bool = False,
) -> Json:
    ref = f"pkg:{kind}/{name.replace('@', '%40')}@{version}"
    made: Json = {
        "type": "library",
        "bom-ref": ref,
        "name": name,
        "version": version,
        "purl": ref,
        "scope": "optional" if optional else "required",
        "hashes": [{"alg": alg, "content": content} for alg, content in hashes],
    }
    licence = licence or _BY_FILE.get(name, "")
    if licence:
        known = _EXPRESSION.fullmatch(licence.replace("(", "").replace(")", ""))
        made["licenses"] = (
            [{"expression": licence}] if known else [{"license": {"name": licence[:200]}}]
        )
    return made


def _reached(graph: dict[str, list[str]], roots: list[str]) -> set[str]:
    found: set[str] = set()
    waiting = list(roots)
    while waiting:
        ref = waiting.pop()
        if ref not in found:
            found.add(ref)
            waiting += graph.get(ref, [])
    return found


if __name__ == "__main__":
    sys.exit(main())
