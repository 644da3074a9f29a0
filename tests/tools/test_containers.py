"""The Dockerfile and compose.yaml: whatever can be checked of them without a container."""

from __future__ import annotations

import ipaddress
import json
import re
import shutil
import subprocess
import sys
import zipfile
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
import yaml  # type: ignore[import-untyped]  # has no types, and comes with a package that has
from compose_spec import PyOptions

from quarterdeck.config.read import parse
from quarterdeck.config.settings import JournalSettings
from quarterdeck.fronts.http import Access, Listen, make_app, serve
from quarterdeck.fronts.peers import PREFIX
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.service.journal_place import database_password
from support.bounds import SECONDS
from support.hub_machines import hub_with

pytestmark = [pytest.mark.anyio, pytest.mark.process]
ROOT = Path(__file__).parents[2]


def stages() -> dict[str, list[tuple[str, str]]]:
    """The instructions of each stage of the Dockerfile."""
    text = (ROOT / "Dockerfile").read_text()
    text = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE))
    found: dict[str, list[tuple[str, str]]] = {}
    current: list[tuple[str, str]] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        word, _, rest = line.partition(" ")
        if word == "FROM":
            current = found.setdefault(rest.rpartition(" AS ")[2], [])
        current.append((word, rest.strip()))
    return found


def compose() -> Any:
    return yaml.safe_load((ROOT / "compose.yaml").read_text())


def copied(folder: Path) -> None:
    """Copy what the first stage of the Dockerfile copies, but for what is ignored."""
    for word, rest in stages()["build"]:
        if word != "COPY":
            continue
        *sources, target = rest.split()
        for source in sources:
            place = folder / target
            if (ROOT / source).is_dir():
                leave = shutil.ignore_patterns("__pycache__", "node_modules", "dist")
                shutil.copytree(ROOT / source, place, ignore=leave)
            else:
                place.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / source, place)


def options_of(command: str) -> str:
    """The help text of a command."""
    arguments = [sys.executable, "-m", "quarterdeck.cli", command, "--help"]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=SECONDS, check=True)
    return done.stdout


def test_the_images_run_as_nobody_in_particular_and_are_made_of_files_that_are_there() -> None:
    made = stages()
    assert list(made) == ["build", "hub", "runner"]
    for name in ("hub", "runner"):
        users = [rest for word, rest in made[name] if word == "USER"]
        assert users[-1] == "10001", "not root"
    everything = [each for stage in made.values() for each in stage]
    assert not [rest for word, rest in everything if word == "ADD"]
    for word, rest in everything:
        if word == "FROM":
            image = rest.split()[0]
            assert image in made or re.search(r":\d", image), "a version, and no host"
            assert "/" not in image
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    taken = [line[1:] for line in ignored if line.startswith("!")]
    sources = [
        source for word, rest in made["build"] if word == "COPY" for source in rest.split()[:-1]
    ]
    for source in sources:
        assert (ROOT / source).exists()
        assert any(fnmatch(source, each) for each in taken), f"{source} is ignored"
    assert "claude" not in str(made["hub"]).lower(), "agents run elsewhere"
    assert "@anthropic-ai/claude-code@" in str(made["runner"])


