import { act } from "react";
import { createRoot, type Root } from "react-dom/client";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Ask, Me } from "../src/api/types";
import { mayBeSelected, mayJoin, stillSelected } from "../src/inbox/bulk";
import Inbox from "../src/inbox/Inbox";
import { activityOf, todoProgress } from "../src/state/activity";
import { store } from "../src/state/store";
import { clock, elapsed, moment } from "../src/ui/format";
import { session } from "./support";

(globalThis as Record<string, unknown>).IS_REACT_ACT_ENVIRONMENT = true;

const ask = (id: string, tool: string, input: object, at = 1, kind = "tool"): Ask =>
  ({
    session: "s",
    seq: at,
    at,
    opened: { ask: id, run: "r", ask_kind: kind, tool, title: id, request: { input } },
  }) as unknown as Ask;
const bash = (id: string, command: string, at = 1): Ask => ask(id, "Bash", { command }, at);
const asMap = (...asks: Ask[]) => new Map(asks.map((one) => [one.opened.ask, one]));

describe("questions that are answered together", () => {
  it.each([
    ["a short command", bash("a", "ls"), true],
    ["an edit", ask("a", "Edit", { file_path: "/f", old_string: "a", new_string: "b" }), true],
    ["lines that are folded", bash("a", "x\n".repeat(100)), false],
    [
      "an edit of every place",
      ask("a", "Edit", { file_path: "/f", old_string: "a", new_string: "b", replace_all: true }),
      false,
    ],
    [
      "an edit of every place, said by a text",
      ask("a", "Edit", { file_path: "/f", old_string: "a", new_string: "b", replace_all: "true" }),
      false,
    ],
    [
      "an edit whose card folds lines as soon as it has read the file",
      ask("a", "Edit", { file_path: "/f", old_string: "x\n".repeat(38), new_string: "" }),
      false,
    ],
    [
      "several edits of a file",
      ask("a", "MultiEdit", { file_path: "/f", edits: [{ old_string: "a", new_string: "b" }] }),
      false,
    ],
    [
      "a cell of a notebook",
      ask("a", "NotebookEdit", { notebook_path: "/f", new_source: "a" }),
      false,
    ],
    ["a file that is replaced", ask("a", "Write", { file_path: "/f", content: "" }), false],
    ["a plan", ask("a", "ExitPlanMode", {}, 1, "plan"), false],
    ["choices", ask("a", "AskUserQuestion", {}, 1, "questions"), false],
  ])("may contain %s: %o", (_, one, may) => {
    expect(mayBeSelected(one)).toBe(may);
  });

  it("are of one tool, and only those that are still open", () => {
    const other = ask("c", "Edit", { file_path: "/f", old_string: "a", new_string: "b" });
    const open = asMap(bash("a", "ls"), bash("b", "pwd"), other);
    expect(mayJoin(bash("b", "pwd"), ["a"], open)).toBe(true);
    expect(mayJoin(other, ["a"], open)).toBe(false);
    expect(mayJoin(other, [], open)).toBe(true);
    expect(stillSelected(["a", "gone"], open)).toEqual(["a"]);
  });
});

describe("the inbox", () => {
  let root: Root;
  afterEach(() => act(async () => root.unmount()));
  beforeEach(() => {
    document.body.replaceChildren();
    localStorage.setItem("quarterdeck.undo", "0");
  });

  const drawn = async (...asks: Ask[]): Promise<HTMLElement> => {
    store.state.set({
      me: { name: "ada", rights: ["steer"] } as unknown as Me,
      asks: asMap(...asks),
      sending: new Map(),
      sessions: new Map([["s", session({ name: "the invoices" })]]),
    });
    const place = document.createElement("div");
    document.body.append(place);
    root = createRoot(place);
    await act(async () => root.render(<Inbox />));
    return place;
  };

  it("has a whole card for each question, oldest first, with its session", async () => {
    const place = await drawn(bash("young", "ls -l", 3), bash("old", "pwd", 2));
    const cards = [...place.querySelectorAll<HTMLElement>("[data-ask]")];
    expect(cards.map((card) => card.dataset.ask)).toEqual(["old", "young"]);
    expect(place.querySelector("h1")?.textContent).toBe("Waiting for you · 2");
    expect(place.textContent).toContain("the invoices");
    expect(cards[1]?.querySelector("pre")?.textContent).toBe("ls -l");
  });

  it("sends one answer for each that is selected, and to no other", async () => {
    const answered = vi.spyOn(store.asks, "answer").mockResolvedValue();
    const place = await drawn(bash("a", "ls"), bash("b", "pwd", 2), bash("c", "id", 3));
    const boxes = place.querySelectorAll<HTMLInputElement>("header input[type=checkbox]");
    expect(boxes).toHaveLength(3);
    await act(async () => boxes[0]?.click());
    await act(async () => boxes[2]?.click());
    const group = place.querySelector("fieldset[aria-label='Answer the selected calls']");
    const all = [...(group?.querySelectorAll("button") ?? [])];
    expect(all[0]?.textContent).toBe("Allow 2 calls once");
    await act(async () => all[0]?.click());
    expect(answered.mock.calls).toEqual([
      ["a", { answer: "allow", scope: "once" }],
      ["c", { answer: "allow", scope: "once" }],
    ]);
    expect(place.querySelector("fieldset[aria-label='Answer the selected calls']")).toBeNull();
    answered.mockRestore();
  });
});

