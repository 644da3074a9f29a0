// Tool calls for people: their kind and their title, as the hub names them.
import { text as words } from "../text";
import type { JsonObject } from "./contentBlocks";
import { isObject, number, text } from "./contentBlocks";
import { lookup } from "./lookup";

export type Kind =
  | "command"
  | "edit"
  | "read"
  | "search"
  | "web"
  | "agent"
  | "plan"
  | "todo"
  | "tool";

const KINDS: Record<string, [Kind, ...string[]]> = {
  Bash: ["command", "command"],
  BashOutput: ["command", "bash_id", "task_id"],
  KillShell: ["command", "shell_id"],
  Edit: ["edit", "file_path"],
  MultiEdit: ["edit", "file_path"],
  Write: ["edit", "file_path"],
  NotebookEdit: ["edit", "notebook_path"],
  Read: ["read", "file_path"],
  NotebookRead: ["read", "notebook_path"],
  Glob: ["search", "pattern"],
  Grep: ["search", "pattern"],
  LS: ["search", "path"],
  WebFetch: ["web", "url"],
  WebSearch: ["web", "query"],
  Agent: ["agent", "description"],
  Task: ["agent", "description"],
  ExitPlanMode: ["plan"],
  EnterPlanMode: ["plan"],
  TodoWrite: ["todo"],
  TaskCreate: ["tool", "subject"],
};

/** Tools that change or read one entry of the to-do list, by its number. */
const TODO_CHANGES: ReadonlySet<string> = new Set(["TaskUpdate", "TaskGet"]);

export function kindOf(name: string): Kind {
  return lookup(KINDS, name)?.[0] ?? "tool";
}

/** A tool's name for people; most have one already. */
export function toolName(name: string): string {
  return lookup(words.story.tools, name) ?? name;
}

/** A call in one line: its command, its file, or its search text. */
export function titleOf(name: string, input: JsonObject): string {
  const [, ...members] = lookup(KINDS, name) ?? ["tool"];
  if (TODO_CHANGES.has(name)) return todoTitle(input) || name;
  for (const member of members) {
    const found = oneLine(text(input[member]));
    if (found) return found;
  }
  const [, server, tool] = /^mcp__(.+?)__(.+)$/.exec(name) ?? [];
  if (server && tool) return `${tool} · ${server}`;
  return name;
}

/** Only ordinary blanks are collapsed: a shell treats others as characters, and they are marked. */
function oneLine(given: string): string {
  const line = given.replace(/[ \t\n]+/g, " ").replace(/^ | $/g, "");
  return line.length > 300 ? `${line.slice(0, 300)}…` : line;
}

/** Which entry of the to-do list a call is about, and what it changes there. */
function todoTitle(input: JsonObject): string {
  const id = text(input.taskId) || String(number(input.taskId) ?? "");
  const parts = [
    id && words.story.todoNumber(id),
    text(input.subject),
    words.story.todoStatus(text(input.status)),
  ];
  return oneLine(parts.filter(Boolean).join(": "));
}

export interface FileEdit {
  path: string;
  before: string;
  after: string;
  /** Whether both are whole files: then their lines have numbers. */
  whole?: boolean;
  /** The change with its place in the file, once the tool has made it. */
  hunks?: Hunk[];
}
export interface Hunk {
  /** The numbers of its first line: in the new file, and in the old one if it is known. */
  start: number;
  oldStart?: number;
  /** Each with its sign before it: a blank, "+" or "-". */
  lines: string[];
}

/** The changes to files in a call's input. */
export function editsOf(name: string, input: JsonObject): FileEdit[] {
  const path = text(name === "NotebookEdit" ? input.notebook_path : input.file_path);
  switch (name) {
    case "Write":
      return [{ path, before: "", after: text(input.content) }];
    case "Edit":
      return [{ path, before: text(input.old_string), after: text(input.new_string) }];
    case "MultiEdit":
      return (Array.isArray(input.edits) ? input.edits : []).filter(isObject).map((edit) => ({
        path,
        before: text(edit.old_string),
        after: text(edit.new_string),
      }));
    case "NotebookEdit":
      return [{ path, before: "", after: text(input.new_source) }];
    default:
      return [];
  }
}

/** The edits of a finished call: with their places in the file, if the tool reported them. */
export function appliedEdits(name: string, input: JsonObject, structured: unknown): FileEdit[] {
  const edits = editsOf(name, input);
  const hunks = hunksOf(structured);
  const first = edits[0];
  if (!first || !hunks.length) return edits;
  return [{ ...first, hunks }];
}

function hunksOf(structured: unknown): Hunk[] {
  const patch = isObject(structured) ? structured.structuredPatch : undefined;
  return (Array.isArray(patch) ? patch : []).filter(isObject).map((hunk) => {
    const oldStart = number(hunk.oldStart);
    return {
      start: number(hunk.newStart) ?? 1,
      ...(oldStart === undefined ? {} : { oldStart }),
      lines: Array.isArray(hunk.lines) ? hunk.lines.map(text) : [],
    };
  });
}

export interface Found {
  title: string;
  url: string;
}

/** The results of a web search: from its structured result, or else from its text. */
export function searchResults(structured: unknown, result: string): Found[] {
  const rows = isObject(structured) && Array.isArray(structured.results) ? structured.results : [];
  const found = rows
    .filter(isObject)
    .flatMap((row) => (Array.isArray(row.content) ? row.content : []))
    .concat(rows.length ? [] : linksIn(result));
  return found
    .filter(isObject)
    .map((one) => ({ title: text(one.title) || text(one.url), url: text(one.url) }))
    .filter((one) => /^https?:\/\//i.test(one.url) && URL.canParse(one.url));
}

function linksIn(result: string): unknown[] {
  const [, list] = /^Links: (\[.*\])$/m.exec(result) ?? [];
  try {
    const links: unknown = JSON.parse(list ?? "[]");
    return Array.isArray(links) ? links : [];
  } catch {
    return [];
  }
}

/** The text of a file that was read, and the number of its first line. */
export function readResult(structured: unknown): { content: string; start: number } | undefined {
  const file = isObject(structured) && isObject(structured.file) ? structured.file : undefined;
  if (!file || typeof file.content !== "string") return undefined;
  return { content: file.content, start: number(file.startLine) ?? 1 };
}
