import { type MouseEvent, useEffect, useMemo, useRef, useState } from "react";
import { Link } from "wouter";
import type { Ask, Session } from "../api/types";
import { AskCard } from "../asks/AskCard";
import { guard, isField } from "../asks/keyGuard";
import { askTitle } from "../asks/request";
import { jumpReached, useJumpTarget } from "../session/jumpToAsk";
import { WorkingDirectory } from "../session/relativePath";
import { SESSION_LIST } from "../sessions/listId";
import { folderOf, nameOf, projectOf } from "../state/sessions";
import { useAppState, useRights } from "../state/store";
import { text } from "../text";
import { css } from "../ui/css";
import { ErrorBoundary } from "../ui/ErrorBoundary";
import { Marked } from "../ui/Marked";
import { withMarks } from "../ui/marks";
import { BulkBar } from "./BulkBar";
import { mayJoin, stillSelected } from "./bulk";
import styles from "./inbox.module.css";

/** All open questions, oldest first, each with everything that is needed to answer it. */
export default function Inbox() {
  const open = useAppState((state) => state.asks);
  const sessions = useAppState((state) => state.sessions);
  const mayAnswer = useRights().includes("steer");
  const asks = useMemo(() => [...open.values()].sort((a, b) => a.at - b.at), [open]);
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const selected = stillSelected(chosen, open);
  const place = useRef<HTMLElement>(null);
  useJumps(place);
  useFocusAfterAnswer(place, asks);
  const toggle = (ask: string): void =>
    setChosen(selected.includes(ask) ? selected.filter((one) => one !== ask) : [...selected, ask]);
  return (
    <section className={styles.inbox} aria-label={text.inbox.title} ref={place}>
      <h1 tabIndex={-1}>{text.inbox.heading(asks.length)}</h1>
      <a className={styles.toList} href={`#${SESSION_LIST}`} onClick={goToList}>
        {text.inbox.toSessions(sessions.size)}
      </a>
      <ol>
        {asks.map((ask) => (
          <li key={ask.opened.ask}>
            <ErrorBoundary what={text.app.things.question} raw={ask.opened}>
              <Question
                ask={ask}
                session={sessions.get(ask.session)}
                selected={selected.includes(ask.opened.ask)}
                selectable={mayAnswer && mayJoin(ask, selected, open)}
                onSelect={() => toggle(ask.opened.ask)}
              />
            </ErrorBoundary>
          </li>
        ))}
      </ol>
      {selected.length > 0 && <BulkBar asks={selected} open={open} onDone={() => setChosen([])} />}
    </section>
  );
}

/** On a phone the list is below all questions: it is one tap away. */
function goToList(event: MouseEvent): void {
  event.preventDefault();
  const list = document.getElementById(SESSION_LIST);
  list?.scrollIntoView({ block: "start" });
  list?.focus({ preventScroll: true });
}

function Question(props: {
  ask: Ask;
  session: Session | undefined;
  selected: boolean;
  selectable: boolean;
  onSelect: () => void;
}) {
  const { ask, session } = props;
  const project = session ? projectOf(session) : "";
  return (
    <WorkingDirectory value={session ? folderOf(session) : ""}>
      <header className={styles.from}>
        {(props.selectable || props.selected) && (
          <label>
            <input type="checkbox" checked={props.selected} onChange={props.onSelect} />
            <span className={css.texts.visuallyHidden}>
              {text.inbox.select(withMarks(askTitle(ask.opened)))}
            </span>
          </label>
        )}
        <Link href={`/s/${encodeURIComponent(ask.session)}`}>
          <Marked text={session ? nameOf(session) : ask.session} />
        </Link>
        <span className={`${css.texts.path} ${styles.path}`} title={withMarks(project)}>
          <Marked text={project} code />
        </span>
      </header>
      <AskCard opened={ask.opened} at={ask.at} />
    </WorkingDirectory>
  );
}

/** Goes to the card that the jump key wants. */
function useJumps(place: React.RefObject<HTMLElement | null>): void {
  const wanted = useJumpTarget();
  useEffect(() => {
    if (!wanted) return;
    const card = place.current?.querySelector<HTMLElement>(`[data-ask="${CSS.escape(wanted)}"]`);
    if (!card) return;
    jumpReached(wanted);
    // A person who writes by now keeps the focus.
    if (isField(document.activeElement)) return;
    card.scrollIntoView({ block: "nearest" });
    guard.arrived(card);
  }, [wanted, place]);
}

/** A card that had the focus is answered and gone: the next one gets it, without its keys acting. */
function useFocusAfterAnswer(place: React.RefObject<HTMLElement | null>, asks: Ask[]): void {
  const focused = useRef<number | undefined>(undefined);
  useEffect(() => {
    const box = place.current;
    const index = focused.current;
    if (index !== undefined && document.activeElement === document.body) {
      const cards = box?.querySelectorAll<HTMLElement>("[data-ask]") ?? [];
      (cards[Math.min(index, cards.length - 1)] ?? box?.querySelector("h1"))?.focus({
        preventScroll: true,
      });
    }
    const remember = (): void => {
      const card = document.activeElement?.closest<HTMLElement>("[data-ask]");
      const found = asks.findIndex((ask) => ask.opened.ask === card?.dataset.ask);
      focused.current = found < 0 ? undefined : found;
    };
    remember();
    document.addEventListener("focusin", remember);
    return () => document.removeEventListener("focusin", remember);
  }, [asks, place]);
}
