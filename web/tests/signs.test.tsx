// What tells a person that an agent works, for how long, and what a turn took: story, list, page title.
import { act, type ReactNode } from "react";
import { createRoot } from "react-dom/client";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Ask, Me, Session } from "../src/api/types";
import { EntryRow } from "../src/session/EntryRow";
import { LiveRow } from "../src/session/LiveRow";
import { ToolRow } from "../src/session/ToolRow";
import { type ListView, SessionBranch } from "../src/sessions/SessionBranch";
import { store } from "../src/state/store";
import { EMPTY_STORY, type Story, type ToolEntry, type TurnEntry } from "../src/state/story";
import { Notifications } from "../src/ui/Notifications";
import { session } from "./support";

(globalThis as Record<string, unknown>).IS_REACT_ACT_ENVIRONMENT = true;

const roots: { unmount: () => void }[] = [];

async function drawn(node: ReactNode): Promise<HTMLElement> {
  const place = document.createElement("div");
  document.body.append(place);
  const root = createRoot(place);
  roots.push(root);
  await act(async () => root.render(node));
  return place;
}

const NOW = 1_790_000_000_000;
const TOOL = { call: "1", tool: "Bash", title: "make test", since: NOW - 65_000 };
const TODOS = ["completed", "in_progress", "pending"].map((status, at) => ({
  todo: String(at),
  text: "x",
  status,
}));

