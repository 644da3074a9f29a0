"""Commands that set how a place works: preferences, the project, the folder, topics."""

from __future__ import annotations

from msgspec.structs import replace

from quarterdeck.client.calls import HubRefused, folders
from quarterdeck.domain.errors import UsageError
from quarterdeck.fronts.telegram.asks import Press, Rows
from quarterdeck.fronts.telegram.chats import (
    EFFORTS,
    MODES,
    NAMES,
    PLAN_MODES,
    VERBOSITIES,
    Binding,
    Place,
    Preferences,
    approved_tools,
    with_preference,
)
from quarterdeck.fronts.telegram.commands.base import run_button
from quarterdeck.fronts.telegram.display import safe_line
from quarterdeck.fronts.telegram.jobs import Job
from quarterdeck.fronts.telegram.message_prompts import NEW_BRANCH, switch
from quarterdeck.fronts.telegram.text import Part, bold, code, join
from quarterdeck.protocol.commands import ChangeSession
from quarterdeck.protocol.projects import HERE
from quarterdeck.protocol.roles import Right

CLEAR = "clear"
FOR_SESSIONS = frozenset({"model", "mode", "effort", "approve", "cooldown"})
"""Preferences of what agents may do: for those who may create sessions."""
LISTED = 30
_SOURCES = {
    "message": "this message",
    "chat": "this chat",
    "project": "the project",
    "config": "the configuration",
    "default": "the default",
}


# --- preferences ---------------------------------------------------------------------------------


async def _preference(job: Job, name: str, rest: str, choices: tuple[str, ...]) -> None:
    """Show a preference with buttons to set it, or set it."""
    job.paired  # noqa: B018 - who is nobody in the hub changes nothing
    if not rest or rest == "show":
        rows = _choices(f"/{name}", choices)
        job.say(join([_line(job, name)]), rows)
        return
    await set_preference(job, name, None if rest == CLEAR else rest)


async def set_preference(job: Job, name: str, value: str | None) -> None:
    """Set a preference of this place, and of its session where that has a process."""
    await job.need(Right.MANAGE if name in FOR_SESSIONS else Right.STEER)
    preferences = with_preference(job.messenger.state.preferences(job.place), name, value)
    with job.messenger.database.transaction():
        job.messenger.state.prefer(job.place, preferences)
        job.messenger.state.own(job.place, job.user)
    if name == "follow":
        await job.services.follow(None)
    pieces: list[Part | str] = [_line(job, name)]
    session = job.messenger.state.current(job.place)
    if session is not None and name == "approve":
        tools = approved_tools(preferences.approve)
        await (await job.hub()).submit(ChangeSession(session=session, auto_approve=tools))
        pieces.append("\nThe session here works so from now on.")
    elif value is not None and session is not None and name in {"model", "mode", "effort"}:
        try:
            await switch(job, session, Preferences(**{name: getattr(preferences, name)}))
            pieces.append("\nThe session here works so from now on.")
        except HubRefused as error:
            if error.problem.code not in {"not_running", "not_found"}:
                raise
            pieces.append("\nIt holds from the next session on.")
    job.say(join(pieces))


def _line(job: Job, name: str) -> Part:
    found = job.messenger.preference(job.place, name)
    match found.value:
        case None:
            value = "(the CLI decides)"
        case bool():
            value = "on" if found.value else "off"
        case _:
            value = found.value
    return join([bold(name), ": ", code(safe_line(value, 100)), f" by {_SOURCES[found.source]}"])


def _choices(command: str, choices: tuple[str, ...]) -> Rows:
    buttons = [run_button(safe_line(each, 40), f"{command} {each}") for each in choices]
    rows = [tuple(buttons[at : at + 3]) for at in range(0, len(buttons), 3)]
    return (*rows, (run_button("↩️ Not set here", f"{command} {CLEAR}"),))


async def model(job: Job, rest: str) -> None:
    """The model of sessions here."""
    choices: tuple[str, ...] = ("opus", "sonnet", "haiku")
    session = await job.current()
    if not rest and session is not None:
        try:
            shape = await (await job.hub()).session(session).read()
        except HubRefused:
            shape = None
        if shape is not None and shape.offers is not None and shape.offers.models:
            choices = tuple(offer.model for offer in shape.offers.models[:12])
    await _preference(job, "model", rest, choices)


async def mode(job: Job, rest: str) -> None:
    """The permission mode of sessions here."""
    await _preference(job, "mode", rest, MODES)


