"""From a session's rules to a spec."""

from __future__ import annotations

import msgspec
import pytest

from quarterdeck.domain.errors import UsageError
from quarterdeck.sandbox import (
    Limits,
    Network,
    NetworkKind,
    Repository,
    SandboxMode,
    SandboxSpec,
    plan,
)
from quarterdeck.sandbox.plan import MODEL_HOSTS, model_hosts

HOME, PROJECT = "/home/ada", "/home/ada/project"
MAIN = Repository(top=PROJECT, git_dir=f"{PROJECT}/.git", common_dir=f"{PROJECT}/.git")
TREE = Repository(
    top="/data/trees/one",
    git_dir=f"{PROJECT}/.git/worktrees/one",
    common_dir=f"{PROJECT}/.git",
)


def spec(mode: SandboxMode = SandboxMode.PROTECT, **changes: object) -> SandboxSpec:
    given = {"project": PROJECT, "home": HOME, "temporary": "/tmp/session", "user": 1000}
    return plan(mode, **(given | changes))  # type: ignore[arg-type]


def test_off_is_nothing() -> None:
    assert spec(SandboxMode.OFF) == SandboxSpec()


def test_a_spec_is_json() -> None:
    made = spec(repository=MAIN, limits=Limits(memory=5))
    assert msgspec.json.decode(msgspec.json.encode(made), type=SandboxSpec) == made


def test_writes_are_possible_where_the_work_is() -> None:
    made = spec(repository=MAIN)
    for path in (PROJECT, f"{PROJECT}/.git", "/tmp/session", f"{HOME}/.cache"):
        assert path in made.writable
    assert f"{HOME}/.claude/projects" in made.writable
    assert f"{HOME}/.claude" not in made.writable
    assert HOME not in made.writable


def test_secrets_and_what_is_the_hubs_own_are_hidden() -> None:
    made = spec(private=["~/.local/share/quarterdeck", "/srv/hub"])
    for path in (".ssh", ".aws", ".gnupg", ".local/share/quarterdeck"):
        assert f"{HOME}/{path}" in made.hidden
    assert {"/srv/hub", "/run/user/1000", "/etc/shadow"} <= set(made.hidden)
    assert "/tmp/cc-socks-1000" in made.hidden


def test_what_makes_programs_run_is_read_only() -> None:
    made = spec(repository=MAIN)
    for name in (".git/config", ".git/hooks", ".git/commondir", ".claude", ".mcp.json", ".vscode"):
        assert f"{PROJECT}/{name}" in made.read_only
    for name in (".git/hooks", ".git/commondir", ".claude", ".mcp.json", ".husky", ".envrc"):
        assert f"{PROJECT}/{name}" in made.reserved


def test_the_folders_of_hooks_that_settings_name_are_read_only() -> None:
    hooks = (f"{PROJECT}/tools/hooks", "/srv/hooks")
    made = spec(repository=msgspec.structs.replace(MAIN, hooks=hooks))
    assert set(hooks) <= set(made.read_only)
    assert f"{PROJECT}/tools/hooks" in made.reserved
    assert "/srv/hooks" not in made.reserved


def test_settings_of_a_work_tree_are_reserved_only_if_git_reads_them() -> None:
    own = msgspec.structs.replace(MAIN, own_settings=True)
    assert f"{PROJECT}/.git/config.worktree" in spec(repository=own).reserved
    assert f"{PROJECT}/.git/config.worktree" not in spec(repository=MAIN).reserved


def test_a_work_tree_protects_what_leads_to_its_repository() -> None:
    made = spec(repository=TREE, project="/data/trees/one", private=["/data"])
    own = f"{PROJECT}/.git/worktrees/one"
    assert {"/data/trees/one", own, f"{PROJECT}/.git"} <= set(made.writable)
    assert {"/data/trees/one/.git", f"{own}/commondir", f"{own}/gitdir"} <= set(made.read_only)
    assert f"{PROJECT}/.git/worktrees" in made.read_only
    assert f"{own}/commondir" in made.yielding
    assert "/data" in made.hidden


def test_the_file_that_leads_a_submodule_to_its_repository_is_read_only() -> None:
    git = "/home/ada/super/.git/modules/sub"
    sub = Repository(top="/home/ada/super/sub", git_dir=git, common_dir=git)
    made = spec(project="/home/ada/super/sub", repository=sub)
    assert {"/home/ada/super/sub/.git", f"{git}/config", f"{git}/hooks"} <= set(made.read_only)
    assert f"{PROJECT}/.git" not in spec(repository=MAIN).read_only


