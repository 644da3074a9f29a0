// The sessions whose children are not shown in the list: stored in this browser.
import { Observable, useObservable } from "./observable";

const KEY = "quarterdeck.folded";
/** Sessions that are deleted are never unfolded: the oldest are forgotten. */
const MOST = 500;

export type Folded = ReadonlySet<string>;

export const NONE_FOLDED: Folded = new Set();

export function loadFolded(): Folded {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return new Set(Array.isArray(stored) ? stored.filter((one) => typeof one === "string") : []);
  } catch {
    return NONE_FOLDED;
  }
}

const state = new Observable<{ folded: Folded }>({ folded: loadFolded() });

/** Fold a session if it is not, else unfold it. */
export function toggleFolded(session: string): void {
  const next = new Set(state.get().folded);
  if (!next.delete(session)) next.add(session);
  const kept = [...next].slice(-MOST);
  state.set({ folded: new Set(kept) });
  localStorage.setItem(KEY, JSON.stringify(kept));
}

export const useFolded = (): Folded => useObservable(state, (now) => now.folded);