async def planmode(job: Job, rest: str) -> None:
    """Whether sessions here plan first."""
    job.paired  # noqa: B018 - who is nobody in the hub changes nothing
    word = rest.lower()
    if word in {"", "show"}:
        rows: Rows = (
            tuple(run_button(each, f"/planmode {each}") for each in PLAN_MODES),
            (run_button("↩️ Not set here", f"/planmode {CLEAR}"),),
        )
        value = job.messenger.preference(job.place, "mode").value
        words = {mode: each for each, mode in PLAN_MODES.items()}
        job.say(
            join([bold("planmode"), f": {words.get(str(value), 'not set')}\n", _line(job, "mode")]),
            rows,
        )
    elif word == CLEAR:
        await set_preference(job, "mode", None)
    elif word in PLAN_MODES:
        await set_preference(job, "mode", PLAN_MODES[word])
    else:
        raise UsageError("/planmode on, auto, off, show or clear")


async def effort(job: Job, rest: str) -> None:
    """How much the model thinks."""
    await _preference(job, "effort", rest, EFFORTS)


async def approve(job: Job, rest: str) -> None:
    """Tools that are allowed without a question."""
    job.paired  # noqa: B018 - who is nobody in the hub changes nothing
    if not rest or rest == "show":
        rows: Rows = ((run_button("↩️ Not set here", f"/approve {CLEAR}"),),)
        job.say(join([_line(job, "approve")]), rows)
        return
    await set_preference(job, "approve", None if rest == CLEAR else rest)


async def verbose(job: Job, rest: str) -> None:
    """How much of the progress is shown."""
    await _preference(job, "verbose", rest, VERBOSITIES)


async def config(job: Job, rest: str) -> None:
    """All preferences; `/config NAME VALUE` sets one."""
    job.paired  # noqa: B018 - who is nobody in the hub changes nothing
    name, _, value = rest.partition(" ")
    if name:
        if name not in NAMES:
            raise UsageError(
                f"there is no preference {name!r}; these there are: {', '.join(NAMES)}"
            )
        if value.strip():
            await set_preference(job, name, None if value.strip() == CLEAR else value.strip())
        else:
            job.say(_line(job, name))
        return
    pieces: list[Part | str] = [bold("Preferences of this chat")]
    for each in NAMES:
        pieces += ["\n", _line(job, each)]
    pieces.append(
        "\n\nThe first of these that says something counts: the message, this chat, the"
        " project, the configuration, the default."
    )
    toggles = [
        run_button(
            f"{each}: {'off' if job.messenger.preference(job.place, each).value else 'on'}",
            f"/config {each} {'off' if job.messenger.preference(job.place, each).value else 'on'}",
        )
        for each in ("drafts", "rich", "cooldown")
    ]
    follow = "own" if job.messenger.preference(job.place, "follow").value == "all" else "all"
    rows: Rows = (
        (
            run_button("model…", "/model"),
            run_button("mode…", "/mode"),
            run_button("effort…", "/effort"),
        ),
        (
            run_button("verbose…", "/verbose"),
            run_button(f"follow: {follow}", f"/config follow {follow}"),
        ),
        tuple(toggles),
    )
    job.say(join(pieces), rows)


# --- where ---------------------------------------------------------------------------------------


async def ctx(job: Job, rest: str) -> None:
    """Where sessions of this place work."""
    hub = await job.hub()
    binding = job.messenger.state.binding(job.place)
    word, _, value = rest.partition(" ")
    value = value.strip()
    match word:
        case "" | "show":
            await _show_context(job)
            return
        case "project" if value:
            known = {row.name: row.defaults for row in await hub.projects()}
            if value not in known:
                raise UsageError(f"there is no project {value!r}; {_known_projects(known)}")
            job.messenger.projects = known
            binding = Binding(project=value)
        case "dir" if value:
            if not value.startswith("/"):
                raise UsageError("the whole path of the folder is wanted, as /home/me/work")
            binding = Binding(directory=value, machine=binding.machine, worktree=binding.worktree)
        case "machine" if value:
            names = [machine.name for machine in await hub.machines()]
            if value not in names:
                raise UsageError(f"there is no machine {value!r}; there are: {', '.join(names)}")
            binding = replace(binding, machine=None if value == HERE else value)
        case "branch":
            if value and value != NEW_BRANCH and not value.isprintable():
                raise UsageError("the name of a branch is wanted")
            binding = replace(binding, worktree=value or None)
        case "clear":
            binding = Binding()
        case _:
            raise UsageError(
                "/ctx, /ctx project NAME, dir PATH, machine NAME, branch NAME|*, clear"
            )
    await job.need(Right.MANAGE)
    with job.messenger.database.transaction():
        job.messenger.state.bind(job.place, binding)
        job.messenger.state.set_current(job.place, None)
        job.messenger.state.own(job.place, job.user)
    job.say(join(["📌 ", _where(job), "\nThe next message begins a new session there."]))


