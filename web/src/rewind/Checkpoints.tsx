import { GitCompareArrows } from "lucide-react";
import { useCallback, useMemo } from "react";
import { Link } from "wouter";
import { get, sessionPath } from "../api/http";
import type { Session } from "../api/types";
import { nameOf, type Sessions } from "../state/sessions";
import { useAppState } from "../state/store";
import { text } from "../text";
import { css } from "../ui/css";
import { ErrorText } from "../ui/ErrorText";
import { clock, moment } from "../ui/format";
import { Icon } from "../ui/Icon";
import { Marked } from "../ui/Marked";
import { useQuery } from "../ui/useQuery";
import type { CheckpointList } from "./api";
import { PromptActions } from "./PromptActions";
import styles from "./rewind.module.css";

const words = text.rewind;

export const comparePath = (one: string, other: string): string =>
  `/compare/${encodeURIComponent(one)}/${encodeURIComponent(other)}`;

/** A session's parent, its forks, and the other forks of its parent. */
export function relatives(sessions: Sessions, session: Session): Session[] {
  return [...sessions.values()].filter(
    (other) =>
      other.session !== session.session &&
      (other.parent === session.session ||
        other.session === session.parent ||
        (session.parent !== null && other.parent === session.parent)),
  );
}

/** The points to go back to, newest first, and the forks that there are. */
export function Checkpoints({ session }: { session: Session }) {
  const id = session.session;
  const sessions = useAppState((state) => state.sessions);
  const found = useQuery(
    useCallback(() => get<CheckpointList>(sessionPath(id, "/checkpoints")), [id]),
  );
  const points = useMemo(() => [...(found.value?.checkpoints ?? [])].reverse(), [found.value]);
  const forks = relatives(sessions, session);
  return (
    <div className={styles.checkpoints}>
      <ErrorText error={found.error} />
      <section aria-label={words.checkpoints}>
        <p className={css.texts.hint}>
          {found.value && !points.length ? words.none : words.checkpointsHint}
        </p>
        <ol className={styles.timeline}>
          {points.map((point) => (
            <li key={point.prompt} data-gone={point.gone || undefined}>
              <span className={styles.dot} aria-hidden="true" />
              <time dateTime={new Date(point.at).toISOString()} title={moment(point.at)}>
                {clock(point.at)}
              </time>
              <p>
                <Marked text={point.text || "…"} />
              </p>
              <span className={css.texts.muted}>
                {point.by}
                {point.gone && ` · ${words.gone}`}
                {point.steered && ` · ${words.steered}`}
                {point.conversation !== found.value?.conversation && ` · ${words.earlier}`}
              </span>
              <PromptActions session={id} prompt={point.prompt} words={point.text} />
            </li>
          ))}
        </ol>
      </section>
      <section aria-label={words.forks}>
        <h2>{words.forks}</h2>
        {!forks.length && <p className={css.texts.muted}>{words.noForks}</p>}
        <ul className={styles.forks}>
          {forks.map((fork) => (
            <li key={fork.session}>
              <Link href={`/s/${encodeURIComponent(fork.session)}`}>
                <Marked text={nameOf(fork)} />
              </Link>
              <Link
                className={`${css.button.button} ${css.button.small}`}
                href={comparePath(id, fork.session)}
                aria-label={words.comparedWith(nameOf(fork))}
              >
                <Icon of={GitCompareArrows} />
                {words.compare}
              </Link>
            </li>
          ))}
        </ul>
      </section>
    </div>
  );
}
