import { expect, test } from "vitest";
import type { Session } from "../src/api/types";
import {
  choicesOf,
  NOTHING,
  recentFolders,
  runsOf,
  setsMore,
  specsOf,
  templateOf,
} from "../src/sessions/newSessionSpec";
import type { Template } from "../src/state/library";

test("one session has what was chosen and nothing else", () => {
  expect(specsOf({ ...NOTHING, directory: " /work " }, "x")).toEqual([{ directory: "/work" }]);
  const chosen = {
    ...NOTHING,
    directory: "/w",
    model: "opus",
    budget: "2.5",
    sandbox: "strict",
    machine: "far",
  };
  expect(specsOf(chosen, "x")).toEqual([
    {
      directory: "/w",
      machine: "far",
      model: "opus",
      sandbox: "strict",
      budget: { session_usd: 2.5 },
    },
  ]);
  expect(specsOf({ ...NOTHING, sandbox: "everything", budget: "-1" }, "x")).toEqual([
    { directory: "" },
  ]);
});

test("several sessions have a model, a name and a worktree of their own", () => {
  const chosen = { ...NOTHING, directory: "/w", models: "opus, sonnet opus", copies: "2" };
  expect(runsOf(chosen)).toBe(4);
  const specs = specsOf(chosen, "ab1");
  expect(specs.map((one) => one.worktree)).toEqual([
    "compare-ab1-opus-1",
    "compare-ab1-opus-2",
    "compare-ab1-sonnet-1",
    "compare-ab1-sonnet-2",
  ]);
  expect(specs.map((one) => one.model)).toEqual(["opus", "opus", "sonnet", "sonnet"]);
  expect(new Set(specs.map((one) => one.name)).size).toBe(4);
  const copies = specsOf({ ...NOTHING, directory: "/w", copies: "3", worktree: "try" }, "x");
  expect(copies.map((one) => one.worktree)).toEqual(["try-1", "try-2", "try-3"]);
  expect(runsOf({ ...NOTHING, copies: "no" })).toBe(1);
});

test("recent folders are those of the machine, also where the hub writes it as nothing", () => {
  const session = (id: string, updated: number, given: Partial<Session>): Session =>
    ({
      session: id,
      updated,
      lineage: [],
      machine: null,
      spec: { directory: `/${id}` },
      ...given,
    }) as Session;
  const all = [
    session("a", 1, { machine: "" }),
    session("b", 3, { machine: "local" }),
    session("c", 2, {}),
    session("d", 9, { machine: "far", spec: { directory: "/d", machine: "far" } }),
    session("e", 8, { lineage: ["a"] }),
  ];
  const sessions = new Map(all.map((one) => [one.session, one]));
  expect(recentFolders(sessions, "local")).toEqual(["/b", "/c", "/a"]);
  expect(recentFolders(sessions, "far")).toEqual(["/d"]);
});

test("a template keeps the choices, but not the session's name", () => {
  const chosen = { ...NOTHING, directory: "/w", name: "mine", mode: "plan", budget: "1" };
  const made = templateOf(chosen, "Plan", "Look.", true);
  expect(made).toMatchObject({ name: "Plan", prompt: "Look.", shared: true });
  expect(made.spec).toEqual({ directory: "/w", mode: "plan", budget: { session_usd: 1 } });
  const again = choicesOf({ ...made, id: "t" } as unknown as Template);
  expect(again).toEqual({ ...chosen, name: "" });
  expect([setsMore(again), setsMore({ ...NOTHING, directory: "/w" })]).toEqual([true, false]);
});
