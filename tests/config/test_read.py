"""A configuration is read as a whole, and all that is wrong with it is told with its line."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.config import Settings, parse
from quarterdeck.config.shape import all_settings, describe_type
from quarterdeck.domain.errors import ConfigError

URL = "expected a text that begins with http:// or https://"


def problems(text: str, environ: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(ConfigError) as wrong:
        parse(text, name="q.toml", environ=environ)
    return list(wrong.value.problems)


def told(text: str) -> tuple[str, ...]:
    """What is wrong with a text; nothing, if nothing is."""
    try:
        parse(text)
    except ConfigError as error:
        return error.problems or ("",)
    return ()


def test_nothing_is_a_configuration_with_every_default() -> None:
    assert parse("").settings == Settings()


def test_values_are_taken_from_the_file() -> None:
    text = """
[server]
port = 9000
hosts = ["hub.example"]
[budget]
day_usd = 20
[projects.web]
directory = "/srv/web"
model = "opus"
env = { STAGE = "test" }
budget = { session_usd = 5 }
[[webhooks]]
url = "https://one.example/hook"
[[webhooks]]
url = "https://two.example/hook"
"""
    settings = parse(text).settings
    assert (settings.server.port, settings.server.hosts) == (9000, ("hub.example",))
    assert settings.budget.day_usd == 20
    project = settings.projects["web"]
    assert (project.directory, project.model, project.env) == (
        "/srv/web",
        "opus",
        {"STAGE": "test"},
    )
    assert project.budget is not None
    assert project.budget.session_usd == 5
    assert [hook.url[8:11] for hook in settings.webhooks] == ["one", "two"]


def test_every_problem_is_told_at_once_each_with_its_line_and_the_nearest_name() -> None:
    text = """# a comment
[server]
prot = 1
port = "x"

[log]
level = "inf"
host = "a"
[[webhooks]]
url = "https://one.example"
[[webhooks]]
urk = 2
[projects.web]
directory = "/a"
budget = { total_usd = -1 }
[budgt]
"""
    assert problems(text) == [
        "q.toml:3: server.prot: there is no such setting; did you mean port?",
        "q.toml:4: server.port: expected a whole number from 0 to 65535, got a text",
        (
            "q.toml:7: log.level: expected one of debug, info, warning, error, got 'inf';"
            " did you mean info?"
        ),
        "q.toml:8: log.host: there is no such setting; did you mean server.host?",
        "q.toml:12: webhooks[2].urk: there is no such setting; did you mean url?",
        "q.toml:11: webhooks[2]: url is missing: " + URL,
        "q.toml:15: projects.web.budget.total_usd: expected a number above 0, got -1",
        "q.toml:16: budgt: there is no such setting; did you mean budget?",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a = [\n1 2", "q.toml:2: Unclosed array"),
        ("x = 1\ny = ", "q.toml:2: Invalid value"),
        ("[server", "q.toml:1: Expected ']' at the end of a table declaration"),
        ("server = 3", "q.toml:1: server: expected a table"),
        ("projects = 3", "q.toml:1: projects: expected tables, each under [projects.NAME]"),
        ("[webhooks]\na=1", "q.toml:1: webhooks: expected tables, each under [[webhooks]]"),
        ("server.key = '/k'", "q.toml:1: server.key: a key needs a certificate"),
        (
            '[projects."a b"]\ndirectory="/"',
            "q.toml:1: projects.a b: a name may only have letters, digits, - and _",
        ),
        (
            '[projects.a]\n\nmode = "bypassPermissions"\ndirectory = "/"',
            "q.toml:3: projects.a.mode: bypassPermissions is never a default",
        ),
        (
            "[projects.a]",
            "q.toml:1: projects.a: directory is missing: expected a text that is not empty",
        ),
        (
            "[budget]\nday_usd = nan",
            "q.toml:2: budget.day_usd: expected a number above 0, got nan",
        ),
        (
            "[log]\nfile = 1979-05-27",
            "q.toml:2: log.file: expected a text that is not empty, got a date or a time",
        ),
        ("webhooks = [{url = 'x'}]", f"q.toml:1: webhooks[1].url: {URL}, got a text"),
    ],
)
def test_what_cannot_be_right_is_told(text: str, problem: str) -> None:
    assert problems(text) == [problem]


def test_a_wrong_value_that_may_be_a_secret_is_not_repeated() -> None:
    text = '[projects.a]\ndirectory="/"\nenv = "KEY=hunter2"\n[[webhooks]]\nurl = "hunter2"\n'
    assert "hunter2" not in "".join(problems(text))


def test_the_environment_is_stronger_than_the_file_and_a_flag_than_both() -> None:
    text = "[server]\nport = 1\nhost = 'a'\n[log]\nlevel = 'error'\n"
    environ = {
        "QUARTERDECK_SERVER_PORT": "2",
        "QUARTERDECK_SERVER_HOST": "b",
        "QUARTERDECK_SERVER_HOSTS": "one, two",
        "QUARTERDECK_HOME": "/not/ours",
        "QUARTERDECK_CLAUDE": "/claude",
        "QUARTERDECK_RUN_0123": "1",
        "QUARTERDECK_PROJECTS_A": "not a setting",
    }
    loaded = parse(text, environ=environ, overrides={("server", "port"): ("--port", 3)})
    server = loaded.settings.server
    assert (server.port, server.host, server.hosts) == (3, "b", ("one", "two"))
    assert loaded.settings.log.level == "error"
    sources = [loaded.sources[name] for name in ("server.port", "server.host", "log.level")]
    assert sources == ["--port", "QUARTERDECK_SERVER_HOST", "line 5"]


def test_a_wrong_variable_is_told_by_its_name() -> None:
    environ = {"QUARTERDECK_SERVER_PROT": "1", "QUARTERDECK_RUNNER_MAX_AGENTS": "many"}
    assert problems("", environ=environ) == [
        "QUARTERDECK_SERVER_PROT: there is no such setting; did you mean QUARTERDECK_SERVER_PORT?",
        "QUARTERDECK_RUNNER_MAX_AGENTS: expected a whole number of 1 or more, got a text",
    ]


def test_a_path_begins_at_the_home_folder_or_where_the_file_is() -> None:
    text = """
