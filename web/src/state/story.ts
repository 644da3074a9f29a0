// What the events of one session come to, as a person reads them: a pure fold.
//
// `tell` takes events in their order and gives another story; what was given before is never
// changed. Entries keep their identity when nothing about them changes, so that a row is drawn again
// only if it must be.
import type { AskOpened, EventOf, HubEvent, Stored } from "../api/types";
import { blocksOf, imagesOf, isObject, number, type Obj, plainText, text } from "./lines";

interface Base {
  key: string;
  at: number;
}
export interface PromptEntry extends Base {
  kind: "prompt";
  id: string;
  text: string;
  images: string[];
  by: string;
  stage: "queued" | "sent" | "taken" | "cancelled";
}
export interface TextEntry extends Base {
  kind: "text";
  text: string;
  uuid: string;
}
export interface ThinkingEntry extends Base {
  kind: "thinking";
  text: string;
}
export interface ToolEntry extends Base {
  kind: "tool";
  id: string;
  name: string;
  input: Obj;
  ended?: number;
  failed?: boolean;
  result?: unknown;
  structured?: unknown;
  progress?: string;
  verdict?: { verdict: string; by: string; reasons: string[] };
}
export interface NoteEntry extends Base {
  kind: "note";
  tone: "plain" | "good" | "warn" | "bad";
  text: string;
  until?: number;
}
export interface MarkEntry extends Base {
  kind: "mark";
  text: string;
}
export interface TurnEntry extends Base {
  kind: "turn";
  failed: boolean;
  outcome: string;
  cost: number;
  duration: number | undefined;
  tokens: number;
  text: string;
}
export interface AskEntry extends Base {
  kind: "ask";
  opened: AskOpened;
  settled?: { how: string; by?: string; allowed?: boolean };
}
export type Entry =
  | PromptEntry
  | TextEntry
  | ThinkingEntry
  | ToolEntry
  | NoteEntry
  | MarkEntry
  | TurnEntry
  | AskEntry;

export interface Todo {
  content: string;
  status: string;
}
export interface Task {
  id: string;
  title: string;
  status: string;
  detail: string;
  at: number;
}

export interface Story {
  /** The numbers of the first and of the last event that it is made of. */
  first: number;
  last: number;
  entries: readonly Entry[];
  /** What subagents do, by the tool call that they work for. */
  threads: ReadonlyMap<string, readonly Entry[]>;
  tasks: ReadonlyMap<string, Task>;
  todos: readonly Todo[];
  commands: readonly { name: string; description: string }[];
  models: readonly string[];
  model: string;
  mode: string;
  tools: readonly string[];
  limit: EventOf<"rate_limited"> | undefined;
  alarm: EventOf<"alarm"> | undefined;
}

export const BLANK: Story = {
  first: 0,
  last: 0,
  entries: [],
  threads: new Map(),
  tasks: new Map(),
  todos: [],
  commands: [],
  models: [],
  model: "",
  mode: "",
  tools: [],
  limit: undefined,
  alarm: undefined,
};

/** The story with these events, which follow those that it has. */
export function tell(story: Story, events: readonly Stored[]): Story {
  const fresh = events.filter((stored) => stored.seq > story.last);
  if (!fresh.length) return story;
  const teller = new Teller(story);
  for (const stored of fresh) teller.take(stored);
  return teller.done();
}

type Draft = { -readonly [K in keyof Story]: Story[K] } & {
  entries: Entry[];
  threads: Map<string, readonly Entry[]>;
  tasks: Map<string, Task>;
};

/** Works on copies of its own, and gives them away when it is done. */
class Teller {
  private readonly to: Draft;
  private readonly open = new Map<string, Entry[]>();
  private seq = 0;
  private at = 0;
  private part = 0;

  constructor(from: Story) {
    this.to = {
      ...from,
      entries: [...from.entries],
      threads: new Map(from.threads),
      tasks: new Map(from.tasks),
    };
  }

  done(): Story {
    for (const [parent, entries] of this.open) this.to.threads.set(parent, entries);
    return this.to;
  }

  take(stored: Stored): void {
    this.seq = stored.seq;
    this.at = stored.at;
    this.part = 0;
    this.event(stored.event);
    if (!this.to.first) this.to.first = stored.seq;
    this.to.last = stored.seq;
  }

