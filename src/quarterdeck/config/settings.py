"""The settings: one struct for each section, with defaults.

The page `configuration` of the reference describes each; a test keeps both alike. A setting that is
read only when the hub or its runner starts is marked `AT_START`; all others are applied while the
hub runs. Settings marked `SECRET` are never shown in full.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.protocol.projects import Amount, Count, PlacePath, Project
from quarterdeck.protocol.sandbox import PROTECT, SandboxMode, SandboxSettings
from quarterdeck.protocol.schedules import InboundHook, Schedule

AT_START = {"at_start": True}
SECRET = {"secret": True}

Text = Annotated[str, Meta(min_length=1)]
Seconds = Annotated[float, Meta(gt=0, extra={"endless": True})]
"""Seconds. `inf` means no limit."""


class Section(Value, forbid_unknown_fields=True):
    """The base of all sections."""


class ServerSettings(Section):
    """The address of the hub, and the names by which it may be reached."""

    host: Annotated[str, Meta(min_length=1, extra=AT_START)] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535, extra=AT_START)] = 8765
    certificate: Annotated[PlacePath | None, Meta(extra=AT_START)] = None
    key: Annotated[PlacePath | None, Meta(extra=AT_START)] = None
    tls: Annotated[Literal["auto"] | None, Meta(extra=AT_START)] = None
    hosts: tuple[Text, ...] = ()
    origins: tuple[Text, ...] = ()
    proxies: tuple[Text, ...] = ()
    insecure: Annotated[bool, Meta(extra=AT_START)] = False

    def __post_init__(self) -> None:
        """Refuse half a certificate, and two."""
        if self.key is not None and self.certificate is None:
            raise UsageError("key: a key needs a certificate")
        if self.tls is not None and self.certificate is not None:
            raise UsageError("tls: auto makes a certificate itself; leave out `certificate`")


class LogSettings(Section):
    """The log of the hub."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["text", "json"] = "text"
    file: PlacePath | None = None


class BudgetSettings(Section):
    """Budgets: for a run, for a session, and for all sessions in a day."""

    run_usd: Amount | None = None
    run_tokens: Count | None = None
    session_usd: Amount | None = None
    session_tokens: Count | None = None
    day_usd: Amount | None = None
    day_tokens: Count | None = None


class WatchdogSettings(Section):
    """How many seconds of silence are borne before an alarm, and whether something is then done."""

    after_tool: Seconds = 600.0
    result: Seconds = 900.0
    answer: Seconds = 60.0
    exit: Seconds = 60.0
    recover: bool = True


class JournalSettings(Section):
    """Where the journal is. Without an address: in a file of the data folder."""

    url: Annotated[
        Annotated[str, Meta(pattern="^postgres(ql)?://")] | None, Meta(extra={**AT_START, **SECRET})
    ] = None
    password_file: Annotated[PlacePath | None, Meta(extra=AT_START)] = None
    hub_address: Annotated[
        Annotated[str, Meta(pattern="^https?://")] | None, Meta(extra=AT_START)
    ] = None
    hub_ca_file: Annotated[PlacePath | None, Meta(extra=AT_START)] = None
    machine: Annotated[Text | None, Meta(extra=AT_START)] = None

    def __post_init__(self) -> None:
        """Refuse what has a meaning for several hubs only."""
        if self.password_file is not None and self.url is None:
            raise UsageError("password_file: a password needs a url")
        several = (self.hub_address, self.hub_ca_file, self.machine)
        if self.url is None and any(each is not None for each in several):
            raise UsageError("hub_address, hub_ca_file and machine need a url: see its page")


class RetentionSettings(Section):
    """How much history is kept. Without a limit: all of it."""

    days: Amount | None = None
    megabytes: Count | None = None
    archived_only: bool = False


class PolicySettings(Section):
    """Who decides about tool calls before a person is asked."""

    file: PlacePath | None = None


class WebhookSettings(Section):
    """A receiver of notifications."""

    url: Annotated[str, Meta(pattern="^https?://", extra=SECRET)]
    name: Text | None = None
    events: tuple[
        Literal["ask.opened", "turn.ended", "budget.reached", "agent.died", "alarm.raised"], ...
    ] = ()
    projects: tuple[Text, ...] = ()
    secret_file: PlacePath | None = None
    timeout: Annotated[float, Meta(gt=0, le=60)] = 10.0
    tries: Annotated[int, Meta(ge=1, le=100)] = 15
    give_up_hours: Annotated[float, Meta(gt=0, le=168)] = 24.0


class TelemetrySettings(Section):
    """Traces for OpenTelemetry."""

    endpoint: Annotated[str | None, Meta(extra=AT_START)] = None
    headers_file: Annotated[PlacePath | None, Meta(extra=AT_START)] = None
    service_name: Annotated[str, Meta(min_length=1, extra=AT_START)] = "quarterdeck"


