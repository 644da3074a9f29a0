// The list of sessions as a person sees it: filtered, and grouped by machine and project. Pure.
import type { Session } from "../api/types";
import { familiesOf, oneOfEach } from "./families";
import { stateOf } from "./sessionStates";
import { byUrgency, nameOf, projectOf } from "./sessions";

export type Show = "active" | "waiting" | "all" | "archived";

/**
 * Folders and projects with their sessions, waiting ones first; pinned sessions before all others. Of a family
 * there is one: the one that needs a person most.
 */
export function groupSessions(
  sessions: Session[],
  show: Show,
  words: string,
  pins: ReadonlySet<string>,
): [string, Session[]][] {
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
  const groups = new Map<string, Session[]>();
  const pinned = rows.filter(isPinned);
  if (pinned.length) groups.set("Pinned", pinned);
  for (const session of rows) {
    if (isPinned(session)) continue;
    const machine = session.machine && session.machine !== "local" ? `${session.machine}: ` : "";
    const place = machine + projectOf(session);
    groups.set(place, [...(groups.get(place) ?? []), session]);
  }
  return [...groups];
}
