import { useMemo, useState } from "react";
import { Link, useLocation } from "wouter";
import type { Session } from "../api/types";
import { AskCard } from "../asks/AskCard";
import { groupSessions, type Show } from "../state/groups";
import { isUnread } from "../state/readMarks";
import { nameOf } from "../state/sessions";
import { useAppState } from "../state/store";
import { ErrorBoundary } from "../ui/ErrorBoundary";
import { ago, cost, plural } from "../ui/format";
import { Marked } from "../ui/Marked";
import { withMarks } from "../ui/marks";
import { StateBadge } from "../ui/StateBadge";
import { useNow } from "../ui/useNow";
import { NewSession } from "./NewSession";
import { usePins } from "./pins";
import styles from "./sidebar.module.css";

const FILTERS: Record<Show, string> = {
  active: "Active",
  waiting: "Waiting",
  all: "All",
  archived: "Archived",
};

/** The list of sessions, with the questions that wait for an answer first. */
export function Sidebar() {
  const sessions = useAppState((state) => state.sessions);
  const listed = useAppState((state) => state.listed);
  const asks = useAppState((state) => state.asks);
  const mayManage = useAppState((state) => state.me?.rights.includes("manage") ?? false);
  const [show, setShow] = useState<Show>("all");
  const [words, setWords] = useState("");
  const [creating, setCreating] = useState(false);
  const [pins, pin] = usePins();
  const groups = useMemo(
    () => groupSessions([...sessions.values()], show, words, pins),
    [sessions, show, words, pins],
  );
  const waiting = [...asks.values()].sort((a, b) => a.at - b.at);
  return (
    <aside aria-label="Sessions">
      <header className={styles.top}>
        <Link href="/" className={styles.name}>
          Quarterdeck
        </Link>
        {mayManage && (
          <button type="button" className="primary small" onClick={() => setCreating(true)}>
            New session
          </button>
        )}
      </header>
      <Pages />
      <div className={styles.filters}>
        <input
          type="search"
          placeholder="Filter"
          aria-label="Filter sessions"
          value={words}
          onChange={(event) => setWords(event.target.value)}
        />
        <select
          aria-label="Sessions to show"
          value={show}
          onChange={(event) => setShow(event.target.value as Show)}
        >
          {Object.entries(FILTERS).map(([key, word]) => (
            <option key={key} value={key}>
              {word}
            </option>
          ))}
        </select>
      </div>
      <nav className={styles.sessionList} aria-label="All sessions">
        {waiting.length > 0 && (
          <section className={styles.waiting} aria-label="Waiting for you">
            <h2>Waiting for you · {waiting.length}</h2>
            {waiting.map((ask) => {
              const session = sessions.get(ask.session);
              return (
                <div key={ask.opened.ask} className={styles.ask}>
                  <Link href={`/s/${encodeURIComponent(ask.session)}`} className={styles.from}>
                    <Marked text={session ? nameOf(session) : ask.session} />
                  </Link>
                  <ErrorBoundary what="question" raw={ask.opened}>
                    <AskCard opened={ask.opened} at={ask.at} compact />
                  </ErrorBoundary>
                </div>
              );
            })}
          </section>
        )}
        {groups.map(([place, sessions]) => (
          <section key={place}>
            <PlaceHeading place={place} />
            <ul>
              {sessions.map((session) => (
                <ErrorBoundary key={session.session} what="session" raw={session}>
                  <Row
                    session={session}
                    pinned={pins.has(session.session)}
                    onPin={() => pin(session.session)}
                  />
                </ErrorBoundary>
              ))}
            </ul>
          </section>
        ))}
        {listed && groups.length === 0 && (
          <p className="empty-state">
            {sessions.size ? (
              "No sessions match the filter."
            ) : (
              <>
                No sessions yet. Click New session, or run <code>quarterdeck new</code>
              </>
            )}
          </p>
        )}
      </nav>
      {creating && <NewSession onClose={() => setCreating(false)} />}
    </aside>
  );
}

const PAGES: [string, string][] = [
  ["/search", "Search"],
  ["/usage", "Usage"],
  ["/policy", "Policy"],
  ["/machines", "Machines"],
  ["/settings", "Settings"],
];

function Pages() {
  const [location] = useLocation();
  return (
    <nav className={styles.pages} aria-label="Pages">
      {PAGES.map(([href, word]) => (
        <Link key={href} href={href} aria-current={location === href ? "page" : undefined}>
          {word}
        </Link>
      ))}
    </nav>
  );
}

/** Where sessions work: the folder's name first, since people look for that. */
function PlaceHeading({ place }: { place: string }) {
  const [, machine, path] = /^([^/]+: )?(.*)$/.exec(place) ?? [];
  const parts = (path ?? place).split("/").filter(Boolean);
  const name = parts.pop() ?? place;
  return (
    <h2 title={withMarks(place)}>
      {machine && <span className={styles.machine}>{machine.slice(0, -2)}</span>}
      <strong>
        <Marked text={name} code />
      </strong>
      {parts.length > 0 && (
        <span className="path">
          <Marked text={`/${parts.join("/")}`} code />
        </span>
      )}
    </h2>
  );
}

function Row(props: { session: Session; pinned: boolean; onPin: () => void }) {
  const { session } = props;
  const [location] = useLocation();
  const now = useNow();
  const isNew = useAppState((state) => isUnread(state, session.session));
  const activeAt = useAppState((state) => state.activity.get(session.session)?.at ?? 0);
  const here = location === `/s/${encodeURIComponent(session.session)}`;
  const unread = !here && isNew && session.state !== "starting";
  return (
    <li className={styles.row} data-unread={unread || undefined} data-here={here || undefined}>
      <Link
        href={`/s/${encodeURIComponent(session.session)}`}
        aria-current={here ? "page" : undefined}
      >
        <span className={styles.title}>
          <Marked text={nameOf(session)} />
          {unread && <span className="visually-hidden"> (unread)</span>}
        </span>
        <span className={styles.when}>{ago(Math.max(session.updated, activeAt), now)}</span>
        <StateBadge state={session.state} />
        <span className={styles.numbers}>
          {session.queued > 0 && `${plural(session.queued, "prompt")} queued · `}
          {cost(session.cost_usd)}
        </span>
      </Link>
      <button
        type="button"
        className={`ghost small ${styles.pin}`}
        aria-pressed={props.pinned}
        aria-label={`${props.pinned ? "Unpin" : "Pin"} ${withMarks(nameOf(session))}`}
        onClick={props.onPin}
      >
        {props.pinned ? "★" : "☆"}
      </button>
    </li>
  );
}
