// Visible marks for characters that are invisible, or that change how others are displayed.
//
// The texts come from an agent, and a person decides by them. `src/quarterdeck/domain/marks.py` has
// the same table and rules for the terminal; tests/fixtures/marks.json checks that both behave alike.
import { text as words } from "../text";
import { looksLike, suspicious } from "./lookAlikes";

/** A piece of a text. `text` is the original; `mark`, if there is one, is shown in its place. */
export interface Segment {
  text: string;
  mark?: string;
  /** The ASCII character that it looks like, if that is why it is marked. */
  like?: string;
}

/** The longest run of blanks that is shown as it is: at the beginning of a line, and elsewhere. */
const LONGEST_INDENT = 80;
const LONGEST_RUN = 20;
const MOST_EMPTY_LINES = 3;
/** Up to so many equal marks in a row are written out; more are counted. */
const MOST_REPEATS = 3;
const MOST_COMBINING = 3;

/** First and last code point of characters that are marked, unless they are in place. */
export const MARKED: readonly (readonly [number, number])[] = [
  [0x0000, 0x0008], // control characters but for tab and newline
  [0x000b, 0x001f],
  [0x007f, 0x00a0], // … and the no-break space
  [0x00ad, 0x00ad], // soft hyphen
  [0x034f, 0x034f],
  [0x0600, 0x0605],
  [0x061c, 0x061c],
  [0x06dd, 0x06dd],
  [0x070f, 0x070f],
  [0x0890, 0x0891],
  [0x08e2, 0x08e2],
  [0x115f, 0x1160], // letters that are blank
  [0x1680, 0x1680],
  [0x17b4, 0x17b5],
  [0x180b, 0x180f],
  [0x2000, 0x200f], // blanks of other widths, joiners, directions
  [0x2028, 0x202f], // line separators, bidirectional embeddings and overrides
  [0x205f, 0x206f], // … and isolates
  [0x2800, 0x2800], // a braille pattern without dots
  [0x3000, 0x3000],
  [0x3164, 0x3164],
  [0xd800, 0xf8ff], // halves of surrogate pairs, private use
  [0xfe00, 0xfe0f], // variation selectors
  [0xfeff, 0xfeff],
  [0xffa0, 0xffa0],
  [0xfff0, 0xfffb],
  [0xfffe, 0xffff],
  [0x110bd, 0x110bd],
  [0x110cd, 0x110cd],
  [0x13430, 0x1343f],
  [0x16fe4, 0x16fe4],
  [0x1bca0, 0x1bca3],
  [0x1d159, 0x1d159],
  [0x1d173, 0x1d17a],
  [0xe0000, 0xe0fff], // tag characters, more variation selectors
  [0xf0000, 0x10ffff], // private use
];

const FOUND = new RegExp(
  `[ \\t]*\\n[ \\t\\n]*|[ \\t]{${LONGEST_RUN + 1},}|[${classOf(MARKED)}]+` +
    `|[\\u0300-\\u036f\\u1ab0-\\u1aff\\u1dc0-\\u1dff\\u20d0-\\u20ff\\ufe20-\\ufe2f]{${MOST_COMBINING + 1},}`,
  "gu",
);
/** The characters beside which a variation selector or joiner makes an emoji. */
const PICTURE =
  /[\u{a9}\u{ae}\u{203c}\u{2049}\u{2122}\u{2139}\u{2190}-\u{21ff}\u{2300}-\u{23ff}\u{24c2}\u{25a0}-\u{27bf}\u{2900}-\u{297f}\u{2b00}-\u{2bff}\u{3030}\u{303d}\u{3297}\u{3299}\u{1f000}-\u{1faff}]/u;
/** Letters of scripts that are written with joiners: Arabic and its relatives, the scripts of India. */
const JOINED = /[\u{620}-\u{8ff}\u{900}-\u{dff}]/u;

function classOf(ranges: readonly (readonly [number, number])[]): string {
  return ranges.map(([a, b]) => `\\u{${a.toString(16)}}-\\u{${b.toString(16)}}`).join("");
}

/**
 * A text in pieces; their `text` joined is the text. In code, every character that looks like another is
 * marked; in prose, only those within a word of ASCII letters.
 */
export function segmentsOf(text: string, code = false): Segment[] {
  return hiddenSegments(text).flatMap((one) =>
    one.mark === undefined ? withLookAlikes(one.text, code) : [one],
  );
}

function withLookAlikes(text: string, code: boolean): Segment[] {
  const places = suspicious(text, code);
  if (!places.length) return [{ text }];
  const found: Segment[] = [];
  let from = 0;
  for (const at of places) {
    const character = String.fromCodePoint(text.codePointAt(at) ?? 0);
    if (at > from) found.push({ text: text.slice(from, at) });
    const mark = `⟨U+${hex(character.codePointAt(0) ?? 0)}⟩`;
    found.push({ text: character, mark, like: looksLike(character) ?? "" });
    from = at + character.length;
  }
  if (from < text.length) found.push({ text: text.slice(from) });
  return found;
}