  private event(event: HubEvent): void {
    switch (event.kind) {
      case "said":
      case "said.recalled":
        if (isObject(event.line)) this.line(event.line);
        return;
      case "said.broken":
        return this.note("bad", `A line of the CLI could not be read: ${event.error}`);
      case "prompt.queued":
        return this.add({
          kind: "prompt",
          ...this.base(`prompt:${event.prompt}`),
          id: event.prompt,
          text: plainText(event.content),
          images: imagesOf(event.content),
          by: event.by,
          stage: "queued",
        });
      case "prompt.changed":
        return this.prompt(event.prompt, {
          text: plainText(event.content),
          images: imagesOf(event.content),
        });
      case "prompt.sent":
        return this.prompt(event.prompt, { stage: "sent" });
      case "prompt.taken":
        return this.prompt(event.prompt, { stage: "taken" });
      case "prompt.cancelled":
        return this.prompt(event.prompt, { stage: "cancelled" });
      case "turn.ended":
        return this.turn(event);
      case "ask.opened":
        return this.add({ kind: "ask", ...this.base(`ask:${event.ask}`), opened: event });
      case "ask.answered":
        return this.settle(event.ask, { how: "answered", by: event.by, allowed: event.allowed });
      case "ask.withdrawn":
        return this.settle(event.ask, { how: event.reason });
      case "decided":
        return this.decided(event);
      case "rate_limited":
        this.to.limit = event;
        if (event.status === "rejected") {
          const until = event.resets_at ?? undefined;
          this.note("warn", "The account's rate limit is reached.", until);
        }
        return;
      case "budget.reached":
        return this.note(
          "warn",
          `The budget of the ${event.scope} is spent: ${event.spent} of ${event.limit} ${event.unit}.`,
        );
      case "alarm":
        this.to.alarm = event;
        return this.note("warn", event.action ? `${event.text} ${event.action}` : event.text);
      case "alarm.ended":
        this.to.alarm = undefined;
        return;
      case "run.started":
        return this.mark(event.version ? `Claude Code ${event.version} started` : "started");
      case "run.ended":
        this.close(event.run);
        this.to.alarm = undefined;
        return this.note(event.clean ? "plain" : "bad", `The agent has ended. ${event.reason}`);
      case "run.link_lost":
        return this.note("warn", `${event.reason} The agent may well work on.`);
      case "run.link_found":
        return this.note(
          event.lost ? "bad" : "good",
          event.lost ? "It is there again; something that it said is lost." : "It is there again.",
        );
      case "run.state":
        if (event.state === "retrying") {
          this.note("warn", `The model's API is asked again. ${event.detail ?? ""}`.trim());
        }
        return;
      case "session.renamed":
        return this.mark(`renamed to «${event.name}» by ${event.by}`);
      case "noted":
        return this.note(
          event.level === "error" ? "bad" : event.level === "warning" ? "warn" : "plain",
          event.text,
        );
      default:
        return;
    }
  }

  // --- the CLI's lines -----------------------------------------------------------------------

  private line(line: Obj): void {
    switch (line.type) {
      case "assistant":
        return this.assistant(line);
      case "user":
        return this.user(line);
      case "system":
        return this.system(line);
      case "control_response":
        return this.greeted(line);
      case "tool_progress": {
        const seconds = number(line.elapsed_time_seconds);
        if (seconds !== undefined) {
          this.tool(text(line.tool_use_id), { progress: `${Math.round(seconds)} s` });
        }
        return;
      }
      default:
        return;
    }
  }

  private assistant(line: Obj): void {
    const message = isObject(line.message) ? line.message : {};
    const parent = text(line.parent_tool_use_id);
    const model = text(message.model);
    if (model && model !== "<synthetic>" && !parent) this.to.model = model;
    for (const block of blocksOf(message.content)) {
      if (block.type === "text" && block.text.trim()) {
        this.add({ kind: "text", ...this.base(), text: block.text, uuid: text(line.uuid) }, parent);
      } else if (block.type === "thinking" && block.thinking.trim()) {
        this.add({ kind: "thinking", ...this.base(), text: block.thinking }, parent);
      } else if ("id" in block && block.id) {
        this.add(
          {
            kind: "tool",
            ...this.base(`tool:${block.id}`),
            id: block.id,
            name: block.name,
            input: block.input,
          },
          parent,
        );
        if (block.name === "TodoWrite" && !parent) this.to.todos = todosOf(block.input.todos);
      }
    }
  }

  private user(line: Obj): void {
    const message = isObject(line.message) ? line.message : {};
    for (const block of blocksOf(message.content)) {
      if (block.type === "tool_result") {
        this.tool(block.tool_use_id, {
          ended: this.at,
          failed: block.is_error ?? false,
          result: block.content,
          structured: line.tool_use_result,
        });
      }
    }
  }

  private system(line: Obj): void {
    switch (line.subtype) {
      case "init":
        this.to.mode = text(line.permissionMode);
        this.to.model = text(line.model) || this.to.model;
        this.to.tools = Array.isArray(line.tools) ? line.tools.map(text).filter(Boolean) : [];
        if (Array.isArray(line.slash_commands) && !this.to.commands.length) {
          this.to.commands = line.slash_commands
            .map(text)
            .filter(Boolean)
            .map((name) => ({ name, description: "" }));
        }
        return;
      case "status":
        if (text(line.permissionMode)) this.to.mode = text(line.permissionMode);
        return;
      case "compact_boundary":
        return this.mark("the conversation was compacted here");
      case "task_started":
      case "task_progress":
      case "task_updated":
      case "task_notification":
        return this.task(line);
      default:
        return;
    }
  }

