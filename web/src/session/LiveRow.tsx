import type { Session } from "../api/types";
import { activityOf } from "../state/activity";
import { isBusy } from "../state/sessions";
import { useRights } from "../state/store";
import type { Story } from "../state/story";
import { text } from "../text";
import { duration, elapsed, tokens } from "../ui/format";
import { Marked } from "../ui/Marked";
import { withMarks } from "../ui/marks";
import { useNow } from "../ui/useNow";
import styles from "./live.module.css";

/** Whether the agent does something that a person can watch. */
export function isLive(session: Session): boolean {
  return isBusy(session) || session.state === "starting";
}

/** What the agent does right now, at the end of the story. */
export function LiveRow(props: { session: Session; story: Story; writing: boolean }) {
  const { session, story } = props;
  const now = useNow(1);
  const steer = useRights().includes("steer");
  const { what } = activityOf(session, false);
  const said = wordsOf(session, props.writing);
  const began = story.turn?.began ?? session.since;
  const waited = story.turn?.waited ?? 0;
  const used = story.turn?.tokens ?? 0;
  return (
    <div className={styles.live} data-state={session.state} data-live-row>
      <span className={styles.pulse} aria-hidden="true" />
      <span className={styles.elapsed} role="timer">
        {elapsed(now - began)}
      </span>
      <span className={styles.what} title={what ? `${said}: ${withMarks(what, true)}` : said}>
        {said}
        {what && (
          <>
            : <Marked text={what} code />
          </>
        )}
        {waited > 1000 && ` · ${text.story.live.waited(duration(waited))}`}
      </span>
      <span className={styles.tokens}>{used > 0 && text.story.tokens(tokens(used))}</span>
      <span className={styles.end}>
        {steer && isBusy(session) && (
          <span className={styles.hint}>
            <kbd>{text.parts.escape}</kbd> {text.story.live.interrupt}
          </span>
        )}
      </span>
    </div>
  );
}

function wordsOf(session: Session, writing: boolean): string {
  const { live } = text.story;
  switch (session.state) {
    case "waiting":
      return live.waiting;
    case "retrying":
      return live.retrying;
    case "compacting":
      return live.compacting;
    case "starting":
      return live.starting;
    case "rate_limited":
      return live.limited;
    default:
      if (session.holds.tools.length) return live.working;
      return writing ? live.writing : live.thinking;
  }
}
