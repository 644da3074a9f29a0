import { beforeEach, describe, expect, it, vi } from "vitest";
import type { Session } from "../src/api/types";
import { groupSessions, type Show } from "../src/state/groups";
import { type Branch, LEVELS, treeCosts } from "../src/state/trees";
import { session } from "./support";

const one = (id: string, lineage: string[] = [], over: Partial<Session> = {}): Session =>
  session({ session: id, lineage, ...over });

type Outline = string | [string, ...Outline[]];
const outline = ({ session, children }: Branch): Outline =>
  children.length ? [session.session, ...children.map(outline)] : session.session;

/** The trees of the list, in all its groups. */
function seen(sessions: Session[], show: Show = "all", words = "", pins: string[] = []): Outline[] {
  const groups = groupSessions(sessions, show, words, new Set(pins));
  return groups.flatMap(([, trees]) => trees.map(outline));
}

/** All sessions of the list, each as often as it is shown. */
const flat = (outlines: Outline[]): string[] => (outlines as unknown[]).flat(20) as string[];

const waiting = { state: "waiting" } as const;

describe("sessions that agents started", () => {
  it("are below the session that started them, whatever folder they work in", () => {
    const elsewhere = { directory: "/srv/worktrees/a", spec: { directory: "/srv/worktrees" } };
    const sessions = [
      one("other"),
      one("a", ["top"], elsewhere as Partial<Session>),
      one("deep", ["top", "a"]),
      one("top"),
      one("b", ["top"]),
    ];
    expect(seen(sessions)).toEqual(["other", ["top", ["a", "deep"], "b"]]);
  });

  it("bring their tree up when one of them waits, and are counted", () => {
    const sessions = [
      one("other", [], { state: "working" }),
      one("top"),
      one("a", ["top"]),
      one("b", ["top"]),
      one("deep", ["top", "b"], waiting),
    ];
    expect(seen(sessions)).toEqual([["top", ["b", "deep"], "a"], "other"]);
    const top = groupSessions(sessions, "all", "", new Set())[0]?.[1][0];
    expect(top).toMatchObject({ below: 3, waiting: 1 });
    expect(top?.children[0]).toMatchObject({ below: 1, waiting: 1 });
    expect(top?.children[1]).toMatchObject({ below: 0, waiting: 0 });
  });

  it("are roots if the session above is archived, deleted, filtered out, or if they are pinned", () => {
    const top = one("top", [], { name: "boss" });
    const a = one("a", ["top"], { name: "worker", ...waiting });
    const deep = one("deep", ["top", "a"], { name: "helper" });
    expect(seen([{ ...top, archived: true }, a, deep])).toEqual([["a", "deep"]]);
    expect(seen([{ ...top, archived: true }, a], "archived")).toEqual(["top"]);
    expect(seen([top, deep])).toEqual(["top", "deep"]);
    expect(seen([top, a, deep], "waiting")).toEqual(["a"]);
    expect(seen([top, a, deep], "all", "helper")).toEqual(["deep"]);
    expect(seen([top, a, deep], "all", "", ["a"])).toEqual([["a", "deep"], "top"]);
  });

  it("of a loop are below the one row of the loop", () => {
    const turn = (id: string, over: Partial<Session> = {}): Session =>
      one(id, [], { spec: { directory: "/srv", family: "loop" } as Session["spec"], ...over });
    expect(seen([turn("t1"), turn("t2", waiting), one("a", ["t1"])])).toEqual([["t2", "a"]]);
  });

  it("are all shown once, on a bounded number of levels, whatever they say of each other", () => {
    const circle = [one("a", ["b"]), one("b", ["c"]), one("c", ["a"]), one("tail", ["b"], waiting)];
    expect(flat(seen(circle)).sort()).toEqual(["a", "b", "c", "tail"]);
    const odd = [one("self", ["self"]), one("", [""]), one("x", [""]), one("__proto__", ["x"])];
    expect(flat(seen(odd)).sort()).toEqual(["", "__proto__", "self", "x"]);
    expect(seen([one("x", ["constructor"])])).toEqual(["x"]);

    const chain = Array.from({ length: 5000 }, (_, at) => one(`s${at}`, at ? [`s${at - 1}`] : []));
    const [root] = groupSessions(chain.reverse(), "all", "", new Set())[0]?.[1] ?? [];
    expect(root).toMatchObject({ below: 4999 });
    let level = root;
    for (let depth = 0; depth < LEVELS; depth += 1) level = level?.children[0];
    expect(level?.children).toEqual([]);
    expect(flat([outline(root as Branch)])).toHaveLength(5000);
  });

  it("count for what the sessions above have cost, also when they are archived", () => {
    const costs = treeCosts([
      one("top", ["top"], { cost_usd: 1 }),
      one("a", ["top"], { cost_usd: 2, archived: true }),
      one("deep", ["top", "a", "a"], { cost_usd: 4 }),
    ]);
    expect([costs.get("top"), costs.get("a"), costs.get("deep")]).toEqual([7, 6, 4]);
  });
});

describe("what is folded", () => {
  beforeEach(() => {
    localStorage.removeItem("quarterdeck.folded");
    vi.resetModules();
  });

  it("is kept in this browser, with an end", async () => {
    const { loadFolded, toggleFolded } = await import("../src/state/folded");
    toggleFolded("a");
    toggleFolded("b");
    toggleFolded("a");
    expect([...loadFolded()]).toEqual(["b"]);
    for (let at = 0; at < 600; at += 1) toggleFolded(`s${at}`);
    expect(loadFolded().size).toBe(500);
    expect(loadFolded().has("s599")).toBe(true);
  });

  it("is nothing where the browser has something else", async () => {
    const { loadFolded } = await import("../src/state/folded");
    for (const stored of ["{", "7", '{"a":1}', "[1,null]"]) {
      localStorage.setItem("quarterdeck.folded", stored);
      expect(loadFolded().size).toBe(0);
    }
  });
});
