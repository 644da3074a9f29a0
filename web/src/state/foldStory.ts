// One pass over events: how each of them changes a story. `story.ts` defines what a story is.
import type { EventOf, HubEvent, Stored } from "../api/types";
import { compactionOf, retryOf, taskOf } from "./cliLines";
import {
  blocksOf,
  imagesOf,
  isObject,
  type JsonObject,
  number,
  plainText,
  text,
} from "./contentBlocks";
import {
  type AskEntry,
  type Base,
  type Entry,
  isUnanswered,
  type NoteEntry,
  type PromptEntry,
  RUN_ENDED,
  type Settled,
  type Task,
  type ToolEntry,
} from "./entries";
import type { Story } from "./story";

type Draft = { -readonly [K in keyof Story]: Story[K] } & {
  entries: Entry[];
  threads: Map<string, readonly Entry[]>;
  blocks: Map<string, number>;
  tasks: Map<string, Task>;
};

/** The run of messages that were imported. */
const IMPORTED = "import";

/** Works on its own copies, and hands them over when it is done. */
export class StoryFold {
  private readonly to: Draft;
  private readonly open = new Map<string, Entry[]>();
  private seq = 0;
  private code: HubEvent["kind"] = "noted";
  private at = 0;
  private part = 0;

  constructor(from: Story) {
    this.to = {
      ...from,
      entries: [...from.entries],
      threads: new Map(from.threads),
      blocks: new Map(from.blocks),
      tasks: new Map(from.tasks),
    };
  }

  done(): Story {
    for (const [parent, entries] of this.open) this.to.threads.set(parent, entries);
    return this.to;
  }

  take(stored: Stored): void {
    this.seq = stored.seq;
    this.code = stored.event.kind;
    this.at = stored.at;
    this.part = 0;
    try {
      this.event(stored.event);
    } catch (error) {
      // The events after it are folded all the same.
      this.add({ kind: "failed", ...this.base(), raw: stored, error: String(error) });
    }
    if (!this.to.first) this.to.first = stored.seq;
    this.to.last = stored.seq;
  }

