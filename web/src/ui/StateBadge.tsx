import type { SessionState } from "../api/types";
import { lookup } from "../state/lookup";

const TONES: Record<SessionState, string> = {
  "waiting for you": "wait",
  working: "work",
  compacting: "work",
  starting: "work",
  retrying: "wait",
  "rate limited": "wait",
  disconnected: "bad",
  idle: "idle",
  ended: "ended",
};

/** A session's state, in colour and in a word. */
export function StateBadge({ state }: { state: SessionState }) {
  return (
    <span className="badge" data-tone={lookup(TONES, state)}>
      <span className="dot" aria-hidden="true" />
      {state}
    </span>
  );
}
