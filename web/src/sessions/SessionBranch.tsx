import { ChevronDown, ChevronRight, Pin, PinOff } from "lucide-react";
import { useId } from "react";
import { Link, useLocation } from "wouter";
import type { Session } from "../api/types";
import { activityOf, type SessionActivity, todoProgress } from "../state/activity";
import { type Families, familyCost, familyName } from "../state/families";
import { toggleFolded, useFolded } from "../state/folded";
import { isUnread } from "../state/readMarks";
import { nameOf } from "../state/sessions";
import { useAppState } from "../state/store";
import type { Branch } from "../state/trees";
import { text } from "../text";
import { css } from "../ui/css";
import { ErrorBoundary } from "../ui/ErrorBoundary";
import { ago, cost, elapsed } from "../ui/format";
import { Icon } from "../ui/Icon";
import { Marked } from "../ui/Marked";
import { withMarks } from "../ui/marks";
import { useNow } from "../ui/useNow";
import styles from "./sidebar.module.css";

const words = text.sessions;

/** What all rows of the list need. */
export interface ListView {
  families: Families;
  /** What each session has cost with those that its agents started. */
  costs: ReadonlyMap<string, number>;
  pins: ReadonlySet<string>;
  onPin: (session: string) => void;
  /** Whether a filter is set by which nothing may be folded away. */
  looking: boolean;
}

/** A session, and below it those that its agent started. */
export function SessionBranch({ branch, list }: { branch: Branch; list: ListView }) {
  const { session, children } = branch;
  const id = useId();
  const folded = useFolded().has(session.session) && !list.looking;
  const members = list.families.get(session.spec.family ?? "") ?? [session];
  const all = members.reduce((sum, one) => sum + (list.costs.get(one.session) ?? 0), 0);
  return (
    <li>
      <ErrorBoundary what={text.app.things.session} raw={session}>
        <Row session={session} members={members} list={list} all={all} />
      </ErrorBoundary>
      {children.length > 0 && (
        <>
          <Fold branch={branch} all={all} controls={id} folded={folded} fixed={list.looking} />
          <ul
            id={id}
            className={styles.children}
            hidden={folded}
            aria-label={words.agentsOf(withMarks(nameOf(session)))}
          >
            {!folded &&
              children.map((child) => (
                <SessionBranch key={child.session.session} branch={child} list={list} />
              ))}
          </ul>
        </>
      )}
    </li>
  );
}

/** How many sessions are below one, who of them waits, and the way to fold them. */
function Fold(props: {
  branch: Branch;
  all: number;
  controls: string;
  folded: boolean;
  fixed: boolean;
}) {
  const { session, below, waiting } = props.branch;
  const content = (
    <>
      <span>{words.agents(below)}</span>
      {waiting > 0 && <span className={styles.waits}>{words.agentsWait(waiting)}</span>}
      {props.all > 0 && <span>{words.together(cost(props.all))}</span>}
    </>
  );
  if (props.fixed) return <p className={styles.fold}>{content}</p>;
  return (
    <button
      type="button"
      className={`${css.button.ghost} ${styles.fold}`}
      aria-expanded={!props.folded}
      aria-controls={props.controls}
      onClick={() => toggleFolded(session.session)}
    >
      <Icon of={props.folded ? ChevronRight : ChevronDown} size={14} />
      <span className={css.texts.visuallyHidden}>{withMarks(nameOf(session))}: </span>
      {content}
    </button>
  );
}

/** The state as a colour, and in words for those who do not see it. */
function StateDot({ doing }: { doing: SessionActivity }) {
  return (
    <span className={css.badge.badge} data-tone={doing.tone}>
      <span className={css.badge.dot} aria-hidden="true" />
      {doing.what !== undefined && (
        <span className={css.texts.visuallyHidden}>{doing.label}: </span>
      )}
    </span>
  );
}

/** What a line says, also where it is too long for the line. */
const whatOf = (doing: SessionActivity): string =>
  doing.what === undefined ? doing.label : withMarks(doing.what, true);

function Row(props: {
  session: Session;
  members: readonly Session[];
  list: ListView;
  /** The cost with what its agents started. */
  all: number;
}) {
  const { session, members, all } = props;
  const { pins, onPin } = props.list;
  const family = session.spec.family ? members : [];
  const name = family.length ? familyName(nameOf(session)) : nameOf(session);
  const pinned = members.find((member) => pins.has(member.session));
  const [location] = useLocation();
  const now = useNow(session.state === "working" ? 5 : 30);
  const isNew = useAppState((state) => isUnread(state, session.session));
  const activeAt = useAppState((state) => state.activity.get(session.session)?.at ?? 0);
  const here = location === `/s/${encodeURIComponent(session.session)}`;
  const unread = !here && isNew && session.state !== "starting";
  const doing = activityOf(session, unread);
  const own = familyCost(members);
  const facts = [
    session.parent !== null && words.fork,
    session.queued > 0 && words.queued(session.queued),
    family.length > 0 && words.members(family.length),
    todoProgress(session),
    own > 0 && cost(own),
    doing.since === undefined
      ? ago(Math.max(session.updated, activeAt), now)
      : elapsed(now - doing.since),
  ].filter((fact) => typeof fact === "string" && fact !== "") as string[];
  return (
    <div className={styles.row} data-unread={unread || undefined} data-here={here || undefined}>
      <Link
        href={`/s/${encodeURIComponent(session.session)}`}
        aria-current={here ? "page" : undefined}
      >
        <StateDot doing={doing} />
        <span className={styles.title} title={withMarks(name)}>
          <Marked text={name} />
          {unread && <span className={css.texts.visuallyHidden}> {words.unread}</span>}
        </span>
        <span className={styles.doing} data-tone={doing.tone} title={doing.hint ?? whatOf(doing)}>
          {doing.what === undefined ? doing.label : <Marked text={doing.what} code />}
        </span>
        <span
          className={styles.numbers}
          title={all > own ? words.ownAndAll(cost(own), cost(all)) : undefined}
        >
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
        className={`${css.button.ghost} ${css.button.iconButton} ${styles.pin}`}
        aria-pressed={pinned !== undefined}
        aria-label={(pinned ? words.unpin : words.pin)(withMarks(name))}
        onClick={() => onPin((pinned ?? members[0] ?? session).session)}
      >
        <Icon of={pinned ? PinOff : Pin} size={14} />
      </button>
    </div>
  );
}
