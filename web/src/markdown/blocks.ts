// Markdown in blocks, for text that grows while it is read: a pure fold over the text so far.
//
// A top-level block that another one follows never changes again. So only the last block is parsed
// when more text comes, and the renderer sees by identity which blocks are unchanged.
import type { Definition, Nodes, Root, RootContent } from "mdast";
import { fromMarkdown } from "mdast-util-from-markdown";
import { gfmFromMarkdown } from "mdast-util-gfm";
import { gfm } from "micromark-extension-gfm";
import remend from "remend";
import { maths, mathsFromMarkdown } from "./maths";
import { isTame, LONGEST, LONGEST_LIVE, slicesOf } from "./slices";

declare module "mdast" {
  interface ParagraphData {
    /** Whether the text was not parsed: its lines are drawn as they are. */
    asItIs?: boolean;
  }
}

export interface Block {
  /** Its offset in the text: its key while the text grows. */
  start: number;
  node: RootContent;
}

export interface Parsed {
  text: string;
  live: boolean;
  blocks: readonly Block[];
}

export const NO_SESSIONS: Parsed = { text: "", live: true, blocks: [] };

/** The blocks of a text that is complete. */
export function parse(text: string): Parsed {
  const slicing = sliced(text);
  while (!slicing.done) slicing.more(Number.POSITIVE_INFINITY);
  return { text, live: false, blocks: slicing.blocks() };
}

/** A text that is parsed in slices, so that a page can answer to a person between two of them. */
export interface Slicing {
  /** Whether all of it is parsed. */
  done: boolean;
  /** Parse for about so many milliseconds: one slice at least. */
  more(milliseconds: number): void;
  /** What is parsed, and the rest as it is. */
  blocks(): readonly Block[];
}

/** Begin to parse a text that is complete; `at` is where it begins in a longer one. */
export function sliced(text: string, at = 0): Slicing {
  // A link reference can be defined anywhere and used everywhere: that takes the whole text.
  const whole = isTame(text, DEFINES.test(text) ? LONGEST : SMALL);
  const waiting = whole ? [text] : slicesOf(text);
  const blocks: Block[] = [];
  let offset = 0;
  let next = 0;
  const slicing: Slicing = {
    done: waiting.length === 0,
    more(milliseconds) {
      const end = performance.now() + milliseconds;
      do {
        const slice = waiting[next++] ?? "";
        blocks.push(...blocksIn(slice, slice, at + offset));
        offset += slice.length;
        slicing.done = next >= waiting.length;
      } while (!slicing.done && performance.now() < end);
    },
    blocks() {
      if (slicing.done) return blocks;
      return [...blocks, { start: at + offset, node: asItIs(text.slice(offset)) }];
    },
  };
  return slicing;
}

/** A text that is parsed at once: most are shorter. */
const SMALL = 4_000;

/** The blocks of a text that has grown, from the blocks of its beginning. */
export function grow(before: Parsed, text: string): Parsed {
  if (before.live && before.text === text) return before;
  const [done, open] = settled(before, text);
  const rest = text.slice(open);
  const fence = openFence(rest);
  if (fence) return { text, live: true, blocks: [...done, { start: open, node: fence }] };
  if (!isTame(rest, LONGEST_LIVE)) {
    return { text, live: true, blocks: [...done, { start: open, node: asItIs(rest) }] };
  }
  const last = blocksIn(remend(rest, MENDED), rest, open);
  return { text, live: true, blocks: [...done, ...last] };
}

/** The blocks of a text that has grown and is complete now. */
export function finish(before: Parsed, text: string): Parsed {
  const [done, slicing] = finishing(before, text);
  while (!slicing.done) slicing.more(Number.POSITIVE_INFINITY);
  return { text, live: false, blocks: [...done, ...slicing.blocks()] };
}

/** The same in slices: the blocks that stay, and what is left to parse. */
export function finishing(before: Parsed, text: string): [readonly Block[], Slicing] {
  if (DEFINES.test(text)) return [[], sliced(text)];
  const [done, open] = settled(before, text);
  return [done, sliced(text.slice(open), open)];
}

