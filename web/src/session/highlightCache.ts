// Code that was highlighted recently: a row that scrolls into view again has its colours at once.

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

const cache = new Map<string, Highlighted>();
const nameOf = (code: string, language: string): string => `${language}\n${code}`;

export function cached(code: string, language: string): Highlighted | undefined {
  return cache.get(nameOf(code, language));
}

/** Keep it; the oldest entry goes when there are too many. */
export function addToCache(found: Highlighted): Highlighted {
  cache.set(nameOf(found.code, found.language), found);
  if (cache.size > MOST) cache.delete(cache.keys().next().value ?? "");
  return found;
}
