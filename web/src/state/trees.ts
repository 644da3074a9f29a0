// Sessions below the session whose agent started them. Pure.
//
// Every row is in exactly one tree, whatever the sessions say of each other: one without a known parent is a
// root, a circle is cut, and levels below the last are shown on the last.
import type { Session } from "../api/types";

/** Levels below a root. */
export const LEVELS = 4;

export interface Branch {
  readonly session: Session;
  readonly children: readonly Branch[];
  /** The sessions below it, on all levels. */
  readonly below: number;
  /** How many of them wait for a person. */
  readonly waiting: number;
}

interface Place {
  above: string | undefined;
  depth: number;
}

interface Growing extends Branch {
  readonly children: Growing[];
  below: number;
  waiting: number;
}

/** The session whose agent started this one. */
export const starterOf = (session: Session): string | undefined => session.lineage.at(-1);

/** The rows as trees, each where the first of its rows stands. `parentOf` may name what is no row. */
export function treesOf(
  rows: readonly Session[],
  parentOf: (session: Session) => string | undefined,
): Branch[] {
  const places = placesOf(new Map(rows.map((row) => [row.session, parentOf(row)])));
  const branches = new Map<string | undefined, Growing>(
    rows.map((row) => [row.session, { session: row, children: [], below: 0, waiting: 0 }]),
  );
  const roots: Growing[] = [];
  const placed = new Set<Growing>();
  for (const row of rows) {
    let branch = branches.get(row.session);
    for (let first = true; branch; first = false) {
      const above: Growing | undefined = branches.get(places.get(branch.session.session)?.above);
      if (!placed.has(branch)) {
        placed.add(branch);
        (above?.children ?? roots).push(branch);
      }
      if (!first) {
        branch.below += 1;
        if (row.state === "waiting") branch.waiting += 1;
      }
      branch = above;
    }
  }
  return roots;
}

/** For each row, the row that it is shown below. No row is above itself, and none is too deep. */
function placesOf(parents: ReadonlyMap<string, string | undefined>): Map<string, Place> {
  const places = new Map<string, Place>();
  for (const start of parents.keys()) {
    const path = new Set<string>();
    let at: string | undefined = start;
    while (at !== undefined && parents.has(at) && !places.has(at) && !path.has(at)) {
      path.add(at);
      at = parents.get(at);
    }
    // What is not placed here is unknown, or leads back into the path.
    let above = at !== undefined && places.has(at) ? at : undefined;
    for (const one of [...path].reverse()) {
      places.set(one, below(above, above === undefined ? undefined : places.get(above)));
      above = one;
    }
  }
  return places;
}

function below(above: string | undefined, place: Place | undefined): Place {
  if (!place) return { above: undefined, depth: 0 };
  if (place.depth < LEVELS) return { above, depth: place.depth + 1 };
  return place;
}

/** What each session has cost together with all sessions that its agent, and agents below it, started. */
export function treeCosts(sessions: Iterable<Session>): ReadonlyMap<string, number> {
  const costs = new Map<string, number>();
  for (const session of sessions) {
    for (const one of new Set([session.session, ...session.lineage]))
      costs.set(one, (costs.get(one) ?? 0) + session.cost_usd);
  }
  return costs;
}
