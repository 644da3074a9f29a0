// What a card shows of a tool call: all of it, and how much is still hidden.
import { editRows, linesOf, type Row } from "../session/Diff";
import { type JsonObject, text } from "../state/contentBlocks";
import { editsOf, type FileEdit } from "../state/tools";
import { text as catalogue } from "../text";
import { cutAt, segmentsOf } from "../ui/marks";

/** A part of a card, in the order in which they are shown. */
export type Part =
  | { kind: "code"; code: string; language: string }
  | { kind: "diff"; edit: FileEdit; rows: Row[] };

/** A member of a tool's input that no part shows. */
export interface Member {
  name: string;
  value: string;
  /** A warning, if it makes the call less safe. */
  warning?: string;
}

export interface Content {
  parts: Part[];
  members: Member[];
  /** The agent's own description of its call. */
  description: string;
}

/** The members of an input that the card's own parts show, if they are texts. */
const SHOWN: ReadonlyMap<string, readonly string[]> = new Map([
  ["Bash", ["command", "description"]],
  ["Edit", ["file_path", "old_string", "new_string"]],
  ["MultiEdit", ["file_path", "edits"]],
  ["Write", ["file_path", "content"]],
  ["NotebookEdit", ["notebook_path", "new_source"]],
]);

const WARNINGS: ReadonlyMap<string, string> = new Map(
  Object.entries(catalogue.asks.memberWarnings),
);
const UNSAFE = /danger|sandbox|bypass|permission|unsafe|force|mode$/i;

/**
 * The content of a call's card. Every member of the input is in one of its parts. `before` is the text of
 * the file that the call changes, if it is known.
 */
export function contentOf(tool: string, input: JsonObject, before = ""): Content {
  const known = SHOWN.get(tool);
  if (!known) {
    const code = JSON.stringify(input, null, 2);
    return { parts: [{ kind: "code", code, language: "json" }], members: [], description: "" };
  }
  const parts: Part[] =
    tool === "Bash"
      ? [{ kind: "code", code: text(input.command), language: "bash" }]
      : editsOf(tool, input)
          .map((edit) => (tool === "Write" ? { ...edit, before, whole: true } : edit))
          .map((edit) => (tool === "Edit" ? inFile(edit, before, replacesAll(input)) : edit))
          .map((edit) => ({ kind: "diff", edit, rows: editRows(edit) }));
  const members = Object.entries(input)
    .filter(([name, value]) => !known.includes(name) || !isWhole(name, value))
    .map(([name, value]): Member => {
      const warning = warningOf(name, value);
      return {
        name,
        value: typeof value === "string" ? value : JSON.stringify(value, null, 1),
        ...(warning ? { warning } : {}),
      };
    });
  return { parts, members, description: tool === "Bash" ? text(input.description) : "" };
}

/** Whether an edit is for every place. A value that is no truth value may mean it to a CLI. */
export function replacesAll({ replace_all: all }: JsonObject): boolean {
  return all !== undefined && all !== null && all !== false && all !== "false";
}

/**
 * The edit as the change of the whole file, so that it has its surroundings. As it is where the file does not
 * have the old text just once: then it cannot be told what would be changed.
 */
function inFile(edit: FileEdit, file: string, everywhere: boolean): FileEdit {
  if (!file || !edit.before) return edit;
  const parts = file.split(edit.before);
  if (parts.length < 2 || (parts.length > 2 && !everywhere)) return edit;
  return { ...edit, before: file, after: parts.join(edit.after), whole: true };
}

/** Whether a part shows all of a member: one with an unexpected type is listed as it is. */
function isWhole(name: string, value: unknown): boolean {
  if (name !== "edits") return typeof value === "string";
  return (
    Array.isArray(value) &&
    value.every(
      (edit) =>
        typeof edit?.old_string === "string" &&
        typeof edit.new_string === "string" &&
        Object.keys(edit).length === 2,
    )
  );
}

function warningOf(name: string, value: unknown): string | undefined {
  if (value === false || value === null || value === "") return undefined;
  return WARNINGS.get(name) ?? (UNSAFE.test(name) ? catalogue.asks.lessSafe : undefined);
}

/** How many lines are hidden while each part and member shows at most so many. */
export function hiddenLines({ parts, members }: Content, most: number): number {
  const rest = (code: string): number => cutAt(segmentsOf(code), most)[1];
  const ofParts = parts.map((part) =>
    part.kind === "code" ? rest(part.code) : linesOf(part.rows.slice(most)),
  );
  return [...ofParts, ...members.map(({ value }) => rest(value))].reduce((sum, n) => sum + n, 0);
}

/** Lines of each part of a call that are shown before a person shows the rest. */
export const FIRST_LINES = 40;
