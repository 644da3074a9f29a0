import type { Session, SessionState } from "../api/types";
import { activityOf } from "../state/activity";
import { stateOf, type Tone } from "../state/sessionStates";
import { css } from "./css";

/** A session's state, in colour and in words. */
export function StateBadge({ state }: { state: SessionState }) {
  const { label, tone } = stateOf(state);
  return <Badge label={label} tone={tone} />;
}

/** The same, with what the state alone does not tell: failed, needs login, a limit and its end. */
export function SessionBadge({ session }: { session: Session }) {
  const { label, tone } = activityOf(session, false);
  return <Badge label={label} tone={tone} />;
}

function Badge({ label, tone }: { label: string; tone: Tone }) {
  return (
    <span className={css.badge.badge} data-tone={tone}>
      <span className={css.badge.dot} aria-hidden="true" />
      {label}
    </span>
  );
}
