import { useEffect, useRef, useState } from "react";
import { Link, useLocation } from "wouter";
import { isUnread } from "../state/readMarks";
import { nameOf } from "../state/sessions";
import { store, useAppState } from "../state/store";
import { addNewSession, closeTab, loadTabs, openTab, saveTabs } from "../state/tabs";
import { Marked } from "../ui/Marked";
import { withMarks } from "../ui/marks";
import { StateBadge } from "../ui/StateBadge";
import styles from "./tabs.module.css";

const pathOf = (session: string): string => `/s/${encodeURIComponent(session)}`;

/** The sessions that are open in this browser, each with a tab. */
export function Tabs() {
  const sessions = useAppState((state) => state.sessions);
  const listed = useAppState((state) => state.listed);
  const [location, go] = useLocation();
  const [tabs, setTabs] = useState(loadTabs);
  const knownSessions = useRef<Set<string> | undefined>(undefined);
  const here = location.startsWith("/s/") ? decodeURIComponent(location.slice(3)) : undefined;

  useEffect(() => saveTabs(tabs), [tabs]);
  useEffect(() => {
    if (here) setTabs((before) => openTab(before, here));
  }, [here]);
  useEffect(() => {
    if (!listed) return;
    if (!knownSessions.current) {
      knownSessions.current = new Set(sessions.keys()); // what was there before is in the list
      return;
    }
    let next = tabs;
    for (const session of sessions.values()) {
      // Where a CLI works is known when it has started, and not before.
      if (knownSessions.current.has(session.session) || session.directory === null) continue;
      knownSessions.current.add(session.session);
      const [with_, taken] = addNewSession(next, sessions, session);
      next = with_;
      if (taken !== undefined && taken === here) go(pathOf(session.session), { replace: true });
    }
    if (next !== tabs) setTabs(next);
  }, [sessions, listed, tabs, here, go]);

  const shown = tabs.filter((one) => sessions.has(one));
  if (shown.length < 2 && here) return null;
  if (!shown.length) return null;
  const close = (session: string): void => {
    const [left, next] = closeTab(shown, session);
    setTabs(left);
    if (session === here) go(next ? pathOf(next) : "/");
    store.open.close(session);
  };
  return (
    <nav className={styles.bar} aria-label="Open sessions">
      <ul>
        {shown.map((id) => (
          <Tab key={id} id={id} here={id === here} onClose={() => close(id)} />
        ))}
      </ul>
    </nav>
  );
}

function Tab({ id, here, onClose }: { id: string; here: boolean; onClose: () => void }) {
  const session = useAppState((state) => state.sessions.get(id));
  const isNew = useAppState((state) => isUnread(state, id));
  if (!session) return null;
  const unread = !here && isNew;
  return (
    <li data-here={here || undefined} data-unread={unread || undefined}>
      <Link href={pathOf(id)} aria-current={here ? "page" : undefined}>
        <StateBadge state={session.state} />
        <span className={styles.title}>
          <Marked text={nameOf(session)} />
        </span>
        {unread && <span className="visually-hidden"> (unread)</span>}
      </Link>
      <button
        type="button"
        className="ghost small"
        aria-label={`Close tab ${withMarks(nameOf(session))}`}
        onClick={onClose}
      >
        ✕
      </button>
    </li>
  );
}
