// Which questions can be answered together: calls of one tool, each of them shown whole. Pure.
import type { Ask } from "../api/types";
import { contentOf, FIRST_LINES, hiddenLines, replacesAll } from "../asks/callContent";
import { inputOf } from "../asks/request";
import { CONTEXT } from "../session/Diff";

type Asks = ReadonlyMap<string, Ask>;

/** Tools whose effect depends on what is in the file: their input alone does not show it. */
const DEPENDS_ON_FILE: ReadonlySet<string> = new Set(["Write", "MultiEdit", "NotebookEdit"]);
/** Rows that the file adds to the change of an edit: unchanged lines before and after it. */
const AROUND = 2 * (CONTEXT + 1);

/**
 * Whether a question can be answered by a choice for several: a call whose card shows all of it without a
 * further click, whatever is in the file that it changes.
 */
export function mayBeSelected({ opened }: Ask): boolean {
  if (opened.ask_kind !== "tool" || DEPENDS_ON_FILE.has(opened.tool)) return false;
  const input = inputOf(opened);
  const edit = opened.tool === "Edit";
  if (edit && replacesAll(input)) return false;
  return hiddenLines(contentOf(opened.tool, input), FIRST_LINES - (edit ? AROUND : 0)) === 0;
}

/** Whether a question can join those that are selected: it must be of the same tool. */
export function mayJoin(ask: Ask, selected: readonly string[], open: Asks): boolean {
  if (!mayBeSelected(ask)) return false;
  const [first] = selected;
  const tool = first === undefined ? undefined : open.get(first)?.opened.tool;
  return tool === undefined || tool === ask.opened.tool;
}

/** Those that are selected and still open. */
export function stillSelected(chosen: readonly string[], open: Asks): readonly string[] {
  return chosen.every((ask) => open.has(ask)) ? chosen : chosen.filter((ask) => open.has(ask));
}
