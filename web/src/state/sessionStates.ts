// The states of a session: for each code of the hub the word, the colour and the place in the list.
import type { SessionState } from "../api/types";
import { lookup } from "./lookup";

export type Tone = "wait" | "work" | "bad" | "good" | "idle" | "ended";

export interface StateInfo {
  label: string;
  tone: Tone;
  /** The place in the list: lower is higher up. */
  urgency: number;
  /** Whether a turn is running. */
  busy: boolean;
}

const STATES: Record<SessionState, StateInfo> = {
  waiting: { label: "waiting for you", tone: "wait", urgency: 0, busy: true },
  disconnected: { label: "disconnected", tone: "bad", urgency: 1, busy: false },
  retrying: { label: "retrying", tone: "wait", urgency: 2, busy: true },
  rate_limited: { label: "rate limited", tone: "wait", urgency: 2, busy: true },
  working: { label: "working", tone: "work", urgency: 3, busy: true },
  compacting: { label: "compacting", tone: "work", urgency: 3, busy: true },
  starting: { label: "starting", tone: "work", urgency: 3, busy: false },
  idle: { label: "idle", tone: "idle", urgency: 4, busy: false },
  ended: { label: "ended", tone: "ended", urgency: 5, busy: false },
};

/** What is known of a state. A code that this version does not know is shown as it is, and last. */
export function stateOf(code: string): StateInfo {
  return lookup(STATES, code) ?? { label: code, tone: "ended", urgency: 6, busy: false };
}
