// Names for the parts of the hub's schema that the deck speaks of. The schema itself is generated
// (`make types`), and a test fails when it is not what the hub says.
import type { components } from "./schema";

type Schemas = components["schemas"];

export type Session = Schemas["SessionShape"];
export type SessionState = Session["state"];
export type Spec = Schemas["SessionSpec"];
export type Stored = Schemas["EventShape"];
export type HubEvent = Stored["event"];
export type EventOf<K extends HubEvent["kind"]> = Extract<HubEvent, { kind: K }>;
export type Ask = Schemas["AskView"];
export type AskOpened = Schemas["AskOpened"];
export type Answer = Schemas["AnswerAskBody"]["answer"];
export type Machine = Schemas["MachineView"];
export type Me = Schemas["Me"];
export type Problem = Schemas["Problem"];
export type Outcome = Schemas["Outcome"];
export type Prompt = Schemas["PromptView"];
export type NewSession = Schemas["CreateSessionBody"];

/** Text of a message that is still being made. */
export interface Delta {
  session: string;
  message: string;
  text: string;
  block?: number;
  thinking?: boolean;
}

/** The frames of the stream, as docs/reference/stream.md has them. */
export type ServerFrame =
  | {
      t: "hello";
      protocol: number;
      epoch: string;
      name: string;
      role: string;
      beat_seconds: number;
    }
  | {
      t: "following";
      id: string;
      all: boolean;
      sessions: Record<string, { status: "ok" | "gap"; head?: number; reason?: string }>;
    }
  | { t: "events"; epoch: string; events: Stored[] }
  | { t: "live"; whole?: boolean; deltas: Delta[] }
  | { t: "done"; id: string; outcome: Outcome }
  | { t: "failed"; id: string; problem: Problem }
  | { t: "beat" }
  | { t: "error"; problem?: Problem };
