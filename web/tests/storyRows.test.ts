// What stands in one row of a story, and what is found in it.
import { describe, expect, it } from "vitest";
import type { Stored } from "../src/api/types";
import { serverConfig, wordsOf } from "../src/panels/mcpServer";
import { budgetFrom, doubled, tightest } from "../src/session/head/budgets";
import { effortsOf, modesOf } from "../src/session/head/switches";
import { eventOf } from "../src/session/storyTarget";
import { findInStory } from "../src/state/findInStory";
import { lastLines, linesIn, longOutput } from "../src/state/longOutput";
import { EMPTY_STORY, foldEvents, type Story, type ToolEntry } from "../src/state/story";
import { rowAt, runTime, type StoryRow, storyRows } from "../src/state/storyRows";
import { session } from "./support";

const NONE: ReadonlySet<string> = new Set();
let seq = 0;
const at = (event: unknown, time = 0): Stored =>
  ({ session: "s", seq: ++seq, position: seq, at: time || seq * 1000, event }) as Stored;
const said = (line: object): unknown => ({ kind: "said", run: "r", number: seq, line });

function call(id: string, failed = false, name = "Bash"): Stored[] {
  const block = { type: "tool_use", id, name, input: { command: `make ${id}` } };
  const result = { type: "tool_result", tool_use_id: id, content: `made ${id}`, is_error: failed };
  return [
    at(said({ type: "assistant", message: { id: `m${id}`, content: [block] } })),
    at(said({ type: "user", message: { content: [result] } })),
  ];
}
const calls = (count: number, from = 0): Stored[] =>
  Array.from({ length: count }, (_, index) => call(`t${from + index}`)).flat();
const words = (text: string): Stored =>
  at(said({ type: "assistant", message: { id: `w${seq}`, content: [{ type: "text", text }] } }));
const told = (...events: (Stored | Stored[])[]): Story => foldEvents(EMPTY_STORY, events.flat());
const kinds = (rows: readonly StoryRow[]): string[] =>
  rows.map((row) => (row.kind === "run" ? `run ${row.calls.length}` : row.entry.kind));
const asked = (ask: string, tool: string): unknown => ({
  kind: "ask.opened",
  ask,
  run: "r",
  request_id: ask,
  ask_kind: "tool",
  tool: "Bash",
  tool_use_id: tool,
  title: "make",
  request: {},
});

describe("the rows of a story", () => {
  it("fold a run of calls, which unfolds into its calls", () => {
    const story = told(words("I begin"), calls(110), words("I am done"));
    const rows = storyRows(story.entries, NONE);
    expect(kinds(rows)).toEqual(["text", "run 110", "text"]);
    const open = storyRows(story.entries, new Set([rows[1]?.key ?? ""]));
    expect(open).toHaveLength(113);
    expect(open[2]).toMatchObject({ kind: "entry", nested: true });
  });

  it("show the last calls while the agent works, and short runs", () => {
    expect(kinds(storyRows(told(calls(6)).entries, NONE))).toEqual(["run 4", "tool", "tool"]);
    expect(kinds(storyRows(told(calls(3), words("so")).entries, NONE))).toEqual([
      "tool",
      "tool",
      "tool",
      "text",
    ]);
  });

  it("show a failure, an edit and a subagent by themselves, but not a hundred failures", () => {
    const story = told(
      calls(5),
      call("bad", true),
      calls(5, 10),
      call("e", false, "Edit"),
      call("a", false, "Task"),
      words("so"),
    );
    expect(kinds(storyRows(story.entries, NONE))).toEqual([
      "run 5",
      "tool",
      "run 5",
      "tool",
      "tool",
      "text",
    ]);
    const failing = Array.from({ length: 40 }, (_, index) => call(`f${index}`, true)).flat();
    expect(kinds(storyRows(told(failing, words("so")).entries, NONE))).toEqual(["run 40", "text"]);
  });

  it("have a call and its question in one, with the time that it waited apart", () => {
    const [use, result] = call("t1") as [Stored, Stored];
    const open = told(use, at(asked("a1", "t1"), use.at + 100));
    expect(storyRows(open.entries, NONE)).toMatchObject([
      { entry: { kind: "tool" }, ask: { opened: { ask: "a1" } } },
    ]);
    const answered = { kind: "ask.answered", ask: "a1", by: "ada", allowed: true, answer: {} };
    const done = foldEvents(open, [
      at(answered, use.at + 60_100),
      { ...result, seq: ++seq, at: use.at + 61_100 },
    ]);
    const [row, ...more] = storyRows(done.entries, NONE);
    expect(more).toEqual([]);
    expect(row).toMatchObject({ ask: { settled: { by: "ada", waited: 60_000 } } });
    if (row?.kind !== "entry") throw new Error("no row");
    expect(runTime(row.entry as ToolEntry, row.ask)).toBe(1100);
  });

  it("keep the question of a call that is not there", () => {
    expect(kinds(storyRows(told(at(asked("a9", "other"))).entries, NONE))).toEqual(["ask"]);
  });

  it("tell in one line that a connection was lost and restored", () => {
    const story = told(
      at({ kind: "run.link_lost", run: "r", reason: "The hub was away." }),
      at({ kind: "run.link_found", run: "r", lost: false }),
      at({ kind: "run.link_lost", run: "r", reason: "The hub was away." }),
      at({ kind: "run.link_found", run: "r", lost: true }),
    );
    const texts = storyRows(story.entries, NONE).map(
      (row) => row.kind === "entry" && row.entry.kind === "note" && row.entry.tone,
    );
    expect(texts).toEqual(["good", "warn", "bad"]);
  });

  it("are found by the number of an event, also in a folded run", () => {
    const events = [words("first"), ...calls(8), words("last")];
    const rows = storyRows(told(events).entries, NONE);
    expect(rowAt(rows, events[0]?.seq ?? 0)).toBe(0);
    expect(rowAt(rows, events[5]?.seq ?? 0)).toBe(1);
    expect(rowAt(rows, events.at(-1)?.seq ?? 0)).toBe(2);
    expect(rowAt(rows, 0)).toBe(-1);
  });
});