def test_the_linter_of_dockerfiles_finds_nothing() -> None:
    linter = Path(sys.executable).with_name("hadolint")
    done = subprocess.run(
        [str(linter), "--no-color", str(ROOT / "Dockerfile")],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_compose_reads_its_file() -> None:
    text = (ROOT / "compose.yaml").read_text()
    read = PyOptions(apply_merge=True).from_yaml(text)
    read.validate()
    assert set(read.service_names()) == {"database", "hub-a", "hub-b", "proxy", "runner"}
    for right, wrong in (
        ("depends_on:", "depend_on:"),
        ("condition: service_healthy", "condition: healthy"),
        ("networks: [machines]", "networks: [outside]"),
    ):
        with pytest.raises(ValueError, match=r"\w"):
            PyOptions(apply_merge=True).from_yaml(text.replace(right, wrong)).validate()


def test_the_wheel_is_built_of_what_is_copied_into_the_image(tmp_path: Path) -> None:
    """Everything but the web app, whose packages come from the network."""
    copied(tmp_path / "src")
    programs = tmp_path / "bin"
    programs.mkdir()
    npm = programs / "npm"
    npm.write_text(
        '#!/bin/sh\necho "$@" >> npm.log\nmkdir -p ../src/quarterdeck/fronts/http/deck\n'
    )
    npm.chmod(0o755)
    script = (
        # npm is looked for beside Python.
        f"import sys; sys.executable = {str(programs / 'python')!r}\n"
        "from hatchling.build import build_wheel\n"
        f"print(build_wheel({str(tmp_path / 'wheels')!r}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path / "src",
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(tmp_path / "wheels" / done.stdout.strip()) as wheel:
        names = wheel.namelist()
    assert "quarterdeck/journal/postgres/writer.py" in names
    assert any(name.endswith("sbom.cdx.json") for name in names)
    steps = (tmp_path / "src" / "web" / "npm.log").read_text().splitlines()
    assert [step.split()[0] for step in steps] == ["ci", "run"]


def test_the_web_app_is_built_without_the_tests() -> None:
    """The image has none: they would be looked for in vain."""
    web = ROOT / "web"
    scripts = json.loads((web / "package.json").read_text())["scripts"]
    assert "tsc --noEmit -p tsconfig.build.json" in scripts["build"]
    assert json.loads((web / "tsconfig.build.json").read_text())["include"] == [
        "src",
        "vite.config.ts",
    ]
    outside = [
        f"{file.relative_to(web)}: {place}"
        for file in (*(web / "src").rglob("*.ts"), *(web / "src").rglob("*.tsx"))
        for place in re.findall(r'from "(\.[^"]+)"', file.read_text())
        if not (file.parent / place).resolve().is_relative_to(web)
    ]
    assert outside == []


def test_what_is_installed_has_the_versions_of_the_lock(tmp_path: Path) -> None:
    (step,) = [rest for word, rest in stages()["build"] if word == "RUN"]
    sed = step.partition("&&")[2].strip().replace("/wheels/", f"{tmp_path}/")
    assert sed.startswith("sed ")
    # As in the image: its only input is the lock.
    subprocess.run(["/bin/sh", "-ec", sed], cwd=ROOT, timeout=SECONDS, check=True)
    lines = [
        line.partition(" #")[0].strip()
        for line in (tmp_path / "constraints.txt").read_text().splitlines()
        if line.strip() and not line.strip().startswith("#")
    ]
    assert lines
    for line in lines:
        assert re.fullmatch(r"[\w.-]+==\S+( ; .*)?", line), line
    assert {"msgspec", "litestar", "psycopg"} <= {line.partition("==")[0] for line in lines}


async def test_the_health_check_is_one(tmp_path: Path) -> None:
    (check,) = [rest for word, rest in stages()["hub"] if word == "HEALTHCHECK"]
    command = json.loads(check.partition("CMD ")[2])
    assert command[:2] == ["python", "-c"]
    hub, _ = hub_with(MemoryJournal())

    async def healthy(address: str) -> bool:
        script = command[2].replace("http://127.0.0.1:8765", address)
        run = anyio.run_process([sys.executable, "-c", script], check=False)
        with anyio.fail_after(SECONDS):
            return (await run).returncode == 0

    async with hub.run(), serve(make_app(hub, Access(tmp_path)), Listen(port=0)) as address:
        assert await healthy(address)
    assert not await healthy(address)


def test_both_hubs_have_one_configuration_that_is_valid_and_secrets_of_no_repository() -> None:
    found = compose()
    services = found["services"]
    hubs = [services[name] for name in ("hub-a", "hub-b")]
    addresses = []
    for name, hub in zip(("hub-a", "hub-b"), hubs, strict=True):
        environment = dict(hub["environment"])
        assert environment.pop("QUARTERDECK_CONFIG") == "/etc/quarterdeck/quarterdeck.toml"
        text = (ROOT / "deploy" / "quarterdeck.toml").read_text()
        loaded = parse(text, environ=environment)
        settings = loaded.settings
        assert settings.journal.url is not None
        assert settings.journal.url.startswith("postgresql://")
        assert "password" not in settings.journal.url
        assert settings.journal.password_file == "/run/secrets/database.password"
        assert settings.journal.hub_address == f"http://{name}:8765"
        addresses.append(settings.journal.hub_address)
        proxy_address = services["proxy"]["networks"]["edge"]["ipv4_address"]
        assert settings.server.proxies == (proxy_address,), "and nobody beside it"
        assert "ports" not in hub, "only the proxy is reached from outside"
    assert hubs[0]["volumes"][0] != hubs[1]["volumes"][0]
    ignored = (ROOT / "deploy" / ".gitignore").read_text().split()
    for secret in found["secrets"].values():
        name = Path(secret["file"]).name
        assert any(fnmatch(name, each) for each in ignored)
        assert not (ROOT / secret["file"]).exists()
    runner = services["runner"]["command"]
    for address in addresses:
        assert f"--hub={address}" in runner


def test_each_container_reaches_only_what_it_needs() -> None:
    found = compose()
    services, networks = found["services"], found["networks"]
    reach = {name: set(service["networks"]) for name, service in services.items()}
    assert reach == {
        "database": {"inside"},
        "hub-a": {"edge", "inside", "machines"},
        "hub-b": {"edge", "inside", "machines"},
        "proxy": {"edge"},
        "runner": {"machines"},
    }
    assert networks["inside"]["internal"] is True
    (pool,) = networks["edge"]["ipam"]["config"]
    address = ipaddress.ip_address(services["proxy"]["networks"]["edge"]["ipv4_address"])
    assert address in ipaddress.ip_network(pool["subnet"])
    assert address not in ipaddress.ip_network(pool["ip_range"]), "nobody else gets it"
    for name in ("hub-a", "hub-b", "runner"):
        assert services[name]["cap_drop"] == ["ALL"]
        assert services[name]["security_opt"] == ["no-new-privileges:true"]
    assert [name for name, service in services.items() if "ports" in service] == ["proxy"]


def test_each_named_volume_is_mounted_where_the_image_has_a_folder_of_its_user() -> None:
    """A new volume has the owner of the folder that it is mounted at; a missing one is root's."""
    found = compose()
    made = stages()
    for name, service in found["services"].items():
        if "build" not in service:
            continue
        chain = [service["build"]["target"]]
        while (base := made[chain[-1]][0][1].split()[0]) in made:
            chain.append(base)
        steps = " ".join(rest for stage in chain for word, rest in made[stage] if word == "RUN")
        own = set(re.findall(r"install --directory --owner quarterdeck --mode \d+ (/\S+)", steps))
        own |= set(re.findall(r"useradd .*?--create-home --home-dir (/\S+) quarterdeck", steps))
        for volume in service["volumes"]:
            source, target = volume.split(":")[:2]
            if source in found["volumes"]:
                assert target in own, f"{name}: {target} would be root's"


def test_secrets_are_read_as_compose_mounts_them(tmp_path: Path) -> None:
    """With the owner and mode of the host: so the container's user is one of the others."""
    folder = tmp_path / "secrets"
    folder.mkdir(mode=0o700)
    file = folder / "database.password"
    file.write_text("the secret\n")
    file.chmod(0o444)  # `cli/hub/test_several_hubs.py` has such a token
    settings = JournalSettings(url="postgresql://x/x", password_file=str(file))
    assert database_password(settings) == "the secret"
    text = (ROOT / "compose.yaml").read_text()
    for name, secret in compose()["secrets"].items():
        assert Path(secret["file"]).parent == Path("deploy/secrets")
        assert f"deploy/secrets/{name}" in text.partition("x-hub")[0]


Directive = tuple[list[str], "list[Directive]"]


def caddyfile() -> list[Directive]:
    """The Caddyfile as its server reads it: directives with arguments and blocks of their own."""
    text = (ROOT / "deploy" / "Caddyfile").read_text()
    stack: list[list[Directive]] = [[]]
    for line in text.splitlines():
        words = re.sub(r"(^|\s)#.*", "", line).split()
        if words == ["}"]:
            stack.pop()
            assert stack, "one bracket too many"
        elif words:
            opens = words[-1] == "{"
            assert not any(re.search("[{}]", word) for word in words[: -1 if opens else None])
            found: Directive = (words[:-1] if opens else words, [])
            stack[-1].append(found)
            if opens:
                stack.append(found[1])
    (top,) = stack
    return top


def test_the_proxy_passes_people_to_both_hubs_and_nobody_to_what_hubs_say_to_each_other() -> None:
    ((names, site),) = caddyfile()
    settings = parse((ROOT / "deploy" / "quarterdeck.toml").read_text(), environ={}).settings
    assert tuple(names) == settings.server.hosts
    matcher, hubs, rest = site
    assert matcher == (["@hubs", "path", "/hub", f"{PREFIX}*"], [])
    # Of several `handle` the first that matches is the only one.
    assert hubs == (["handle", "@hubs"], [(["respond", "404"], [])])
    assert rest[0] == ["handle"]
    ((proxied, options),) = rest[1]
    hosts = [
        service["environment"]["QUARTERDECK_JOURNAL_HUB_ADDRESS"].removeprefix("http://")
        for service in compose()["services"].values()
        if "QUARTERDECK_JOURNAL_HUB_ADDRESS" in service.get("environment", {})
    ]
    assert proxied == ["reverse_proxy", *hosts]
    assert {words[0]: words[1:] for words, _ in options} == {
        "lb_policy": ["ip_hash"],
        "lb_try_duration": ["5s"],
        "health_uri": ["/healthz"],
        "health_interval": ["2s"],
        "health_timeout": ["2s"],
    }


def test_the_commands_of_the_containers_have_options_that_there_are() -> None:
    (command,) = [json.loads(rest) for word, rest in stages()["hub"] if word == "CMD"]
    for name, given in (("serve", command), ("runner", compose()["services"]["runner"]["command"])):
        assert given[0] == name
        known = options_of(name)
        for each in given[1:]:
            if each.startswith("--"):
                assert each.partition("=")[0] in known