beforeEach(() => {
  vi.useFakeTimers({ now: NOW, toFake: ["Date"] });
  store.state.set({ me: { name: "ada", rights: ["read", "steer"] } as unknown as Me });
});
afterEach(async () => {
  await act(async () => {
    for (const one of roots.splice(0)) one.unmount();
  });
  document.body.replaceChildren();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const working = (over: Partial<Session> = {}): Session =>
  session({ state: "working", run: "r", since: NOW - 90_000, ...over });

describe("the last row of a story", () => {
  const told = { ...EMPTY_STORY, turn: { began: NOW - 125_000, waited: 61_000, tokens: 12_345 } };
  const row = (of: Session, story: Story = told as unknown as Story, writing = false) =>
    drawn(<LiveRow session={of} story={story} writing={writing} />);

  it("tells what the agent does, since when, how many tokens it took, and the key that ends it", async () => {
    const place = await row(working({ holds: { ...session().holds, tools: [TOOL] } }));
    expect(place.querySelector("[role=timer]")?.textContent).toBe("2 min");
    expect(place.textContent).toContain("make test");
    expect(place.textContent).toContain("1 min 1 s");
    expect(place.querySelector(".live-tokens")?.textContent).toMatch(/^12(\.3)?k tokens$/);
    expect(place.querySelector("kbd")?.textContent).toBe("Esc");
  });

  it("tells thinking from writing, and has a sign of life before the first word", async () => {
    const begun = { ...EMPTY_STORY } as Story;
    const thinks = await row(working(), begun);
    expect(thinks.textContent).toContain("Thinking");
    expect(thinks.querySelector("[role=timer]")?.textContent).toBe("1 min");
    expect((await row(working(), begun, true)).textContent).toContain("Writing");
  });

  it("offers no key to who may not interrupt", async () => {
    store.state.set({ me: { name: "vi", rights: ["read"] } as unknown as Me });
    expect((await row(working())).querySelector("kbd")).toBeNull();
  });
});

describe("the row of a session in the list", () => {
  const list: ListView = {
    families: new Map(),
    costs: new Map(),
    pins: new Set(),
    onPin: () => undefined,
    looking: false,
  };
  const row = (of: Session) =>
    drawn(
      <ul>
        <SessionBranch list={list} branch={{ session: of, children: [], below: 0, waiting: 0 }} />
      </ul>,
    );

  it("has the call that runs, its time, the to-dos and the cost", async () => {
    const holds = { ...session().holds, tools: [TOOL], todos: TODOS };
    const place = await row(working({ holds, cost_usd: 1.5, name: "shop" }));
    expect(place.querySelector(".sidebar-doing")?.textContent).toBe("make test");
    const facts = [...place.querySelectorAll(".sidebar-numbers span")].map(
      (one) => one.textContent,
    );
    expect(facts).toEqual(["1/3", "$1.50", "1 min"]);
  });

  it("has the colour of trouble where the last turn failed, and none where nothing is to do", async () => {
    const turn = { at: 1, failed: true, outcome: "success", problem: "authentication_failed" };
    const failed = await row(session({ last_turn: turn } as object));
    expect(failed.querySelector(".sidebar-doing")?.getAttribute("data-tone")).toBe("bad");
    const idle = await row(session());
    expect(idle.querySelector(".sidebar-doing")?.getAttribute("data-tone")).toBe("idle");
  });
});

describe("what is over", () => {
  it("has the time that a turn ran, and apart from it the time that it waited for a person", async () => {
    const turn = {
      kind: "turn",
      key: "t",
      at: 1,
      seq: 1,
      failed: false,
      outcome: "success",
      duration: 72_000,
      waited: 60_000,
      cost: 0,
      tokens: 0,
      text: "",
    } as unknown as TurnEntry;
    const place = await drawn(<EntryRow entry={turn} threads={new Map()} />);
    expect(place.textContent).toBe("done · 12 s · 1 min 0 s waiting for answers");
  });

  const call = (over: Partial<ToolEntry>): ToolEntry =>
    ({
      kind: "tool",
      key: "c",
      at: 1,
      seq: 1,
      id: "c",
      name: "Bash",
      input: { command: "make" },
      ended: 1000,
      result: "one\ntwo\nthree\nfour\nfive",
      ...over,
    }) as unknown as ToolEntry;

  it("shows the last lines of a command without a click, and more of one that failed", async () => {
    const done = await drawn(<ToolRow entry={call({})} threads={new Map()} />);
    expect(done.querySelector(".tool-tail")?.textContent).toContain("three\nfour\nfive");
    expect(done.querySelector(".tool-tail pre")?.textContent).not.toContain("two");
    const failed = await drawn(<ToolRow entry={call({ failed: true })} threads={new Map()} />);
    expect(failed.querySelector(".tool-tail")?.textContent).toContain("one\ntwo");
  });

  it("has the text of a subagent in a few lines, and without marks of Markdown", async () => {
    const text = { kind: "text", key: "x", at: 1, seq: 2, text: "long ".repeat(500), uuid: "" };
    const task = {
      status: "completed",
      began: 0,
      at: 5000,
      detail: "## Found\n**24** files, `a.py`",
    };
    const entry = call({ name: "Task", input: { prompt: "p" }, task: task as never });
    const place = await drawn(
      <ToolRow entry={entry} threads={new Map([["c", [text as never]]])} />,
    );
    expect(place.querySelector(".tool-task-line")?.textContent).toContain("Found\n24 files, a.py");
    const steps = place.querySelector("details");
    await act(async () => {
      if (steps) steps.open = true;
      steps?.dispatchEvent(new Event("toggle"));
    });
    const answer = steps?.querySelector(".entry-answer")?.closest(".clamped-content");
    expect((answer as HTMLElement | null)?.style.maxHeight).toBe("12em");
  });
});

it("the number of open questions is in the title of the page and on the badge of the app", async () => {
  const setAppBadge = vi.fn(async () => undefined);
  Object.defineProperty(navigator, "setAppBadge", { value: setAppBadge, configurable: true });
  const ask = (id: string) => ({ session: "s", at: 1, opened: { ask: id } }) as unknown as Ask;
  store.state.set({
    asks: new Map([
      ["a", ask("a")],
      ["b", ask("b")],
    ]),
  });
  await drawn(<Notifications />);
  expect(document.title).toBe("(2) Quarterdeck");
  expect(setAppBadge).toHaveBeenLastCalledWith(2);
  await act(async () => store.state.set({ asks: new Map() }));
  expect(setAppBadge).toHaveBeenLastCalledWith(0);
  Reflect.deleteProperty(navigator, "setAppBadge");
});
