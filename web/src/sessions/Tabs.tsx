import { X } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { Link, useLocation } from "wouter";
import { isUnread } from "../state/readMarks";
import { nameOf } from "../state/sessions";
import { store, useAppState } from "../state/store";
import {
  addNewSession,
  closeTab,
  keepConversation,
  loadTabs,
  openTab,
  pathOfTab,
  saveTabs,
  splitTab,
  tabOfPath,
} from "../state/tabs";
import { text } from "../text";
import { css } from "../ui/css";
import { Icon } from "../ui/Icon";
import { Marked } from "../ui/Marked";
import { withMarks } from "../ui/marks";
import { SessionBadge, StateBadge } from "../ui/StateBadge";
import styles from "./tabs.module.css";

/** The sessions that are open in this browser, each with a tab. */
export function Tabs() {
  const sessions = useAppState((state) => state.sessions);
  const listed = useAppState((state) => state.listed);
  const [location, go] = useLocation();
  const [tabs, setTabs] = useState(loadTabs);
  const knownSessions = useRef<Set<string> | undefined>(undefined);
  const conversations = useRef(new Map<string, string>());
  const here = tabOfPath(location);

  useEffect(() => saveTabs(tabs), [tabs]);
  useEffect(() => {
    if (here) setTabs((before) => openTab(before, here));
  }, [here]);
  useEffect(() => {
    if (!listed) return;
    if (!knownSessions.current) {
      knownSessions.current = new Set(sessions.keys()); // what was there before is in the list
      for (const { session, cli_session } of sessions.values())
        if (cli_session !== null) conversations.current.set(session, cli_session);
      return;
    }
    let next = tabs;
    for (const session of sessions.values()) {
      // Where a CLI works is known when it has started, and not before.
      if (knownSessions.current.has(session.session) || session.directory === null) continue;
      knownSessions.current.add(session.session);
      const [with_, taken] = addNewSession(next, sessions, session);
      next = with_;
      if (taken !== undefined && taken === here) go(pathOfTab(session.session), { replace: true });
    }
    for (const { session, cli_session } of sessions.values()) {
      if (cli_session === null) continue;
      const before = conversations.current.get(session);
      conversations.current.set(session, cli_session);
      if (before && before !== cli_session) next = keepConversation(next, session, before);
    }
    if (next !== tabs) setTabs(next);
  }, [sessions, listed, tabs, here, go]);

  const shown = tabs.filter((one) => sessions.has(splitTab(one).session));
  if (shown.length < 2 && here) return null;
  if (!shown.length) return null;
  const close = (tab: string): void => {
    const [left, next] = closeTab(shown, tab);
    setTabs(left);
    if (tab === here) go(next ? pathOfTab(next) : "/");
    const { session } = splitTab(tab);
    if (left.every((one) => splitTab(one).session !== session)) store.open.close(session);
  };
  return (
    <nav className={styles.bar} aria-label={text.sessions.open}>
      <ul>
        {shown.map((id) => (
          <Tab key={id} id={id} here={id === here} onClose={() => close(id)} />
        ))}
      </ul>
    </nav>
  );
}

function Tab({ id, here, onClose }: { id: string; here: boolean; onClose: () => void }) {
  const { session: sessionId, conversation } = splitTab(id);
  const session = useAppState((state) => state.sessions.get(sessionId));
  const isNew = useAppState((state) => isUnread(state, sessionId));
  const place = useRef<HTMLLIElement>(null);
  const known = session !== undefined;
  // The tab of what is shown is in sight, also when there are more than fit.
  useEffect(() => {
    if (here && known) place.current?.scrollIntoView?.({ block: "nearest", inline: "nearest" });
  }, [here, known]);
  if (!session) return null;
  const unread = !here && isNew && conversation === undefined;
  const name =
    conversation === undefined ? nameOf(session) : text.sessions.earlier(nameOf(session));
  return (
    <li ref={place} data-here={here || undefined} data-unread={unread || undefined}>
      <Link href={pathOfTab(id)} aria-current={here ? "page" : undefined}>
        {conversation === undefined ? (
          <SessionBadge session={session} />
        ) : (
          <StateBadge state="ended" />
        )}
        <span className={styles.title} title={withMarks(name)}>
          <Marked text={name} />
        </span>
        {unread && <span className={css.texts.visuallyHidden}> {text.sessions.unread}</span>}
      </Link>
      <button
        type="button"
        className={`${css.button.ghost} ${css.button.iconButton}`}
        aria-label={text.sessions.closeTab(withMarks(name))}
        onClick={onClose}
      >
        <Icon of={X} size={14} />
      </button>
    </li>
  );
}
