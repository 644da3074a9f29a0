// The list of sessions as the hub gives them, and how they are named and sorted for people. Pure.
import type { Session } from "../api/types";
import { stateOf } from "./sessionStates";

export type Sessions = ReadonlyMap<string, Session>;

export const NO_SESSIONS: Sessions = new Map();

/**
 * The known sessions with others from the hub. The greater `head` wins: an older view changes nothing.
 * Lists and the stream leave the offers out: those that are known stay.
 */
export function mergeSessions(known: Sessions, views: readonly Session[]): Sessions {
  const next = new Map(known);
  for (const view of views) {
    const before = next.get(view.session);
    if (before && before.head > view.head) {
      // Only what is read by itself has offers, and the stream may be ahead of it.
      if (view.offers) next.set(view.session, { ...before, offers: view.offers });
      continue;
    }
    next.set(view.session, { ...view, offers: view.offers ?? before?.offers ?? null });
  }
  return next;
}

/** The name of a session for people. */
export function nameOf(session: Session): string {
  if (session.name) return session.name;
  const folder = folderOf(session).split("/").filter(Boolean).at(-1);
  return folder ?? "session";
}

/** The folder that a session works in, or will work in. */
export function folderOf(session: Session): string {
  return session.directory ?? session.spec.directory ?? "/";
}

/** The folder or project that a session belongs to. */
export function projectOf(session: Session): string {
  return session.spec.project ?? folderOf(session);
}

/** Whether a turn is running: a new prompt is queued, and the turn can be interrupted. */
export function isBusy(session: Session): boolean {
  return stateOf(session.state).busy;
}

/** Agents waiting for a person first, then working ones, then the rest; newest first among equals. */
export function byUrgency(a: Session, b: Session): number {
  return stateOf(a.state).urgency - stateOf(b.state).urgency || b.updated - a.updated;
}
