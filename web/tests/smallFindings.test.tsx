// Smaller findings of the review of the web app, each shown by what a person sees; see tests/browser/README.md.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { act, type ReactNode } from "react";
import { createRoot } from "react-dom/client";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { AskOpened, Me, Session } from "../src/api/types";
import { AskCard } from "../src/asks/AskCard";
import { Markdown } from "../src/markdown/Markdown";
import { withoutMarks } from "../src/panels/Search";
import { EntryRow } from "../src/session/EntryRow";
import { useFacts } from "../src/session/head/Facts";
import { UnsentPrompts } from "../src/session/PromptQueue";
import { OpenSession } from "../src/session/relativePath";
import { ToolRow } from "../src/session/ToolRow";
import { SessionBranch } from "../src/sessions/SessionBranch";
import { store } from "../src/state/store";
import type { AskEntry, Entry, ToolEntry } from "../src/state/story";
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

beforeEach(() => {
  store.state.set({ me: { name: "ada", rights: ["read", "steer"] } as unknown as Me });
  vi.stubGlobal("fetch", () => new Promise(() => undefined));
});
afterEach(async () => {
  await act(async () => {
    for (const one of roots.splice(0)) one.unmount();
  });
  document.body.replaceChildren();
  vi.unstubAllGlobals();
});

const opened = (tool: string, input: object): AskOpened =>
  ({
    kind: "ask.opened",
    ask: "s.a",
    run: "r",
    request_id: "q",
    ask_kind: "tool",
    tool,
    tool_use_id: "c",
    title: tool,
    request: { input },
  }) as unknown as AskOpened;
const EDIT = { file_path: "/w/a.py", old_string: "one", new_string: "two" };

describe("a card", () => {
  it.each([
    ["Bash", { command: "ls" }, "The agent wants to run"],
    ["Edit", EDIT, "The agent wants to change a file"],
    ["Read", { file_path: "/w/a.py" }, "The agent wants to read"],
    ["WebFetch", { url: "https://one.example" }, "The agent wants to use the web"],
  ])("says what the call does: %s", async (tool, input, words) => {
    const place = await drawn(<AskCard opened={opened(tool, input)} at={1} />);
    expect(place.querySelector(".asks-heading span")?.textContent).toBe(words);
  });

  it("shows a change once, while the row of its call waits", async () => {
    const entry = { kind: "tool", key: "c", at: 1, seq: 1, id: "c", name: "Edit", input: EDIT };
    const ask = { kind: "ask", key: "k", at: 1, seq: 2, opened: opened("Edit", EDIT) };
    const place = await drawn(
      <ToolRow
        entry={entry as unknown as ToolEntry}
        ask={ask as unknown as AskEntry}
        threads={new Map()}
      />,
    );
    expect(place.querySelectorAll(".code-diff")).toHaveLength(1);
    expect(place.querySelector(".tool-head")).toBeNull();
  });
});

describe("text of an agent", () => {
  it("has a picture of the session's folder as a link to the file", async () => {
    const place = await drawn(
      <OpenSession value="s1">
        <Markdown text="![the plot](out/plot.png)" />
      </OpenSession>,
    );
    expect(place.querySelector("a")?.getAttribute("href")).toBe(
      "/changes/s1?part=files&file=out%2Fplot.png",
    );
    expect(place.textContent).toBe("the plot");
    expect(place.querySelector("img")).toBeNull();
  });

  it("has a footnote beside its number", async () => {
    const place = await drawn(<Markdown text={"So it is.[^1]\n\n[^1]: As they say."} />);
    const note = place.querySelector<HTMLElement>(".markdown-footnote");
    expect(note?.querySelector("sup")?.textContent).toBe("[1]");
    expect(note && getComputedStyle(note).display).toBe("flex");
  });

  it("has no marks of Markdown in the hits of a search", () => {
    expect(withoutMarks("## Found **24** in `a.py` and [here](https://one.example)")).toBe(
      "Found 24 in a.py and here",
    );
    expect(withoutMarks("a * b, snake_case, x > y, [1]")).toBe("a * b, snake_case, x > y, [1]");
  });
});

function Facts({ of }: { of: Session }) {
  return useFacts(of, () => undefined).map((fact) => (
    <div key={fact.name} data-fact={fact.name}>
      {fact.node}
    </div>
  ));
}

it("the head has folder, model, mode, context and budget, each by its name", async () => {
  const holds = { ...session().holds, context: { tokens: 50_000, window: 200_000 } };
  const spec = { directory: "/home/ada/shop", budget: { session_usd: 4 } };
  const told = { holds, spec, cost_usd: 1, model: "claude-big", mode: "plan", run: "r" };
  const place = await drawn(<Facts of={session(told as object)} />);
  const shown = Object.fromEntries(
    [...place.querySelectorAll<HTMLElement>("[data-fact]")].map((one) => [
      one.dataset.fact,
      one.textContent,
    ]),
  );
  expect(shown).toMatchObject({ mode: "plan", budget: "$1.00 / $4.00" });
  expect(shown.place).toContain("shop");
  expect(shown.model).toContain("big");
  expect(shown.context).toContain("25");
});

it("a prompt that the hub refused is there with its words and the reason", async () => {
  const unsent = {
    p: { id: "p", session: "s", content: "the next step", error: "The budget is spent." },
  };
  store.state.set({ unsent: unsent as never });
  const place = await drawn(<UnsentPrompts session="s" />);
  expect(place.textContent).toContain("the next step");
  expect(place.textContent).toContain("The budget is spent.");
  expect([...place.querySelectorAll("button")].map((one) => one.textContent)).toEqual([
    "Retry",
    "Discard",
  ]);
  await act(async () => store.state.set({ unsent: {} }));
});

it("the reason why an agent was not started keeps its lines", async () => {
  const reason = "Claude Code was not found. Searched:\n  the PATH\n  /opt/claude\nInstall it.";
  const note = { kind: "note", key: "n", at: 1, seq: 1, tone: "warn", text: reason, code: "x" };
  const place = await drawn(<EntryRow entry={note as unknown as Entry} threads={new Map()} />);
  const shown = place.querySelector<HTMLElement>("[data-code]");
  expect(shown?.textContent).toBe(reason);
  expect(shown && getComputedStyle(shown).whiteSpace).toBe("pre-line");
});

it("a fork is marked in the list, where it has the name of its original", async () => {
  const list = {
    families: new Map(),
    costs: new Map(),
    pins: new Set<string>(),
    onPin: () => undefined,
    looking: false,
  };
  const row = async (parent: string | null) => {
    const of = session({ name: "shop", parent });
    const branch = { session: of, children: [], below: 0, waiting: 0 };
    const place = await drawn(<SessionBranch list={list} branch={branch} />);
    return [...place.querySelectorAll(".sidebar-numbers span")].map((one) => one.textContent);
  };
  expect(await row("s0")).toContain("fork");
  expect(await row(null)).not.toContain("fork");
});

it("texts are plain English: none of the phrases that the review found foreign", () => {
  const folder = join(process.cwd(), "src/text/en");
  const all = readdirSync(folder).map((file) => readFileSync(join(folder, file), "utf8"));
  expect(all.length).toBeGreaterThan(15);
  const foreign =
    /what is to be done|as the CLI has it|thinks freely|take back|for always|against the past|aborted streaming|it is there again/i;
  expect(all.filter((one) => foreign.test(one))).toEqual([]);
});
