// The rows of a story: a call and its question in one, runs of calls folded. Pure.
//
// The story has what happened; this decides what stands in one row. Nothing is lost: a folded run has
// its calls, and shows how many failed.
import type { AskEntry, Entry, ToolEntry } from "./entries";
import { kindOf } from "./tools";

export interface EntryRowData {
  kind: "entry";
  key: string;
  entry: Entry;
  /** The question about this call. */
  ask?: AskEntry;
  /** It belongs to a run that is unfolded. */
  nested?: boolean;
}
export interface RunRowData {
  kind: "run";
  key: string;
  calls: readonly ToolEntry[];
  /** How long they ran, in ms; without what they waited for answers. */
  spent: number;
  open: boolean;
}
export type StoryRow = EntryRowData | RunRowData;

/** Calls in a row that are not folded yet. */
const SHORT = 4;
/** Calls at the end of the story that are always shown. */
const LAST = 2;
/** Failed calls in a row that are shown one by one. */
const MOST_FAILED = 8;
/** Kinds of calls that say something by themselves. */
const TELLING = new Set(["edit", "agent", "plan", "todo"]);
const FINISHED = new Set(["completed", "failed", "stopped", "killed"]);

/** The rows of these entries; `open` has the keys of the runs that are unfolded. */
export function storyRows(entries: readonly Entry[], open: ReadonlySet<string>): StoryRow[] {
  const rows = withAsks(entries);
  const found: StoryRow[] = [];
  for (let at = 0; at < rows.length; ) {
    const row = rows[at];
    if (!row) break;
    let end = at;
    while (isStep(rows[end])) end += 1;
    if (end === at) {
      pushNote(found, row);
      at += 1;
      continue;
    }
    found.push(...folded(rows.slice(at, end), end === rows.length, open));
    at = end;
  }
  return found;
}

/** A question about a call stands in the call's row. */
function withAsks(entries: readonly Entry[]): EntryRowData[] {
  const asks = new Map<string, AskEntry>();
  const calls = new Set<string>();
  for (const entry of entries) {
    if (entry.kind === "tool") calls.add(entry.id);
    if (entry.kind === "ask" && entry.opened.ask_kind === "tool" && entry.opened.tool_use_id) {
      asks.set(entry.opened.tool_use_id, entry);
    }
  }
  return entries.flatMap((entry): EntryRowData[] => {
    const row: EntryRowData = { kind: "entry", key: entry.key, entry };
    if (entry.kind === "tool") {
      const ask = asks.get(entry.id);
      return [ask ? { ...row, ask } : row];
    }
    const call = entry.kind === "ask" ? entry.opened.tool_use_id : undefined;
    const hasRow = call && calls.has(call) && asks.get(call) === entry;
    return hasRow ? [] : [row];
  });
}

/** A connection that was lost and is restored needs one line. */
function pushNote(found: StoryRow[], row: EntryRowData): void {
  const { entry } = row;
  const before = found.at(-1);
  const restored =
    entry.kind === "note" && entry.code === "run.link_found" && entry.tone === "good";
  const lost = before?.kind === "entry" && before.entry.kind === "note" ? before.entry.code : "";
  if (restored && (lost === "run.link_lost" || lost === "run.link_found")) found.pop();
  found.push(row);
}

/** A call, or a thought between calls. */
function isStep(row: EntryRowData | undefined): boolean {
  if (row?.entry.kind === "thinking") return row.entry.live === undefined;
  return row?.entry.kind === "tool";
}

function folded(
  rows: readonly EntryRowData[],
  isEnd: boolean,
  open: ReadonlySet<string>,
): StoryRow[] {
  const failed = rows.filter((row) => row.entry.kind === "tool" && row.entry.failed).length;
  const quiet = (row: EntryRowData): boolean => isQuiet(row, failed > MOST_FAILED);
  const found: StoryRow[] = [];
  for (let at = 0; at < rows.length; ) {
    let end = at;
    while (end < rows.length && quiet(rows[end] as EntryRowData)) end += 1;
    const keep = isEnd && end === rows.length ? LAST : 0;
    const run = rows.slice(at, Math.max(at, end - keep));
    const calls = run.flatMap(({ entry }) => (entry.kind === "tool" ? [entry] : []));
    const first = calls[0];
    if (first && calls.length >= SHORT) {
      const key = `run:${first.key}`;
      const isOpen = open.has(key);
      const spent = run.reduce(
        (sum, { entry, ask }) => sum + (entry.kind === "tool" ? (runTime(entry, ask) ?? 0) : 0),
        0,
      );
      found.push({ kind: "run", key, calls, spent, open: isOpen });
      if (isOpen) found.push(...run.map((row) => ({ ...row, nested: true })));
    } else {
      found.push(...run);
    }
    found.push(...rows.slice(at + run.length, Math.max(end, at + 1)));
    at = Math.max(end, at + 1);
  }
  return found;
}

/** Whether a row can be folded: it is over, and nothing about it needs a look. */
function isQuiet({ entry, ask }: EntryRowData, failures: boolean): boolean {
  if (entry.kind !== "tool") return true;
  if (entry.ended === undefined || entry.interrupted || entry.refusals) return false;
  if (entry.failed && !failures) return false;
  if (entry.task && !FINISHED.has(entry.task.status)) return false;
  if (entry.verdict && entry.verdict.verdict === "deny" && !failures) return false;
  if (ask && !(ask.settled?.allowed ?? failures)) return false;
  return !TELLING.has(kindOf(entry.name));
}

/** How long a call ran, without the time that it waited for an answer, in ms. */
export function runTime(entry: ToolEntry, ask: AskEntry | undefined): number | undefined {
  if (entry.ended === undefined) return undefined;
  return Math.max(0, entry.ended - entry.at - (ask?.settled?.waited ?? 0));
}

/** The place of the row with this event, or with the last one before it. */
export function rowAt(rows: readonly StoryRow[], seq: number): number {
  const exact = rows.findIndex((row) => row.kind === "entry" && row.entry.seq === seq);
  if (exact >= 0) return exact;
  return rows.findLastIndex((row) => {
    const of = row.kind === "run" ? row.calls[0]?.seq : row.entry.seq;
    return of !== undefined && of > 0 && of <= seq;
  });
}
