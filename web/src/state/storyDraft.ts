// A story that is being folded: its entries and threads, found and changed by their keys.
//
// Works on its own copies, and hands them over when it is done. It does not know what events mean.

import type { EventOf, HubEvent, Stored } from "../api/types";
import { text as words } from "../text";
import type {
  AskEntry,
  Base,
  CliCode,
  Entry,
  NoteEntry,
  OpenTurn,
  PromptEntry,
  Refusal,
  Settled,
  Task,
  ToolEntry,
} from "./entries";
import type { Story } from "./story";

type MutableStory = { -readonly [K in keyof Story]: Story[K] } & {
  entries: Entry[];
  threads: Map<string, readonly Entry[]>;
  blocks: Map<string, number>;
  tasks: Map<string, Task>;
  asked: Set<string>;
  sent: Set<string> | undefined;
};

export class StoryDraft {
  readonly story: MutableStory;
  /** The time of the event that is being folded. */
  at = 0;
  private readonly open = new Map<string, Entry[]>();
  seq = 0;
  /** Its kind. */
  code: HubEvent["kind"] = "noted";
  private part = 0;

  constructor(from: Story) {
    this.story = {
      ...from,
      entries: [...from.entries],
      threads: new Map(from.threads),
      blocks: new Map(from.blocks),
      tasks: new Map(from.tasks),
      asked: new Set(from.asked),
      sent: from.sent && new Set(from.sent),
    };
  }

  /** From now on, entries belong to this event. */
  begin({ seq, at, event }: Stored): void {
    this.seq = seq;
    this.at = at;
    this.code = event.kind;
    this.part = 0;
    this.story.first ||= seq;
    this.story.last = seq;
  }

  done(): Story {
    for (const [parent, entries] of this.open) this.story.threads.set(parent, entries);
    return this.story;
  }

  base(key?: string): Base {
    return { key: key ?? `${this.seq}.${this.part++}`, at: this.at, seq: this.seq };
  }

  add(entry: Entry, parent = ""): void {
    if (!parent) {
      this.story.entries.push(entry);
      return;
    }
    this.thread(parent).push(entry);
  }

  private thread(parent: string): Entry[] {
    let thread = this.open.get(parent);
    if (!thread) {
      thread = [...(this.story.threads.get(parent) ?? [])];
      this.open.set(parent, thread);
    }
    return thread;
  }

  note(tone: NoteEntry["tone"], text: string, until?: number, next = ""): void {
    const entry: NoteEntry = { kind: "note", code: this.code, ...this.base(), tone, text };
    this.add(until === undefined ? entry : { ...entry, until, next });
  }

  /** A note from a line of the CLI. */
  cliNote(code: CliCode, tone: NoteEntry["tone"], text: string): void {
    this.add({ kind: "note", code, ...this.base(), tone, text });
  }

  mark(text: string): void {
    this.add({ kind: "mark", ...this.base(), text });
  }

  /** What follows belongs to this conversation of the CLI; a change is marked. */
  inConversation(after: string): void {
    const before = this.story.conversation;
    this.story.conversation = after;
    if (before === undefined || before === after) return;
    const text = words.story.notes.newConversation;
    this.add({ kind: "mark", ...this.base(), text, conversation: { before, after } });
  }

  // --- turns ---------------------------------------------------------------------------------

  /** A prompt was sent: it begins a turn, unless one runs. */
  turnSent(prompt: string): void {
    this.story.sent ??= new Set();
    this.story.sent.add(prompt);
    this.story.turn ??= { began: this.at, tokens: 0, calls: 0, waited: 0 };
  }

  /** The CLI begins a turn. One that nobody prompted is told with its cause. */
  turnBegins(): void {
    const { sent, cause } = this.story;
    this.story.turn ??= { began: this.at, tokens: 0, calls: 0, waited: 0 };
    if (sent?.size === 0 && cause) this.cliNote("turn.cause", "plain", cause);
    this.story.cause = undefined;
    this.story.owed = sent?.size === 0 && !cause;
  }

  /** The CLI tells why it began a turn: it is told now if that turn runs, or else when it begins. */
  turnCaused(cause: string): void {
    if (!cause) return;
    if (this.story.owed) this.cliNote("turn.cause", "plain", cause);
    else this.story.cause = cause;
    this.story.owed = false;
  }

  /** A turn ended; gives it. Prompts that it did not have are still to come. */
  turnEnds(prompts: readonly string[]): OpenTurn | undefined {
    const ended = this.story.turn;
    this.story.sent ??= new Set();
    for (const prompt of prompts) this.story.sent.delete(prompt);
    this.story.cause = undefined;
    this.story.owed = false;
    this.story.turn = this.story.sent.size
      ? { began: this.at, tokens: 0, calls: 0, waited: 0 }
      : undefined;
    return ended;
  }

