"""Commands that tell something: the session, the tools around it, the hub, the bot."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from quarterdeck.client.calls import HubRefused
from quarterdeck.domain.errors import UsageError
from quarterdeck.fronts.telegram.asks import Press, Rows
from quarterdeck.fronts.telegram.commands.base import (
    control,
    run_button,
    state_text,
)
from quarterdeck.fronts.telegram.display import safe_line
from quarterdeck.fronts.telegram.jobs import Job
from quarterdeck.fronts.telegram.progress import duration, money
from quarterdeck.fronts.telegram.text import Part, bold, code, join
from quarterdeck.protocol.holds import McpServer
from quarterdeck.protocol.sessions import Budget
from quarterdeck.protocol.shapes import SessionChanges
from quarterdeck.protocol.usage import UsageBy, Used
from quarterdeck.wire.commands import ContextUsage, McpServers

LISTED = 20


async def context(job: Job, rest: str) -> None:
    """How full the context window is."""
    session = await job.session(rest)
    shape = await (await job.hub()).session(session).read()
    use = shape.holds.context
    window = use.window
    text = f"🧠 {use.tokens:,} tokens"
    if window:
        text += f" of {window:,} ({100 * use.tokens / window:.0f} %)"
    lines = [text]
    try:
        answer = await control(job, session, {"subtype": "get_context_usage"})
        found = msgspec.json.decode(answer, type=ContextUsage)
        lines += [
            f"• {safe_line(each.name, 60)}: {each.tokens:,.0f}"
            for each in found.categories[:LISTED]
            if each.tokens
        ]
    except (HubRefused, msgspec.DecodeError):
        pass  # an ended session, or a version that does not tell more
    job.say("\n".join(lines), session=session)


async def mcp(job: Job, rest: str) -> None:
    """The MCP servers of the session; connect one again, turn one on or off."""
    session = await job.session()
    word, _, name = rest.partition(" ")
    name = name.strip()
    match word:
        case "reconnect" if name:
            await control(job, session, {"subtype": "mcp_reconnect", "serverName": name})
            job.say(f"🔌 {safe_line(name, 80)}: connected again.", session=session)
            return
        case "on" | "off" if name:
            request: dict[str, object] = {
                "subtype": "mcp_toggle",
                "serverName": name,
                "enabled": word == "on",
            }
            await control(job, session, request)
            job.say(f"🔌 {safe_line(name, 80)} is {word}.", session=session)
            return
        case "":
            pass
        case _:
            raise UsageError("/mcp, /mcp reconnect NAME, /mcp on NAME, /mcp off NAME")
    servers = await _servers(job, session)
    if not servers:
        job.say("The session has no MCP servers.", session=session)
        return
    lines, rows = ["🔌 MCP servers:"], list[tuple[Press, ...]]()
    for server in servers[:LISTED]:
        why = f" ({safe_line(server.error, 100)})" if server.error else ""
        lines.append(f"• {safe_line(server.name, 60)}: {server.status or 'unknown'}{why}")
        short = safe_line(server.name, 20)
        off = server.status == "disabled"
        rows.append(
            (
                run_button(f"🔄 {short}", f"/mcp reconnect {server.name}"),
                run_button(
                    f"{'On' if off else 'Off'}: {short}",
                    f"/mcp {'on' if off else 'off'} {server.name}",
                ),
            )
        )
    job.say("\n".join(lines), tuple(rows), session=session)


async def _servers(job: Job, session: str) -> tuple[McpServer, ...]:
    """The MCP servers as they are now; as they were in the last turn if the CLI does not say."""
    shape = await (await job.hub()).session(session).read()
    try:
        answer = await control(job, session, {"subtype": "mcp_status"})
        found = msgspec.json.decode(answer, type=McpServers)
    except (HubRefused, msgspec.DecodeError):
        return shape.holds.mcp  # an ended session, or a person who may only look
    now = tuple(
        McpServer(name=each.name, status=each.status, error=each.error)
        for each in found.mcp_servers
    )
    return now or shape.holds.mcp


async def tasks(job: Job, rest: str) -> None:
    """Shells and subagents that run; stop one."""
    session = await job.session()
    word, _, task = rest.partition(" ")
    if word == "stop" and task:
        await control(job, session, {"subtype": "stop_task", "task_id": task.strip()})
        job.say("🛑 The task was asked to stop.", session=session)
        return
    shape = await (await job.hub()).session(session).read()
    holds = shape.holds
    lines, rows = [], list[tuple[Press, ...]]()
    if holds.todos:
        marks = {"completed": "☑", "in_progress": "▶"}
        lines += ["To do:"]
        lines += [
            f"{marks.get(each.status, '☐')} {safe_line(each.text, 100)}" for each in holds.todos
        ]
    if holds.tasks:
        lines.append("Tasks that run:")
    for number, each in enumerate(holds.tasks, 1):
        lines.append(f"{number}. {each.kind}: {safe_line(each.title, 100)}")
        rows.append((run_button(f"🛑 Stop {number}", f"/tasks stop {each.task}"),))
    job.say("\n".join(lines) or "Nothing runs in the background.", tuple(rows), session=session)


async def usage(job: Job, rest: str) -> None:
    """What was used: by day, model, project, machine or session."""
    try:
        by = UsageBy(rest.lower() or "day")
    except ValueError as error:
        raise UsageError(f"/usage {' | '.join(each.value for each in UsageBy)}") from error
    hub = await job.hub()
    report = await hub.usage(by)
    pieces: list[Part | str] = [bold(f"Usage by {by.value}")]
    rows = report.rows[-LISTED:]
    if by is not UsageBy.DAY:
        rows = tuple(sorted(report.rows, key=lambda row: -row.used.cost_usd)[:LISTED])
    for row in rows:
        pieces += ["\n", code(safe_line(row.key, 60)), f" {_usage_text(row.used)}"]
    pieces += ["\n", bold("total"), f" {_usage_text(report.total)}"]
    for limit in report.limits[:LISTED]:
        share = f", {100 * limit.used:.0f} % used" if limit.used is not None else ""
        until = ""
        if limit.resets_at is not None:
            until = f", resets {job.messenger.options.local(limit.resets_at / 1000):%a %H:%M}"
        name = safe_line(limit.limit or "limit", 40).replace("_", " ")
        pieces.append(f"\n⏳ {name}: {limit.status.replace('_', ' ')}{share}{until}")
    buttons: Rows = (tuple(run_button(each.value, f"/usage {each.value}") for each in UsageBy),)
    job.say(join(pieces), buttons)


def _usage_text(used: Used) -> str:
    rough = "~" if used.estimated_usd else ""
    return f"{rough}{dollars(used.cost_usd)} · {used.tokens:,} tokens · {used.turns} turns"


def dollars(usd: float) -> str:
    """An amount, nothing included."""
    return money(usd) if usd else "$0"


async def stats(job: Job, rest: str) -> None:
    """The session in numbers."""
    session = await job.session(rest)
    shape = await (await job.hub()).session(session).read()
    now = job.messenger.now_ms
    unset = "(the CLI decides)"
    place = shape.directory or shape.spec.directory or "?"
    detail = f" · {safe_line(shape.detail, 200)}" if shape.detail else ""
    lines = [
        f"{state_text(shape)}{detail}",
        f"{shape.turns} turns · {dollars(shape.cost_usd)} · {shape.tokens:,} tokens",
        f"created {duration(now - shape.created)} ago by {safe_line(shape.by, 60)}",
        f"model {safe_line(shape.model or unset, 60)} · mode {shape.mode or unset}",
        f"effort {shape.effort or unset} · sandbox {shape.sandbox.mode}",
        f"queued {shape.queued} · open questions {shape.asks} · CLI {shape.version or 'unknown'}",
        f"machine {safe_line(shape.machine or 'of the hub', 60)}",
    ]
    pieces: list[Part | str] = [bold(safe_line(shape.name, 60)), "\n", "\n".join(lines)]
    pieces += ["\n", code(safe_line(place, 300)), "\n", code(session)]
    job.say(join(pieces), session=session)


async def budget(job: Job, rest: str) -> None:
    """Show or change what the session may spend: `/budget 5`, `/budget lift`."""
    session = await job.session()
    hub = await job.hub()
    shape = await hub.session(session).read()
    if rest:
        old = shape.spec.budget or Budget()
        changed = Budget() if rest == "lift" else replace(old, session_usd=_amount(rest))
        shape = await hub.session(session).change(SessionChanges(budget=changed))
    limits = shape.spec.budget or Budget()
    lines = [f"💰 Spent {dollars(shape.cost_usd)}, {shape.tokens:,} tokens."]
    for name in limits.__struct_fields__:
        value = getattr(limits, name)
        if value is not None:
            lines.append(f"• {name.replace('_', ' ')}: {value:g}")
    if len(lines) == 1:
        lines.append("The session has no budget. /budget 5 gives it 5 dollars.")
    lines += [
        f"🚨 reached: {each.limit:g} {each.unit} for the {each.scope}" for each in shape.budgets
    ]
    rows: Rows = ()
    if shape.budgets or limits != Budget():
        more = (limits.session_usd or shape.cost_usd or 1.0) * 2
        rows = (
            (
                run_button(f"Raise to ${more:.2f}", f"/budget {more:.2f}"),
                run_button("Lift", "/budget lift"),
            ),
        )
    job.say("\n".join(lines), rows, session=session)


def _amount(text: str) -> float:
    try:
        value = float(text.lstrip("$").replace(",", "."))
    except ValueError as error:
        raise UsageError("an amount in dollars is wanted, as /budget 5") from error
    if not 0 < value < 1_000_000:
        raise UsageError("an amount above 0 is wanted")
    return value


async def ping(job: Job, rest: str) -> None:  # noqa: ARG001 - a handler
    """Whether the bot and the hub answer."""
    hub = await job.hub()
    me = await hub.whoami()
    job.say(f"🏓 pong. You are {safe_line(me.name, 60)}, {me.role.value}.")


async def health(job: Job, rest: str) -> None:  # noqa: ARG001 - a handler
    """The state of the hub, its machines and the bot."""
    hub = await job.hub()
    found = await hub.health()
    machines = await hub.machines()
    now = job.messenger.clock.now()
    services = job.services
    lines = [f"Hub {found.version}: {'ok' if found.ok else 'not ok'}"]
    for machine in machines:
        state = "connected" if machine.connected else "not connected"
        memory = (
            f", {machine.memory_available // 2**20} MB free" if machine.memory_available else ""
        )
        agents = f"{machine.runs} agent{'' if machine.runs == 1 else 's'}"
        lines.append(f"• {safe_line(machine.name, 40)}: {state}, {agents}{memory}")
    open_ = len(await hub.asks())
    lines.append(f"Open questions: {open_}")
    lines.append(f"Bot @{services.me.username}: {job.messenger.outbox.waiting} messages wait")
    if services.health.poll_failure:
        lines.append(f"⚠️ {safe_line(services.health.poll_failure, 200)}")
    if services.health.failures:
        times = "once" if services.health.failures == 1 else f"{services.health.failures} times"
        at = job.messenger.options.local(services.health.failed_at)
        part = safe_line(services.health.failed_part, 100)
        lines.append(f"⚠️ Failed and started again {times}, last at {at:%H:%M}: {part}")
    if services.health.began:
        lines.append(f"Up for {duration(int((now - services.health.began) * 1000))}")
    job.say("\n".join(lines))
