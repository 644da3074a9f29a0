import { useCallback, useMemo } from "react";
import { Link, useLocation, useSearch } from "wouter";
import { get, sessionPath } from "../api/http";
import type { components } from "../api/schema";
import type { Session, Stored } from "../api/types";
import { Markdown } from "../markdown/Markdown";
import { comparePath } from "../rewind/Checkpoints";
import { nameOf, projectOf, type Sessions } from "../state/sessions";
import { useAppState } from "../state/store";
import { text } from "../text";
import { css } from "../ui/css";
import { ErrorText } from "../ui/ErrorText";
import { cost, duration, tokens } from "../ui/format";
import { Marked } from "../ui/Marked";
import { PageHead } from "../ui/PageHead";
import { SessionBadge } from "../ui/StateBadge";
import { useQuery } from "../ui/useQuery";
import styles from "./compare.module.css";

type Changes = components["schemas"]["Changes"];

const words = text.newSession;
/** More columns than a person compares. */
const MOST = 12;
/** The last answer is within so many events, or the session is opened for it. */
const LOOK_BACK = 200;

/** Sessions side by side: what they cost, what they changed, and what they said last. */
export default function Compare() {
  const search = useSearch();
  const ids = useMemo(
    () => [...new Set(new URLSearchParams(search).getAll("s"))].slice(0, MOST),
    [search],
  );
  const sessions = useAppState((state) => state.sessions);
  const found = ids.flatMap((id) => sessions.get(id) ?? []);
  const least = found.length > 1 ? Math.min(...found.map((one) => one.cost_usd)) : -1;
  return (
    <div className={css.layout.page} data-wide>
      <PageHead title={words.compare} />
      <Picker chosen={ids} sessions={sessions} />
      <div className={styles.columns}>
        {ids.map((id) => {
          const session = sessions.get(id);
          return session ? (
            <Column key={id} session={session} cheapest={session.cost_usd === least} />
          ) : (
            <article key={id} className={css.card.card}>
              <p>{words.missing}</p>
            </article>
          );
        })}
      </div>
    </div>
  );
}

/** Chooses the sessions. It is open until two are chosen. */
function Picker({ chosen, sessions }: { chosen: readonly string[]; sessions: Sessions }) {
  const [, go] = useLocation();
  const [first, second] = chosen;
  const choose = (next: readonly string[]): void =>
    go(`/compare?${next.map((id) => `s=${encodeURIComponent(id)}`).join("&")}`, { replace: true });
  return (
    <>
      <details className={styles.picker} open={chosen.length < 2}>
        <summary>{words.chooseSessions}</summary>
        <ul>
          {[...sessions.values()].map((one) => (
            <li key={one.session}>
              <label>
                <input
                  type="checkbox"
                  checked={chosen.includes(one.session)}
                  disabled={chosen.length >= MOST && !chosen.includes(one.session)}
                  onChange={(event) =>
                    choose(
                      event.target.checked
                        ? [...chosen, one.session]
                        : chosen.filter((id) => id !== one.session),
                    )
                  }
                />
                <span>
                  <Marked text={nameOf(one)} />{" "}
                  <span className={css.texts.muted}>
                    <Marked text={projectOf(one)} code />
                  </span>
                </span>
              </label>
            </li>
          ))}
        </ul>
      </details>
      {first !== undefined && second !== undefined && chosen.length === 2 && (
        <p>
          <Link className={css.button.button} href={comparePath(first, second)}>
            {words.compareChanges}
          </Link>
        </p>
      )}
    </>
  );
}

function Column({ session, cheapest }: { session: Session; cheapest: boolean }) {
  const id = session.session;
  const ended = session.last_turn?.at ?? 0;
  // biome-ignore lint/correctness/useExhaustiveDependencies: another turn has another answer
  const answer = useQuery(useCallback(() => lastAnswer(id, session.head), [id, ended]));
  // A worktree that is being made has no changes yet, and the hub refuses to look for them.
  const made = session.directory !== null && session.directory !== undefined;
  const changes = useQuery(
    // biome-ignore lint/correctness/useExhaustiveDependencies: a turn may change files
    useCallback(async () => (made ? changesOf(id) : undefined), [id, ended, made]),
  );
  const href = `/s/${encodeURIComponent(id)}`;
  const facts: [string, string][] = [
    [text.session.head.model, session.model ?? session.spec.model ?? words.cliDefault],
    [words.branch, session.spec.worktree ?? words.none],
    [
      words.cost,
      cheapest && session.cost_usd
        ? `${cost(session.cost_usd)} · ${words.cheapest}`
        : cost(session.cost_usd),
    ],
    [words.tokens, tokens(session.tokens)],
    [words.turns, String(session.turns)],
    [words.time, duration(Math.max(0, (ended || session.updated) - session.created))],
    [words.changes, changesText(changes.value, changes.error)],
  ];
  return (
    <article className={`${css.card.card} ${styles.column}`} aria-label={nameOf(session)}>
      <header>
        <h2>
          <Link href={href}>{nameOf(session)}</Link>
        </h2>
        <SessionBadge session={session} />
      </header>
      <dl>
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <div className={css.layout.buttons}>
        <Link className={css.button.button} href={href}>
          {words.openSession}
        </Link>
        <Link className={css.button.button} href={`${href}?panel=files`}>
          {words.seeChanges}
        </Link>
      </div>
      <section aria-label={words.lastAnswerOf(nameOf(session))}>
        <h3>{words.lastAnswer}</h3>
        <ErrorText error={answer.error} />
        {answer.value ? (
          <div className={styles.answer}>
            <Markdown text={answer.value} />
          </div>
        ) : (
          !answer.loading && <p className={css.texts.muted}>{words.noAnswer}</p>
        )}
      </section>
    </article>
  );
}

const changesOf = (session: string): Promise<Changes> =>
  get<Changes>(sessionPath(session, "/diff"), { text_limit: 0 });

function changesText(found: Changes | undefined, error: string): string {
  if (error) return words.noRepository;
  if (!found) return text.common.loading;
  const files = found.files ?? [];
  if (!files.length) return words.noChanges;
  return words.changed(files.length, found.added ?? 0, found.removed ?? 0);
}

/** What the agent said at the end of its last turn; empty if it has not ended one lately. */
async function lastAnswer(session: string, head: number): Promise<string> {
  const after = Math.max(0, head - LOOK_BACK);
  const page = await get<{ events: Stored[] }>(sessionPath(session, "/events"), {
    after,
    limit: LOOK_BACK,
  });
  for (const { event } of page.events.reverse()) {
    if (event.kind === "turn.ended" && event.text) return event.text;
  }
  return "";
}
