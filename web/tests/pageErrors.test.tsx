// Names and events from outside, however they are chosen, and what cannot be shown all the same.
import { act, type ReactNode } from "react";
import { createRoot, type Root } from "react-dom/client";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ApiError } from "../src/api/http";
import type { AskOpened, Session, Stored } from "../src/api/types";
import { AskCard } from "../src/asks/AskCard";
import { answersOf } from "../src/asks/QuestionsForm";
import { Verdict } from "../src/panels/policy/Verdict";
import { EntryRow } from "../src/session/EntryRow";
import { languageOf } from "../src/session/highlight";
import type { Settled } from "../src/state/entries";
import { lookup } from "../src/state/lookup";
import { stateOf } from "../src/state/sessionStates";
import { byUrgency } from "../src/state/sessions";
import { EMPTY_STORY, type Entry, foldEvents } from "../src/state/story";
import { kindOf, titleOf, toolName } from "../src/state/tools";
import { ErrorBoundary } from "../src/ui/ErrorBoundary";
import { newId } from "../src/ui/format";
import { PageErrors } from "../src/ui/PageErrors";
import { dismiss, getPageErrors, report, watchPageErrors } from "../src/ui/pageErrors";

(globalThis as Record<string, unknown>).IS_REACT_ACT_ENVIRONMENT = true;

const INHERITED = [...Object.getOwnPropertyNames(Object.prototype)];

let place: HTMLElement;
let root: Root;

async function draw(node: ReactNode): Promise<HTMLElement> {
  await act(async () => root.render(node));
  return place;
}

