// What the events make of the list of sessions: a pure fold, as the hub's own view of a session.
//
// The hub gives each session with the number of its last event (`head`); what happens after that is
// folded here, so that the list is right at once and nothing is asked twice.
import type { Session, Stored } from "../api/types";
import { lookup } from "./lookup";

export type Fleet = ReadonlyMap<string, Session>;

export const EMPTY: Fleet = new Map();

/** The fleet with sessions as the hub lists them. What is known to be newer stays. */
export function listed(fleet: Fleet, sessions: readonly Session[]): Fleet {
  const next = new Map(fleet);
  for (const session of sessions) {
    const known = next.get(session.session);
    if (!known || known.head <= session.head) next.set(session.session, session);
  }
  return next;
}

/** The fleet with these events, and the sessions that were heard of for the first time. */
export function happened(fleet: Fleet, events: readonly Stored[]): [Fleet, string[]] {
  const next = new Map(fleet);
  const unknown = new Set<string>();
  for (const stored of events) {
    const known = next.get(stored.session);
    if (stored.event.kind === "session.deleted") next.delete(stored.session);
    else if (!known) unknown.add(stored.session);
    else if (stored.seq > known.head) next.set(stored.session, folded(known, stored));
  }
  return [next, [...unknown]];
}

/** The name of a session for people. */
export function nameOf(session: Session): string {
  if (session.name) return session.name;
  const folder = folderOf(session).split("/").filter(Boolean).at(-1);
  return folder ?? "session";
}

/** What there is to say about a session's state; a question by what it is, not by its tool. */
export function detailOf({ detail }: Session): string {
  return lookup(QUESTIONS, detail) ?? detail;
}

const QUESTIONS: Record<string, string> = { ExitPlanMode: "a plan", "ask user": "a question" };

/** The folder that a session works in, or is to work in. */
export function folderOf(session: Session): string {
  return session.directory ?? session.spec.directory ?? "/";
}

/** The folder or project that a session belongs to. */
export function projectOf(session: Session): string {
  return session.spec.project ?? folderOf(session);
}

function folded(session: Session, stored: Stored): Session {
  const now = { ...session, head: stored.seq, updated: stored.at };
  const event = stored.event;
  switch (event.kind) {
    case "session.renamed":
      return { ...now, name: event.name };
    case "session.archived":
      return { ...now, archived: event.archived };
    case "session.changed":
      return { ...now, spec: event.spec };
    case "run.starting":
      return {
        ...now,
        run: event.run,
        machine: event.machine,
        mode: event.mode ?? null,
        state: "starting",
        detail: "",
      };
    case "run.started":
      return {
        ...now,
        pid: event.pid ?? null,
        version: event.version ?? null,
        directory: event.directory ?? null,
      };
    case "run.ended":
      if (session.run !== null && session.run !== event.run) return now;
      return { ...now, run: null, pid: null, asks: 0, state: "ended", detail: event.reason };
    case "run.link_lost":
      return { ...now, state: "disconnected", detail: event.reason };
    case "run.link_found":
      return { ...now, state: session.asks ? "waiting for you" : "working", detail: "" };
    case "run.state":
      return session.asks || session.state === "disconnected"
        ? now
        : { ...now, state: event.state, detail: event.detail ?? "" };
    case "run.switched":
      return { ...now, mode: event.mode ?? session.mode, model: event.model ?? session.model };
    case "run.cli_session":
      return { ...now, cli_session: event.cli_session };
    case "prompt.queued":
      return { ...now, queued: session.queued + 1 };
    case "prompt.sent":
    case "prompt.cancelled":
      return { ...now, queued: Math.max(0, session.queued - 1) };
    case "turn.ended":
      return { ...now, turns: session.turns + 1, cost_usd: session.cost_usd + event.cost_usd };
    case "ask.opened":
      return { ...now, asks: session.asks + 1, state: "waiting for you", detail: event.title };
    case "ask.answered":
    case "ask.withdrawn": {
      const asks = Math.max(0, session.asks - 1);
      return asks ? { ...now, asks } : { ...now, asks, state: "working", detail: "" };
    }
    default:
      return now;
  }
}

const ORDER: Record<Session["state"], number> = {
  "waiting for you": 0,
  disconnected: 1,
  retrying: 2,
  "rate limited": 2,
  working: 3,
  compacting: 3,
  starting: 3,
  idle: 4,
  ended: 5,
};

/** A state that this page does not know stands last. */
const rank = ({ state }: Session): number => lookup(ORDER, state) ?? Object.keys(ORDER).length;

/** Who waits for you first, then who works, then the rest; the newest first among equals. */
export function byNeed(a: Session, b: Session): number {
  return rank(a) - rank(b) || b.updated - a.updated;
}
