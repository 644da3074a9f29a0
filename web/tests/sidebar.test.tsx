// The list beside a page: one line for each session, and no question in it.
import { act } from "react";
import { createRoot, type Root } from "react-dom/client";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Ask, Me, Session } from "../src/api/types";
import { Sidebar } from "../src/sessions/Sidebar";
import { store } from "../src/state/store";
import { session } from "./support";

(globalThis as Record<string, unknown>).IS_REACT_ACT_ENVIRONMENT = true;

const { holds } = session();
const turn = (problem: string) => ({ at: 1, failed: true, outcome: "success", problem });
const todos = ["completed", "in_progress", "pending", "completed"].map((status) => ({
  todo: "1",
  text: "x",
  status,
}));

const asks: Ask[] = [1, 2, 3, 4].map(
  (at) =>
    ({
      session: "waits",
      seq: at,
      at,
      opened: {
        ask: `a${at}`,
        run: "r",
        ask_kind: "tool",
        tool: "Bash",
        title: `touch ${at}`,
        request: { input: { command: `touch ${at}` } },
      },
    }) as unknown as Ask,
);

const SESSIONS = {
  waits: { state: "waiting", asks: 4 },
  works: { state: "working", holds: { ...holds, todos } },
  rests: { state: "idle" },
  fails: { state: "idle", last_turn: turn("") },
  login: { state: "idle", last_turn: turn("authentication_failed") },
  spent: { state: "idle", budgets: [{}] },
  limit: { state: "rate_limited" },
  behind: { state: "idle", holds: { ...holds, tasks: [{ task: "t", background: true }] } },
};

describe("the list of sessions", () => {
  let place: HTMLElement;
  let root: Root;
  afterEach(() => act(async () => root.unmount()));
  beforeEach(async () => {
    document.body.replaceChildren();
    const made = Object.entries(SESSIONS).map(([id, over]): [string, Session] => [
      id,
      session({ session: id, name: id, ...over } as object),
    ]);
    store.state.set({
      me: { name: "ada", rights: ["steer"] } as unknown as Me,
      listed: true,
      sessions: new Map(made),
      asks: new Map(asks.map((ask) => [ask.opened.ask, ask])),
    });
    place = document.createElement("div");
    document.body.append(place);
    root = createRoot(place);
    await act(async () => root.render(<Sidebar />));
  });

  const row = (id: string): HTMLElement | null =>
    place.querySelector<HTMLElement>(`a[href="/s/${id}"]`);

  it("has no question in it, only how many wait", () => {
    expect(place.querySelectorAll("[data-ask]")).toHaveLength(0);
    expect(place.querySelector("[data-part=inbox]")?.textContent).toContain("4");
    const rows = [...place.querySelectorAll("[data-part=list] li")];
    expect(rows).toHaveLength(Object.keys(SESSIONS).length);
  });

  it("tells how much of the to-do list is done", () => {
    expect(row("works")?.textContent).toContain("2/4");
    expect(row("rests")?.textContent).not.toContain("/");
  });

  it.each([
    ["waits", "waiting for you", "wait"],
    ["works", "working", "work"],
    ["rests", "idle", "idle"],
    ["fails", "failed", "bad"],
    ["login", "needs login", "bad"],
    ["spent", "budget spent", "wait"],
    ["limit", "limit reached", "wait"],
    ["behind", "1 task in background", "work"],
  ])("says what holds, in words and as a colour: %s", (id, label, tone) => {
    expect(row(id)?.textContent).toContain(label);
    const tones = [...(row(id)?.querySelectorAll<HTMLElement>("[data-tone]") ?? [])];
    expect(tones.map((one) => one.dataset.tone)).toEqual([tone, tone]);
  });
});
