"""The policies in force: files that come, change, are wrong and go; grants; facts of a session."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec import Raw

from quarterdeck.domain.errors import Forbidden, NotFound, UsageError
from quarterdeck.hub.permissions.context import PolicyContext
from quarterdeck.hub.permissions.deadlines import check_answerer, overdue
from quarterdeck.hub.permissions.policies import Policies
from quarterdeck.policy.calls import input_of
from quarterdeck.policy.decide import Call, decide
from quarterdeck.policy.facts import Facts
from quarterdeck.policy.grants import Grant, narrowest
from quarterdeck.policy.needs import Context
from quarterdeck.protocol.commands import AllowAnswer, AnswerAsk, DenyAnswer
from quarterdeck.protocol.events import AskKind, AskOpened
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.protocol.views import AskView
from quarterdeck.runtime.git_head import branch_of

pytestmark = pytest.mark.anyio

SPEC = SessionSpec(directory="/srv/shop")
DENY = '[[rule]]\nname = "no make"\nverdict = "deny"\ncommand = "make"\n'


def verdict(
    policies: Policies, command: str = "make", spec: SessionSpec = SPEC, now: int = 0
) -> str:
    facts = Facts(directory=spec.directory, project=spec.project or "", now=now)
    call = Call(
        tool="Bash",
        input=input_of("Bash", command),
        facts=facts,
        context=Context(cwd=spec.directory),
    )
    found = decide(call, policies.rules_for(spec))
    return found.behavior.value if found.ruled else "cli"


class Home:
    """A folder whose files are written as an editor does it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._time = 1_000

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        self._time += 1  # a file system's clock may be coarse
        os.utime(path, (self._time, self._time))

    def policies(self) -> Policies:
        return Policies(self.folder, clock=lambda: 5.0)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


async def test_a_file_that_comes_and_changes_is_taken_up(home: Home) -> None:
    policies = home.policies()
    assert verdict(policies) == "cli"
    assert policies.states == ()
    home.write("policy.toml", DENY)
    assert await policies.refresh()
    assert not await policies.refresh()
    assert verdict(policies) == "deny"
    home.write("policy.toml", DENY.replace("deny", "ask"))
    assert await policies.refresh()
    assert verdict(policies) == "ask"


@pytest.mark.parametrize("wrong", [DENY + "x = 1\n", DENY + 'match = ["ls"]\n', "[", "\udcff"])
async def test_a_wrong_file_changes_nothing_also_after_a_restart(home: Home, wrong: str) -> None:
    home.write("policy.toml", DENY)
    policies = home.policies()
    home.write("policy.toml", "default = 'deny'\n")
    (home.folder / "policy.toml").write_bytes(wrong.encode(errors="surrogateescape"))
    await policies.refresh()
    for each in (policies, home.policies()):
        (state,) = each.states
        assert state.in_force == "kept"
        assert state.flaws
        assert (verdict(each), verdict(each, "ls")) == ("deny", "cli")
    home.write("policy.toml", "")
    await policies.refresh()
    assert policies.states[0].flaws == ()
    assert verdict(policies) == "cli"


def test_a_wrong_file_without_a_good_text_before_has_everything_asked(home: Home) -> None:
    home.write("policy.toml", "nonsense = 1")
    policies = home.policies()
    assert policies.states[0].in_force == "asking"
    assert verdict(policies) == "ask"


async def test_a_file_that_is_deleted_does_not_end_its_policy(home: Home) -> None:
    home.write("policy.toml", DENY)
    home.write("policies/night.toml", DENY)
    policies = home.policies()
    (home.folder / "policy.toml").unlink()
    (home.folder / "policies" / "night.toml").unlink()
    await policies.refresh()
    for each in (policies, home.policies()):
        assert verdict(each) == "deny"
        assert [state.in_force for state in each.states] == ["kept", "kept"]
        assert "an empty file" in each.states[0].flaws[0].text


