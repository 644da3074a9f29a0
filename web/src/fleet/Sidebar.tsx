import { useMemo, useState } from "react";
import { Link, useLocation } from "wouter";
import type { Session } from "../api/types";
import { AskCard } from "../asks/AskCard";
import { nameOf } from "../state/fleet";
import { grouped, type Show } from "../state/groups";
import { lookup } from "../state/lookup";
import { store, useDeck } from "../state/store";
import { Boundary } from "../ui/Boundary";
import { ago, cost, plural } from "../ui/format";
import { Marked } from "../ui/Marked";
import { withMarks } from "../ui/marks";
import { StateBadge } from "../ui/StateBadge";
import { useNow } from "../ui/useNow";
import { NewSession } from "./NewSession";
import { usePins } from "./pins";

const FILTERS: Record<Show, string> = {
  active: "Active",
  waiting: "Waiting",
  all: "All",
  archived: "Archived",
};

/** Every session at a glance: who waits for you first. */
export function Sidebar() {
  const fleet = useDeck((deck) => deck.fleet);
  const known = useDeck((deck) => deck.known);
  const asks = useDeck((deck) => deck.asks);
  const mayManage = useDeck((deck) => deck.me?.rights.includes("manage") ?? false);
  const [show, setShow] = useState<Show>("all");
  const [words, setWords] = useState("");
  const [making, setMaking] = useState(false);
  const [pins, pin] = usePins();
  const groups = useMemo(
    () => grouped([...fleet.values()], show, words, pins),
    [fleet, show, words, pins],
  );
  const waiting = [...asks.values()].sort((a, b) => a.at - b.at);
  return (
    <aside aria-label="Sessions">
      <header className="top">
        <Link href="/" className="name">
          Quarterdeck
        </Link>
        {mayManage && (
          <button type="button" className="primary small" onClick={() => setMaking(true)}>
            New session
          </button>
        )}
      </header>
      <Places />
      <div className="filters">
        <input
          type="search"
          placeholder="Filter"
          aria-label="Filter the sessions"
          value={words}
          onChange={(event) => setWords(event.target.value)}
        />
        <select
          aria-label="Which sessions"
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
      <nav className="fleet" aria-label="All sessions">
        {waiting.length > 0 && (
          <section className="waiting" aria-label="Waits for you">
            <h2>Waits for you · {waiting.length}</h2>
            {waiting.map((ask) => {
              const session = fleet.get(ask.session);
              return (
                <div key={ask.opened.ask} className="waits">
                  <Link href={`/s/${encodeURIComponent(ask.session)}`} className="from">
                    <Marked text={session ? nameOf(session) : ask.session} />
                  </Link>
                  <Boundary what="question" raw={ask.opened}>
                    <AskCard opened={ask.opened} at={ask.at} compact />
                  </Boundary>
                </div>
              );
            })}
          </section>
        )}
        {groups.map(([place, sessions]) => (
          <section key={place}>
            <Place place={place} />
            <ul>
              {sessions.map((session) => (
                <Boundary key={session.session} what="session" raw={session}>
                  <Row
                    session={session}
                    pinned={pins.has(session.session)}
                    onPin={() => pin(session.session)}
                  />
                </Boundary>
              ))}
            </ul>
          </section>
        ))}
        {known && groups.length === 0 && (
          <p className="empty-state">
            {fleet.size ? (
              "No session fits the filter."
            ) : (
              <>
                No agent yet. Begin with «New session», or type <code>quarterdeck new</code>
              </>
            )}
          </p>
        )}
      </nav>
      {making && <NewSession onClose={() => setMaking(false)} />}
    </aside>
  );
}

const PLACES: [string, string][] = [
  ["/search", "Search"],
  ["/usage", "Usage"],
  ["/policy", "Policy"],
  ["/machines", "Machines"],
  ["/settings", "Settings"],
];

function Places() {
  const [location] = useLocation();
  return (
    <nav className="places" aria-label="Pages">
      {PLACES.map(([href, word]) => (
        <Link key={href} href={href} aria-current={location === href ? "page" : undefined}>
          {word}
        </Link>
      ))}
    </nav>
  );
}

/** Where sessions work: the folder's name first, since that is what one looks for. */
function Place({ place }: { place: string }) {
  const [, machine, path] = /^([^/]+: )?(.*)$/.exec(place) ?? [];
  const parts = (path ?? place).split("/").filter(Boolean);
  const name = parts.pop() ?? place;
  return (
    <h2 title={withMarks(place)}>
      {machine && <span className="machine">{machine.slice(0, -2)}</span>}
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
  const seen = useDeck((deck) => lookup(deck.seen, session.session) ?? 0);
  const here = location === `/s/${encodeURIComponent(session.session)}`;
  const unread = !here && session.head > seen && session.state !== "starting";
  return (
    <li className="session" data-unread={unread || undefined} data-here={here || undefined}>
      <Link
        href={`/s/${encodeURIComponent(session.session)}`}
        aria-current={here ? "page" : undefined}
      >
        <span className="title">
          <Marked text={nameOf(session)} />
          {unread && <span className="visually-hidden"> (unread)</span>}
        </span>
        <span className="when">{ago(session.updated, now)}</span>
        <StateBadge state={session.state} />
        <span className="numbers">
          {session.queued > 0 && `${plural(session.queued, "prompt")} queued · `}
          {cost(session.cost_usd)}
        </span>
      </Link>
      <button
        type="button"
        className="ghost small pin"
        aria-pressed={props.pinned}
        aria-label={`${props.pinned ? "Unpin" : "Pin"} ${withMarks(nameOf(session))}`}
        onClick={props.onPin}
      >
        {props.pinned ? "★" : "☆"}
      </button>
    </li>
  );
}

/** Put a session away, or take it out again. */
export function archive(session: Session): void {
  void store.command("session.archive", { session: session.session, archived: !session.archived });
}
