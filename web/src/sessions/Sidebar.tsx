import {
  CalendarClock,
  ChartColumn,
  Inbox as InboxIcon,
  Keyboard,
  type LucideIcon,
  Plus,
  Repeat,
  Search,
  Server,
  Settings,
  ShieldCheck,
} from "lucide-react";
import { useMemo, useState } from "react";
import { Link, useLocation } from "wouter";
import { showKeys } from "../asks/showKeys";
import { familiesOf } from "../state/families";
import { groupSessions, type Show } from "../state/groups";
import { useAppState } from "../state/store";
import { treeCosts } from "../state/trees";
import { text } from "../text";
import { css } from "../ui/css";
import { Icon } from "../ui/Icon";
import { later } from "../ui/later";
import { Marked } from "../ui/Marked";
import { withMarks } from "../ui/marks";
import { SESSION_LIST } from "./listId";
import { usePins } from "./pins";
import { type ListView, SessionBranch } from "./SessionBranch";
import styles from "./sidebar.module.css";

const NewSession = later(() => import("./NewSession").then((module) => module.NewSession));

const words = text.sessions;

/** The list of sessions, one line for each, and the ways to all pages. */
export function Sidebar() {
  const sessions = useAppState((state) => state.sessions);
  const listed = useAppState((state) => state.listed);
  const mayManage = useAppState((state) => state.me?.rights.includes("manage") ?? false);
  const [show, setShow] = useState<Show>("all");
  const [wanted, setWanted] = useState("");
  const [creating, setCreating] = useState(false);
  const [pins, pin] = usePins();
  const groups = useMemo(
    () => groupSessions([...sessions.values()], show, wanted, pins),
    [sessions, show, wanted, pins],
  );
  const families = useMemo(() => familiesOf(sessions.values()), [sessions]);
  const costs = useMemo(() => treeCosts(sessions.values()), [sessions]);
  // Who looks for something sees all that fits.
  const looking = wanted.trim() !== "" || show === "waiting";
  const list: ListView = { families, costs, pins, onPin: pin, looking };
  return (
    <aside aria-label={words.sessions}>
      <header className={styles.top} data-part="top">
        <Link href="/" className={styles.name}>
          <img src="/icon.svg" width={22} height={22} alt="" />
          {text.app.name}
        </Link>
        {mayManage && (
          <button
            type="button"
            className={`${css.button.primary} ${css.button.small}`}
            onClick={() => setCreating(true)}
          >
            <Icon of={Plus} size={14} />
            {words.create}
          </button>
        )}
      </header>
      <InboxLink />
      <div className={styles.filters} data-part="filters">
        <input
          type="search"
          placeholder={words.filter}
          aria-label={words.filterSessions}
          value={wanted}
          onChange={(event) => setWanted(event.target.value)}
        />
        <select
          aria-label={words.toShow}
          value={show}
          onChange={(event) => setShow(event.target.value as Show)}
        >
          {Object.entries(words.filters).map(([key, word]) => (
            <option key={key} value={key}>
              {word}
            </option>
          ))}
        </select>
      </div>
      <nav
        className={styles.sessionList}
        id={SESSION_LIST}
        tabIndex={-1}
        data-part="list"
        aria-label={words.all}
      >
        {groups.map(([place, trees]) => (
          <section key={place}>
            <PlaceHeading place={place} />
            <ul>
              {trees.map((tree) => (
                <SessionBranch key={tree.session.session} branch={tree} list={list} />
              ))}
            </ul>
          </section>
        ))}
        {listed && groups.length === 0 && (
          <p className={styles.none}>
            {sessions.size ? (
              words.noMatch
            ) : (
              <>
                {words.none} <code>{words.noneCommand}</code>
              </>
            )}
          </p>
        )}
      </nav>
      <Pages />
      {creating && <NewSession onClose={() => setCreating(false)} />}
    </aside>
  );
}

const PAGES: [string, string, LucideIcon][] = [
  ["/search", words.pages.search, Search],
  ["/usage", words.pages.usage, ChartColumn],
  ["/policy", words.pages.policy, ShieldCheck],
  ["/loops", words.pages.loops, Repeat],
  ["/schedules", words.pages.schedules, CalendarClock],
  ["/machines", words.pages.machines, Server],
  ["/settings", words.pages.settings, Settings],
];

function InboxLink() {
  const [location] = useLocation();
  const waiting = useAppState((state) => state.asks.size);
  return (
    <nav className={styles.inbox} data-part="inbox" aria-label={words.inbox}>
      <Link
        href="/"
        data-waiting={waiting || undefined}
        aria-current={location === "/" ? "page" : undefined}
      >
        <Icon of={InboxIcon} />
        {words.inbox}
        {waiting > 0 && (
          <span className={styles.count}>
            {waiting}
            <span className={css.texts.visuallyHidden}> {words.waitingForYou}</span>
          </span>
        )}
      </Link>
    </nav>
  );
}

function Pages() {
  const [location] = useLocation();
  return (
    <nav className={styles.pages} data-part="pages" aria-label={words.pages.title}>
      {PAGES.map(([href, word, icon]) => (
        <Link key={href} href={href} aria-current={location === href ? "page" : undefined}>
          <Icon of={icon} />
          <span>{word}</span>
        </Link>
      ))}
      <button type="button" className={css.button.ghost} onClick={showKeys}>
        <Icon of={Keyboard} />
        <span>{words.pages.keys}</span>
      </button>
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
        <span className={`${css.texts.path} ${styles.path}`}>
          <Marked text={`/${parts.join("/")}`} code />
        </span>
      )}
    </h2>
  );
}
