import { describe, expect, it } from "vitest";
import type { Session, Stored } from "../src/api/types";
import { byNeed, EMPTY, happened, listed, nameOf } from "../src/state/fleet";
import { grouped } from "../src/state/groups";
import recorded from "./recordings/session.json";

const session = (over: Partial<Session> = {}): Session =>
  ({
    session: "s",
    name: "",
    state: "idle",
    detail: "",
    spec: { directory: "/home/ada/project" },
    by: "ada",
    parent: null,
    created: 1,
    updated: 1,
    archived: false,
    head: 0,
    run: null,
    machine: null,
    pid: null,
    version: null,
    directory: null,
    cli_session: null,
    mode: null,
    model: null,
    turns: 0,
    cost_usd: 0,
    queued: 0,
    asks: 0,
    ...over,
  }) as Session;

let seq = 0;
const stored = (event: unknown): Stored =>
  ({ session: "s", seq: ++seq, position: seq, at: 1000 + seq, event }) as Stored;

describe("the list of sessions", () => {
  it("comes to what a recorded session was at its end", () => {
    const events = recorded as unknown as Stored[];
    const id = events[0]?.session ?? "";
    const [fleet] = happened(listed(EMPTY, [session({ session: id })]), events);
    expect(fleet.get(id)).toMatchObject({
      state: "ended",
      turns: 4,
      asks: 0,
      queued: 0,
      run: null,
      head: events.at(-1)?.seq,
    });
  });

  it("says who waits, until all questions are settled", () => {
    seq = 0;
    let fleet = listed(EMPTY, [session({ run: "r", state: "working" })]);
    const open = (ask: string): Stored =>
      stored({
        kind: "ask.opened",
        ask,
        run: "r",
        request_id: "q",
        ask_kind: "tool",
        tool: "Bash",
        title: "ls",
        request: {},
      });
    [fleet] = happened(fleet, [
      open("a"),
      open("b"),
      stored({ kind: "run.state", state: "working" }),
    ]);
    expect(fleet.get("s")).toMatchObject({ state: "waiting for you", asks: 2 });
    [fleet] = happened(fleet, [
      stored({ kind: "ask.answered", ask: "a", by: "ada", answer: {}, allowed: true }),
    ]);
    expect(fleet.get("s")?.state).toBe("waiting for you");
    [fleet] = happened(fleet, [stored({ kind: "ask.withdrawn", ask: "b", reason: "x" })]);
    expect(fleet.get("s")?.state).toBe("working");
  });

  it("tells the mode and the model that hold now", () => {
    let fleet = listed(EMPTY, [session({ model: "opus" })]);
    [fleet] = happened(fleet, [
      stored({ kind: "run.starting", run: "r", machine: "", mode: "acceptEdits" }),
    ]);
    expect(fleet.get("s")?.mode).toBe("acceptEdits");
    [fleet] = happened(fleet, [stored({ kind: "run.switched", mode: "plan", by: "cli" })]);
    expect(fleet.get("s")).toMatchObject({ mode: "plan", model: "opus" });
    [fleet] = happened(fleet, [stored({ kind: "run.switched", model: "haiku", by: "ada" })]);
    expect(fleet.get("s")).toMatchObject({ mode: "plan", model: "haiku" });
  });

  it("takes nothing twice, and nothing that the listing has already", () => {
    seq = 5;
    const fleet = listed(EMPTY, [session({ head: 6, turns: 3 })]);
    const [next] = happened(fleet, [
      stored({ kind: "turn.ended", prompts: [], failed: false, outcome: "success", cost_usd: 1 }),
    ]);
    expect(next.get("s")).toMatchObject({ turns: 3, cost_usd: 0 });
  });

  it("tells which sessions it has never heard of, and forgets those that were deleted", () => {
    seq = 0;
    const [, unknown] = happened(EMPTY, [stored({ kind: "run.started", run: "r" })]);
    expect(unknown).toEqual(["s"]);
    const [left] = happened(listed(EMPTY, [session()]), [
      stored({ kind: "session.deleted", by: "ada" }),
    ]);
    expect(left.size).toBe(0);
  });

  it("does not let an old listing undo what has happened since", () => {
    const fleet = listed(listed(EMPTY, [session({ head: 9, name: "new" })]), [
      session({ head: 8, name: "old" }),
    ]);
    expect(fleet.get("s")?.name).toBe("new");
  });

  it("has who waits for you first", () => {
    const states = ["ended", "idle", "working", "waiting for you"] as const;
    const sorted = states.map((state) => session({ state })).sort(byNeed);
    expect(sorted.map((one) => one.state)).toEqual(["waiting for you", "working", "idle", "ended"]);
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
      state: "waiting for you",
      spec: { directory: "/x", project: "docs" } as Session["spec"],
    }),
    session({ session: "d", archived: true }),
  ];
  const seen = (...given: Parameters<typeof grouped>): unknown =>
    grouped(...given).map(([place, list]) => [place, list.map((one) => one.session)]);

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
