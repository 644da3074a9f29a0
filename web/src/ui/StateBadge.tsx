import type { SessionState } from "../api/types";
import { stateOf } from "../state/sessionStates";

/** A session's state, in colour and in words. */
export function StateBadge({ state }: { state: SessionState }) {
  const { label, tone } = stateOf(state);
  return (
    <span className="badge" data-tone={tone}>
      <span className="dot" aria-hidden="true" />
      {label}
    </span>
  );
}
