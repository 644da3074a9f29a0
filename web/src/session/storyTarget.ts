// The way to an event of a session: by a link, or by a search. Its row may still have to be loaded.
import { useSyncExternalStore } from "react";

export interface StoryTarget {
  session: string;
  seq: number;
  /** What to look for in the row. */
  words?: string;
}

let target: StoryTarget | undefined;
const listeners = new Set<() => void>();

/** Show this event as soon as it is loaded. */
export function goToEvent(wanted: StoryTarget | undefined): void {
  target = wanted;
  for (const listener of listeners) listener();
}

export function useStoryTarget(session: string): StoryTarget | undefined {
  const found = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => target,
  );
  return found?.session === session ? found : undefined;
}

/** The address of an event, for people who may see the session. */
export function eventLink(session: string, seq: number): string {
  return `${location.origin}/s/${encodeURIComponent(session)}?m=${seq}`;
}

/** The event that an address names. */
export function eventOf(search: string): number | undefined {
  const found = Number(new URLSearchParams(search).get("m"));
  return Number.isSafeInteger(found) && found > 0 ? found : undefined;
}
