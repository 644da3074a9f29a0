// One pass over events: how each of them changes a story. `story.ts` defines what a story is.
import type { EventOf, HubEvent, Stored } from "../api/types";
import { text as words } from "../text";
import {
  causeOf,
  commandIn,
  commandOutput,
  compactionOf,
  isPlaceholder,
  noticeOf,
  originOf,
  retryOf,
  taskOf,
  wakeUpOf,
} from "./cliLines";
import { alarmText, endText, reasonTexts, textOf } from "./coded";
import {
  blocksOf,
  documentsOf,
  imagesOf,
  isObject,
  type JsonObject,
  number,
  plainText,
  text,
} from "./contentBlocks";
import { isUnanswered, type NoteEntry, type ToolEntry } from "./entries";
import type { Story } from "./story";
import { StoryDraft } from "./storyDraft";

/** The run of messages that were imported. */
const IMPORTED = "import";

/** Folds events into a story. */
export class StoryFold {
  private readonly draft: StoryDraft;

  constructor(from: Story) {
    this.draft = new StoryDraft(from);
  }

  done(): Story {
    return this.draft.done();
  }

  take(stored: Stored): void {
    this.draft.begin(stored);
    try {
      this.event(stored.event);
    } catch (error) {
      // The events after it are folded all the same.
      this.draft.add({ kind: "failed", ...this.draft.base(), raw: stored, error: String(error) });
    }
  }