/** The blocks that no longer text changes: all but the last, and where that one begins. */
function settled(before: Parsed, text: string): [readonly Block[], number] {
  const open = before.blocks.at(-1)?.start ?? 0;
  const fits = before.live && text.startsWith(before.text.slice(0, open));
  return fits ? [before.blocks.slice(0, -1), open] : [[], 0];
}

/** Open marks are closed for display; nothing else in the text is changed. */
const MENDED = {
  comparisonOperators: false,
  singleTilde: false,
  katex: false,
  linkMode: "text-only",
} as const;
const DEFINES = /^ {0,3}\[[^\]\n]+\]:/m;
const FENCE = /^ {0,3}(`{3,}|~{3,})[ \t]*([^\s`]*)[^\n`]*\n/;

/** Code that is being generated, which may be long: it is not parsed. */
function openFence(text: string): RootContent | undefined {
  const [head, fence, lang] = FENCE.exec(text) ?? [];
  if (head === undefined || fence === undefined) return undefined;
  const code = text.slice(head.length);
  const closing = new RegExp(`^ {0,3}\\${fence[0]}{${fence.length},}[ \\t]*$`, "m");
  if (closing.test(code)) return undefined;
  return { type: "code", lang: lang || null, value: code.replace(/\n$/, "") };
}

/** `text` parsed, of which `given` is what was said; `at` is where that begins. */
function blocksIn(text: string, given: string, at: number): Block[] {
  const { children } = linked(tree(text));
  const blocks = children.map((node) => ({ start: at + (node.position?.start.offset ?? 0), node }));
  // If anything but the end differed, the offsets would be wrong.
  const last = (blocks.at(-1)?.start ?? at) - at;
  if (text === given || text.slice(0, last) === given.slice(0, last)) return blocks;
  return blocksIn(given, given, at);
}

const MICROMARK = {
  extensions: [gfm({ singleTilde: false }), maths],
  mdastExtensions: [gfmFromMarkdown(), mathsFromMarkdown],
};

function tree(text: string): Root {
  const code = onlyFence(text);
  if (code) return { type: "root", children: [code] };
  try {
    if (isTame(text)) return fromMarkdown(text, MICROMARK);
  } catch {
    // A text that the parser rejects is shown as it is, too.
  }
  return { type: "root", children: [asItIs(text)] };
}

/** A text that is not parsed. Its lines are kept. */
function asItIs(text: string): RootContent {
  return { type: "paragraph", children: [{ type: "text", value: text }], data: { asItIs: true } };
}

/** Code that is longer than what is parsed. */
function onlyFence(text: string): RootContent | undefined {
  if (text.length <= LONGEST) return undefined;
  const found = /\n {0,3}(`{3,}|~{3,})[ \t]*\s*$/.exec(text.slice(-200));
  return openFence(found ? text.slice(0, text.length - 200 + found.index) : text);
}

/** With the references replaced by their links. */
function linked(root: Root): Root {
  const names = new Map<string, Definition>();
  const collect = (node: Nodes): void => {
    if (node.type === "definition" && !names.has(node.identifier)) names.set(node.identifier, node);
    if ("children" in node) node.children.forEach(collect);
  };
  if (root.children.some((node) => DEFINING.has(node.type))) collect(root);
  if (names.size) resolve(root, names);
  return root;
}

/** Blocks in which a definition can stand. */
const DEFINING = new Set(["definition", "blockquote", "list", "footnoteDefinition"]);

function resolve(node: Nodes, names: ReadonlyMap<string, Definition>): void {
  if (!("children" in node)) return;
  const children = node.children as Nodes[];
  children.forEach((child, index) => {
    resolve(child, names);
    if (child.type !== "linkReference" && child.type !== "imageReference") return;
    const url = names.get(child.identifier)?.url ?? "";
    children[index] =
      child.type === "linkReference"
        ? { type: "link", url, children: child.children }
        : { type: "image", url, alt: child.alt ?? null };
  });
}
