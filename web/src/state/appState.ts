// All that the page knows. Each member belongs to one part of the store, which alone changes it.

import type { Connection } from "../api/stream";
import type { Ask, Me } from "../api/types";
import { loadUnsent, type UnsentPrompts } from "./drafts";
import type { Settled } from "./entries";
import { loadReadMarks, type ReadMarks } from "./readMarks";
import { NO_SESSIONS, type Sessions } from "./sessions";
import type { Story } from "./story";

/** A session that is open in this page. */
export interface OpenSession {
  story: Story;
  /** Whether the hub has older events than those that are loaded. */
  older: boolean;
  loading: boolean;
  error: string | undefined;
}

/** The number and the time of an event. */
export interface Activity {
  seq: number;
  at: number;
}

/**
 * An answer on its way to the hub: held back, so that it can be taken back; waiting for a connection,
 * with the same; sent; or refused.
 */
export type Sending =
  | { state: "held"; until: number }
  | { state: "offline" }
  | { state: "sending" }
  | { state: "failed"; error: string };

export interface AppState {
  connection: Connection;
  me: Me | undefined;
  /** Whether the hub refused this browser's login. */
  loggedOut: boolean;
  /** The hub's views. */
  sessions: Sessions;
  /** The last event that the stream delivered of each session. */
  activity: ReadonlyMap<string, Activity>;
  /** Whether the sessions have been listed at least once. */
  listed: boolean;
  asks: ReadonlyMap<string, Ask>;
  settled: ReadonlyMap<string, Settled>;
  sending: ReadonlyMap<string, Sending>;
  open: ReadonlyMap<string, OpenSession>;
  read: ReadMarks;
  unsent: UnsentPrompts;
}

export const initialState = (): AppState => ({
  connection: "connecting",
  me: undefined,
  loggedOut: false,
  sessions: NO_SESSIONS,
  activity: new Map(),
  listed: false,
  asks: new Map(),
  settled: new Map(),
  sending: new Map(),
  open: new Map(),
  read: loadReadMarks(),
  unsent: loadUnsent(),
});
