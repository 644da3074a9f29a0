// The list of sessions as a person sees it: filtered, and grouped by machine and project. Pure.

import type { Session } from "../api/types";
import { text } from "../text";
import { familiesOf, oneOfEach } from "./families";
import { stateOf } from "./sessionStates";
import { byUrgency, nameOf, projectOf } from "./sessions";
import { type Branch, starterOf, treesOf } from "./trees";

export type Show = "active" | "waiting" | "all" | "archived";

/**
 * Folders and projects with their sessions, waiting ones first; pinned sessions before all others. Of a family
 * there is one: the one that needs a person most. What an agent started is below its session, wherever it works,
 * unless it is pinned itself; it is a root if that session is not shown.
 */
export function groupSessions(
  sessions: Session[],
  show: Show,
  words: string,
  pins: ReadonlySet<string>,
): [string, Branch[]][] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const fitting = sessions.filter((session) => {
    if (session.archived !== (show === "archived")) return false;
    if (show === "active" && session.state === "ended") return false;
    if (show === "waiting" && session.state !== "waiting") return false;
    const text = `${nameOf(session)} ${projectOf(session)} ${session.machine ?? ""} ${stateOf(session.state).label}`;
    return wanted.every((word) => text.toLowerCase().includes(word));
  });
  fitting.sort(byUrgency);
  const families = familiesOf(sessions);
  const isPinned = ({ session, spec }: Session): boolean =>
    spec.family
      ? (families.get(spec.family) ?? []).some((member) => pins.has(member.session))
      : pins.has(session);
  const rows = oneOfEach(fitting);
  const ofFamily = new Map(rows.map(({ session, spec }) => [spec.family, session]));
  const rowOf = new Map<string | undefined, string | undefined>(
    fitting.map(({ session, spec: { family } }) => [
      session,
      family ? ofFamily.get(family) : session,
    ]),
  );
  const trees = treesOf(rows, (session) =>
    isPinned(session) ? undefined : rowOf.get(starterOf(session)),
  );
  const groups = new Map<string, Branch[]>();
  const pinned = trees.filter(({ session }) => isPinned(session));
  if (pinned.length) groups.set(text.sessions.pinned, pinned);
  for (const tree of trees) {
    const { session } = tree;
    if (isPinned(session)) continue;
    const machine = session.machine && session.machine !== "local" ? `${session.machine}: ` : "";
    const place = machine + projectOf(session);
    const others = groups.get(place);
    if (others) others.push(tree);
    else groups.set(place, [tree]);
  }
  return [...groups];
}
