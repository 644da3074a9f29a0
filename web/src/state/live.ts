// Text that is still being made: delivered as it comes, and dropped when the whole message is there.
import type { Delta, Stored } from "../api/types";
import { isObject, text } from "./lines";

export interface LiveBlock {
  key: string;
  message: string;
  block: number;
  thinking: boolean;
  text: string;
}
export type Live = readonly LiveBlock[];

export const SILENT: Live = [];

const keyOf = (delta: Delta): string =>
  `${delta.message}/${delta.block ?? 0}/${delta.thinking ? "t" : ""}`;

/** The live text with these deltas added; with `whole` each is all there is of its block. */
export function heard(live: Live, deltas: readonly Delta[], whole: boolean): Live {
  const next = [...live];
  for (const delta of deltas) {
    const key = keyOf(delta);
    const index = next.findIndex((block) => block.key === key);
    const before = next[index];
    if (before) {
      next[index] = { ...before, text: whole ? delta.text : before.text + delta.text };
    } else {
      next.push({
        key,
        message: delta.message,
        block: delta.block ?? 0,
        thinking: delta.thinking ?? false,
        text: delta.text,
      });
    }
  }
  return next;
}

/** What of the live text is left after these events. */
export function superseded(live: Live, events: readonly Stored[]): Live {
  if (!live.length) return live;
  let left = live;
  for (const { event } of events) {
    if (event.kind === "turn.ended" || event.kind === "run.ended") return SILENT;
    if (event.kind !== "said" || !isObject(event.line) || event.line.type !== "assistant") continue;
    const message = isObject(event.line.message) ? event.line.message : {};
    const names = new Set([text(message.id), text(event.line.parent_tool_use_id)]);
    const kinds = new Set(
      (Array.isArray(message.content) ? message.content : [])
        .filter(isObject)
        .map((block) => block.type === "thinking"),
    );
    // The CLI says each block of a message as soon as that block is complete.
    left = left.filter((block) => !(names.has(block.message) && kinds.has(block.thinking)));
  }
  return left.length === live.length ? live : left;
}
