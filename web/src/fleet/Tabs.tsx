import { useEffect, useRef, useState } from "react";
import { Link, useLocation } from "wouter";
import { nameOf } from "../state/fleet";
import { lookup } from "../state/lookup";
import { store, useDeck } from "../state/store";
import { closed, keepTabs, keptTabs, opened, rotated } from "../state/tabs";
import { Marked } from "../ui/Marked";
import { withMarks } from "../ui/marks";
import { StateBadge } from "../ui/StateBadge";

const pathOf = (session: string): string => `/s/${encodeURIComponent(session)}`;

/** The sessions that are open in this browser, each with a tab. */
export function Tabs() {
  const fleet = useDeck((deck) => deck.fleet);
  const known = useDeck((deck) => deck.known);
  const seen = useDeck((deck) => deck.seen);
  const [location, go] = useLocation();
  const [tabs, setTabs] = useState(keptTabs);
  const heard = useRef<Set<string> | undefined>(undefined);
  const here = location.startsWith("/s/") ? decodeURIComponent(location.slice(3)) : undefined;

  useEffect(() => keepTabs(tabs), [tabs]);
  useEffect(() => {
    if (here) setTabs((before) => opened(before, here));
  }, [here]);
  useEffect(() => {
    if (!known) return;
    if (!heard.current) {
      heard.current = new Set(fleet.keys()); // what was there before is in the list
      return;
    }
    let next = tabs;
    for (const session of fleet.values()) {
      // Where a CLI works is known when it has started, and not before.
      if (heard.current.has(session.session) || session.directory === null) continue;
      heard.current.add(session.session);
      const [with_, taken] = rotated(next, fleet, session);
      next = with_;
      if (taken !== undefined && taken === here) go(pathOf(session.session), { replace: true });
    }
    if (next !== tabs) setTabs(next);
  }, [fleet, known, tabs, here, go]);

  const shown = tabs.filter((one) => fleet.has(one));
  if (shown.length < 2 && here) return null;
  if (!shown.length) return null;
  const close = (session: string): void => {
    const [left, next] = closed(shown, session);
    setTabs(left);
    if (session === here) go(next ? pathOf(next) : "/");
    store.close(session);
  };
  return (
    <nav className="session-tabs" aria-label="Open sessions">
      <ul>
        {shown.map((id) => {
          const session = fleet.get(id);
          if (!session) return null;
          const unread = id !== here && session.head > (lookup(seen, id) ?? 0);
          return (
            <li key={id} data-here={id === here || undefined} data-unread={unread || undefined}>
              <Link href={pathOf(id)} aria-current={id === here ? "page" : undefined}>
                <StateBadge state={session.state} />
                <span className="title">
                  <Marked text={nameOf(session)} />
                </span>
                {unread && <span className="visually-hidden"> (unread)</span>}
              </Link>
              <button
                type="button"
                className="ghost small"
                aria-label={`Close the tab of ${withMarks(nameOf(session))}`}
                onClick={() => close(id)}
              >
                ✕
              </button>
            </li>
          );
        })}
      </ul>
    </nav>
  );
}