  private event(event: HubEvent): void {
    switch (event.kind) {
      case "said.recalled":
        if (isPlaceholder(event.line)) return;
        if (event.run === IMPORTED && this.imported(event.line)) return;
        if (isObject(event.line)) this.line(event.line);
        return;
      case "said":
        if (isObject(event.line)) this.line(event.line);
        return;
      case "said.broken":
        return this.draft.note("bad", words.story.notes.unreadable(event.error));
      case "prompt.queued":
        return this.draft.add({
          kind: "prompt",
          ...this.draft.base(`prompt:${event.prompt}`),
          id: event.prompt,
          text: plainText(event.content),
          images: imagesOf(event.content),
          ...filesOf(event.content),
          by: event.by,
          stage: "queued",
        });
      case "prompt.changed":
        return this.draft.changePrompt(event.prompt, {
          text: plainText(event.content),
          images: imagesOf(event.content),
          ...filesOf(event.content),
        });
      case "prompt.sent":
        this.draft.turnSent(event.prompt);
        return this.draft.moveToTurn(event.prompt);
      case "prompt.taken":
        return this.draft.changePrompt(event.prompt, { stage: "taken" });
      case "prompt.cancelled":
        this.draft.story.sent?.delete(event.prompt);
        return this.draft.changePrompt(event.prompt, { stage: "cancelled" });
      case "turn.metered":
        return this.draft.metered(tokensOf(event.models), event.tool_calls ?? 0);
      case "turn.ended":
        return this.turn(event);
      case "ask.opened":
        return this.draft.openAsk(event);
      case "ask.answered":
        return this.draft.settle(event.ask, {
          how: "answered",
          by: event.by,
          allowed: event.allowed,
          answer: event.answer,
        });
      case "ask.withdrawn":
        return this.draft.settle(event.ask, {
          how: "withdrawn",
          why: textOf(event.coded, event.reason),
        });
      case "decided":
        return this.decided(event);
      case "sandbox.refused":
        return this.draft.refused(event.call, {
          access: event.access,
          target: event.target,
          rule: event.rule ?? "",
        });
      case "rate_limited":
        if (event.status === "rejected") {
          const until = event.resets_at ?? undefined;
          const { rateLimit, rateLimitResets } = words.story.notes;
          this.draft.note("warn", rateLimit, until, rateLimitResets);
        }
        return;
      case "budget.reached":
        return this.draft.note(
          "bad",
          words.story.notes.budget(
            event.scope,
            amount(event.spent, event.unit),
            amount(event.limit, event.unit),
          ),
        );
      case "prompt.peer": {
        const told = words.story.notes;
        const process = event.pid == null ? told.unknownProcess : told.process(event.pid);
        const who = event.name ? told.namedProcess(event.name, process) : process;
        this.draft.story.cause = undefined;
        this.draft.story.owed = false;
        return this.draft.note("warn", told.peer(who, event.text ?? ""));
      }
      case "alarm":
        return this.draft.note("bad", alarmText(event));
      case "alarm.ended":
        return this.draft.note("good", words.story.notes.responds);
      case "run.started":
        this.draft.closeAsks((ask) => ask.settled?.how === "run_ended", "never_answered");
        this.draft.noTurn();
        return this.draft.mark(words.story.notes.started(event.version ?? ""));
      case "run.cli_session":
        return this.draft.inConversation(event.cli_session);
      case "run.ended":
        this.draft.closeAsks(
          (ask, last) => ask.opened.run === event.run && isUnanswered(ask, last),
          "run_ended",
        );
        this.draft.interruptTools();
        this.draft.noTurn();
        return this.draft.note(
          event.clean ? "plain" : "warn",
          words.story.notes.ended(endText(event)),
        );
      case "run.link_lost":
        return this.draft.note(
          "warn",
          words.story.notes.linkLost(textOf(event.coded, event.reason)),
        );
      case "run.link_found":
        return this.draft.note(
          event.lost ? "bad" : "good",
          event.lost ? words.story.notes.linkFoundWithLoss : words.story.notes.linkFound,
        );
      case "worktree.settled":
        return this.draft.note(
          "plain",
          textOf(event.coded, event.text ?? "") ||
            words.story.notes.worktree(event.branch, event.action, event.by),
        );
      case "folder.changed":
        return this.draft.note(
          "plain",
          words.story.notes.doneBy(textOf(event.coded, event.text ?? ""), event.by),
        );
      case "session.rewound": {
        const { rewoundFiles, rewoundConversation, rewoundBoth, rewound } = words.changes;
        const both = event.files && event.conversation;
        const what = both ? rewoundBoth : event.files ? rewoundFiles : rewoundConversation;
        return this.draft.note("warn", rewound(event.by, what));
      }
      case "session.renamed":
        return this.draft.mark(words.story.notes.renamed(event.name, event.by));
      case "noted":
        return this.draft.note(
          event.level === "error" ? "bad" : event.level === "warning" ? "warn" : "plain",
          textOf(event.coded, event.text),
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
      case "command_lifecycle":
        return this.draft.turnCaused(wakeUpOf(line));
      case "result":
        if (this.draft.story.owed) this.draft.turnCaused(originOf(line));
        return;
      case "tool_progress": {
        const seconds = number(line.elapsed_time_seconds);
        if (seconds !== undefined) {
          this.draft.changeTool(text(line.tool_use_id), {
            progress: words.numbers.seconds(Math.round(seconds)),
          });
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
    const source = text(line.local_command_source);
    const command = source && { command: commandIn(line) || this.lastCommand() };
    for (const block of blocksOf(message.content)) {
      const place = this.place(text(message.id), parent);
      if (block.type === "text" && block.text.trim()) {
        const uuid = text(line.uuid);
        const base = this.draft.base(place);
        this.draft.add({ kind: "text", ...base, text: block.text, uuid, ...command }, parent);
      } else if (block.type === "thinking" && block.thinking.trim()) {
        const key = place && `${place}t`;
        this.draft.add({ kind: "thinking", ...this.draft.base(key), text: block.thinking }, parent);
      } else if ("id" in block && block.id && !this.draft.isCard(block.id)) {
        this.draft.add(
          {
            kind: "tool",
            ...this.draft.base(`tool:${block.id}`),
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
  private imported(line: unknown): boolean {
    if (!isObject(line) || line.type !== "user" || line.isSynthetic || line.parent_tool_use_id) {
      return false;
    }
    const { content } = isObject(line.message) ? line.message : {};
    const [said, images] = [plainText(content), imagesOf(content)];
    if (!said && !images.length) return false;
    const base = this.draft.base();
    this.draft.add({
      kind: "prompt",
      ...base,
      id: base.key,
      text: said,
      images,
      ...filesOf(content),
      by: "",
      stage: "taken",
    });
    return true;
  }

  /** The key of the next block of a message: the same as that of its live text. */
  private place(message: string, parent: string): string | undefined {
    if (!message || parent) return undefined;
    const count = this.draft.story.blocks.get(message) ?? 0;
    this.draft.story.blocks.set(message, count + 1);
    return `${message}/${count}/`;
  }

  /** The slash command that was prompted last, if the last prompt is one. */
  private lastCommand(): string {
    const prompt = this.draft.story.entries.findLast((entry) => entry.kind === "prompt");
    return prompt?.kind === "prompt" ? (/^\/[^\s/]+/.exec(prompt.text)?.[0] ?? "") : "";
  }

  private user(line: JsonObject): void {
    const message = isObject(line.message) ? line.message : {};
    if (line.isReplay) {
      this.draft.turnCaused(originOf(line));
      const output = commandOutput(plainText(message.content));
      if (output) this.output(output);
      return;
    }
    for (const block of blocksOf(message.content)) {
      const own = block.type === "text" && !line.parent_tool_use_id && this.draft.code === "said";
      if (own && block.text) {
        this.draft.cliNote("cli.text", "plain", block.text);
      }
      if (block.type === "tool_result") {
        this.draft.changeTool(block.tool_use_id, {
          ended: this.draft.at,
          failed: block.is_error ?? false,
          result: block.content,
          structured: line.tool_use_result,
          resultSeq: this.draft.seq,
        });
      }
    }
  }

  /** The output of a slash command. */
  private output(said: string): void {
    const base = this.draft.base();
    const command = this.lastCommand();
    this.draft.add({ kind: "text", ...base, text: said, uuid: "", command });
  }

  private system(line: JsonObject): void {
    const notice = noticeOf(line);
    if (notice) this.draft.cliNote("cli.notice", notice.tone, notice.text);
    switch (line.subtype) {
      case "init":
        return this.draft.turnBegins();
      case "local_command_output": {
        const output = commandOutput(text(line.content)) || text(line.content).trim();
        if (output) this.output(output);
        return;
      }
      case "compact_boundary":
        return this.draft.mark(compactionOf(line));
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
      code: this.draft.code,
      ...this.draft.base(),
      ...retryOf(line, this.draft.at),
    };
    const before = this.draft.story.entries.at(-1);
    if (before?.kind === "note" && before.next === entry.next) {
      this.draft.story.entries[this.draft.story.entries.length - 1] = { ...entry, key: before.key };
    } else {
      this.draft.add(entry);
    }
  }

  private task(line: JsonObject): void {
    const id = text(line.task_id);
    if (!id) return;
    const task = taskOf(line, this.draft.story.tasks.get(id), this.draft.at);
    this.draft.story.tasks.set(id, task);
    if (line.subtype === "task_notification") this.draft.story.cause = causeOf(line, task.title);
    const call = text(line.tool_use_id) || this.callOf(id);
    if (call) this.draft.changeTool(call, { task });
  }

  /** The call that started a task, for lines that do not name it. */
  private callOf(task: string): string {
    const call = this.draft.story.entries.findLast(
      (entry): entry is ToolEntry => entry.kind === "tool" && entry.task?.id === task,
    );
    return call?.id ?? "";
  }

  private turn(event: EventOf<"turn.ended">): void {
    const tokens = tokensOf(event.models);
    const ended = this.draft.turnEnds(event.prompts);
    if (!event.failed && event.text && this.lastCommand() && this.isSilent()) {
      this.output(event.text);
    }
    this.draft.add({
      kind: "turn",
      ...this.draft.base(),
      failed: event.failed,
      outcome: event.outcome,
      cost: event.cost_usd,
      duration: event.duration_ms ?? undefined,
      waited: ended?.waited ?? 0,
      tokens,
      text: event.failed && !this.isSaid(event.text ?? "") ? (event.text ?? "") : "",
    });
  }

  /** Whether nothing was said since the last prompt: some slash commands only have a result. */
  private isSilent(): boolean {
    const last = this.draft.story.entries.findLast(
      (entry) => entry.kind === "prompt" || entry.kind === "text" || entry.kind === "turn",
    );
    return last?.kind === "prompt";
  }

  /** Whether the last message already says a text: "Not logged in" is a message and a result. */
  private isSaid(text: string): boolean {
    const last = this.draft.story.entries.findLast(
      (entry) => entry.kind === "prompt" || entry.kind === "text" || entry.kind === "turn",
    );
    return last?.kind === "text" && last.text.trim() === text.trim();
  }

  private decided(event: EventOf<"decided">): void {
    if (!event.tool_use_id) return;
    const reasons = reasonTexts(event);
    this.draft.changeTool(event.tool_use_id, {
      verdict: { verdict: event.verdict, by: event.by, reasons },
    });
  }
}

function tokensOf(models: EventOf<"turn.ended">["models"]): number {
  return (models ?? []).reduce((sum, one) => sum + (one.input ?? 0) + (one.output ?? 0), 0);
}

function filesOf(content: unknown): { files?: string[] } {
  const files = documentsOf(content);
  return files.length ? { files } : {};
}

/** An amount of money, or of something else, in a few digits. */
function amount(value: number, unit: string): string {
  if (unit !== "usd") return words.numbers.otherUnit(value, unit);
  return value < 0.01 ? words.numbers.fineUsd(value) : words.numbers.usd(value);
}