describe("what a session does", () => {
  const holds = session().holds;
  const tool = { call: "1", tool: "Bash", title: "make test", since: 5000 };
  const task = { task: "t", background: true, since: 4000 };
  const turn = (problem: string) => ({ at: 1, failed: true, outcome: "success", problem });
  const at = Date.now() + 3_600_000;
  const later = at + 7 * 86_400_000;
  const over = { state: "ended", machine: "", directory: "/w" };
  const limited = (resets_at: number) => ({
    state: "rate_limited",
    holds: { ...holds, limits: [{ kind: "rate_limited", status: "rejected", resets_at }] },
  });
  it.each([
    ["works with a tool", { state: "working", holds: { ...holds, tools: [tool] } }, "working"],
    ["works", { state: "working" }, "working"],
    ["has tasks", { state: "idle", holds: { ...holds, tasks: [task] } }, "1 task in background"],
    ["has nothing to do", { state: "idle" }, "idle"],
    ["waits", { state: "waiting", budgets: [{}] }, "waiting for you"],
    ["spent", { state: "idle", budgets: [{}] }, "budget spent"],
    ["is limited", limited(at), `limit until ${clock(at)}`],
    ["is limited for days", limited(later), `limit until ${moment(later)}`],
    ["is limited, nobody knows how long", { state: "rate_limited" }, "limit reached"],
    ["has ended", { state: "ended", machine: "", directory: "/w" }, "ended"],
    ["was never run here", { state: "ended" }, "ended"],
    ["has no CLI", { state: "ended", machine: "", directory: null }, "did not start"],
    ["crashed", { ...over, crashed: true }, "crashed"],
    ["ended after a failure", { ...over, last_turn: turn("") }, "ended: failed"],
    [
      "ended without a login",
      { ...over, last_turn: turn("authentication_failed") },
      "ended: needs login",
    ],
    ["ended after an interrupt", { ...over, last_turn: turn("interrupted") }, "ended"],
    ["failed", { last_turn: turn("") }, "failed"],
    ["was interrupted", { last_turn: turn("interrupted") }, "interrupted"],
    ["must log in", { last_turn: turn("authentication_failed") }, "needs login"],
    ["works again", { state: "working", last_turn: turn("billing_error") }, "working"],
  ])("is told: %s", (_, over, label) => {
    expect(activityOf(session(over as object), false).label).toBe(label);
  });

  it.each([
    [{ ...over, crashed: true }, "bad"],
    [{ ...over, last_turn: turn("") }, "bad"],
    [over, "ended"],
  ])("is red if something went wrong: %o", (over, tone) => {
    expect(activityOf(session(over as object), false).tone).toBe(tone);
  });

  it("has the title and the time of the call of the main agent", () => {
    const inner = { ...tool, title: "inner", agent: "1", since: 9000 };
    const working = session({ state: "working", holds: { ...holds, tools: [tool, inner] } });
    expect(activityOf(working, false)).toMatchObject({ what: "make test", since: 5000 });
  });

  it("says where to log in", () => {
    const { hint } = activityOf(
      session({ machine: "build", last_turn: turn("authentication_failed") }),
      false,
    );
    expect(hint).toBe("Run claude on build, and type /login.");
  });

  it("is done when it has ended a turn that nobody has seen", () => {
    expect(activityOf(session(), true)).toEqual({ label: "done", tone: "good" });
  });

  it("tells how much of the to-do list is done", () => {
    const todos = ["completed", "in_progress", "pending", "completed"].map((status) => ({
      todo: "1",
      text: "x",
      status,
    }));
    expect(todoProgress(session({ holds: { ...holds, todos } }))).toBe("2/4");
    expect(todoProgress(session())).toBe("");
  });

  it.each([
    [900, "0 s"],
    [59_000, "59 s"],
    [61_000, "1 min"],
    [3_700_000, "1 h 1 min"],
  ])("has an elapsed time: %i", (ms, words) => expect(elapsed(ms)).toBe(words));
});