  /** The answer to `initialize` tells which commands and models there are. */
  private greeted(line: Obj): void {
    const envelope = isObject(line.response) ? line.response : {};
    const answer = isObject(envelope.response) ? envelope.response : {};
    if (Array.isArray(answer.commands)) {
      this.to.commands = answer.commands
        .filter(isObject)
        .map((one) => ({ name: text(one.name), description: text(one.description) }))
        .filter((one) => one.name);
    }
    if (Array.isArray(answer.models)) {
      this.to.models = answer.models
        .filter(isObject)
        .map((one) => text(one.value))
        .filter(Boolean);
    }
  }

  private task(line: Obj): void {
    const id = text(line.task_id);
    if (!id) return;
    const before = this.to.tasks.get(id);
    const patch = isObject(line.patch) ? line.patch : line;
    this.to.tasks.set(id, {
      id,
      title: text(line.description) || before?.title || id,
      status: text(patch.status) || before?.status || "running",
      detail: text(line.summary) || text(line.last_tool_name) || before?.detail || "",
      at: this.at,
    });
  }

  // --- entries -------------------------------------------------------------------------------

  private base(key?: string): Base {
    return { key: key ?? `${this.seq}.${this.part++}`, at: this.at };
  }

  private add(entry: Entry, parent = ""): void {
    if (!parent) {
      this.to.entries.push(entry);
      return;
    }
    this.thread(parent).push(entry);
  }

  private thread(parent: string): Entry[] {
    let thread = this.open.get(parent);
    if (!thread) {
      thread = [...(this.to.threads.get(parent) ?? [])];
      this.open.set(parent, thread);
    }
    return thread;
  }

  private note(tone: NoteEntry["tone"], said: string, until?: number): void {
    const entry: NoteEntry = { kind: "note", ...this.base(), tone, text: said };
    this.add(until === undefined ? entry : { ...entry, until });
  }

  private mark(said: string): void {
    this.add({ kind: "mark", ...this.base(), text: said });
  }

  private turn(event: EventOf<"turn.ended">): void {
    const tokens = (event.models ?? []).reduce(
      (sum, one) => sum + (one.input ?? 0) + (one.output ?? 0),
      0,
    );
    this.add({
      kind: "turn",
      ...this.base(),
      failed: event.failed,
      outcome: event.outcome,
      cost: event.cost_usd,
      duration: event.duration_ms ?? undefined,
      tokens,
      text: event.failed ? (event.text ?? "") : "",
    });
  }

  private prompt(id: string, change: Partial<PromptEntry>): void {
    this.replace(this.to.entries, `prompt:${id}`, change);
  }

  private settle(ask: string, settled: NonNullable<AskEntry["settled"]>): void {
    this.replace(this.to.entries, `ask:${ask}`, { settled });
  }

  private close(run: string): void {
    this.to.entries.forEach((entry, index) => {
      if (entry.kind === "ask" && !entry.settled && entry.opened.run === run) {
        this.to.entries[index] = { ...entry, settled: { how: "the agent has ended" } };
      }
    });
  }

  private decided(event: EventOf<"decided">): void {
    if (!event.tool_use_id) return;
    const reasons = [...(event.reasons ?? [])];
    this.tool(event.tool_use_id, { verdict: { verdict: event.verdict, by: event.by, reasons } });
  }

  private tool(id: string, change: Partial<ToolEntry>): void {
    const key = `tool:${id}`;
    if (this.replace(this.to.entries, key, change)) return;
    for (const parent of new Set([...this.to.threads.keys(), ...this.open.keys()])) {
      const entries = this.open.get(parent) ?? this.to.threads.get(parent) ?? [];
      if (entries.some((entry) => entry.key === key)) {
        this.replace(this.thread(parent), key, change);
        return;
      }
    }
  }

  /** Change an entry; looked for from the end, since what changes is nearly always new. */
  private replace(entries: Entry[], key: string, change: object): boolean {
    const index = entries.findLastIndex((entry) => entry.key === key);
    const entry = entries[index];
    if (!entry) return false;
    entries[index] = { ...entry, ...change } as Entry;
    return true;
  }
}

function todosOf(raw: unknown): Todo[] {
  if (!Array.isArray(raw)) return [];
  return raw
    .filter(isObject)
    .map((todo) => ({ content: text(todo.content), status: text(todo.status) }))
    .filter((todo) => todo.content);
}
