// Names for the parts of the hub's schema that the web app uses. The schema itself is generated
// (`make types`), and a test fails when it differs from the hub's.
import type { components } from "./schema";

type Schemas = components["schemas"];

export type Session = Schemas["SessionShape"];
/** What the hub tells as a code with parameters. */
export type Coded = Schemas["CodedText"];
export type SessionState = Session["state"];
export type Spec = Schemas["SessionSpec"];
export type Stored = Schemas["EventShape"];
export type HubEvent = Stored["event"];
export type EventOf<K extends HubEvent["kind"]> = Extract<HubEvent, { kind: K }>;
export type Ask = Schemas["AskView"];
export type AskOpened = Schemas["AskOpened"];
export type Answer = Schemas["AnswerAsk"]["answer"];
export type Machine = Schemas["MachineView"];

/** The machines, and what is wrong between several hubs. */
export type MachineList = Schemas["MachineList"];
export type Me = Schemas["Me"];
export type Problem = Schemas["Problem"];
export type Outcome = Schemas["Outcome"];

export type Command = Schemas["AnyCommand"];

/** The frames of the stream, as docs/reference/stream.md describes them. */
export type ClientFrame = Schemas["ClientFrame"];
export type ServerFrame = Schemas["ServerFrame"];
export type Hello = Extract<ServerFrame, { t: "hello" }>;

/** Text of a message that is still being generated. */
export type Delta = Extract<ServerFrame, { t: "live" }>["deltas"][number];

/** Control requests of the CLI. The hub forwards them as they are, so its schema has no type for them. */
export type ControlRequest =
  | { subtype: "apply_flag_settings"; settings: { effortLevel: string | null } }
  | { subtype: "file_suggestions"; query: string }
  | { subtype: "get_context_usage" }
  | { subtype: "mcp_authenticate"; serverName: string }
  | { subtype: "mcp_clear_auth"; serverName: string }
  | { subtype: "mcp_oauth_callback_url"; serverName: string; callbackUrl: string }
  | { subtype: "mcp_reconnect"; serverName: string }
  | { subtype: "mcp_set_servers"; servers: Record<string, unknown> }
  | { subtype: "mcp_status" }
  | { subtype: "mcp_toggle"; serverName: string; enabled: boolean }
  | { subtype: "set_max_thinking_tokens"; max_thinking_tokens: number | null }
  | { subtype: "set_model"; model: string }
  | { subtype: "set_permission_mode"; mode: string }
  | { subtype: "stop_task"; task_id: string };