async def test_a_session_may_name_a_file_or_a_preset_and_nothing_else(home: Home) -> None:
    home.write("policies/night.toml", 'default = "deny"\n')
    home.write("policies/.hidden.toml", "x = 1")
    policies = home.policies()
    assert "night" in policies.names
    assert "careful" in policies.names
    policies.check("night")
    policies.check(None)
    for name in ("policy.toml", "nothing", "../night"):
        with pytest.raises(UsageError, match="there is no policy"):
            policies.check(name)
    assert verdict(policies, spec=SessionSpec(directory="/srv", policy="night")) == "deny"
    # One that is gone since the session was made has everything asked.
    assert verdict(policies, spec=SessionSpec(directory="/srv", policy="gone")) == "ask"


def test_the_policy_for_all_may_be_in_another_file(home: Home) -> None:
    home.write("policy.toml", DENY)
    home.write("other/team.toml", DENY.replace("deny", "ask"))
    policies = home.policies()
    policies.use(home.folder / "other" / "team.toml")
    assert verdict(policies) == "ask"
    policies.use(None)
    assert verdict(policies) == "deny"


# --- grants --------------------------------------------------------------------------------------


async def test_a_grant_holds_in_its_folder_until_its_time_and_over_a_restart(home: Home) -> None:
    policies = home.policies()
    grant = Grant(
        id="", rules=("Bash(make:*)",), by="ada", at=0, directory="/srv/shop", until=9_000
    )
    made = await policies.grant(grant)
    for each in (policies, home.policies()):
        assert verdict(each) == "allow"
        assert verdict(each, now=9_000) == "cli"
        assert verdict(each, spec=SessionSpec(directory="/srv")) == "cli"
    home.write("policy.toml", DENY)
    await policies.refresh()
    assert verdict(policies) == "deny"
    assert (await policies.revoke(made.id)).by == "ada"
    assert home.policies().grants == ()
    with pytest.raises(NotFound):
        await policies.revoke(made.id)


async def test_grants_that_cannot_be_read_allow_nothing_and_are_not_overwritten(home: Home) -> None:
    home.write("grants.json", "{nonsense")
    policies = home.policies()
    assert policies.grants == ()
    assert "grants.json" in (policies.grants_flaw or "")
    with pytest.raises(UsageError):
        await policies.grant(Grant(id="", rules=("Bash(ls)",), by="ada", at=0))
    assert (home.folder / "grants.json").read_text() == "{nonsense"


@pytest.mark.parametrize(
    ("tool", "argument", "rules"),
    [
        ("Bash", "npm test", ("Bash(npm test)",)),
        ("Bash", "rm *.tmp", ()),
        ("Bash", "git add :", ()),
        ("Write", "/srv/shop/a b.txt", ("Edit(//srv/shop/a b.txt)",)),
        ("Read", "/etc/hosts", ("Read(//etc/hosts)",)),
        ("Write", "/srv/shop/[a].txt", ()),
        ("WebFetch", "example.com", ("WebFetch(domain:example.com)",)),
        ("mcp__jira__close", '{"id":1}', ("mcp__jira__close",)),
        ("Agent", "Explore", ("Agent(Explore)",)),
    ],
)
def test_the_narrowest_rule_names_the_call_or_there_is_none(
    tool: str, argument: str, rules: tuple[str, ...]
) -> None:
    assert narrowest(tool, input_of(tool, argument), Context(cwd="/srv/shop")) == rules


# --- who may answer, and for how long ------------------------------------------------------------


def test_only_whom_the_rule_names_may_allow_and_anybody_may_deny() -> None:
    opened = AskOpened(
        ask="s.q",
        run="r",
        request_id="1",
        ask_kind=AskKind.TOOL,
        tool="Bash",
        title="x",
        request=Raw(b"{}"),
        rule="release",
        answered_by=(("role:owner", "ada"), ("ada", "bob")),
    )

    def answer(by: str, role: str) -> AnswerAsk:
        return AnswerAsk(ask="s.q", answer=AllowAnswer(), by=by, role=role)

    check_answerer(opened, answer("ada", ""))
    check_answerer(opened, answer("bob", "owner"))
    for by, role in (("bob", "operator"), ("eve", "owner"), ("role:owner", ""), ("", "")):
        with pytest.raises(Forbidden, match="role:owner or ada"):
            check_answerer(opened, answer(by, role))
    check_answerer(opened, AnswerAsk(ask="s.q", answer=DenyAnswer(), by="eve", role="operator"))


