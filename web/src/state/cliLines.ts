// Single lines of the CLI, read for people: tasks, retries, compaction, placeholders.

import { text as words } from "../text";
import { isObject, type JsonObject, number, plainText, text } from "./contentBlocks";
import type { Base, NoteEntry, Task } from "./entries";
import { lookup } from "./lookup";

/** A background task after another line about it. Only its first line has its own title. */
export function taskOf(line: JsonObject, before: Task | undefined, at: number): Task {
  const id = text(line.task_id);
  const patch = isObject(line.patch) ? line.patch : line;
  const usage = isObject(line.usage) ? line.usage : {};
  const said = text(line.description);
  const begins = line.subtype === "task_started";
  const steps = number(usage.tool_uses) ?? before?.steps;
  const tokens = number(usage.total_tokens) ?? before?.tokens;
  return {
    id,
    title: (begins && said) || before?.title || said || id,
    status: text(patch.status) || before?.status || "running",
    detail: text(line.summary) || (begins ? "" : said) || before?.detail || "",
    at,
    began: before?.began ?? at,
    ...(steps === undefined ? {} : { steps }),
    ...(tokens === undefined ? {} : { tokens }),
  };
}

/** The note for a retry of the model's API. */
export function retryOf(
  line: JsonObject,
  at: number,
): Omit<NoteEntry, "kind" | "code" | keyof Base> {
  const why = [number(line.error_status), text(line.error).replaceAll("_", " ")].filter(Boolean);
  const { retry, retrying, unknownCount } = words.story.notes;
  const attempt = number(line.attempt) ?? unknownCount;
  const most = number(line.max_retries) ?? unknownCount;
  return {
    tone: "warn",
    text: retry(why.join(", "), attempt, most),
    until: at + (number(line.retry_delay_ms) ?? 0),
    next: retrying,
  };
}

export function compactionOf(line: JsonObject): string {
  const metadata = isObject(line.compact_metadata) ? line.compact_metadata : {};
  const [before, after] = [number(metadata.pre_tokens), number(metadata.post_tokens)];
  const { compacted, compactedTo } = words.story.notes;
  return before !== undefined && after !== undefined ? compactedTo(before, after) : compacted;
}

/** Whether a line of a transcript is the answer that the CLI puts behind a turn that was cut off. */
export function isPlaceholder(line: unknown): boolean {
  const message = isObject(line) && isObject(line.message) ? line.message : {};
  return message.model === "<synthetic>" && plainText(message.content) === NO_ANSWER;
}

const NO_ANSWER = "No response requested.";

const OUTPUT = /^<local-command-(stdout|stderr)>([\s\S]*)<\/local-command-\1>\s*$/;
/** Outputs that another entry tells already. */
const TOLD = new Set(["Compacted"]);

/** The output of a slash command, from the echo in which older versions wrap it; empty if it is none. */
export function commandOutput(said: string): string {
  const output = OUTPUT.exec(said.trim())?.[2]?.trim() ?? "";
  return TOLD.has(output) ? "" : output;
}

/** The command that made an output, if the line names it. */
export function commandIn(line: JsonObject): string {
  const run = isObject(line.local_command_run) ? text(line.local_command_run.command) : "";
  return run && `/${run}`;
}

/** Why a turn begins that nobody prompted: a task that ended. */
export function causeOf(line: JsonObject, title: string): string {
  const { task, taskEnded } = words.story.notes;
  return text(line.summary) || task(title, text(line.status) || taskEnded);
}

/** Why the CLI woke up by itself; empty if the line does not tell. */
export function wakeUpOf(line: JsonObject): string {
  const source = text(line.wakeup_source);
  if (line.state !== "started" || !source) return "";
  return lookup(words.story.causes.wakeUps, source) ?? words.story.causes.wakeUps.schedule_wakeup;
}

/** Why a turn began that nobody prompted, as the CLI says it; empty if it does not. */
export function originOf(line: JsonObject): string {
  const { causes } = words.story;
  const origin = isObject(line.origin) ? line.origin : {};
  if (origin.kind === "channel") return causes.channel(text(origin.server));
  if (origin.kind === "task-notification") {
    const what = lookup(causes.notifications, text(origin.subkind)) ?? causes.task;
    const reason = text(origin.fireReason);
    return reason ? `${what}: ${reason}` : `${what}.`;
  }
  return lookup(causes.origins, text(origin.kind)) ?? "";
}

const LEVELS: Record<string, NoteEntry["tone"]> = { warning: "warn", error: "bad" };

/** What the CLI's own terminal would show as a notice; undefined if the line is none. */
export function noticeOf(line: JsonObject): Pick<NoteEntry, "tone" | "text"> | undefined {
  switch (line.subtype) {
    case "informational":
      return said(line.content, lookup(LEVELS, text(line.level)) ?? "plain");
    case "notification":
      return said(line.text, line.color === "error" ? "bad" : "plain");
    case "hook_response":
      if (line.outcome !== "error") return undefined;
      return said(
        words.story.notes.hookFailed(text(line.hook_name), text(line.stderr) || text(line.output)),
        "warn",
      );
    case "model_refusal_fallback":
      return said(line.content, "warn");
    case "session_writes_lost":
      return said(words.story.notes.writesLost, "bad");
    default:
      return undefined;
  }
}

function said(
  content: unknown,
  tone: NoteEntry["tone"],
): Pick<NoteEntry, "tone" | "text"> | undefined {
  const told = text(content).trim();
  return told ? { tone, text: told } : undefined;
}
