// Text that is still being generated: added as it arrives, and dropped when the message is complete.
import type { Delta, Stored } from "../api/types";
import { type Block, blocksOf, isObject, text } from "./contentBlocks";

export interface LiveBlock {
  key: string;
  message: string;
  block: number;
  thinking: boolean;
  text: string;
}
export type Live = readonly LiveBlock[];

export const NO_BLOCKS: Live = [];

const keyOf = (delta: Delta): string =>
  `${delta.message}/${delta.block ?? 0}/${delta.thinking ? "t" : ""}`;

/** The live text with these deltas added; with `whole` each replaces its block. */
export function addDeltas(live: Live, deltas: readonly Delta[], whole: boolean): Live {
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

/** The live text that is left after these events. */
export function dropComplete(live: Live, events: readonly Stored[]): Live {
  if (!live.length) return live;
  let left = live;
  for (const { event } of events) {
    if (event.kind === "turn.ended" || event.kind === "run.ended") return NO_BLOCKS;
    if (event.kind !== "said" || !isObject(event.line) || event.line.type !== "assistant") continue;
    const message = isObject(event.line.message) ? event.line.message : {};
    const names = [text(message.id), text(event.line.parent_tool_use_id)];
    for (const block of blocksOf(message.content)) left = without(left, names, block);
  }
  return left.length === live.length ? live : left;
}

/** The CLI sends each block of a message when it is complete: its live text is how it begins. */
function without(live: Live, names: readonly string[], block: Block): Live {
  const thinking = block.type === "thinking";
  if (block.type !== "text" && !thinking) return live;
  const said = block.type === "text" ? block.text : block.thinking;
  const gone = live.find(
    (one) => names.includes(one.message) && one.thinking === thinking && said.startsWith(one.text),
  );
  return gone ? live.filter((one) => one !== gone) : live;
}