function hiddenSegments(text: string): Segment[] {
  const found: Segment[] = [];
  const add = (piece: string, mark?: string): void => {
    const last = found.at(-1);
    if (mark !== undefined) found.push({ text: piece, mark });
    else if (last && last.mark === undefined) last.text += piece;
    else if (piece) found.push({ text: piece });
  };
  let at = 0;
  for (const match of text.matchAll(FOUND)) {
    const end = match.index + match[0].length;
    add(text.slice(at, match.index));
    if (/[ \t\n]/.test(match[0])) blanks(match[0], match.index === 0, end === text.length, add);
    else hidden(text, match.index, end, add);
    at = end;
  }
  add(text.slice(at));
  return found;
}

/** The first lines for display, and how many lines of the text come after them. */
export function cutAt(segments: readonly Segment[], lines: number): [Segment[], number] {
  const first: Segment[] = [];
  let left = lines;
  for (const [index, one] of segments.entries()) {
    const ends = one.mark === undefined ? one.text.split("\n") : [one.text];
    if (ends.length > left) {
      const text = ends.slice(0, left).join("\n");
      const rest = [
        ends.slice(left).join("\n"),
        ...segments.slice(index + 1).map(({ text: more }) => more),
      ].join("");
      if (rest) return [[...first, { text }], lineCount(rest)];
    }
    left -= ends.length - 1;
    first.push(one);
  }
  return [first, 0];
}

/** How many lines a text has; a final newline does not start another. */
export function lineCount(text: string): number {
  return text === "" ? 0 : text.replace(/\n$/, "").split("\n").length;
}

/** The text with marks in it, for places that take no elements: labels and tooltips. */
export function withMarks(text: string, code = false): string {
  return segmentsOf(text, code)
    .map((one) => one.mark ?? one.text)
    .join("");
}

export function hasMarks(text: string, code = false): boolean {
  return segmentsOf(text, code).some((one) => one.mark !== undefined);
}

/** JSON with every such character escaped: the same value, and all of it is visible while editing. */
export function escapedJson(json: string): string {
  return segmentsOf(json, true)
    .map(({ text, mark }) =>
      mark?.startsWith("⟨")
        ? text.replace(/[\s\S]/g, (unit) => `\\u${hex(unit.charCodeAt(0))}`)
        : text,
    )
    .join("");
}

type Add = (piece: string, mark?: string) => void;

/** Blanks and newlines: long runs would push the rest out of sight. */
function blanks(run: string, first: boolean, last: boolean, add: Add): void {
  const lines = run.split("\n");
  const line = (piece: string, most: number): void =>
    piece.length > most ? add(piece, words.parts.blanks(piece.length)) : add(piece);
  if (lines.length === 1) return line(run, first && !last ? LONGEST_INDENT : LONGEST_RUN);
  line(lines[0] ?? "", LONGEST_RUN);
  add("\n");
  const inner = lines.slice(1, -1);
  if (inner.length > MOST_EMPTY_LINES) {
    add(inner.join("\n"), words.parts.emptyLines(inner.length));
    add("\n");
  } else {
    for (const one of inner) {
      line(one, LONGEST_RUN);
      add("\n");
    }
  }
  line(lines.at(-1) ?? "", last ? LONGEST_RUN : LONGEST_INDENT);
}

/** Invisible characters, each as its code point. */
function hidden(text: string, start: number, end: number, add: Add): void {
  const characters = [...text.slice(start, end)];
  let before = [...text.slice(Math.max(0, start - 2), start)].at(-1) ?? "";
  for (let at = 0; at < characters.length; ) {
    const character = characters[at] ?? "";
    const next = characters[at + 1] ?? [...text.slice(end, end + 2)].at(0) ?? "";
    if (inPlace(character, before, next)) {
      add(character);
      before = character;
      at += 1;
      continue;
    }
    let upto = at + 1;
    while (characters[upto] === character) upto += 1;
    const count = upto - at;
    const name = `U+${hex(character.codePointAt(0) ?? 0)}`;
    if (count > MOST_REPEATS) add(character.repeat(count), `⟨${name} ×${count}⟩`);
    else for (let i = 0; i < count; i++) add(character, `⟨${name}⟩`);
    before = character;
    at = upto;
  }
}

const hex = (code: number): string => code.toString(16).toUpperCase().padStart(4, "0");

/** Whether a selector or a joiner is in its usual place: in an emoji, or within a word of such a script. */
function inPlace(character: string, before: string, next: string): boolean {
  switch (character) {
    case "\ufe0e":
    case "\ufe0f":
      return PICTURE.test(before) || (/[0-9#*]/.test(before) && next === "\u20e3");
    case "\u200d":
      if ((PICTURE.test(before) || before === "\ufe0f") && PICTURE.test(next)) return true;
      return JOINED.test(before) && JOINED.test(next);
    case "\u200c":
      return JOINED.test(before) && JOINED.test(next);
    default:
      return false;
  }
}