  /** What the turn has used so far. */
  metered(tokens: number, calls: number): void {
    const turn = this.story.turn ?? { began: this.at, waited: 0 };
    this.story.turn = { ...turn, tokens, calls };
  }

  /** The run began or ended: no turn is open. */
  noTurn(): void {
    this.story.turn = undefined;
    this.story.sent = new Set();
    this.story.cause = undefined;
    this.story.owed = false;
    this.story.asked.clear();
  }

  private asksOpen(ask: string): void {
    if (!this.story.asked.size) this.story.askedAt = this.at;
    this.story.asked.add(ask);
  }

  /** Time in which several questions wait counts once. */
  private asksClosed(ask: string): void {
    if (!this.story.asked.delete(ask) || this.story.asked.size || !this.story.turn) return;
    const waited = this.story.turn.waited + this.at - this.story.askedAt;
    this.story.turn = { ...this.story.turn, waited };
  }

  /** A queued prompt moves to where its turn begins, and does not stay in the turn before. */
  moveToTurn(id: string): void {
    const key = `prompt:${id}`;
    const index = this.story.entries.findLastIndex((entry) => entry.key === key);
    const [entry] = index < 0 ? [] : this.story.entries.splice(index, 1);
    if (entry?.kind === "prompt") this.add({ ...entry, stage: "sent" });
  }

  changePrompt(id: string, change: Partial<PromptEntry>): void {
    this.replace(this.story.entries, `prompt:${id}`, change);
  }

  /** A plan or a question is shown by its card: the row of its call is removed. */
  openAsk(event: EventOf<"ask.opened">): void {
    if (event.ask_kind !== "tool" && event.tool_use_id) {
      const key = `tool:${event.tool_use_id}`;
      const index = this.story.entries.findLastIndex((entry) => entry.key === key);
      if (index >= 0) this.story.entries.splice(index, 1);
    }
    this.asksOpen(event.ask);
    this.add({ kind: "ask", ...this.base(`ask:${event.ask}`), opened: event });
  }

  isCard(call: string): boolean {
    return this.story.entries
      .slice(-20)
      .some(
        (entry) =>
          entry.kind === "ask" &&
          entry.opened.ask_kind !== "tool" &&
          entry.opened.tool_use_id === call,
      );
  }

  settle(ask: string, settled: Settled): void {
    const key = `ask:${ask}`;
    const entry = this.story.entries.findLast((one): one is AskEntry => one.key === key);
    const waited = entry && this.at - entry.at;
    this.asksClosed(ask);
    this.replace(this.story.entries, key, {
      settled: waited === undefined ? settled : { ...settled, waited },
    });
  }

  /** Close questions that cannot be answered any more, or only by resuming the session. */
  closeAsks(fits: (ask: AskEntry, last: boolean) => boolean, how: Settled["how"]): void {
    const prompt = this.story.entries.findLastIndex((entry) => entry.kind === "prompt");
    this.story.entries.forEach((entry, index) => {
      if (entry.kind === "ask" && fits(entry, index > prompt)) {
        this.story.entries[index] = { ...entry, settled: { how } };
      }
    });
  }

  /** The sandbox seems to have refused something to a call. */
  refused(id: string, refusal: Refusal): void {
    const threads = [...this.story.threads.values(), ...this.open.values()];
    for (const entries of [this.story.entries, ...threads]) {
      const entry = entries.findLast((one) => one.key === `tool:${id}`);
      if (entry?.kind === "tool") {
        this.changeTool(id, { refusals: [...(entry.refusals ?? []), refusal] });
        return;
      }
    }
  }

  /** Calls without a result when their run ends. A result that comes later is made up by the CLI. */
  interruptTools(): void {
    for (const parent of ["", ...this.story.threads.keys(), ...this.open.keys()]) {
      const entries = parent ? this.thread(parent) : this.story.entries;
      entries.forEach((entry, index) => {
        if (entry.kind === "tool" && entry.ended === undefined) {
          entries[index] = { ...entry, interrupted: true };
        }
      });
    }
  }

  changeTool(id: string, change: Partial<ToolEntry>): void {
    const key = `tool:${id}`;
    if (this.replace(this.story.entries, key, change)) return;
    for (const parent of new Set([...this.story.threads.keys(), ...this.open.keys()])) {
      const entries = this.open.get(parent) ?? this.story.threads.get(parent) ?? [];
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