  private event(event: HubEvent): void {
    switch (event.kind) {
      case "said.recalled":
        if (event.run === IMPORTED) this.imported(event.line);
        if (isObject(event.line)) this.line(event.line);
        return;
      case "said":
        if (isObject(event.line)) this.line(event.line);
        return;
      case "said.broken":
        return this.note("bad", `Unreadable line from the CLI: ${event.error}`);
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
        return this.sent(event.prompt);
      case "prompt.taken":
        return this.prompt(event.prompt, { stage: "taken" });
      case "prompt.cancelled":
        return this.prompt(event.prompt, { stage: "cancelled" });
      case "turn.ended":
        return this.turn(event);
      case "ask.opened":
        return this.asked(event);
      case "ask.answered":
        return this.settle(event.ask, {
          how: "answered",
          by: event.by,
          allowed: event.allowed,
          answer: event.answer,
        });
      case "ask.withdrawn":
        return this.settle(event.ask, { how: event.reason });
      case "decided":
        return this.decided(event);
      case "rate_limited":
        if (event.status === "rejected") {
          const until = event.resets_at ?? undefined;
          this.note("warn", "The account reached its rate limit.", until, "It resets");
        }
        return;
      case "budget.reached":
        return this.note(
          "bad",
          `Budget of the ${event.scope} reached: ${event.spent} of ${event.limit} ${event.unit}.`,
        );
      case "alarm":
        return this.note("bad", event.action ? `${event.text} ${event.action}` : event.text);
      case "alarm.ended":
        return this.note("good", "The agent responds again.");
      case "run.started":
        this.close((ask) => ask.settled?.how === RUN_ENDED, "never answered");
        return this.mark(event.version ? `Claude Code ${event.version} started` : "agent started");
      case "run.ended":
        this.close(
          (ask, last) => ask.opened.run === event.run && isUnanswered(ask, last),
          RUN_ENDED,
        );
        return this.note(event.clean ? "plain" : "warn", `The agent ended. ${event.reason}`);
      case "run.link_lost":
        return this.note("warn", `${event.reason} The agent may still be working.`);
      case "run.link_found":
        return this.note(
          event.lost ? "bad" : "good",
          event.lost ? "Connection restored; some output was lost." : "Connection restored.",
        );
      case "worktree.settled":
        return this.note("plain", event.text || `${event.branch}: ${event.action} by ${event.by}.`);
      case "session.renamed":
        return this.mark(`renamed to “${event.name}” by ${event.by}`);
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

  private line(line: JsonObject): void {
    switch (line.type) {
      case "assistant":
        return this.assistant(line);
      case "user":
        return this.user(line);
      case "system":
        return this.system(line);
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

  private assistant(line: JsonObject): void {
    const message = isObject(line.message) ? line.message : {};
    const parent = text(line.parent_tool_use_id);
    for (const block of blocksOf(message.content)) {
      const place = this.place(text(message.id), parent);
      if (block.type === "text" && block.text.trim()) {
        const uuid = text(line.uuid);
        this.add({ kind: "text", ...this.base(place), text: block.text, uuid }, parent);
      } else if (block.type === "thinking" && block.thinking.trim()) {
        const key = place && `${place}t`;
        this.add({ kind: "thinking", ...this.base(key), text: block.thinking }, parent);
      } else if ("id" in block && block.id && !this.isCard(block.id)) {
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
      }
    }
  }

  /** An imported prompt has no event: it is read from the CLI's echo. */
  private imported(line: unknown): void {
    if (!isObject(line) || line.type !== "user" || line.isSynthetic || line.parent_tool_use_id) {
      return;
    }
    const { content } = isObject(line.message) ? line.message : {};
    const [said, images] = [plainText(content), imagesOf(content)];
    if (!said && !images.length) return;
    const base = this.base();
    this.add({ kind: "prompt", ...base, id: base.key, text: said, images, by: "", stage: "taken" });
  }

  /** The key of the next block of a message: the same as that of its live text. */
  private place(message: string, parent: string): string | undefined {
    if (!message || parent) return undefined;
    const count = this.to.blocks.get(message) ?? 0;
    this.to.blocks.set(message, count + 1);
    return `${message}/${count}/`;
  }

  private user(line: JsonObject): void {
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

  private system(line: JsonObject): void {
    switch (line.subtype) {
      case "compact_boundary":
        return this.mark(compactionOf(line));
      case "api_retry":
        return this.retries(line);
      case "task_started":
      case "task_progress":
      case "task_updated":
      case "task_notification":
        return this.task(line);
      default:
        return;
    }
  }

  /** One note for consecutive retries, which shows the last. */
  private retries(line: JsonObject): void {
    const entry: NoteEntry = {
      kind: "note",
      code: this.code,
      ...this.base(),
      ...retryOf(line, this.at),
    };
    const before = this.to.entries.at(-1);
    if (before?.kind === "note" && before.next === entry.next) {
      this.to.entries[this.to.entries.length - 1] = { ...entry, key: before.key };
    } else {
      this.add(entry);
    }
  }

  private task(line: JsonObject): void {
    const id = text(line.task_id);
    if (!id) return;
    const task = taskOf(line, this.to.tasks.get(id), this.at);
    this.to.tasks.set(id, task);
    const call = text(line.tool_use_id) || this.callOf(id);
    if (call) this.tool(call, { task });
  }

  /** The call that started a task, for lines that do not name it. */
  private callOf(task: string): string {
    const call = this.to.entries.findLast(
      (entry): entry is ToolEntry => entry.kind === "tool" && entry.task?.id === task,
    );
    return call?.id ?? "";
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

  private note(tone: NoteEntry["tone"], said: string, until?: number, next = ""): void {
    const entry: NoteEntry = { kind: "note", code: this.code, ...this.base(), tone, text: said };
    this.add(until === undefined ? entry : { ...entry, until, next });
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

  /** A queued prompt moves to where its turn begins, and does not stay in the turn before. */
  private sent(id: string): void {
    const key = `prompt:${id}`;
    const index = this.to.entries.findLastIndex((entry) => entry.key === key);
    const [entry] = index < 0 ? [] : this.to.entries.splice(index, 1);
    if (entry?.kind === "prompt") this.add({ ...entry, stage: "sent" });
  }

  private prompt(id: string, change: Partial<PromptEntry>): void {
    this.replace(this.to.entries, `prompt:${id}`, change);
  }

  /** A plan or a question is shown by its card: the row of its call is removed. */
  private asked(event: EventOf<"ask.opened">): void {
    if (event.ask_kind !== "tool" && event.tool_use_id) {
      const key = `tool:${event.tool_use_id}`;
      const index = this.to.entries.findLastIndex((entry) => entry.key === key);
      if (index >= 0) this.to.entries.splice(index, 1);
    }
    this.add({ kind: "ask", ...this.base(`ask:${event.ask}`), opened: event });
  }

  private isCard(call: string): boolean {
    return this.to.entries
      .slice(-20)
      .some(
        (entry) =>
          entry.kind === "ask" &&
          entry.opened.ask_kind !== "tool" &&
          entry.opened.tool_use_id === call,
      );
  }

  private settle(ask: string, settled: Settled): void {
    const key = `ask:${ask}`;
    const entry = this.to.entries.findLast((one): one is AskEntry => one.key === key);
    const waited = entry && this.at - entry.at;
    this.replace(this.to.entries, key, {
      settled: waited === undefined ? settled : { ...settled, waited },
    });
  }

  /** Close questions that cannot be answered any more, or only by resuming the session. */
  private close(fits: (ask: AskEntry, last: boolean) => boolean, how: string): void {
    const prompt = this.to.entries.findLastIndex((entry) => entry.kind === "prompt");
    this.to.entries.forEach((entry, index) => {
      if (entry.kind === "ask" && fits(entry, index > prompt)) {
        this.to.entries[index] = { ...entry, settled: { how } };
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

  /** Change an entry. The search starts at the end: mostly new entries change. */
  private replace(entries: Entry[], key: string, change: object): boolean {
    const index = entries.findLastIndex((entry) => entry.key === key);
    const entry = entries[index];
    if (!entry) return false;
    entries[index] = { ...entry, ...change } as Entry;
    return true;
  }
}