def test_settings_that_the_settings_of_git_include_are_read_only() -> None:
    included = msgspec.structs.replace(MAIN, included=(f"{PROJECT}/.gitconfig",))
    assert f"{PROJECT}/.gitconfig" in spec(repository=included).read_only


def test_rules_hide_protect_and_open() -> None:
    made = spec(
        deny_read=["./.env", "~/notes/**", "./**/*.pem"],
        deny_edit=["/srv/data", "./locked/*"],
        allow_edit=["~/other/**", "./.vscode/**"],
    )
    assert {f"{PROJECT}/.env", f"{HOME}/notes", f"{PROJECT}/**/*.pem"} <= set(made.hidden)
    assert {"/srv/data", f"{PROJECT}/locked"} <= set(made.read_only)
    assert {f"{HOME}/other", f"{PROJECT}/.vscode"} <= set(made.writable)
    assert f"{PROJECT}/.vscode" not in made.read_only


def test_a_rule_for_the_whole_project_opens_nothing_that_is_protected() -> None:
    made = spec(repository=MAIN, allow_edit=["./**", "."])
    assert f"{PROJECT}/.claude" in made.read_only
    assert f"{PROJECT}/.git/hooks" in made.read_only


@pytest.mark.parametrize("rule", ["/**", "/*", "/", "/*/x", "/**/x"])
def test_a_rule_for_the_whole_disk_opens_nothing(rule: str) -> None:
    assert spec(allow_edit=[rule]).writable == spec().writable


def test_a_rule_for_the_home_folder_opens_nothing_that_runs_by_itself() -> None:
    made = spec(allow_edit=["~/**"])
    assert HOME in made.writable
    assert {f"{HOME}/.bashrc", f"{HOME}/.config/autostart"} <= set(made.read_only)
    named = spec(allow_edit=["~/.bashrc"])
    assert f"{HOME}/.bashrc" not in named.read_only
    assert f"{HOME}/.bashrc" in named.writable


def test_a_rule_against_edits_makes_the_project_read_only() -> None:
    assert PROJECT in spec(deny_edit=["./**"]).read_only


def test_strict_hides_the_home_folder_and_writes_no_caches() -> None:
    made = spec(SandboxMode.STRICT)
    assert HOME in made.hidden
    assert f"{HOME}/.cache" not in made.writable
    assert f"{HOME}/.cache" not in made.created
    assert {f"{HOME}/.claude", f"{HOME}/.nvm", f"{HOME}/.gitconfig"} <= set(made.read_only)
    assert f"{HOME}/.config/nvim" not in made.read_only
    assert made.network == Network(kind=NetworkKind.MODEL, hosts=MODEL_HOSTS)


def test_a_session_in_the_home_folder_is_not_hidden_from_itself() -> None:
    made = spec(SandboxMode.STRICT, project=HOME)
    assert HOME not in made.hidden
    assert f"{HOME}/.config/autostart" in made.read_only


def test_the_cli_has_its_folder_elsewhere_if_it_is_told() -> None:
    made = spec(config_dir="/srv/claude")
    assert "/srv/claude/projects" in made.writable
    assert made.copied == ("/srv/claude/.claude.json",)
    assert spec().copied == (f"{HOME}/.claude.json",)


@pytest.mark.parametrize(
    ("wanted", "hosts"),
    [
        (None, ()),
        (Network(), ()),
        (Network(kind=NetworkKind.MODEL), MODEL_HOSTS),
        (Network(kind=NetworkKind.MODEL, hosts=("ignored.example",)), MODEL_HOSTS),
        (
            Network(kind=NetworkKind.HOSTS, hosts=("packages.example",)),
            (*MODEL_HOSTS, "packages.example"),
        ),
    ],
)
def test_the_network_always_has_the_model(wanted: Network | None, hosts: tuple[str, ...]) -> None:
    assert spec(network=wanted).network.hosts == hosts


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        (None, MODEL_HOSTS),
        ("https://model.example", ("model.example:443",)),
        ("http://127.0.0.1:8080/v1", ("127.0.0.1:8080",)),
        ("http://[::1]:8080", ("[::1]:8080",)),
        ("http://model.example", ("model.example:80",)),
    ],
)
def test_the_model_may_be_elsewhere(url: str | None, hosts: tuple[str, ...]) -> None:
    assert model_hosts(url) == hosts


@pytest.mark.parametrize(
    "changes",
    [
        {"project": "/"},
        {"project": "relative"},
        {"deny_read": ["relative"]},
        {"model_url": "nothing", "network": Network(kind=NetworkKind.MODEL)},
        {"model_url": "http://a:x", "network": Network(kind=NetworkKind.MODEL)},
    ],
)
def test_what_cannot_be_meant_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        spec(SandboxMode.PROTECT, **changes)
