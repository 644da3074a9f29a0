"""The presets: they are valid, and cover what they promise."""

from __future__ import annotations

from pathlib import Path

import pytest

from quarterdeck.policy import presets
from quarterdeck.policy.calls import short_call
from quarterdeck.policy.decide import Call, Rules, decide
from quarterdeck.policy.file import read_policy
from quarterdeck.policy.needs import Context
from quarterdeck.policy.presets import PARTS, PRESETS, preset, preset_text

HERE = Context(cwd="/home/ada/shop", home="/home/ada")


def verdict(name: str, call: str) -> str:
    policy = preset(name)
    assert policy is not None
    tool, given = short_call(call)
    found = decide(Call(tool=tool, input=given, context=HERE), Rules(policies=(policy,)))
    return found.behavior.value if found.ruled or found.open else "free"


def verdicts(name: str, calls: tuple[str, ...]) -> dict[str, str]:
    return {call: verdict(name, call) for call in calls}


@pytest.mark.parametrize("name", [*PRESETS, *PARTS])
def test_every_preset_does_what_its_examples_say(name: str) -> None:
    text = preset_text(name)
    assert text is not None
    loaded = read_policy(text, name, preset=preset)
    assert loaded.flaws == ()
    assert loaded.examples >= 4
    assert preset(name) is preset(name)


def test_every_file_of_the_folder_is_a_preset_or_a_part() -> None:
    folder = Path(presets.__file__).parent
    assert {file.stem for file in folder.glob("*.toml")} == {*PRESETS, *PARTS}


def test_a_name_that_is_no_preset_gives_none() -> None:
    for name in ("", "read_only", "../presets/secrets", "secrets.toml"):
        assert preset(name) is None
        assert preset_text(name) is None


SECRETS = (
    ".env",
    ".env.local",
    "packages/api/.env.production",
    ".ENV",
    "/srv/other/.env",
    "~/.ssh/id_ed25519",
    "~/.aws/credentials",
    "~/.config/gcloud/credentials.db",
    "~/.azure/accessTokens.json",
    "~/.kube/config",
    "~/.docker/config.json",
    "~/.config/gh/hosts.yml",
    "~/.git-credentials",
    "~/.netrc",
    "~/.npmrc",
    "~/.pypirc",
    "~/.cargo/credentials.toml",
    "~/.gem/credentials",
    "~/.m2/settings.xml",
    "~/.gradle/gradle.properties",
    "~/.terraform.d/credentials.tfrc.json",
    "~/.vault-token",
    "~/.gnupg/secring.gpg",
    "~/.local/share/keyrings/login.keyring",
    "~/.password-store/bank.gpg",
    "~/.mozilla/firefox/x.default/logins.json",
    "~/.config/google-chrome/Default/Cookies",
    "~/.claude/.credentials.json",
    "~/.bash_history",
    "/root/.ssh/id_rsa",
    "/etc/shadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d/ada",
    "/proc/self/environ",
    "/proc/1/environ",
    "deploy/server.key",
    "certs/tls.pem",
    "id_rsa",
    "config/master.key",
    "credentials.json",
    "secrets.yml",
)
NO_SECRETS = (
    ".env.example",
    ".env.sample",
    "src/env.ts",
    ".npmrc",
    "src/keys.py",
    "docs/secrets.md",
    "~/.ssh/id_ed25519.pub",
    "tests/id_test.py",
)


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("path", SECRETS)
def test_secrets_are_denied_to_every_tool(name: str, path: str) -> None:
    calls = (
        f"Read({path})",
        f"Grep({path})",
        f"Write({path})",
        f"cat {path}",
        f"head -1 {path}",
        f"cp {path} copy",
        f"base64 < {path}",
        f"grep -c x {path}",
        f"tar cf - {path}",
    )
    assert set(verdicts(name, calls).values()) == {"deny"}


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("path", NO_SECRETS)
def test_a_file_with_a_similar_name_is_no_secret(name: str, path: str) -> None:
    policy = preset(name)
    assert policy is not None
    for call in (f"Read({path})", f"cat {path}"):
        tool, given = short_call(call)
        found = decide(Call(tool=tool, input=given, context=HERE), Rules(policies=(policy,)))
        assert found.rule != "secrets"


