import { describe, expect, it } from "vitest";
import type { Session } from "../src/api/types";
import {
  addNewSession,
  closeTab,
  keepConversation,
  openTab,
  pathOfTab,
  splitTab,
  tabOfPath,
} from "../src/state/tabs";

const session = (id: string, more: Partial<Session> = {}): Session =>
  ({
    session: id,
    machine: "local",
    directory: "/work",
    spec: { directory: "/work" },
    state: "idle",
    turns: 1,
    cli_session: `cli-${id}`,
    mode: null,
    model: null,
    ...more,
  }) as Session;
const fleet = (...sessions: Session[]) => new Map(sessions.map((one) => [one.session, one]));

describe("tabs", () => {
  it("has one for each session that was opened, and the neighbour is shown when one is closed", () => {
    const tabs = openTab(openTab(openTab([], "a"), "b"), "a");
    expect(tabs).toEqual(["a", "b"]);
    expect(closeTab(["a", "b", "c"], "b")).toEqual([["a", "c"], "c"]);
    expect(closeTab(["a", "b"], "b")).toEqual([["a"], "a"]);
    expect(closeTab(["a"], "a")).toEqual([[], undefined]);
  });

  it("gives a CLI that came again under another id a tab beside the one that is over", () => {
    const over = session("a", { state: "ended" });
    const fresh = session("n", { turns: 0, state: "idle" });
    const known = fleet(over, session("b", { directory: "/else" }), fresh);
    expect(addNewSession(["a", "b"], known, fresh)).toEqual([["a", "n", "b"], undefined]);
  });

  it("has a tab in which nothing happened taken by the CLI that comes", () => {
    const placeholder = session("p", { turns: 0, cli_session: null, state: "starting" });
    const fresh = session("n", { turns: 0 });
    expect(addNewSession(["a", "p"], fleet(session("a"), placeholder, fresh), fresh)).toEqual([
      ["a", "n"],
      "p",
    ]);
  });

  it("gives a fork a tab beside the session that it comes from", () => {
    const fork = session("f", { parent: "a", turns: 0, cli_session: null });
    const known = fleet(session("a"), session("b"), fork);
    expect(addNewSession(["a", "b"], known, fork)).toEqual([["a", "f", "b"], undefined]);
    expect(addNewSession(["b"], known, fork)).toEqual([["b"], undefined]);
  });

  it("opens nothing for a session beside one that works, or on another machine", () => {
    const fresh = session("n");
    expect(addNewSession(["a"], fleet(session("a"), fresh), fresh)).toEqual([["a"], undefined]);
    const far = session("a", { state: "ended", machine: "far" });
    expect(addNewSession(["a"], fleet(far, fresh), fresh)).toEqual([["a"], undefined]);
  });

  it("keeps the conversation that a CLI has left in a tab before its session's own", () => {
    expect(keepConversation(["a", "b"], "b", "c1")).toEqual(["a", "b c1", "b"]);
    expect(keepConversation(["a", "b c1", "b"], "b", "c2")).toEqual(["a", "b c1", "b c2", "b"]);
    expect(keepConversation(["a", "b c1", "b"], "b", "c1")).toEqual(["a", "b c1", "b"]);
    expect(keepConversation(["a"], "b", "c1")).toEqual(["a"]);
  });

  it("has a path for each tab, also with odd ids", () => {
    for (const tab of ["a", "a c1", "a/b c%1"]) expect(tabOfPath(pathOfTab(tab))).toBe(tab);
    expect(splitTab("a c1")).toEqual({ session: "a", conversation: "c1" });
    expect(tabOfPath("/usage")).toBeUndefined();
  });
});
