// How a tool call is named to people: its kind and a title, as the hub's own cards have them.
import type { Obj } from "./lines";
import { isObject, text } from "./lines";

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
};

export function kindOf(name: string): Kind {
  return KINDS[name]?.[0] ?? "tool";
}

/** A call in a line: what is run, which file, what is looked for. */
export function titleOf(name: string, input: Obj): string {
  const [, ...members] = KINDS[name] ?? ["tool"];
  for (const member of members) {
    const found = text(input[member]).replace(/\s+/g, " ").trim();
    if (found) return found.length > 300 ? `${found.slice(0, 300)}…` : found;
  }
  const [, server, tool] = /^mcp__(.+?)__(.+)$/.exec(name) ?? [];
  if (server && tool) return `${tool} · ${server}`;
  return name;
}

export interface FileEdit {
  path: string;
  before: string;
  after: string;
}

/** What a call would change in files, as far as its input tells. */
export function editsOf(name: string, input: Obj): FileEdit[] {
  const path = text(input.file_path) || text(input.notebook_path);
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
