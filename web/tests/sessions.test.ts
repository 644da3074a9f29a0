import { describe, expect, it } from "vitest";
import type { Session } from "../src/api/types";
import { familiesOf, familyCost, familyName } from "../src/state/families";
import { groupSessions } from "../src/state/groups";
import { byUrgency, mergeSessions, NO_SESSIONS, nameOf } from "../src/state/sessions";
import { session } from "./support";

describe("the list of sessions", () => {
  it("does not let an old listing undo what has happened since", () => {
    const fleet = mergeSessions(mergeSessions(NO_SESSIONS, [session({ head: 9, name: "new" })]), [
      session({ head: 8, name: "old" }),
    ]);
    expect(fleet.get("s")?.name).toBe("new");
  });

  it("has who waits for you first", () => {
    const states = ["ended", "idle", "working", "waiting"] as const;
    const sorted = states.map((state) => session({ state })).sort(byUrgency);
    expect(sorted.map((one) => one.state)).toEqual(["waiting", "working", "idle", "ended"]);
  });

  it("names a session by its folder if nobody named it", () => {
    expect(nameOf(session())).toBe("project");
    expect(nameOf(session({ name: "fix" }))).toBe("fix");
  });
});

describe("the sessions of a loop", () => {
  const turn = (id: string, created: number, over: Partial<Session> = {}): Session =>
    session({
      session: id,
      name: `Mend it: turn ${created}`,
      created,
      cost_usd: 0.5,
      spec: { directory: "/srv/shop", family: "loop" } as Session["spec"],
      ...over,
    });
  const turns = [turn("b", 2), turn("a", 1), turn("c", 3, { state: "waiting" })];

  it("are one row: the one that waits for a person", () => {
    const groups = groupSessions([...turns, session({ session: "z" })], "all", "", new Set());
    const rows = groups.flatMap(([, list]) => list.map((one) => one.session.session));
    expect(rows.sort()).toEqual(["c", "z"]);
  });

  it("are pinned together, by any of them", () => {
    const groups = groupSessions(turns, "all", "", new Set(["a"]));
    expect(groups.map(([place, list]) => [place, list.length])).toEqual([["Pinned", 1]]);
  });

  it("have their turns in order, one name and one cost", () => {
    const members = familiesOf(turns).get("loop") ?? [];
    expect(members.map((one) => one.session)).toEqual(["a", "b", "c"]);
    expect(familyCost(members)).toBe(1.5);
    expect(familyName("Mend it: turn 12")).toBe("Mend it");
  });
});

describe("the list as a person sees it", () => {
  const sessions = [
    session({
      session: "a",
      spec: { directory: "/srv/shop" } as Session["spec"],
      machine: "local",
    }),
    session({
      session: "b",
      spec: { directory: "/srv/shop" } as Session["spec"],
      machine: "tower",
    }),
    session({
      session: "c",
      state: "waiting",
      spec: { directory: "/x", project: "docs" } as Session["spec"],
    }),
    session({ session: "d", archived: true }),
  ];
  const seen = (...given: Parameters<typeof groupSessions>): unknown =>
    groupSessions(...given).map(([place, list]) => [place, list.map((one) => one.session.session)]);

  it("is by machine and project, whoever waits first", () => {
    expect(seen(sessions, "all", "", new Set())).toEqual([
      ["docs", ["c"]],
      ["/srv/shop", ["a"]],
      ["tower: /srv/shop", ["b"]],
    ]);
  });

  it("is filtered by words and state, and what is pinned stands first", () => {
    expect(seen(sessions, "waiting", "", new Set())).toEqual([["docs", ["c"]]]);
    expect(seen(sessions, "archived", "", new Set())).toEqual([["/home/ada/project", ["d"]]]);
    expect(seen(sessions, "all", "SHOP tower", new Set())).toEqual([["tower: /srv/shop", ["b"]]]);
    expect(seen(sessions, "all", "", new Set(["b"]))).toMatchObject([["Pinned", ["b"]], {}, {}]);
  });
});
