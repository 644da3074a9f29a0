// Single lines of the CLI, read for people: tasks, retries, compaction, placeholders.

import { isObject, type JsonObject, number, plainText, text } from "./contentBlocks";
import type { NoteEntry, Task } from "./entries";

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
): Omit<NoteEntry, "kind" | "code" | "key" | "at"> {
  const why = [number(line.error_status), text(line.error).replaceAll("_", " ")].filter(Boolean);
  const count = `attempt ${number(line.attempt) ?? "?"} of ${number(line.max_retries) ?? "?"}`;
  return {
    tone: "warn",
    text: `The model's API failed (${why.join(", ")}), ${count}.`,
    until: at + (number(line.retry_delay_ms) ?? 0),
    next: "Retrying",
  };
}

export function compactionOf(line: JsonObject): string {
  const metadata = isObject(line.compact_metadata) ? line.compact_metadata : {};
  const [before, after] = [number(metadata.pre_tokens), number(metadata.post_tokens)];
  const sizes =
    before !== undefined && after !== undefined ? `: ${before} tokens reduced to ${after}` : "";
  return `conversation compacted${sizes}`;
}

/** Whether a line of a transcript is the answer that the CLI puts behind a turn that was cut off. */
export function isPlaceholder(line: unknown): boolean {
  const message = isObject(line) && isObject(line.message) ? line.message : {};
  return message.model === "<synthetic>" && plainText(message.content) === NO_ANSWER;
}

const NO_ANSWER = "No response requested.";