describe("a turn", () => {
  it("tells apart how long it ran and how long it waited, for questions beside each other too", () => {
    const start = 1_000_000;
    const story = told(
      at({ kind: "run.started", run: "r" }, start),
      at({ kind: "prompt.queued", prompt: "p", content: "go", by: "ada" }, start),
      at({ kind: "prompt.sent", prompt: "p", run: "r" }, start),
      at(asked("a", "x"), start + 1000),
      at(asked("b", "y"), start + 2000),
      at({ kind: "ask.answered", ask: "a", by: "ada", allowed: true }, start + 5000),
      at({ kind: "ask.answered", ask: "b", by: "ada", allowed: true }, start + 11_000),
    );
    expect(story.turn).toMatchObject({ began: start, waited: 10_000 });
    const metered = foldEvents(story, [
      at({ kind: "turn.metered", run: "r", models: [{ model: "m", input: 5, output: 7 }] }),
    ]);
    expect(metered.turn?.tokens).toBe(12);
    const ended = foldEvents(metered, [
      at({
        kind: "turn.ended",
        prompts: ["p"],
        failed: false,
        outcome: "success",
        cost_usd: 0,
        duration_ms: 12_000,
      }),
    ]);
    expect(ended.turn).toBeUndefined();
    expect(ended.entries.at(-1)).toMatchObject({ kind: "turn", waited: 10_000, duration: 12_000 });
  });

  it.each([
    ["the agent has said already", "Not logged in", ""],
    ["nobody has said", "The server is overloaded", "The server is overloaded"],
  ])("tells why it failed, unless it is what %s", (_, text, shown) => {
    const end = { kind: "turn.ended", prompts: [], failed: true, outcome: "api_error", text };
    const story = told(words("Not logged in\n"), at({ ...end, cost_usd: 0 }));
    expect(story.entries.at(-1)).toMatchObject({ kind: "turn", failed: true, text: shown });
  });
});

describe("output that the CLI stored in a file", () => {
  const result = `<persisted-output>
Output too large (52.3KB). Full output saved to: /home/ada/.claude/projects/p/s/tool-results/b1.txt

Preview (first 2KB):
line 1
line 2
...
</persisted-output>`;

  it("has its beginning, its place and its size, and no tags", () => {
    expect(longOutput(result, undefined)).toEqual({
      preview: "line 1\nline 2",
      path: "/home/ada/.claude/projects/p/s/tool-results/b1.txt",
      size: "52.3KB",
    });
    expect(longOutput(result, { stdout: "line 1\nline 2\nline 3 and more" })?.preview).toContain(
      "line 3",
    );
    expect(longOutput("plain <persisted-output>", undefined)).toBeUndefined();
  });

  it("is drawn in pieces of whole lines, and none of it is lost", () => {
    const lines = Array.from({ length: 20_000 }, (_, index) => `line ${index}\n`).join("");
    const output = `${lines}${"x".repeat(250_000)}\nend`;
    const pieces = linesIn(output);
    expect(pieces.join("")).toBe(output);
    expect(Math.max(...pieces.map((piece) => piece.length))).toBeLessThanOrEqual(100_000);
    expect(pieces[0]?.endsWith("\n")).toBe(true);
    expect(linesIn("")).toEqual([]);
  });

  it("is shown by its last lines", () => {
    expect(lastLines("a\nb\r\nc\n\n", 2)).toEqual({ lines: ["b", "c"], count: 3 });
    expect(lastLines(" \n", 2)).toEqual({ lines: [], count: 0 });
  });
});

