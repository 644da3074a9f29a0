// A unified diff of one file: its lines with their numbers, blocks of changed lines, folded context,
// and pairs of lines for two columns. Pure.
import type { BlockId } from "./types";

export type Sign = " " | "+" | "-";
export interface Line {
  sign: Sign;
  text: string;
  /** The numbers in the old and the new file; 0 where it is not in that file. */
  before: number;
  after: number;
  /** The block that it belongs to; -1 for unchanged lines. */
  block: number;
  /** It is the last of its file, which does not end with a newline. */
  noNewline?: boolean;
}
export interface Patch {
  lines: Line[];
  blocks: BlockId[];
  /** Lines that are left out before this line, by its index. */
  gaps: Map<number, number>;
}

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;
export const CONTEXT = 3;

/** Read a patch of one file. What is before its first hunk is left out. */
export function parsePatch(patch: string): Patch {
  const found: Patch = { lines: [], blocks: [], gaps: new Map() };
  const rows = patch.split("\n");
  let before = 0;
  let after = 0;
  let inside = false;
  for (const [index, row] of rows.entries()) {
    const head = HUNK.exec(row);
    if (head) {
      const start = Number(head[1]);
      const from = head[2] === "0" ? start + 1 : start;
      const left = from - (inside ? before : 1);
      if (left > 0) found.gaps.set(found.lines.length, left);
      before = from;
      after = head[4] === "0" ? Number(head[3]) + 1 : Number(head[3]);
      inside = true;
      continue;
    }
    if (!inside || (row === "" && index === rows.length - 1)) continue;
    const sign = row[0];
    if (sign === "\\") {
      const last = found.lines.at(-1);
      if (last) last.noNewline = true;
      continue;
    }
    if (sign !== " " && sign !== "+" && sign !== "-") {
      if (row.startsWith("diff --git ")) inside = false;
      continue;
    }
    found.lines.push({
      sign,
      text: row.slice(1),
      before: sign === "+" ? 0 : before,
      after: sign === "-" ? 0 : after,
      block: -1,
    });
    if (sign !== "+") before += 1;
    if (sign !== "-") after += 1;
  }
  findBlocks(found);
  return found;
}

/** Number the runs of changed lines as git numbers hunks without context. */
function findBlocks({ lines, blocks, gaps }: Patch): void {
  let before = 0;
  let after = 0;
  for (let at = 0; at < lines.length; ) {
    const line = lines[at];
    if (!line) return;
    if (gaps.has(at)) {
      before += gaps.get(at) ?? 0;
      after += gaps.get(at) ?? 0;
    }
    if (line.sign === " ") {
      before = line.before;
      after = line.after;
      at += 1;
      continue;
    }
    let removed = 0;
    let added = 0;
    let end = at;
    for (; end < lines.length && (end === at || !gaps.has(end)); end += 1) {
      const one = lines[end];
      if (!one || one.sign === " ") break;
      one.block = blocks.length;
      if (one.sign === "-") removed += 1;
      else added += 1;
    }
    blocks.push({
      old_start: removed ? before + 1 : before,
      old_lines: removed,
      new_start: added ? after + 1 : after,
      new_lines: added,
    });
    before += removed;
    after += added;
    at = end;
  }
}

/** The whole file before or after, if all its lines are in the patch. */
export const sideOf = (lines: readonly Line[], side: "before" | "after"): string =>
  lines
    .filter((line) => line[side] > 0)
    .map((line) => line.text)
    .join("\n");

export type Row =
  | { kind: "line"; index: number }
  /** Lines from `from` to before `to` are folded; `to` = `from`: they are not in the patch. */
  | { kind: "gap"; from: number; to: number; count: number };

/** The changed lines with a little context, and those that a person has unfolded. */
export function foldedRows({ lines, gaps }: Patch, unfolded: ReadonlySet<number>): Row[] {
  const visible = new Uint8Array(lines.length);
  lines.forEach((line, index) => {
    if (unfolded.has(index)) visible[index] = 1;
    if (line.sign === " ") return;
    visible.fill(1, Math.max(0, index - CONTEXT), Math.min(lines.length, index + CONTEXT + 1));
  });
  const rows: Row[] = [];
  for (let at = 0; at < lines.length; ) {
    const missing = gaps.get(at);
    if (missing) rows.push({ kind: "gap", from: at, to: at, count: missing });
    if (visible[at]) {
      rows.push({ kind: "line", index: at });
      at += 1;
      continue;
    }
    let end = at + 1;
    while (end < lines.length && !visible[end] && !gaps.has(end)) end += 1;
    // One folded line needs as much room as the line itself.
    if (end - at === 1) rows.push({ kind: "line", index: at });
    else rows.push({ kind: "gap", from: at, to: end, count: end - at });
    at = end;
  }
  return rows;
}

/** The lines of a gap to unfold: some of its beginning, of its end, or all. */
export function unfoldable(
  gap: { from: number; to: number },
  how: "up" | "down" | "all",
  step = 20,
): number[] {
  const all = Array.from({ length: gap.to - gap.from }, (_, index) => gap.from + index);
  if (how === "all") return all;
  return how === "down" ? all.slice(0, step) : all.slice(-step);
}

export type Pair =
  | { kind: "pair"; left: number | undefined; right: number | undefined }
  | Extract<Row, { kind: "gap" }>;

/** The rows for two columns: what was removed is beside what was added in its place. */
export function pairedRows(lines: readonly Line[], rows: readonly Row[]): Pair[] {
  const pairs: Pair[] = [];
  let left: number[] = [];
  let right: number[] = [];
  const flush = (): void => {
    for (let at = 0; at < Math.max(left.length, right.length); at += 1) {
      pairs.push({ kind: "pair", left: left[at], right: right[at] });
    }
    left = [];
    right = [];
  };
  for (const row of rows) {
    const line = row.kind === "line" ? lines[row.index] : undefined;
    if (row.kind === "line" && line && line.sign !== " ") {
      (line.sign === "-" ? left : right).push(row.index);
      continue;
    }
    flush();
    if (row.kind === "gap") pairs.push(row);
    else pairs.push({ kind: "pair", left: row.index, right: row.index });
  }
  flush();
  return pairs;
}

/** The index of the first line of each block: where its buttons are. */
export function blockStarts(lines: readonly Line[]): Map<number, number> {
  const starts = new Map<number, number>();
  lines.forEach((line, index) => {
    if (line.block >= 0 && !starts.has(line.block)) starts.set(line.block, index);
  });
  return starts;
}

/** A file as a patch without changes, to be shown like one. */
export function asPatch(content: string): string {
  const lines = content.replace(/\n$/, "").split("\n");
  const count = lines.length;
  return [`@@ -1,${count} +1,${count} @@`, ...lines.map((line) => ` ${line}`), ""].join("\n");
}
