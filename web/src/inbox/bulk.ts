// Which questions can be answered together: calls of one tool, each of them shown whole. Pure.
import type { Ask } from "../api/types";
import { contentOf, FIRST_LINES, hiddenLines } from "../asks/callContent";
import { inputOf } from "../asks/request";

type Asks = ReadonlyMap<string, Ask>;

/**
 * Whether a question can be answered by a choice for several: a call whose card shows all of it without a
 * further click. A call that replaces a file is not: its card shows another change when the file changes.
 */
export function mayBeSelected({ opened }: Ask): boolean {
  if (opened.ask_kind !== "tool" || opened.tool === "Write") return false;
  return hiddenLines(contentOf(opened.tool, inputOf(opened)), FIRST_LINES) === 0;
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