@pytest.mark.parametrize(
    ("wait", "then", "timeout", "now", "wanted"),
    [
        (None, "deny", None, 10**9, None),
        (60.0, "deny", None, 59_999, None),
        (60.0, "deny", None, 60_000, "deny"),
        (60.0, "allow", None, 60_000, "allow"),
        (None, "allow", 30.0, 30_000, "deny"),
        (60.0, "allow", 30.0, 30_000, "deny"),
    ],
)
def test_a_question_that_waited_is_settled_as_its_rule_says(
    wait: float | None, then: str, timeout: float | None, now: int, wanted: str | None
) -> None:
    opened = AskOpened(
        ask="s.q",
        run="r",
        request_id="1",
        ask_kind=AskKind.TOOL,
        tool="Bash",
        title="x",
        request=Raw(b"{}"),
        rule="r1",
        wait=wait,
        then=then,
    )
    spec = SessionSpec(directory="/", ask_timeout=timeout)
    asks = {"s.q": AskView(session="s", seq=1, at=0, opened=opened)}
    found = [answer for _, answer in overdue(SessionView(session="s", spec=spec, asks=asks), now)]
    kinds = ["allow" if isinstance(each.answer, AllowAnswer) else "deny" for each in found]
    assert kinds == ([] if wanted is None else [wanted])


# --- facts ---------------------------------------------------------------------------------------


def test_the_branch_is_read_where_the_session_runs(tmp_path: Path) -> None:
    git = tmp_path / ".git"
    assert branch_of(str(tmp_path / "deep" / "er")) is None
    git.mkdir()
    (git / "HEAD").write_text("ref: refs/heads/fix/1\n")
    assert branch_of(str(tmp_path / "deep" / "er")) == "fix/1"
    (git / "HEAD").write_text("0123abc\n")
    assert branch_of(str(tmp_path)) is None
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / ".git").write_text("gitdir: ../.git/worktrees/tree\n")
    (git / "worktrees" / "tree").mkdir(parents=True)
    (git / "worktrees" / "tree" / "HEAD").write_text("ref: refs/heads/task\n")
    assert branch_of(str(tree)) == "task"
    (tree / ".git").write_text("nonsense")
    assert branch_of(str(tree)) is None


@pytest.mark.anyio
async def test_of_a_session_on_another_machine_the_disk_is_not_looked_at(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    spec = SessionSpec(directory=str(tmp_path), project="shop")
    view = SessionView(session="s", spec=spec, by="ada", cost_usd=2.5)
    here = PolicyContext(Policies(), lambda: view)
    facts = await here.facts(7, "plan", agent="Explore", subagent=True)
    assert (facts.branch, facts.machine, facts.user, facts.project) == (
        "main",
        "local",
        "ada",
        "shop",
    )
    assert (facts.cost_usd, facts.mode, facts.origin, facts.agent) == (
        2.5,
        "plan",
        "subagent",
        "Explore",
    )
    unknown = await here.facts(7, "plan", agent=None, subagent=None)
    assert unknown.origin is None
    place, looks = here.place(None)
    assert (place.cwd, looks) == (str(tmp_path), True)
    away = SessionView(session="s", spec=spec, machine="far")
    there = PolicyContext(Policies(), lambda: away)
    far = await there.facts(7, "plan", agent=None, subagent=False)
    assert far.branch is None
    place, looks = there.place("/elsewhere")
    assert (place.cwd, place.resolve, looks) == ("/elsewhere", None, False)
