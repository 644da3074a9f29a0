"""The table of all commands, and what is made from it: the help and the menu.

The functions are in the other modules here, which are loaded with the first message to the bot.
"""

from __future__ import annotations

from quarterdeck.fronts.telegram.commands.base import Command
from quarterdeck.fronts.telegram.jobs import Job
from quarterdeck.fronts.telegram.text import Part, bold, join, plain
from quarterdeck.fronts.telegram.types import Command as MenuEntry

INTRODUCTION = (
    "A message is a prompt. A reply goes to the session of the message that it replies to. Begin a"
    " prompt with --model, --mode, --effort or --plan to choose for it alone.\n"
)


async def help(job: Job, rest: str) -> None:  # noqa: A001 - the name of the command
    """All commands, or one."""
    name = rest.lstrip("/").lower()
    if name in COMMANDS:
        job.say(_line(COMMANDS[name]))
        return
    job.say(help_text())


def help_text() -> Part:
    """The help: every command in a line."""
    pieces: list[Part | str] = [INTRODUCTION]
    for command in COMMANDS.values():
        if command.menu:
            pieces += ["\n", _line(command)]
    pieces.append("\n\nOther commands, and those after //, are passed to the CLI.")
    return join(pieces)


def _line(command: Command) -> Part:
    usage = f" {command.usage}" if command.usage else ""
    return join([bold(f"/{command.name}"), plain(f"{usage} — {command.help}")])


def menu() -> tuple[MenuEntry, ...]:
    """The entries of the command menu."""
    return tuple(
        MenuEntry(command=command.name, description=command.help)
        for command in COMMANDS.values()
        if command.menu
    )


COMMANDS: dict[str, Command] = {
    command.name: command
    for command in (
        Command(name="new", usage="[prompt]", help="begin a new session", home="sessions"),
        Command(
            name="cancel", usage="[session]", help="interrupt the running turn", home="sessions"
        ),
        Command(name="stop", usage="[session]", help="end the agent's process", home="sessions"),
        Command(name="resume", usage="[session]", help="continue a session here", home="sessions"),
        Command(
            name="continue",
            usage="[prompt]",
            help="continue the newest session of this project",
            home="sessions",
        ),
        Command(
            name="fork",
            usage="[name]",
            help="copy the session, and continue there",
            home="sessions",
            once=True,
        ),
        Command(
            name="rewind",
            usage="[message | files [prompt]]",
            help="go back to before a prompt",
            home="sessions",
            once=True,
        ),
        Command(name="sessions", usage="[all]", help="list the sessions", home="sessions"),
        Command(
            name="restart",
            usage="[session]",
            help="end the agent's process and start it again",
            home="sessions",
        ),
        Command(
            name="queue", usage="", help="the prompts that wait; take one back", home="prompts"
        ),
        Command(
            name="steer",
            usage="TEXT",
            help="send a prompt into the running turn",
            home="prompts",
        ),
        Command(
            name="compact", usage="[what to keep]", help="compact the conversation", home="prompts"
        ),
        Command(
            name="at",
            usage="TIME TEXT | list | drop N",
            help="a prompt for later",
            home="prompts",
            once=True,
        ),
        Command(
            name="loops",
            usage="[all | pause|resume|stop NAME]",
            help="the loops; pause or stop one",
            home="automation",
        ),
        Command(
            name="schedules",
            usage="[pause|resume NAME]",
            help="the schedules; pause one",
            home="automation",
        ),
        Command(
            name="model", usage="[NAME | clear]", help="the model of sessions here", home="settings"
        ),
        Command(name="mode", usage="[NAME | clear]", help="the permission mode", home="settings"),
        Command(
            name="planmode",
            usage="on|auto|off|show|clear",
            help="plan before working",
            home="settings",
        ),
        Command(
            name="effort",
            usage="[LEVEL | clear]",
            help="how much the model thinks",
            home="settings",
        ),
        Command(
            name="approve",
            usage="[TOOL, TOOL | clear]",
            help="tools that are allowed without a question",
            home="settings",
        ),
        Command(
            name="verbose",
            usage="[quiet|normal|verbose]",
            help="how much progress is shown",
            home="settings",
        ),
        Command(
            name="config",
            usage="[NAME VALUE]",
            help="all preferences of this chat",
            home="settings",
        ),
        Command(
            name="ctx",
            usage="[project NAME | dir PATH | machine NAME | branch NAME | clear]",
            help="where sessions here work",
            home="settings",
        ),
        Command(
            name="topic",
            usage="NAME [| PROJECT]",
            help="make a topic of its own",
            home="settings",
            once=True,
        ),
        Command(name="browse", usage="[PATH]", help="choose a folder", home="settings"),
        Command(name="context", usage="", help="how full the context window is", home="info"),
        Command(
            name="mcp",
            usage="[reconnect|on|off NAME]",
            help="the MCP servers of the session",
            home="info",
        ),
        Command(name="tasks", usage="[stop ID]", help="what runs in the background", home="info"),
        Command(
            name="usage",
            usage="[day|model|project|machine|session]",
            help="what was used",
            home="info",
        ),
        Command(name="stats", usage="[session]", help="the session in numbers", home="info"),
        Command(
            name="budget", usage="[USD | lift]", help="what the session may spend", home="info"
        ),
        Command(name="ping", usage="", help="whether bot and hub answer", home="info"),
        Command(name="health", usage="", help="the state of hub, machines and bot", home="info"),
        Command(
            name="file", usage="get PATH | put PATH", help="files of the session", home="files"
        ),
        Command(
            name="export", usage="[markdown|html|json]", help="the session as a file", home="files"
        ),
        Command(
            name="pair", usage="CODE | off", help="become a person of the hub here", home="access"
        ),
        Command(name="start", usage="", help="begin", home="access", menu=False),
        Command(name="help", usage="[command]", help="all commands", home="table"),
    )
}
