"""The CLI's sandbox and plugins as structs: what they become, and what they are merged with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from claude_agent_sdk.types import SandboxNetworkConfig, SandboxSettings

from quarterdeck import (
    CliSandbox,
    InstalledPlugin,
    LocalPlugin,
    Options,
    SandboxFiles,
    SandboxNetwork,
)
from quarterdeck.domain.errors import UsageError


def settings_of(options: Options) -> dict[str, object]:
    found = json.loads(str(options.as_flags().settings))
    assert isinstance(found, dict)
    return found


def test_a_sandbox_is_merged_into_the_settings() -> None:
    options = Options(
        settings='{"model":"opus","sandbox":{"enabled":false}}',
        sandbox=CliSandbox(
            enabled=True,
            excluded_commands=("docker",),
            network=SandboxNetwork(allowed_domains=("example.com",), allow_local_binding=False),
            filesystem=SandboxFiles(allow_write=("/tmp/x",)),
            ignore_violations={"*": ("/etc/hosts",)},
        ),
    )
    assert settings_of(options) == {
        "model": "opus",
        "sandbox": {
            "enabled": True,
            "excludedCommands": ["docker"],
            "network": {"allowedDomains": ["example.com"], "allowLocalBinding": False},
            "filesystem": {"allowWrite": ["/tmp/x"]},
            "ignoreViolations": {"*": ["/etc/hosts"]},
        },
    }
    assert options.as_flags().sandbox is None
    assert options.beyond_flags() == []


def test_settings_of_a_file_are_read_where_the_cli_would_read_them(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{"a": 1}')
    options = Options(cwd=tmp_path, settings="s.json", sandbox=CliSandbox(enabled=True))
    assert settings_of(options) == {"a": 1, "sandbox": {"enabled": True}}
    with pytest.raises(UsageError, match="cannot be read"):
        Options(settings="none.json", sandbox=CliSandbox()).as_flags()


def test_plugins_are_folders_or_switches() -> None:
    options = Options(
        plugin_dirs=("first",),
        settings='{"enabledPlugins":{"old@m":true,"on@m":false}}',
        plugins=(
            LocalPlugin(Path("second")),
            InstalledPlugin(name="on", marketplace="m"),
            InstalledPlugin(name="off", marketplace="m", enabled=False),
        ),
    )
    flags = options.as_flags()
    assert flags.plugin_dirs == ("first", "second")
    assert settings_of(options) == {"enabledPlugins": {"old@m": True, "on@m": True, "off@m": False}}
    only = Options(plugins=(LocalPlugin("x"),)).as_flags()
    assert (only.settings, only.plugin_dirs) == (None, ("x",))


@pytest.mark.parametrize("name", ["", " ", "a@b"])
def test_a_name_that_cannot_be_one_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="is not the name"):
        InstalledPlugin(name=name, marketplace="m")


def test_every_setting_of_the_official_sdk_is_there() -> None:
    def camel(names: tuple[str, ...]) -> set[str]:
        words = [name.split("_") for name in names]
        return {first + "".join(each.title() for each in rest) for first, *rest in words}

    assert set(SandboxSettings.__annotations__) <= camel(CliSandbox.__struct_fields__)
    assert set(SandboxNetworkConfig.__annotations__) <= camel(SandboxNetwork.__struct_fields__)
