// What a session does right now, in a few words, with the time since when. Pure.
import type { Session } from "../api/types";
import { text } from "../text";
import { clock, moment } from "../ui/format";
import { lookup } from "./lookup";
import { stateOf, type Tone } from "./sessionStates";

export interface SessionActivity {
  /** In words for a person. */
  label: string;
  tone: Tone;
  /** Text of the agent: the title of the call that runs. */
  what?: string;
  /** In ms since 1970: since when, if that is worth telling. */
  since?: number;
  /** What a person can do about it. */
  hint?: string;
}

/** What a session does. `unread` is whether something happened that the person has not seen. */
export function activityOf(session: Session, unread: boolean): SessionActivity {
  const { label, tone, busy } = stateOf(session.state);
  if (session.state === "rate_limited") return { label: limitText(session), tone };
  if (session.budgets.length > 0 && session.state !== "waiting" && !busy)
    return { label: words.budgetSpent, tone: "wait" };
  if (session.state === "working") return working(session);
  if (session.state === "idle") return idle(session, unread);
  if (session.state === "ended") return ended(session) ?? { label, tone };
  return { label, tone };
}

/** How a session ended, if something was wrong with its process or its last turn. */
function ended(session: Session): SessionActivity | undefined {
  if (neverBegan(session)) return { label: words.notStarted, tone: "bad" };
  if (session.crashed) return { label: words.crashed, tone: "bad" };
  const failed = failure(session);
  if (failed?.tone !== "bad") return undefined;
  return { ...failed, label: words.endedAfter(failed.label) };
}

/** Whether a machine was to run the last process, and could not: the CLI is missing, for one. */
function neverBegan({ machine, directory }: Session): boolean {
  return machine !== null && directory === null;
}

function working({ holds, since: began }: Session): SessionActivity {
  // The last call of the main agent; while a subagent works, that is the call that started it.
  const tool = holds.tools.findLast((one) => !one.agent) ?? holds.tools.at(-1);
  if (!tool) return { label: words.sessions.working, tone: "work", since: began };
  const since = tool.since || began;
  return { label: words.sessions.working, tone: "work", what: tool.title || tool.tool, since };
}

const words = text.states;

/** Problems of a turn that a login solves, in the CLI's codes. */
const LOGIN = new Set([
  "authentication_failed",
  "oauth_org_not_allowed",
  "verification_required",
  "cloud_credential_error",
]);
const PROBLEMS: Record<string, SessionActivity> = {
  interrupted: { label: words.interrupted, tone: "idle" },
  billing_error: { label: words.billing, tone: "bad" },
  account_on_hold: { label: words.onHold, tone: "bad" },
  overloaded: { label: words.overloaded, tone: "bad" },
};

/** How the last turn failed; undefined if it did not. */
function failure({ last_turn: last, machine }: Session): SessionActivity | undefined {
  if (!last?.failed) return undefined;
  const problem = last.problem ?? "";
  if (LOGIN.has(problem)) {
    const where = machine && machine !== "local" ? words.onMachine(machine) : words.onHub;
    return { label: words.needsLogin, tone: "bad", hint: words.loginHint(where) };
  }
  return lookup(PROBLEMS, problem) ?? { label: words.failed, tone: "bad" };
}

function idle(session: Session, unread: boolean): SessionActivity {
  const { holds } = session;
  const tasks = holds.tasks.filter((task) => task.background);
  const oldest = Math.min(...tasks.map((task) => task.since ?? Number.POSITIVE_INFINITY));
  if (tasks.length) {
    const since = Number.isFinite(oldest) && oldest > 0 ? { since: oldest } : {};
    return { label: words.inBackground(tasks.length), tone: "work", ...since };
  }
  const failed = failure(session);
  if (failed) return failed;
  return unread
    ? { label: words.done, tone: "good" }
    : { label: words.sessions.idle, tone: "idle" };
}

/** In ms. A time of day alone tells nothing about a later day. */
const DAY = 20 * 3600 * 1000;

/** The limit that holds a session up, with the time of its end in the person's own time zone. */
function limitText({ holds }: Session, now = Date.now()): string {
  const until = holds.limits
    .filter((limit) => limit.status === "rejected" && limit.resets_at)
    .map((limit) => limit.resets_at ?? 0);
  if (!until.length) return words.limitReached;
  const end = Math.max(...until);
  return words.limitUntil(end - now < DAY ? clock(end) : moment(end));
}

/** How much of the to-do list is done: "2/4"; nothing without a list. */
export function todoProgress({ holds }: Session): string {
  if (!holds.todos.length) return "";
  const done = holds.todos.filter((todo) => todo.status === "completed").length;
  return `${done}/${holds.todos.length}`;
}
