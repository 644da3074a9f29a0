// Where a text can be taken apart, and what would take too long to parse.
//
// An agent's text is untrusted: the parser needs seconds for some kilobytes of marks that never
// close, and for lists in lists in lists. So a text is parsed in slices, each of which is checked
// first, in linear time. One that would take long is shown as it is.

/** The longest slice that is parsed, in letters; a list or a table of some hundred lines fits. */
export const LONGEST = 20_000;
/** The same for text that grows: its last part is parsed again with each piece that comes. */
export const LONGEST_LIVE = 8_000;

/** What the parser compares with each other or copies often, and how many of it a slice may have. */
const LIMITS: readonly (readonly [RegExp, number])[] = [
  [/\n/g, 1_000],
  [/[*_~]+/g, 1_000],
  [/[[\]]/g, 1_500],
  [/</g, 500],
  [/\$|\\[([]/g, 400],
  [/\|/g, 3_000],
  [/`{4,}/g, 20],
  [/^ {0,3}(?:=+|-+)[ \t]*$/gm, 200],
  [/^[ \t>]*\[[^\]\n]{1,999}\]:/gm, 100],
  [/(?:^|[ \t>])(?:[-+*]|\d{1,9}[.)])[ \t]/gm, 500],
];
/** Quotes and lists nested deeper than people write: in one line, or by indentation. */
const TOO_DEEP = /^(?:[ \t]{0,4}(?:>|[-+*][ \t]|\d{1,9}[.)][ \t])){11}|^[ \t]{41,}(?:[-+*]|\d)/m;

/** Whether a slice can be parsed in an instant. */
export function isTame(text: string, longest = LONGEST): boolean {
  if (text.length > longest || TOO_DEEP.test(text)) return false;
  return LIMITS.every(([pattern, most]) => !exceeds(text, pattern, most));
}

function exceeds(text: string, pattern: RegExp, most: number): boolean {
  let found = 0;
  for (const _ of text.matchAll(pattern)) if (++found > most) return true;
  return false;
}

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
/** A line that can belong to a list or a quote above a blank line. */
const CONTINUES = /^(?:[ \t]|>|[-+*](?:[ \t]|$)|\d{1,9}[.)](?:[ \t]|$)|$)/;
/** HTML, which may go on after a blank line, and has no fences: nothing behind it is taken apart. */
const HTML = /^ {0,3}<(?!https?:|mailto:)[a-z/!?]/i;

/**
 * A text in parts that mean the same alone as together: each begins after a blank line, with a line
 * that can belong to nothing before it. Names of links are not looked at.
 */
export function slicesOf(text: string): string[] {
  const slices: string[] = [];
  let begin = 0;
  let at = 0;
  let fence: string | undefined;
  let blank = false;
  let inList = false;
  while (at < text.length) {
    const end = text.indexOf("\n", at);
    const next = end < 0 ? text.length : end + 1;
    // Only the beginning of a line matters, and a line may be very long.
    const line = text.slice(at, Math.min(next, at + 200)).replace(/\r?\n$/, "");
    if (fence === undefined) {
      const continues = CONTINUES.test(line);
      if (blank && at > begin && line !== "" && !(continues && inList)) {
        slices.push(text.slice(begin, at));
        begin = at;
        inList = false;
      }
      inList ||= continues && line.trim() !== "";
      if (HTML.test(line)) break;
      fence = FENCE.exec(line)?.[1];
    } else if (closes(line, fence)) {
      fence = undefined;
    }
    blank = line.trim() === "" && next - at < 200;
    at = next;
  }
  slices.push(text.slice(begin));
  return slices;
}

function closes(line: string, fence: string): boolean {
  const found = FENCE.exec(line)?.[1];
  return found?.startsWith(fence) === true && line.trim() === found;
}

/** Letters of a piece of a text that is not parsed. */
const PIECE = 3_000;

/**
 * A long text in pieces that end with a blank or a line, where there is one. The pieces of a text that
 * grows stay the same, but for the last.
 */
export function piecesOf(text: string): string[] {
  const pieces: string[] = [];
  let begin = 0;
  while (text.length - begin > PIECE) {
    const part = text.slice(begin, begin + PIECE);
    const line = part.lastIndexOf("\n");
    const end = line > PIECE / 2 ? line : part.lastIndexOf(" ");
    const next = begin + (end > 0 ? end + 1 : PIECE);
    pieces.push(text.slice(begin, next));
    begin = next;
  }
  pieces.push(text.slice(begin));
  return pieces;
}