beforeEach(() => {
  place = document.createElement("div");
  document.body.append(place);
  root = createRoot(place);
});
afterEach(async () => {
  await act(async () => root.unmount());
  place.remove();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

const said = (seq: number, line: unknown): Stored =>
  ({
    session: "s",
    seq,
    position: seq,
    at: seq,
    event: { kind: "said", run: "r", line },
  }) as Stored;

const asked = (more: object): AskOpened =>
  ({
    kind: "ask.opened",
    ask: "s.1",
    run: "r",
    request_id: "1",
    ask_kind: "tool",
    tool: "Bash",
    title: "so",
    request: {},
    ...more,
  }) as unknown as AskOpened;

describe("a name that every object inherits", () => {
  it("is not what a table has", () => {
    expect(INHERITED).toContain("constructor");
    expect(INHERITED).toContain("__proto__");
    for (const name of INHERITED) expect(lookup({ a: 1 }, name)).toBeUndefined();
  });

  it.each(INHERITED)("is a tool like any other: %s", async (name) => {
    expect(kindOf(name)).toBe("tool");
    expect(toolName(name)).toBe(name);
    expect(titleOf(name, { a: 1 })).toBe(name);
    const use = { type: "tool_use", id: name, name, input: { [name]: name } };
    const result = { type: "tool_result", tool_use_id: name, content: "gone" };
    const { entries, threads } = foldEvents(EMPTY_STORY, [
      said(1, { type: "assistant", uuid: name, message: { id: name, content: [use] } }),
      said(2, { type: "user", message: { content: [result] } }),
    ]);
    expect(entries).toMatchObject([{ kind: "tool", name, ended: 2 }]);
    const row = await draw(<EntryRow entry={entries[0] as Entry} threads={threads} />);
    await act(async () => row.querySelector<HTMLElement>(".tool-head")?.click());
    expect(row.textContent).toContain(name);
    expect(row.textContent).toContain("gone");
    expect(row.querySelector("[data-render-error]")).toBeNull();
  });

  it.each(INHERITED)("is asked about like any other: %s", async (name) => {
    const request = { tool_name: name, input: { [name]: 1 } };
    const card = await draw(
      <AskCard opened={asked({ tool: name, title: name, request })} at={1} />,
    );
    expect(card.querySelectorAll("button[data-key]")).toHaveLength(5);
    const settled: Settled = {
      how: "answered",
      by: name,
      answer: { scope: name, choice: name, answer: name },
    };
    const after = await draw(<AskCard opened={asked({ tool: name })} settled={settled} at={1} />);
    expect(after.textContent).toContain(`Denied by ${name}.`);
  });

  it.each(INHERITED)("can be a question, and be answered: %s", (name) => {
    const question = { question: name, header: "", options: [], multiSelect: false };
    expect(answersOf([question], {})).toEqual({});
    const picked = Object.fromEntries([[name, { labels: ["Red"], other: "" }]]);
    expect(Object.entries(answersOf([question], picked))).toEqual([[name, "Red"]]);
  });

  it.each(INHERITED)("is no language, verdict or state: %s", async (name) => {
    expect(languageOf(`file.${name}`)).toBeUndefined();
    expect(stateOf(name)).toMatchObject({ label: name, busy: false });
    const [strange, idle] = [
      { state: name, updated: 1 },
      { state: "idle", updated: 1 },
    ];
    expect(byUrgency(strange as Session, idle as Session)).toBeGreaterThan(0);
    const badge = await draw(<Verdict word={name} />);
    expect(badge.querySelector("[data-tone]")?.getAttribute("data-tone")).toBe("idle");
  });
});

describe("what cannot be shown", () => {
  beforeEach(() => void vi.spyOn(console, "error").mockImplementation(() => undefined));

  const Broken = ({ raw }: { raw: { text?: string } }): string => raw.text?.trim() ?? fail();
  const fail = (): never => {
    throw new Error("no text");
  };

  it("leaves the rest of the page, says so, and has its JSON", async () => {
    const raw: { text?: string; odd: string } = { odd: "thing" };
    const page = await draw(
      <>
        <ErrorBoundary what="entry" raw={raw}>
          <Broken raw={raw} />
        </ErrorBoundary>
        <p>the rest</p>
      </>,
    );
    expect(page.textContent).toContain("This entry could not be displayed: no text");
    expect(page.querySelector("pre")?.textContent).toBe(JSON.stringify(raw, null, 2));
    expect(page.textContent).toContain("the rest");
  });

  it("is tried again when there is something else to show", async () => {
    const with_ = (raw: { text?: string }): ReactNode => (
      <ErrorBoundary what="entry" raw={raw}>
        <Broken raw={raw} />
      </ErrorBoundary>
    );
    await draw(with_({}));
    const page = await draw(with_({ text: "whole" }));
    expect(page.textContent).toBe("whole");
  });

  it("may be anything, also what no JSON can be made of", async () => {
    const raw: Record<string, unknown> = {};
    raw.self = raw;
    const page = await draw(
      <ErrorBoundary what="entry" raw={raw}>
        <Broken raw={{}} />
      </ErrorBoundary>,
    );
    expect(page.textContent).toContain("could not be displayed");
  });

  it("is one row of a story, and one card", async () => {
    const odd = { kind: "prompt", key: "p", at: Number.NaN, id: "p", text: "", images: [], by: "" };
    const page = await draw(<EntryRow entry={odd as unknown as Entry} threads={new Map()} />);
    expect(page.textContent).toContain("This entry could not be displayed");
    const card = { kind: "ask", key: "ask:1", at: 1, opened: asked({ answered_by: 7 }) };
    const other = await draw(<EntryRow entry={card as unknown as Entry} threads={new Map()} />);
    expect(other.textContent).toContain("This entry could not be displayed");
    expect(other.querySelector("pre")?.textContent).toContain('"ask": "s.1"');
  });

  it("is one event, and the events after it are told", async () => {
    const odd = {
      session: "s",
      seq: 1,
      position: 1,
      at: 1,
      event: { kind: "turn.ended", models: 7 },
    };
    const next = { ...odd, seq: 2, event: { kind: "noted", level: "info", text: "and on" } };
    const story = foldEvents(EMPTY_STORY, [odd, next] as unknown as Stored[]);
    expect(story.last).toBe(2);
    expect(story.entries).toMatchObject([{ kind: "failed", raw: odd }, { text: "and on" }]);
    const page = await draw(<EntryRow entry={story.entries[0] as Entry} threads={new Map()} />);
    expect(page.textContent).toContain("This event could not be displayed");
    expect(page.querySelector("pre")?.textContent).toContain('"models": 7');
  });
});

describe("an error that nobody caught", () => {
  let stop: () => void;
  beforeEach(() => {
    stop = watchPageErrors();
  });
  afterEach(async () => {
    stop();
    await act(async () => {
      for (const { text } of getPageErrors()) dismiss(text);
    });
  });

  it("is shown, counted, and put away", async () => {
    const page = await draw(<PageErrors />);
    await act(async () => {
      window.dispatchEvent(new ErrorEvent("error", { error: new Error("no such thing") }));
      report(new Error("no such thing"));
    });
    expect(page.textContent).toContain("Error in this page: no such thing (2 times)");
    await act(async () => page.querySelector("button")?.click());
    expect(page.textContent).toBe("");
  });

  it("of a promise is shown too, and what the hub refused in its own words", async () => {
    const page = await draw(<PageErrors />);
    const rejected = Object.assign(new Event("unhandledrejection"), {
      reason: new ApiError("conflict", "The session has ended.", 409),
    });
    await act(async () => void window.dispatchEvent(rejected));
    expect(page.querySelector("p span")?.textContent).toBe("The session has ended.");
  });

  it("is not what browsers say though nothing has failed, and not more than a few", () => {
    report("ResizeObserver loop completed with undelivered notifications.");
    expect(getPageErrors()).toEqual([]);
    for (let number = 0; number < 9; number++) report(new Error(`number ${number}`));
    expect(getPageErrors()).toHaveLength(3);
  });
});

describe("an id of our own", () => {
  const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

  it("is made where the page came by plain http, too", () => {
    expect(newId()).toMatch(UUID);
    const getRandomValues = vi.fn(crypto.getRandomValues.bind(crypto));
    vi.stubGlobal("crypto", { getRandomValues });
    const made = new Set(Array.from({ length: 100 }, newId));
    expect(made.size).toBe(100);
    for (const id of made) expect(id).toMatch(UUID);
    expect(getRandomValues).toHaveBeenCalledTimes(100);
  });
});
