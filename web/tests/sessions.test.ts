import { describe, expect, it } from "vitest";
import type { Session } from "../src/api/types";
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
    groupSessions(...given).map(([place, list]) => [place, list.map((one) => one.session)]);

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
