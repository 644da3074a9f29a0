// Comments on lines, until they are sent as one prompt. They are in the browser's storage, so that a
// closed page loses none.
import { useSyncExternalStore } from "react";

export interface Comment {
  path: string;
  side: "before" | "after";
  line: number;
  /** The line that it is about. */
  code: string;
  text: string;
}

/** Logging out removes what begins like this. */
const KEY = "quarterdeck.draft.review.";
const NONE: readonly Comment[] = [];
const known = new Map<string, readonly Comment[]>();
const listeners = new Set<() => void>();

export const commentKey = (one: Pick<Comment, "path" | "side" | "line">): string =>
  `${one.side}:${one.line}:${one.path}`;

export function commentsOf(session: string): readonly Comment[] {
  let found = known.get(session);
  if (!found) {
    found = load(session);
    known.set(session, found);
  }
  return found;
}

function load(session: string): readonly Comment[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KEY + session) ?? "[]");
    return Array.isArray(found) ? (found as Comment[]) : NONE;
  } catch {
    return NONE;
  }
}

function save(session: string, comments: readonly Comment[]): void {
  known.set(session, comments);
  try {
    if (comments.length) localStorage.setItem(KEY + session, JSON.stringify(comments));
    else localStorage.removeItem(KEY + session);
  } catch {
    // Too large for the storage: it is still in memory.
  }
  for (const listener of listeners) listener();
}

/** Set the comment on a line; an empty one is removed. */
export function setComment(session: string, comment: Comment): void {
  const others = commentsOf(session).filter((one) => commentKey(one) !== commentKey(comment));
  save(session, comment.text.trim() ? [...others, comment] : others);
}

export const clearComments = (session: string): void => save(session, NONE);

export function useComments(session: string): readonly Comment[] {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => commentsOf(session),
  );
}

/** One prompt of all comments, by file and line. */
export function promptOf(comments: readonly Comment[], intro: string, wasBefore: string): string {
  const sorted = [...comments].sort(
    (one, other) => one.path.localeCompare(other.path) || one.line - other.line,
  );
  const parts = sorted.map((one) => {
    const where = `${one.path}:${one.line}${one.side === "before" ? ` (${wasBefore})` : ""}`;
    return `${where}\n> ${one.code.slice(0, 500)}\n${one.text.trim()}`;
  });
  return [intro, ...parts].join("\n\n");
}
