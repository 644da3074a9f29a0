// What single lines of the CLI come to: tasks, attempts, compaction, things to do.
import type { NoteEntry, Task, Todo } from "./entries";
import { isObject, number, type Obj, text } from "./lines";

/** A background task after another line about it. Only its first line has its own title. */
export function taskOf(line: Obj, before: Task | undefined, at: number): Task {
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

/** What is said of an attempt of the CLI to reach the model's API again. */
export function retryOf(line: Obj, at: number): Omit<NoteEntry, "kind" | "key" | "at"> {
  const why = [number(line.error_status), text(line.error).replaceAll("_", " ")].filter(Boolean);
  const count = `attempt ${number(line.attempt) ?? "?"} of ${number(line.max_retries) ?? "?"}`;
  return {
    tone: "warn",
    text: `The model's API failed (${why.join(", ")}), ${count}.`,
    until: at + (number(line.retry_delay_ms) ?? 0),
    next: "It is asked again",
  };
}

export function compactionOf(line: Obj): string {
  const told = isObject(line.compact_metadata) ? line.compact_metadata : {};
  const [before, after] = [number(told.pre_tokens), number(told.post_tokens)];
  const sizes =
    before !== undefined && after !== undefined ? `: ${before} tokens became ${after}` : "";
  return `the conversation was compacted here${sizes}`;
}

export function todosOf(raw: unknown): Todo[] {
  if (!Array.isArray(raw)) return [];
  return raw
    .filter(isObject)
    .map((todo) => ({ content: text(todo.content), status: text(todo.status) }))
    .filter((todo) => todo.content);
}