it("words are found in prompts, answers, calls and their results, whatever their case", () => {
  const events = [words("The Parser is slow"), ...call("walrus"), words("nothing")];
  const story = told(events);
  expect(findInStory(story, "parser")).toEqual([events[0]?.seq]);
  expect(findInStory(story, "MADE WALRUS")).toEqual([events[1]?.seq]);
  expect(findInStory(story, "  ")).toEqual([]);
});

it("an address names an event, or none", () => {
  expect(eventOf("?m=12")).toBe(12);
  for (const odd of ["", "m=", "m=-1", "m=1e99", "m=x"]) expect(eventOf(odd)).toBeUndefined();
});

describe("what can be switched", () => {
  const offers = {
    commands: [],
    agents: [],
    models: [
      { model: "default", name: "Default", resolved: "claude-big", efforts: ["low"], auto: true },
      { model: "small", name: "Small" },
    ],
  };

  it("are the modes that the version and the model have, and no others", () => {
    const told = (over: object) => modesOf(session({ offers, ...over } as never));
    const plain = ["default", "acceptEdits", "plan", "dontAsk"];
    expect(told({ model: "claude-big", version: "2.1.325" })).toEqual([...plain, "auto"]);
    expect(told({ model: "claude-big", version: "2.1.62" })).toEqual(plain);
    expect(told({ model: "small", version: "2.1.325" })).toEqual(plain);
    expect(told({ model: "small", mode: "bypassPermissions" })).toEqual([
      ...plain,
      "bypassPermissions",
    ]);
    const spec = { directory: "/w", skip_permissions: true };
    expect(told({ model: "small", spec })).toContain("bypassPermissions");
  });

  it("are the effort levels of the model that is used", () => {
    expect(effortsOf(session({ offers, model: "claude-big" } as never))).toEqual(["auto", "low"]);
    expect(effortsOf(session({ offers, model: "small" } as never))).toEqual([]);
  });
});

describe("a budget", () => {
  const spent = session({
    spec: { directory: "/w", budget: { session_usd: 1, run_tokens: 1000 } },
    cost_usd: 1.2,
    run_tokens: 100,
  } as never);

  it("shows the limit that is nearest, and doubles what is reached", () => {
    expect(tightest(spent)).toMatchObject({ name: "session_usd", share: 1 });
    expect(doubled(spent)).toEqual({ session_usd: 2.4, run_tokens: 1000 });
    expect(tightest(session())).toBeUndefined();
  });

  it("is read from what was typed", () => {
    const none = { session_usd: "", session_tokens: "", run_usd: "", run_tokens: "" };
    expect(budgetFrom({ ...none, session_usd: " 2,5 ", run_tokens: "10.2" })).toEqual({
      session_usd: 2.5,
      run_tokens: 11,
    });
    expect(budgetFrom(none)).toEqual({});
    for (const odd of ["-1", "0", "much", "Infinity"]) {
      expect(budgetFrom({ ...none, run_usd: odd })).toBeUndefined();
    }
  });
});

it("an MCP server is made of a command or an address, and of nothing else", () => {
  expect(wordsOf(`npx -y "a b" 'c\\d' e\\ f`)).toEqual(["npx", "-y", "a b", "c\\d", "e f"]);
  expect(serverConfig({ name: "files", kind: "stdio", place: "npx server ." })).toEqual({
    type: "stdio",
    command: "npx",
    args: ["server", "."],
  });
  expect(serverConfig({ name: "web", kind: "http", place: "https://mcp.example/" })).toEqual({
    type: "http",
    url: "https://mcp.example/",
  });
  expect(serverConfig({ name: "web", kind: "http", place: "javascript:1" })).toBeUndefined();
  expect(serverConfig({ name: "a/b", kind: "stdio", place: "x" })).toBeUndefined();
  expect(serverConfig({ name: "x", kind: "stdio", place: " " })).toBeUndefined();
});
