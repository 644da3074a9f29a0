// Code that was coloured lately: a row that comes into sight again is drawn in its colours at once.

export interface Piece {
  content: string;
  style: Record<string, string>;
}
export interface Highlighted {
  code: string;
  language: string;
  lines: Piece[][];
}

const MOST = 300;

const kept = new Map<string, Highlighted>();
const nameOf = (code: string, language: string): string => `${language}\n${code}`;

export function known(code: string, language: string): Highlighted | undefined {
  return kept.get(nameOf(code, language));
}

/** Keep it; what was kept first goes when there is too much. */
export function remember(found: Highlighted): Highlighted {
  kept.set(nameOf(found.code, found.language), found);
  if (kept.size > MOST) kept.delete(kept.keys().next().value ?? "");
  return found;
}