def _known_projects(projects: dict[str, object] | object) -> str:
    names = list(projects) if isinstance(projects, dict) else []
    return f"there are: {', '.join(names)}" if names else "the configuration has none"


async def _show_context(job: Job) -> None:
    hub = await job.hub()
    projects = await hub.projects()
    rows: list[tuple[Press, ...]] = [
        (run_button(safe_line(row.name, 40), f"/ctx project {row.name}"),)
        for row in projects[:LISTED]
    ]
    rows.append((run_button("📁 Browse…", "/browse"), run_button("Clear", "/ctx clear")))
    pieces: list[Part | str] = ["📌 ", _where(job)]
    session = job.messenger.state.current(job.place)
    if (
        session is not None
        and (followed := job.messenger.state.followed_session(session)) is not None
    ):
        pieces += ["\nMessages go to ", bold(safe_line(followed.name, 60)), "."]
    job.say(join(pieces), tuple(rows))


def _where(job: Job) -> Part:
    binding = job.messenger.state.binding(job.place)
    configured = not (binding.project or binding.directory)
    where = job.messenger.options.binding if configured else binding
    pieces: list[Part | str] = []
    if where.project:
        pieces += ["Project ", bold(safe_line(where.project, 80))]
    elif where.directory:
        pieces += ["Folder ", code(safe_line(where.directory, 300))]
    else:
        pieces.append("No project and no folder is chosen")
    if where.machine:
        pieces.append(f" on {safe_line(where.machine, 80)}")
    if binding.worktree == NEW_BRANCH:
        pieces.append(", each session in a worktree of its own")
    elif binding.worktree:
        pieces += [", in the worktree of ", code(safe_line(binding.worktree, 80))]
    if configured and pieces[0] != "No project and no folder is chosen":
        pieces.append(" (as configured)")
    return join(pieces)


async def browse(job: Job, rest: str) -> None:
    """Choose a folder of the machine."""
    hub = await job.hub()
    machine = job.messenger.state.binding(job.place).machine or HERE
    found = await hub.call(folders(machine, rest or None))
    rows: list[tuple[Press, ...]] = []
    if found.path is not None:
        rows.append((run_button("✅ Work here", f"/ctx dir {found.path}"),))
        up = found.parent
        rows.append((run_button("⬆️ Up", f"/browse {up}" if up else "/browse"),))
    for folder in found.folders[:LISTED]:
        mark = "📦" if folder.repository else "📁"
        name = folder.name if len(folder.name) <= 40 else f"…{folder.name[-39:]}"
        rows.append((run_button(f"{mark} {safe_line(name, 40)}", f"/browse {folder.path}"),))
    left = len(found.folders) - LISTED + found.left_out
    more = f"\nand {left} more: /browse PATH" if left > 0 else ""
    title: list[Part | str] = [
        "📁 ",
        code(safe_line(found.path, 300)) if found.path else "Folders",
        more,
    ]
    job.say(join(title), tuple(rows))


async def topic(job: Job, rest: str) -> None:
    """Make a topic in this forum that works as this place does, or rename the one here."""
    job.paired  # noqa: B018 - who is nobody in the hub changes nothing
    name, _, project = rest.partition("|")
    name, project = name.strip()[:128], project.strip()
    if not name:
        raise UsageError("/topic NAME, or /topic NAME | PROJECT")
    if job.private:
        raise UsageError("topics are in groups with topics only")
    binding = job.messenger.state.binding(job.place)
    if project:
        known = {row.name: row.defaults for row in await (await job.hub()).projects()}
        if project not in known:
            raise UsageError(f"there is no project {project!r}; {_known_projects(known)}")
        binding = Binding(project=project)
    await job.need(Right.MANAGE)
    made = await job.services.api.create_forum_topic(job.place.chat, name)
    place = Place(chat=job.place.chat, thread=made.message_thread_id)
    with job.messenger.database.transaction():
        job.messenger.state.bind(place, binding)
        job.messenger.state.own(place, job.user)
        job.messenger.state.prefer(place, job.messenger.state.preferences(job.place))
    job.say(join(["🧵 The topic ", bold(safe_line(name, 80)), " is ready."]))
