// The entries of a story: what a person reads, one after the other.

import type { AskOpened, HubEvent } from "../api/types";
import type { JsonObject } from "./contentBlocks";

export interface Base {
  key: string;
  at: number;
  /** The number of the event that it began with; 0 for text that is being generated. */
  seq: number;
}
export interface PromptEntry extends Base {
  kind: "prompt";
  id: string;
  text: string;
  images: string[];
  /** The names of attached documents, if there are any. */
  files?: string[];
  by: string;
  stage: "queued" | "sent" | "taken" | "cancelled";
}
export interface TextEntry extends Base {
  kind: "text";
  text: string;
  uuid: string;
  /** The slash command whose output it is, as far as that is known. */
  command?: string;
  /** The session, while it is still being generated. */
  live?: string;
}
export interface ThinkingEntry extends Base {
  kind: "thinking";
  text: string;
  live?: string;
}
export interface ToolEntry extends Base {
  kind: "tool";
  id: string;
  name: string;
  input: JsonObject;
  ended?: number;
  failed?: boolean;
  /** Its run ended before it had a result: whether it took effect is unknown. */
  interrupted?: boolean;
  result?: unknown;
  structured?: unknown;
  /** The number of the event with its result. */
  resultSeq?: number;
  progress?: string;
  /** The background task that the call has become. */
  task?: Task;
  verdict?: { verdict: string; by: string; reasons: string[] };
  /** What the sandbox seems to have refused to it. */
  refusals?: readonly Refusal[];
}
/** A hint that the sandbox refused something, and a rule that would allow it in the next run. */
export interface Refusal {
  access: string;
  target: string;
  rule: string;
}
/** Codes of notes that come from lines of the CLI. */
export type CliCode = "cli.text" | "cli.notice" | "turn.cause";

export interface NoteEntry extends Base {
  kind: "note";
  /** The kind of its event, or what it is among the lines of the CLI. */
  code: HubEvent["kind"] | CliCode;
  tone: "plain" | "good" | "warn" | "bad";
  text: string;
  /** When it ends, and what happens then. */
  until?: number;
  next?: string;
}
export interface MarkEntry extends Base {
  kind: "mark";
  text: string;
  /** The CLI's ids of the conversation that ends here, and of the one that begins. */
  conversation?: { before: string; after: string };
}
export interface TurnEntry extends Base {
  kind: "turn";
  failed: boolean;
  outcome: string;
  cost: number;
  duration: number | undefined;
  /** How long it waited for answers of people, in ms. */
  waited: number;
  tokens: number;
  text: string;
}
/**
 * How a question was settled; `waited` is in ms, `answer` is what was submitted. One whose run has
 * ended (`run_ended`) can be answered until another run starts (`never_answered`).
 */
export interface Settled {
  how: "answered" | "withdrawn" | "run_ended" | "never_answered";
  /** Why it was withdrawn, in words. */
  why?: string;
  by?: string;
  allowed?: boolean;
  answer?: unknown;
  waited?: number;
}
/** Whether the end of a run leaves it unanswered: a stopped agent withdraws its last question first. */
export function isUnanswered({ opened, settled }: AskEntry, last: boolean): boolean {
  return !settled || (last && settled.by === undefined && opened.ask_kind !== "tool");
}

export interface AskEntry extends Base {
  kind: "ask";
  opened: AskOpened;
  settled?: Settled;
}
/** An event that could not be folded. */
export interface FailedEntry extends Base {
  kind: "failed";
  raw: unknown;
  error: string;
}
export type Entry =
  | PromptEntry
  | TextEntry
  | ThinkingEntry
  | ToolEntry
  | NoteEntry
  | MarkEntry
  | TurnEntry
  | AskEntry
  | FailedEntry;

/** The turn that runs: when it began, what it has used so far, how long it waited for people. */
export interface OpenTurn {
  began: number;
  tokens: number;
  calls: number;
  waited: number;
}

export interface Task {
  id: string;
  title: string;
  status: string;
  detail: string;
  at: number;
  began: number;
  /** How many tool calls it has made, and how many tokens it has used, if the CLI reports it. */
  steps?: number;
  tokens?: number;
}
