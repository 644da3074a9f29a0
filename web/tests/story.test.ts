import { describe, expect, it } from "vitest";
import type { Stored } from "../src/api/types";
import { editedFiles } from "../src/panels/Files";
import { addDeltas, NO_BLOCKS } from "../src/state/liveBlocks";
import {
  EMPTY_STORY,
  type Entry,
  earlierConversation,
  foldEvents,
  refoldStory,
  type Story,
  type ToolEntry,
} from "../src/state/story";
import recorded from "./recordings/session.json";

const events = recorded as unknown as Stored[];
const whole = foldEvents(EMPTY_STORY, events);

const kinds = (story: Story): string[] => story.entries.map((entry) => entry.kind);
const tools = (story: Story): ToolEntry[] =>
  story.entries.filter((entry): entry is ToolEntry => entry.kind === "tool");

describe("the story of a recorded session", () => {
  it("has every prompt, text, call, question and end of a turn, in their order", () => {
    const told = kinds(whole).filter((kind) => kind !== "mark" && kind !== "note");
    expect(told).toEqual([
      "prompt",
      "text",
      "turn",
      "prompt",
      "text",
      "tool",
      "tool",
      "ask",
      "text",
      "turn",
      "prompt",
      "tool",
      "ask",
      "text",
      "turn",
      "prompt",
      "tool",
      "ask",
      "text",
      "turn",
    ]);
  });

  it("knows how each call ended", () => {
    const ends = tools(whole).map((tool) => [tool.name, tool.failed, tool.ended !== undefined]);
    expect(ends).toEqual([
      ["Read", false, true],
      ["Edit", false, true],
      ["Bash", true, true],
      ["Bash", true, true],
    ]);
    expect(JSON.stringify(tools(whole)[3]?.result)).toContain("never");
  });

  it("knows who settled each question", () => {
    const settled = whole.entries.flatMap((entry) => (entry.kind === "ask" ? [entry.settled] : []));
    expect(settled.map((one) => [one?.by, one?.allowed])).toEqual([
      ["ada", true],
      ["ada", true],
      ["bob", false],
    ]);
  });

  it("finds the files that were changed", () => {
    const files = [...editedFiles(whole)];
    expect(files).toHaveLength(1);
    expect(files[0]?.[0]).toMatch(/app\.py$/);
    expect(files[0]?.[1]).toMatchObject([
      { before: "helo", after: "hello", hunks: [{ start: 1 }] },
    ]);
  });

  it("is the same however its events are cut", () => {
    for (const size of [1, 2, 3, 7, 50]) {
      let story = EMPTY_STORY;
      for (let at = 0; at < events.length; at += size)
        story = foldEvents(story, events.slice(at, at + size));
      expect(story).toEqual(whole);
    }
  });

  it("takes no event twice", () => {
    const half = foldEvents(EMPTY_STORY, events.slice(0, 30));
    expect(foldEvents(half, events)).toEqual(whole);
    expect(foldEvents(whole, events)).toBe(whole);
  });

  it("leaves what it was given as it was", () => {
    const half = foldEvents(EMPTY_STORY, events.slice(0, 30));
    const before = structuredClone(half.entries);
    foldEvents(half, events);
    expect(half.entries).toEqual(before);
  });

  it("keeps the entries that did not change", () => {
    const half = foldEvents(EMPTY_STORY, events.slice(0, 30));
    const next = foldEvents(half, events.slice(30, 31));
    const same = half.entries.filter((entry, index) => next.entries[index] === entry);
    expect(same.length).toBeGreaterThanOrEqual(half.entries.length - 1);
  });

  it("can begin in the middle", () => {
    const late = foldEvents(EMPTY_STORY, events.slice(40));
    const together = refoldStory(late, events);
    expect(together).toEqual(whole);
    const known = new Set<Entry>(late.entries);
    const stayed = together.entries.filter((entry) => known.has(entry));
    expect(stayed.length).toBeGreaterThan(late.entries.length / 2);
    expect(late.first).toBe(events[40]?.seq);
    expect(late.last).toBe(whole.last);
  });
});

let seq = 0;
const stored = (event: unknown): Stored =>
  ({ session: "s", seq: ++seq, position: seq, at: 1000 + seq, event }) as Stored;
