// The same events mean the same to a person in the web app as in the terminal and in exported files:
// the golden files are those of `quarterdeck.history.story`.
import { describe, expect, it } from "vitest";
import conversation from "../../tests/fixtures/story/conversation.json";
import imported from "../../tests/fixtures/story/imported.json";
import questions from "../../tests/fixtures/story/questions.json";
import resumed from "../../tests/fixtures/story/resumed.json";
import trouble from "../../tests/fixtures/story/trouble.json";
import turns from "../../tests/fixtures/story/turns.json";
import type { Stored } from "../src/api/types";
import { plainText } from "../src/state/contentBlocks";
import { EMPTY_STORY, type Entry, foldEvents, type NoteEntry } from "../src/state/story";

interface GoldenEntry {
  kind: string;
  text?: string;
  command?: string;
  id?: string;
  by?: string;
  tool?: string;
  input?: unknown;
  failed?: boolean;
  inner?: boolean;
  code?: string;
  tone?: string;
  subject?: string;
}
interface Golden {
  events: unknown[];
  entries: GoldenEntry[];
}
const STORIES: [string, Golden][] = Object.entries({
  conversation,
  imported,
  questions,
  resumed,
  trouble,
  turns,
});

/** Texts, prompts and calls. The web app shows a call and its outcome in one row. */
function golden({ entries }: Golden, inner: boolean): unknown[] {
  return entries
    .filter((entry) => (entry.inner ?? false) === inner)
    .flatMap((entry): unknown[] => {
      switch (entry.kind) {
        case "text":
        case "thinking":
          return [[entry.kind, entry.text, entry.command ?? ""]];
        case "prompt":
          return [["prompt", entry.by ?? ""]];
        case "call": {
          const outcome = entries.find((one) => one.kind === "outcome" && one.id === entry.id);
          const result = outcome && [outcome.text, outcome.failed ?? false];
          return [["call", entry.id, entry.tool, entry.input, result]];
        }
        default:
          return [];
      }
    });
}

function shown(entries: readonly Entry[]): unknown[] {
  return entries.flatMap((entry): unknown[] => {
    switch (entry.kind) {
      case "text":
        return [[entry.kind, entry.text, entry.command ?? ""]];
      case "thinking":
        return [[entry.kind, entry.text, ""]];
      case "prompt":
        return [["prompt", entry.by]];
      case "tool": {
        const result = entry.ended && [plainText(entry.result), entry.failed ?? false];
        return [["call", entry.id, entry.name, entry.input, result]];
      }
      default:
        return [];
    }
  });
}

/** Notices that the web app shows as notes; others are cards, marks or rows of their own. */
const NOTES = new Set([
  "rate_limited",
  "budget.reached",
  "alarm",
  "alarm.ended",
  "run.link_lost",
  "run.link_found",
  "run.ended",
  "noted",
  "prompt.peer",
  "cli.text",
  "cli.notice",
  "turn.cause",
]);

it("a call that was cut off is interrupted, with what the CLI wrote about it when it resumed", () => {
  const story = foldEvents(EMPTY_STORY, resumed.events as Stored[]);
  const calls = story.entries.filter((entry) => entry.kind === "tool");
  expect(calls).toMatchObject([{ interrupted: true, failed: true }]);
  expect(plainText(calls[0]?.result)).toContain("Tool call interrupted");
});

describe.each(STORIES)("the story of the golden file %s", (_, file) => {
  const story = foldEvents(EMPTY_STORY, file.events as Stored[]);

  it("has the same texts, prompts and calls", () => {
    expect(shown(story.entries)).toEqual(golden(file, false));
  });

  it("has the same steps of subagents", () => {
    expect([...story.threads.values()].flatMap(shown)).toEqual(golden(file, true));
  });

  it("has the same notices, as good or as bad", () => {
    const notes = story.entries.filter((entry): entry is NoteEntry => entry.kind === "note");
    expect(notes.map(({ code, tone }) => [code, tone])).toEqual(
      file.entries
        .filter(({ kind, code }) => kind === "notice" && NOTES.has(code ?? ""))
        .map(({ code, tone }) => [code, tone ?? "plain"]),
    );
  });

  it("has the same questions, in the same order", () => {
    const asks = story.entries.flatMap((one) => (one.kind === "ask" ? [one.opened.ask] : []));
    const opened = file.entries.filter(({ code }) => code === "ask.opened");
    expect(asks).toEqual(opened.map(({ subject }) => subject));
  });
});
