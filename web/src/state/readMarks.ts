// Up to which event each session has been read. Kept in the browser's storage, and by the hub for the
// person's other devices.
import type { AppState } from "./appState";
import { lookup } from "./lookup";
import type { Slice } from "./observable";
import { personal } from "./personal";

export type ReadMarks = Readonly<Record<string, number>>;

const KEY = "quarterdeck.seen";

export function loadReadMarks(): ReadMarks {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? "") as ReadMarks;
  } catch {
    return {};
  }
}

/** The number of the last event of a session that is known; undefined for an unknown session. */
export function lastSeq(
  { sessions, activity }: Pick<AppState, "sessions" | "activity">,
  session: string,
): number | undefined {
  const head = sessions.get(session)?.head;
  return head === undefined ? undefined : Math.max(head, activity.get(session)?.seq ?? 0);
}

/** Whether something that tells a person anything has happened in a session since it was read. */
export function isUnread(
  { sessions, activity, read }: Pick<AppState, "sessions" | "activity" | "read">,
  session: string,
): boolean {
  const news = Math.max(sessions.get(session)?.news ?? 0, activity.get(session)?.seq ?? 0);
  return news > (lookup(read, session) ?? 0);
}

/** The session is on the screen: all of it that is known counts as read. */
export function markRead(
  state: Slice<Pick<AppState, "read" | "sessions" | "activity">>,
  session: string,
): void {
  const { read } = state.get();
  const last = lastSeq(state.get(), session);
  if (last === undefined || lookup(read, session) === last) return;
  keep(state, session, last);
  personal.read(session, last);
}

/** Another device has shown the session up to this event. */
export function readElsewhere(
  state: Slice<Pick<AppState, "read">>,
  session: string,
  seq: number,
): void {
  if (seq > (lookup(state.get().read, session) ?? 0)) keep(state, session, seq);
}

function keep(state: Slice<Pick<AppState, "read">>, session: string, seq: number): void {
  const next = { ...state.get().read, [session]: seq };
  state.set({ read: next });
  localStorage.setItem(KEY, JSON.stringify(next));
}