[log]
file = "hub.log"
[policy]
file = "~/policy.toml"
[projects.a]
directory = "../work"
add_dirs = ["~", "/b"]
"""
    settings = parse(text, folder="/etc/quarterdeck", home="/home/ada").settings
    assert settings.log.file == "/etc/quarterdeck/hub.log"
    assert settings.policy.file == "/home/ada/policy.toml"
    assert settings.projects["a"].directory == "/etc/work"
    assert settings.projects["a"].add_dirs == ("/home/ada", "/b")


def test_every_setting_can_be_put_into_words() -> None:
    assert all(describe_type(setting.type) for setting in all_settings())


@given(st.text(max_size=200))
def test_any_text_is_settings_or_problems(text: str) -> None:
    assert all(told(text))


values = st.recursive(
    st.one_of(st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)


@given(st.sampled_from([setting.path for setting in all_settings()]), values)
def test_any_value_at_any_place_is_taken_or_told(path: tuple[str, ...], value: object) -> None:
    literal = json.dumps(value).replace("NaN", "nan").replace("Infinity", "inf")
    found = told(f"{'.'.join(path)} = {literal}")
    assert all(problem.startswith("quarterdeck.toml") for problem in found)


def test_a_sandbox_can_be_one_word_or_a_table() -> None:
    text = """
sandbox = "off"
[projects.web]
directory = "/srv/web"
sandbox = "strict"
[projects.api]
directory = "/srv/api"
[projects.api.sandbox]
network = ["a.example", "*.b.example"]
writable = ["~/out", "here"]
memory_mb = 100
"""
    loaded = parse(text, folder="/etc/deck", home="/home/ada")
    assert loaded.settings.sandbox.mode == "off"
    assert loaded.sources["sandbox.mode"] == "line 2"
    web, api = (loaded.settings.projects[name].sandbox for name in ("web", "api"))
    assert web is not None
    assert api is not None
    assert (web.mode, web.network) == ("strict", None)
    assert (api.mode, api.network, api.memory_mb) == (None, ("a.example", "*.b.example"), 100)
    assert api.writable == ("/home/ada/out", "/etc/deck/here")


def test_a_wrong_sandbox_is_told_with_what_is_right() -> None:
    text = 'sandbox = "hard"\n[projects.web]\ndirectory = "/srv"\nsandbox = { network = "none" }\n'
    hosts = "one of all, model or a list of: a text that is not empty"
    assert problems(text) == [
        "q.toml:1: sandbox.mode: expected one of off, protect, strict, got 'hard'",
        f"q.toml:4: projects.web.sandbox.network: expected {hosts}, got a text",
    ]
    assert (
        parse("", environ={"QUARTERDECK_SANDBOX_MODE": "strict"}).settings.sandbox.mode == "strict"
    )
