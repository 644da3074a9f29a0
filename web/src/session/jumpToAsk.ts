// The way to a question that a person wants to see: it may be in a session that is still to be opened,
// and in a row that is still to be drawn.
import { useSyncExternalStore } from "react";

let wanted: string | undefined;
const listeners = new Set<() => void>();

function set(ask: string | undefined): void {
  wanted = ask;
  for (const listener of listeners) listener();
}

/** Show this question, and give it the focus, as soon as it is there. */
export const jumpTo = (ask: string): void => set(ask);

/** It is shown. */
export function jumpReached(ask: string): void {
  if (wanted === ask) set(undefined);
}

/** A person does something else: nothing takes the focus from there any more. */
export function cancelJump(): void {
  if (wanted !== undefined) set(undefined);
}

/** The question that is wanted, if one is. */
export function useJumpTarget(): string | undefined {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => wanted,
  );
}