const said = (line: unknown): Stored => stored({ kind: "said", run: "r", number: seq, line });
const told = (...list: Stored[]): Story => foldEvents(EMPTY_STORY, list);
const last = (story: Story): Entry | undefined => story.entries.at(-1);

describe("a story", () => {
  it("nests what a subagent does under the call that it works for", () => {
    const story = told(
      said({
        type: "assistant",
        message: { content: [{ type: "tool_use", id: "t1", name: "Task", input: {} }] },
      }),
      said({
        type: "assistant",
        parent_tool_use_id: "t1",
        message: {
          content: [{ type: "tool_use", id: "t2", name: "Bash", input: { command: "ls" } }],
        },
      }),
      said({
        type: "user",
        parent_tool_use_id: "t1",
        message: { content: [{ type: "tool_result", tool_use_id: "t2", content: "a file" }] },
      }),
    );
    expect(kinds(story)).toEqual(["tool"]);
    const thread = story.threads.get("t1");
    expect(thread).toHaveLength(1);
    expect(thread?.[0]).toMatchObject({ kind: "tool", id: "t2", result: "a file" });
  });

  it("follows a background task", () => {
    const story = told(
      said({ type: "system", subtype: "task_started", task_id: "b1", description: "build" }),
      said({
        type: "system",
        subtype: "task_notification",
        task_id: "b1",
        status: "completed",
        summary: "built",
      }),
    );
    expect([...story.tasks.values()]).toMatchObject([
      { id: "b1", title: "build", status: "completed", detail: "built" },
    ]);
  });

  it("ties a task to the call that it was, and keeps its title", () => {
    const task = { type: "system", task_id: "b1" };
    const story = told(
      said({
        type: "assistant",
        message: { content: [{ type: "tool_use", id: "t1", name: "Bash", input: {} }] },
      }),
      said({ ...task, subtype: "task_started", tool_use_id: "t1", description: "build" }),
      said({
        ...task,
        subtype: "task_progress",
        tool_use_id: "t1",
        description: "Running make",
        usage: { total_tokens: 12, tool_uses: 2 },
      }),
      said({ ...task, subtype: "task_updated", patch: { status: "completed" } }),
    );
    expect(last(story)).toMatchObject({
      task: { title: "build", detail: "Running make", steps: 2, tokens: 12, status: "completed" },
    });
  });

  it("tells of attempts in one note, with the time of the next", () => {
    const retry = (attempt: number): Stored =>
      said({
        type: "system",
        subtype: "api_retry",
        attempt,
        max_retries: 10,
        retry_delay_ms: 500,
        error_status: 429,
        error: "rate_limit",
      });
    const [one, two] = [retry(1), retry(2)];
    const story = told(one, two);
    expect(story.entries).toMatchObject([
      { text: "The model's API failed (429, rate limit), attempt 2 of 10.", until: two.at + 500 },
    ]);
    expect(foldEvents(told(one), [two])).toEqual(story);
  });

  it("shows a plan or questions as their card alone, whichever comes first", () => {
    const call = said({
      type: "assistant",
      message: { content: [{ type: "tool_use", id: "t1", name: "ExitPlanMode", input: {} }] },
    });
    const ask = (seq: number): Stored => ({
      ...stored({ kind: "ask.opened", ask: "a", run: "r", ask_kind: "plan", tool_use_id: "t1" }),
      seq,
    });
    expect(kinds(told(call, ask(call.seq + 1)))).toEqual(["ask"]);
    expect(kinds(told(ask(call.seq - 1), call))).toEqual(["ask"]);
  });

  it("knows how long a question waited, and what was answered", () => {
    const opened = stored({ kind: "ask.opened", ask: "a", run: "r", ask_kind: "tool" });
    const answer = { answer: "allow", scope: "session" };
    const answered = stored({ kind: "ask.answered", ask: "a", by: "ada", allowed: true, answer });
    expect(last(told(opened, { ...answered, at: opened.at + 4000 }))).toMatchObject({
      settled: { by: "ada", waited: 4000, answer },
    });
  });

  it("keeps the key that a block had while it was made", () => {
    const line = (content: unknown): Stored =>
      said({ type: "assistant", message: { id: "m1", content: [content] } });
    const live = addDeltas(
      NO_BLOCKS,
      [
        { session: "s", message: "m1", text: "hm", thinking: true },
        { session: "s", message: "m1", text: "so", block: 1 },
      ],
      false,
    );
    const story = told(
      line({ type: "thinking", thinking: "hm" }),
      line({ type: "text", text: "so" }),
    );
    expect(story.entries.map((entry) => entry.key)).toEqual(live.map((block) => block.key));
  });

  it("shows a limit with the time of its end, and where the conversation was compacted", () => {
    const story = told(
      stored({ kind: "rate_limited", status: "rejected", resets_at: 5000 }),
      said({ type: "system", subtype: "compact_boundary" }),
    );
    expect(story.entries).toMatchObject([{ kind: "note", until: 5000 }, { kind: "mark" }]);
  });

  it("shows who prompted the agent without the hub", () => {
    const peer = { kind: "prompt.peer", run: "r", message: "m", text: "Go on." };
    const story = told(stored({ ...peer, name: "work-41", pid: 7 }), stored(peer));
    expect(story.entries).toMatchObject([
      {
        kind: "note",
        tone: "warn",
        text: "Another Claude session (work-41, process 7) prompted: Go on.",
      },
      { text: "Another Claude session (an unknown process) prompted: Go on." },
    ]);
  });

  it("withdraws the questions of an agent that has ended", () => {
    const opened = {
      kind: "ask.opened",
      ask: "a",
      run: "r",
      request_id: "q",
      ask_kind: "tool",
      tool: "Bash",
      title: "ls",
      request: {},
    };
    const story = told(
      stored(opened),
      stored({ kind: "run.ended", run: "r", reason: "It crashed." }),
    );
    expect(story.entries[0]).toMatchObject({ settled: { how: "run_ended" } });
    const next = foldEvents(story, [
      stored({ kind: "run.started", run: "r2", pid: 1, version: "" }),
    ]);
    expect(next.entries[0]).toMatchObject({ settled: { how: "never_answered" } });
  });

  it("leaves a plan to be answered that was withdrawn on the way out, and no earlier one", () => {
    const plan = (ask: string): Stored =>
      stored({ kind: "ask.opened", ask, run: "r", ask_kind: "plan", title: "", request: {} });
    const withdrawn = (ask: string): Stored =>
      stored({ kind: "ask.withdrawn", ask, reason: "the CLI withdrew it" });
    const prompt = stored({ kind: "prompt.queued", prompt: "p", content: "on", by: "ada" });
    const end = stored({ kind: "run.ended", run: "r", reason: "It was stopped." });
    const before = [plan("a"), withdrawn("a"), prompt, plan("b"), withdrawn("b"), end];
    const asks = told(...before.map((one, index) => ({ ...one, seq: end.seq + index })));
    expect(asks.entries.filter((one) => one.kind === "ask")).toMatchObject([
      { settled: { how: "withdrawn", why: "the CLI withdrew it" } },
      { settled: { how: "run_ended" } },
    ]);
  });

  it("shows a call as interrupted whose agent ended, also when it gets a made-up result", () => {
    const say = (line: object): Stored => stored({ kind: "said", run: "r", number: 1, line });
    const call = (id: string, parent: string | null = null) =>
      say({
        type: "assistant",
        message: { id: `m-${id}`, content: [{ type: "tool_use", id, name: "Bash", input: {} }] },
        parent_tool_use_id: parent,
      });
    const result = (id: string) => ({
      type: "user",
      message: { content: [{ type: "tool_result", tool_use_id: id, content: "done" }] },
    });
    const cut = told(
      call("t1"),
      say(result("t1")),
      call("t2"),
      call("t3", "t2"),
      stored({ kind: "run.ended", run: "r", reason: "It was killed." }),
    );
    expect(tools(cut).map((tool) => tool.interrupted)).toEqual([undefined, true]);
    expect(cut.threads.get("t2")).toMatchObject([{ id: "t3", interrupted: true }]);
    const placeholder = {
      type: "assistant",
      message: {
        model: "<synthetic>",
        content: [{ type: "text", text: "No response requested." }],
      },
    };
    const after = foldEvents(cut, [
      stored({ kind: "said.recalled", run: "r", uuid: "u1", line: result("t2") }),
      stored({ kind: "said.recalled", run: "r", uuid: "u2", line: placeholder }),
    ]);
    expect(tools(after)[1]).toMatchObject({ interrupted: true, result: "done" });
    expect(kinds(after)).toEqual(kinds(cut));
  });

  it("has the prompts of a session that was taken in", () => {
    const line = { type: "user", message: { content: "fix it" } };
    const story = told(stored({ kind: "said.recalled", run: "import", uuid: "u", line }));
    expect(story.entries).toMatchObject([{ kind: "prompt", text: "fix it", stage: "taken" }]);
    expect(told(stored({ kind: "said.recalled", run: "r", uuid: "u", line })).entries).toEqual([]);
  });

  it("lives through lines that are anything", () => {
    const odd = [
      null,
      7,
      "x",
      [],
      {},
      { type: "assistant" },
      { type: "assistant", message: { content: [null, 3, { type: "tool_use" }] } },
      { type: "user", message: { content: [{ type: "tool_result" }] } },
      { type: "system", subtype: "init", tools: "no" },
      { type: "control_response", response: { response: { commands: [1, null] } } },
    ];
    expect(() => told(...odd.map(said))).not.toThrow();
  });

  it("has a prompt where its turn begins", () => {
    const line = { type: "assistant", message: { content: [{ type: "text", text: "before" }] } };
    const story = told(
      stored({ kind: "prompt.queued", prompt: "p", content: "next", by: "ada" }),
      said(line),
      stored({ kind: "prompt.sent", prompt: "p", run: "r" }),
    );
    expect(kinds(story)).toEqual(["text", "prompt"]);
    expect(last(story)).toMatchObject({ text: "next", stage: "sent" });
  });

  it("changes a prompt's stage in place", () => {
    const story = told(
      stored({ kind: "prompt.queued", prompt: "p", content: "one", by: "ada" }),
      stored({ kind: "prompt.changed", prompt: "p", content: "two", by: "ada" }),
      stored({ kind: "prompt.cancelled", prompt: "p", by: "ada" }),
    );
    expect(last(story)).toMatchObject({ text: "two", stage: "cancelled" });
  });
});

