"""What the SDK would start: its command, its flags, its environment.

Owns the launch of a CLI for the SDK's options; it starts no process. The flags are built by the
SDK's own transport, so that they are those of the installed SDK, in its order, with its checks of
skill names and plugins. Values that are long or may hold secrets are then moved to files.

The SDK's builder is private to it. `tools/run_sdk_tests.py` shows whether a version still has it.
"""

# ruff: noqa: SLF001  (the reason is above)

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import claude_agent_sdk
from claude_agent_sdk import ClaudeAgentOptions, CLINotFoundError
from claude_agent_sdk._internal.transport.subprocess_cli import SubprocessCLITransport

from quarterdeck.claude.launch import ArgumentFiles
from quarterdeck.claude.locate import VARIABLE, find_claude
from quarterdeck.domain.errors import LaunchError
from quarterdeck.domain.launch_options import LONGEST_ARGUMENT, OPTIONS
from quarterdeck.sdk_transport.errors import NotFoundError, OptionError

SDK_TRANSPORT = SubprocessCLITransport
"""The SDK's own class, also after `install()` has put another in its place."""

_STATES = "CLAUDE_CODE_SDK_READS_SESSION_STATE"
"""With it the CLI reports the end of a run, marked as not for the program."""

_LABEL, _DERIVED_LABEL = "CLAUDE_AGENT_SDK_CLIENT_APP", "CLAUDE_AGENT_SDK_DERIVED_CLIENT_APP"

_IN_FILES = {option.flag: option for option in OPTIONS if option.file_flag}

_SCRIPTS = {".js", ".mjs", ".cjs"}

_log = logging.getLogger(__name__)


class SdkLaunch:
    """The launch that one transport of the SDK would make."""

    def __init__(self, sdk: SubprocessCLITransport) -> None:
        self._sdk = sdk
        self.options = sdk._options

    @classmethod
    def for_options(cls, options: ClaudeAgentOptions) -> SdkLaunch:
        """The launch for options that the SDK has not prepared. Raises `OptionError`."""
        if options.session_store is not None and (options.resume or options.continue_conversation):
            raise OptionError(
                "session_store: the SDK resumes from a store only with its default transport;"
                " call quarterdeck.sdk_transport.install() and pass no transport"
            )
        if options.can_use_tool is not None and not options.permission_prompt_tool_name:
            options = replace(options, permission_prompt_tool_name="stdio")
        return cls(SDK_TRANSPORT("", options))

    def check(self) -> None:
        """Raise what the SDK raises for options that cannot be right."""
        if self._sdk._cli_path is None:
            SDK_TRANSPORT("", replace(self.options, cli_path="claude"))._build_command()
        else:
            self._sdk._build_command()

    @property
    def has_path(self) -> bool:
        """Whether the CLI need not be searched for."""
        return self._sdk._cli_path is not None

    def command(self, environ: Mapping[str, str], files: ArgumentFiles) -> list[str]:
        """What the SDK would start: the given CLI, else its own, else the installed one.

        It may block while it searches, if there is no path.

        A value that is too long for an argument goes to a file, if the CLI can read it from there,
        and so does JSON of settings and MCP servers, since others can read arguments.
        """
        if self._sdk._cli_path is None:
            self._sdk._cli_path = self._find_cli(environ)
        self._sdk._reject_windows_batch_cli(self._sdk._cli_path)
        program, *arguments = self._sdk._build_command()
        if Path(program).resolve().suffix in _SCRIPTS:  # Node runs it, whatever its mode says
            return [*find_claude(program, environ=environ), *_with_files(arguments, files)]
        return [program, *_with_files(arguments, files)]

    def _find_cli(self, environ: Mapping[str, str]) -> str:
        bundled = self._sdk._find_bundled_cli()
        try:
            if bundled is None and VARIABLE in environ:
                return find_claude(environ=environ)[-1]
            try:
                return bundled or self._sdk._find_cli()
            except CLINotFoundError:
                return find_claude(environ=environ)[-1]  # it knows more places
        except LaunchError as error:
            raise NotFoundError(str(error)) from error

    async def environment(self, parent: Mapping[str, str]) -> dict[str, str]:
        """The CLI's environment: all of `parent`, and the variables that the SDK adds."""
        options = self.options
        env = {name: value for name, value in parent.items() if name != "CLAUDECODE"}
        env["CLAUDE_CODE_ENTRYPOINT"] = "sdk-py"
        env |= options.env
        env["CLAUDE_AGENT_SDK_VERSION"] = claude_agent_sdk.__version__
        env.pop(_DERIVED_LABEL, None)  # it names the program that started this one
        if options.client_app is not None:
            env[_LABEL] = options.client_app
        elif _LABEL not in env and (label := await self._sdk._derive_client_app()) is not None:
            env[_DERIVED_LABEL] = label
        _add_trace(env, options.env)
        if all(name.upper() != _STATES for name in env):
            env[_STATES] = "1"
        if options.enable_file_checkpointing:
            env["CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING"] = "true"
        if options.cwd:
            env["PWD"] = str(options.cwd)
        return env

    def warn_of_version(self, message: dict[str, object]) -> None:
        """Warn as the SDK does when a message shows that the CLI is old."""
        self._sdk._check_claude_version(message)


def _with_files(arguments: list[str], files: ArgumentFiles) -> list[str]:
    given = iter(arguments)
    argv: list[str] = []
    for argument in given:
        option = _IN_FILES.get(argument)
        value = next(given, None) if option else None
        if option is None or value is None:
            argv.append(argument)
            continue
        is_long = len(value.encode("utf-8", "surrogateescape")) > LONGEST_ARGUMENT
        if is_long or (option.json and value.lstrip().startswith("{")):
            argv += [option.file_flag or option.flag, files.write(option.name, value)]
        else:
            argv += [argument, value]
    return argv


def _add_trace(env: dict[str, str], chosen: Mapping[str, str]) -> None:
    """Add the trace context of OpenTelemetry, if there is one; `chosen` variables stay."""
    carrier: dict[str, str] = {}
    try:
        from opentelemetry import propagate

        propagate.inject(carrier)
    except ImportError:
        return
    except Exception:  # noqa: BLE001  a propagator of the program; it must not keep a CLI from starting
        _log.debug("the trace context could not be read", exc_info=True)
        return
    if "traceparent" in carrier:
        for name in {"TRACEPARENT", "TRACESTATE"} - chosen.keys():
            env.pop(name, None)  # of another trace than the new one
        env |= {
            name.upper(): value for name, value in carrier.items() if name.upper() not in chosen
        }