class RunnerSettings(Section):
    """Limits of the runner on this machine."""

    max_agents: Annotated[int, Meta(ge=1, extra=AT_START)] = 32
    memory_floor_mb: Annotated[int, Meta(ge=0, extra=AT_START)] = 512


class RelaySettings(Section):
    """The relay for frontends that speak the CLI's own lines."""

    enabled: bool = False
    port: Annotated[Annotated[int, Meta(ge=1, le=65535)] | None, Meta(extra=AT_START)] = None
    allow_origins: tuple[Text, ...] = ()
    role: Literal["viewer", "operator"] = "viewer"


class AgentsSettings(Section):
    """How much agents may do to the agents that they start."""

    depth: Annotated[int, Meta(ge=1, le=8)] = 2
    children: Annotated[int, Meta(ge=1, le=100)] = 8
    spawns_per_hour: Annotated[int, Meta(ge=1, le=1000)] = 20
    messages_per_hour: Annotated[int, Meta(ge=1, le=10_000)] = 60
    family_messages_per_hour: Annotated[int, Meta(ge=1, le=100_000)] = 200


class ProgramSettings(Section):
    """Programs that run their agent through the hub."""

    ask_seconds: Annotated[float, Meta(ge=0, le=31_536_000)] = 3600.0


TimeOfDay = Annotated[str, Meta(pattern="^([01][0-9]|2[0-3]):[0-5][0-9]$")]
TimesOfDay = Annotated[
    str, Meta(pattern="^([01][0-9]|2[0-3]):[0-5][0-9]-([01][0-9]|2[0-3]):[0-5][0-9]$")
]


class TelegramSettings(Section):
    """The Telegram bot. Without a token there is none."""

    token_file: Annotated[PlacePath | None, Meta(extra=AT_START)] = None
    users: tuple[int, ...] = ()
    api: Annotated[Annotated[str, Meta(pattern="^https?://")] | None, Meta(extra=AT_START)] = None
    webhook_url: Annotated[
        Annotated[str, Meta(pattern="^https?://")] | None, Meta(extra=AT_START)
    ] = None
    webhook_host: Annotated[str, Meta(min_length=1, extra=AT_START)] = "127.0.0.1"
    webhook_port: Annotated[int, Meta(ge=1, le=65535, extra=AT_START)] = 8081
    project: Text | None = None
    directory: PlacePath | None = None
    model: Text | None = None
    mode: Literal["default", "acceptEdits", "plan", "auto", "dontAsk"] | None = None
    effort: Text | None = None
    verbose: Literal["quiet", "normal", "verbose"] | None = None
    drafts: bool | None = None
    rich: bool | None = None
    trigger: Literal["all", "mentions"] | None = None
    approve: tuple[Text, ...] = ()
    cooldown: bool | None = None
    cooldown_seconds: Amount = 30.0
    sends: tuple[Literal["commands", "diffs", "answers", "plans"], ...] | None = None
    quiet_hours: TimesOfDay | None = None
    daily_summary: TimeOfDay | None = None
    timezone: Text | None = None
    transcription_url: Annotated[str, Meta(pattern="^https?://")] | None = None
    transcription_key_file: PlacePath | None = None
    transcription_model: Text = "whisper-1"

    def __post_init__(self) -> None:
        """Refuse a bot that nobody may talk to."""
        if self.token_file is not None and not self.users:
            raise UsageError("users: name the Telegram users who may talk to the bot")


class SandboxDefaults(SandboxSettings):
    """The sandbox of sessions that say nothing themselves, nor does their project."""

    mode: SandboxMode = PROTECT


class RootSettings(Section):
    """Where people may look for a folder to work in."""

    directories: tuple[Text, ...] = ()


class Settings(Section):
    """All of it."""

    server: ServerSettings = ServerSettings()
    log: LogSettings = LogSettings()
    budget: BudgetSettings = BudgetSettings()
    watchdog: WatchdogSettings = WatchdogSettings()
    journal: JournalSettings = JournalSettings()
    retention: RetentionSettings = RetentionSettings()
    policy: PolicySettings = PolicySettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    runner: RunnerSettings = RunnerSettings()
    roots: RootSettings = RootSettings()
    sandbox: SandboxDefaults = SandboxDefaults()
    relay: RelaySettings = RelaySettings()
    agents: AgentsSettings = AgentsSettings()
    programs: ProgramSettings = ProgramSettings()
    telegram: TelegramSettings = TelegramSettings()
    webhooks: tuple[WebhookSettings, ...] = ()
    schedules: tuple[Schedule, ...] = ()
    inbound: tuple[InboundHook, ...] = ()
    projects: dict[str, Project] = field(default_factory=dict)
