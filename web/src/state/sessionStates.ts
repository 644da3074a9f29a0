// The states of a session: for each code of the hub the word, the colour and the place in the list.
import type { SessionState } from "../api/types";
import { text } from "../text";
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

const words = text.states.sessions;
const STATES: Record<SessionState, StateInfo> = {
  waiting: { label: words.waiting, tone: "wait", urgency: 0, busy: true },
  disconnected: { label: words.disconnected, tone: "bad", urgency: 1, busy: false },
  retrying: { label: words.retrying, tone: "wait", urgency: 2, busy: true },
  rate_limited: { label: words.rate_limited, tone: "wait", urgency: 2, busy: true },
  working: { label: words.working, tone: "work", urgency: 3, busy: true },
  compacting: { label: words.compacting, tone: "work", urgency: 3, busy: true },
  starting: { label: words.starting, tone: "work", urgency: 3, busy: false },
  idle: { label: words.idle, tone: "idle", urgency: 4, busy: false },
  ended: { label: words.ended, tone: "ended", urgency: 5, busy: false },
};

/** What is known of a state. A code that this version does not know is shown as it is, and last. */
export function stateOf(code: string): StateInfo {
  return lookup(STATES, code) ?? { label: code, tone: "ended", urgency: 6, busy: false };
}
