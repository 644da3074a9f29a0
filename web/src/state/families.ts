// The sessions of a loop are one family: one row in the list, with the turns inside. Pure.
import type { Session } from "../api/types";

const TURN = /: (?:plan|turn|review) \d+$/;

export type Families = ReadonlyMap<string, readonly Session[]>;

/** The members of every family, oldest first. */
export function familiesOf(sessions: Iterable<Session>): Families {
  const found = new Map<string, Session[]>();
  for (const session of sessions) {
    const family = session.spec.family;
    if (family) found.set(family, [...(found.get(family) ?? []), session]);
  }
  for (const members of found.values()) members.sort((a, b) => a.created - b.created);
  return found;
}

/** The first session of each family, and all sessions without one, in their order. */
export function oneOfEach(sessions: readonly Session[]): Session[] {
  const seen = new Set<string>();
  return sessions.filter(({ spec: { family } }) => {
    if (!family) return true;
    if (seen.has(family)) return false;
    seen.add(family);
    return true;
  });
}

/** The name of a family: that of a member, without the number of its turn. */
export const familyName = (name: string): string => name.replace(TURN, "");

/** What the turns of a family have cost together. */
export const familyCost = (members: readonly Session[]): number =>
  members.reduce((sum, member) => sum + member.cost_usd, 0);