PROTECTED = (
    ".claude/settings.json",
    ".mcp.json",
    ".git/hooks/pre-commit",
    ".git/config",
    ".husky/pre-push",
    ".githooks/pre-commit",
    "lefthook.yml",
    ".pre-commit-config.yaml",
    ".github/workflows/ci.yml",
    ".github/actions/x/action.yml",
    ".gitlab-ci.yml",
    ".circleci/config.yml",
    "Jenkinsfile",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    ".drone.yml",
    ".travis.yml",
    ".buildkite/pipeline.yml",
    ".woodpecker/x.yml",
    ".cargo/config.toml",
    ".npmrc",
    ".yarnrc.yml",
    ".pnpmfile.cjs",
    "pip.conf",
    ".vscode/tasks.json",
    ".idea/workspace.xml",
    ".cursor/mcp.json",
    ".zed/tasks.json",
    ".devcontainer/devcontainer.json",
    ".envrc",
    ".tool-versions",
    "mise.toml",
    ".config/fish/config.fish",
    ".bashrc",
    ".gitattributes",
    ".gitmodules",
    "packages/a/.git/config",
    "~/.zshrc",
    "~/.config/autostart/x.desktop",
    "~/.config/systemd/user/x.service",
    "~/.local/bin/ls",
    "~/bin/ls",
    "~/Library/LaunchAgents/x.plist",
)


@pytest.mark.parametrize("name", ["edit-freely", "trusted-repo"])
@pytest.mark.parametrize("path", PROTECTED)
def test_files_that_make_programs_run_are_asked_by_every_way_to_write(name: str, path: str) -> None:
    calls = (
        f"Write({path})",
        f"Edit({path})",
        f"echo x > {path}",
        f"tee -a {path} < x",
        f"cp x {path}",
        f"mv x {path}",
        f"rm {path}",
        f"sed -i s/a/b/ {path}",
        f"ln -sf x {path}",
    )
    assert set(verdicts(name, calls).values()) <= {"ask", "deny"}


@pytest.mark.parametrize("name", ["edit-freely", "trusted-repo"])
def test_ordinary_files_of_the_project_are_edited_without_a_question(name: str) -> None:
    for path in ("src/app.py", "package.json", "CLAUDE.md", ".editorconfig", ".gitignore"):
        assert verdict(name, f"Write({path})") == "allow"


@pytest.mark.parametrize("name", PRESETS)
def test_no_preset_is_in_the_way_of_what_the_cli_does_for_itself(name: str) -> None:
    calls = (
        "Write(~/.claude/plans/swift-otter.md)",
        "Edit(/home/ada/.claude/plans/swift-otter.md)",
        "Read(/tmp/claude-1000/-home-ada-shop/tasks/b1.output)",
        "StructuredOutput({})",
        "KillShell({})",
        "TaskStop({})",
        "TaskOutput({})",
        "ListMcpResourcesTool({})",
        "ReadMcpResourceTool({})",
        "TodoWrite({})",
    )
    policy = preset(name)
    assert policy is not None
    for call in calls:
        tool, given = short_call(call)
        found = decide(Call(tool=tool, input=given, context=HERE), Rules(policies=(policy,)))
        assert found.behavior.value == "allow", (call, found.reasons)


@pytest.mark.parametrize("name", PRESETS)
def test_beside_the_plans_the_settings_of_the_cli_are_protected(name: str) -> None:
    for path in (
        "~/.claude/plans/../settings.json",
        "~/.claude/settings.json",
        "~/.claude/plans/x.sh",
    ):
        assert verdict(name, f"Write({path})") in {"ask", "deny"}
