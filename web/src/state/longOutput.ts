// Output that the CLI stored in a file, because it was too long for the model. Pure.
import { text as words } from "../text";
import { isObject, number, text } from "./contentBlocks";

export interface LongOutput {
  /** What there is of it: the beginning. */
  preview: string;
  path: string;
  /** In words for a person; empty if the CLI does not tell it. */
  size: string;
}

const WRAPPED = /^<persisted-output>\n?([\s\S]*?)\n?<\/persisted-output>\s*$/;
const HEAD = /^Output too large \(([^)\n]{1,40})\)\. Full output saved to: ([^\n]+)\n*/;
const PREVIEW = /^Preview \(first [^)\n]{1,40}\):\n/;

/** What a result says of a file with all of it; undefined if the result is all of it. */
export function longOutput(result: string, structured: unknown): LongOutput | undefined {
  const [, inner] = WRAPPED.exec(result) ?? [];
  if (inner === undefined) return undefined;
  const [head = "", size = "", path = ""] = HEAD.exec(inner) ?? [];
  const rest = inner.slice(head.length).replace(PREVIEW, "");
  // Newer versions also give a longer beginning, for clients that show the call.
  const known = isObject(structured) ? structured : {};
  const more = text(known.stdout);
  const stored = number(known.persistedOutputSize);
  return {
    preview: (more.length > rest.length ? more : rest).replace(/\n\.\.\.\n?$/, ""),
    path: path || text(known.persistedOutputPath),
    size: size || (stored === undefined ? "" : words.numbers.kilobytes(Math.ceil(stored / 1024))),
  };
}

/** Letters of a piece that is drawn as one. */
const PIECE = 100_000;

/** A long text in pieces of whole lines, where these are not longer than a piece. */
export function linesIn(output: string): string[] {
  const pieces: string[] = [];
  for (let begin = 0; begin < output.length; ) {
    const line = output.lastIndexOf("\n", begin + PIECE - 1);
    const rest = output.length - begin <= PIECE;
    const end = rest ? output.length : line > begin ? line + 1 : begin + PIECE;
    pieces.push(output.slice(begin, end));
    begin = end;
  }
  return pieces;
}

/** The last lines of a text that is not empty, and how many lines it has. */
export function lastLines(output: string, most: number): { lines: string[]; count: number } {
  const lines = output.replace(/\r\n?/g, "\n").replace(/\s+$/, "").split("\n");
  if (lines.length === 1 && !lines[0]) return { lines: [], count: 0 };
  return { lines: lines.slice(-most), count: lines.length };
}