describe("a session with several conversations", () => {
  const stored = (seq: number, event: unknown): Stored =>
    ({ session: "s", seq, position: seq, at: seq, event }) as unknown as Stored;
  const said = (seq: number, text: string): Stored =>
    stored(seq, {
      kind: "said",
      run: "r",
      number: seq,
      line: {
        type: "assistant",
        uuid: `u${seq}`,
        message: { id: `m${seq}`, content: [{ type: "text", text }] },
      },
    });
  const inConversation = (seq: number, id: string): Stored =>
    stored(seq, { kind: "run.cli_session", cli_session: id });
  const events = [
    inConversation(1, "c1"),
    said(2, "one"),
    inConversation(3, "c2"),
    said(4, "two"),
    inConversation(5, "c2"),
    inConversation(6, "c3"),
    said(7, "three"),
  ];
  const texts = (entries: readonly Entry[] | undefined): string[] | undefined =>
    entries?.map((entry) => ("text" in entry ? entry.text : entry.kind));

  it("marks where each begins, and gives each by itself", () => {
    const { entries } = foldEvents(EMPTY_STORY, events);
    expect(texts(entries)).toEqual(["one", "New conversation", "two", "New conversation", "three"]);
    expect(texts(earlierConversation(entries, "c1"))).toEqual(["one"]);
    expect(texts(earlierConversation(entries, "c2"))).toEqual(["two"]);
    expect(earlierConversation(entries, "c3")).toBeUndefined();
    expect(earlierConversation(entries, "c9")).toBeUndefined();
  });

  it("knows an earlier one when its end is loaded", () => {
    const late = foldEvents(EMPTY_STORY, events.slice(4));
    expect(texts(earlierConversation(late.entries, "c2"))).toEqual([]);
    expect(earlierConversation(late.entries, "c1")).toBeUndefined();
    const older = refoldStory(late, events);
    expect(texts(earlierConversation(older.entries, "c1"))).toEqual(["one"]);
  });
});
