import {
  CalendarClock,
  ChartColumn,
  Inbox as InboxIcon,
  Keyboard,
  type LucideIcon,
  Pin,
  PinOff,
  Plus,
  Repeat,
  Search,
  Server,
  Settings,
  ShieldCheck,
} from "lucide-react";
import { lazy, Suspense, useMemo, useState } from "react";
import { Link, useLocation } from "wouter";
import type { Session } from "../api/types";
import { showKeys } from "../asks/showKeys";
import { type Doing, doingOf, todoProgress } from "../state/doing";
import { familiesOf, familyCost, familyName } from "../state/families";
import { groupSessions, type Show } from "../state/groups";
import { isUnread } from "../state/readMarks";
import { nameOf } from "../state/sessions";
import { useAppState } from "../state/store";
import { text } from "../text";
import { ErrorBoundary } from "../ui/ErrorBoundary";
import { ago, cost, elapsed } from "../ui/format";
import { Icon } from "../ui/Icon";
import { Marked } from "../ui/Marked";
import { withMarks } from "../ui/marks";
import { useNow } from "../ui/useNow";
import { usePins } from "./pins";
import styles from "./sidebar.module.css";

const NewSession = lazy(() =>
  import("./NewSession").then((module) => ({ default: module.NewSession })),
);

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
  return (
    <aside aria-label={words.sessions}>
      <header className={styles.top} data-part="top">
        <Link href="/" className={styles.name}>
          <img src="/icon.svg" width={22} height={22} alt="" />
          {text.app.name}
        </Link>
        {mayManage && (
          <button type="button" className="primary small" onClick={() => setCreating(true)}>
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
      <nav className={styles.sessionList} data-part="list" aria-label={words.all}>
        {groups.map(([place, sessions]) => (
          <section key={place}>
            <PlaceHeading place={place} />
            <ul>
              {sessions.map((session) => (
                <ErrorBoundary key={session.session} what={text.app.things.session} raw={session}>
                  <Row
                    session={session}
                    members={families.get(session.spec.family ?? "") ?? [session]}
                    pins={pins}
                    onPin={pin}
                  />
                </ErrorBoundary>
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
      {creating && (
        <Suspense fallback={null}>
          <NewSession onClose={() => setCreating(false)} />
        </Suspense>
      )}
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
            <span className="visually-hidden"> {words.waitingForYou}</span>
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
      <button type="button" className="ghost" onClick={showKeys}>
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
        <span className="path">
          <Marked text={`/${parts.join("/")}`} code />
        </span>
      )}
    </h2>
  );
}

/** The state as a colour, and in words for those who do not see it. */
function StateDot({ doing }: { doing: Doing }) {
  return (
    <span className="badge" data-tone={doing.tone}>
      <span className="dot" aria-hidden="true" />
      {doing.what !== undefined && <span className="visually-hidden">{doing.label}: </span>}
    </span>
  );
}

function Row(props: {
  session: Session;
  members: readonly Session[];
  pins: ReadonlySet<string>;
  onPin: (session: string) => void;
}) {
  const { session, members } = props;
  const family = session.spec.family ? members : [];
  const name = family.length ? familyName(nameOf(session)) : nameOf(session);
  const pinned = members.find((member) => props.pins.has(member.session));
  const [location] = useLocation();
  const now = useNow(session.state === "working" ? 5 : 30);
  const isNew = useAppState((state) => isUnread(state, session.session));
  const activeAt = useAppState((state) => state.activity.get(session.session)?.at ?? 0);
  const here = location === `/s/${encodeURIComponent(session.session)}`;
  const unread = !here && isNew && session.state !== "starting";
  const doing = doingOf(session, unread);
  const facts = [
    session.queued > 0 && words.queued(session.queued),
    family.length > 0 && words.members(family.length),
    todoProgress(session),
    familyCost(members) > 0 && cost(familyCost(members)),
    doing.since === undefined
      ? ago(Math.max(session.updated, activeAt), now)
      : elapsed(now - doing.since),
  ].filter((fact) => typeof fact === "string" && fact !== "") as string[];
  return (
    <li className={styles.row} data-unread={unread || undefined} data-here={here || undefined}>
      <Link
        href={`/s/${encodeURIComponent(session.session)}`}
        aria-current={here ? "page" : undefined}
      >
        <StateDot doing={doing} />
        <span className={styles.title} title={withMarks(name)}>
          <Marked text={name} />
          {unread && <span className="visually-hidden"> {words.unread}</span>}
        </span>
        <span className={styles.doing} data-tone={doing.tone} title={doing.hint}>
          {doing.what === undefined ? doing.label : <Marked text={doing.what} code />}
        </span>
        <span className={styles.numbers}>
          {facts.map((fact) => (
            <span key={fact}>{fact}</span>
          ))}
        </span>
      </Link>
      {family.length > 0 && (
        <details className={styles.family}>
          <summary>{words.turns}</summary>
          <ul>
            {family.map((member) => (
              <li key={member.session}>
                <Link href={`/s/${encodeURIComponent(member.session)}`}>
                  <Marked text={nameOf(member).slice(name.length + 2) || nameOf(member)} />
                </Link>{" "}
                {cost(member.cost_usd)}
              </li>
            ))}
          </ul>
        </details>
      )}
      <button
        type="button"
        className={`ghost icon-button ${styles.pin}`}
        aria-pressed={pinned !== undefined}
        aria-label={(pinned ? words.unpin : words.pin)(withMarks(name))}
        onClick={() => props.onPin((pinned ?? members[0] ?? session).session)}
      >
        <Icon of={pinned ? PinOff : Pin} size={14} />
      </button>
    </li>
  );
}
