import { expect, test } from "vitest";
import { type Recognition, startDictation } from "../src/session/speech";
import { argumentHint, type MenuItem, matchingItems, wordAt } from "../src/session/suggestions";

const ITEMS: MenuItem[] = [
  { name: "__remote-workflow", description: "Run the workflow script" },
  { name: "agents", description: "(removed) Ask Claude to create subagents" },
  { name: "workflow-launch-exec", description: "A handoff (workflow_launch event sessions only)" },
  { name: "clear", description: "Start anew" },
  { name: "compact", description: "Free up context", hint: "<instructions>" },
  { name: "deploy", description: "Deploy it (project)", own: true },
  { name: "zap", own: true },
];

test("a project's own commands are first, inner and removed ones are not shown", () => {
  expect(matchingItems(ITEMS, "").map((one) => one.name)).toEqual([
    "deploy",
    "zap",
    "clear",
    "compact",
  ]);
  expect(matchingItems(ITEMS, "c").map((one) => one.name)).toEqual(["clear", "compact"]);
  expect(matchingItems(ITEMS, "remote")).toEqual([]);
  const many = Array.from({ length: 40 }, (_, index) => ({ name: `own-${index}` }));
  expect(matchingItems(many, "own")).toHaveLength(40);
  // What begins with the text is meant more than what is one's own.
  const both: MenuItem[] = [{ name: "my-compact", own: true }, { name: "compact" }];
  expect(matchingItems(both, "comp").map((one) => one.name)).toEqual(["compact", "my-compact"]);
});

test("the arguments of a command are hinted until they are written", () => {
  expect(argumentHint(ITEMS, "/compact ")).toBe("<instructions>");
  expect(argumentHint(ITEMS, "/compact now")).toBe("");
  expect(argumentHint(ITEMS, "/clear")).toBe("");
  expect(argumentHint(ITEMS, "compact")).toBe("");
});

test("a word is a command at the start only, and a file anywhere", () => {
  expect(wordAt("/co", 3)).toEqual({ sign: "/", text: "co", start: 0 });
  expect(wordAt("a /co", 5)).toBeUndefined();
  expect(wordAt("see @src/a", 10)).toEqual({ sign: "@", text: "src/a", start: 4 });
});

test("only final pieces of speech are written, each once, and errors are told", () => {
  const made: Recognition[] = [];
  class Engine implements Recognition {
    lang = "";
    continuous = false;
    interimResults = true;
    onresult: Recognition["onresult"] = null;
    onerror: Recognition["onerror"] = null;
    onend: Recognition["onend"] = null;
    started = false;
    constructor() {
      made.push(this);
    }
    start = (): void => {
      this.started = true;
    };
    stop = (): void => this.onend?.();
    abort = (): void => undefined;
  }
  const heard: string[] = [];
  const errors: string[] = [];
  let ended = 0;
  const engine = startDictation(Engine, {
    language: "de-DE",
    onText: (text) => heard.push(text),
    onError: (code) => errors.push(code),
    onEnd: () => {
      ended += 1;
    },
  });
  expect(engine.lang).toBe("de-DE");
  const piece = (transcript: string, isFinal: boolean) =>
    Object.assign([{ transcript }], { isFinal });
  engine.onresult?.({ resultIndex: 0, results: [piece(" first ", true), piece("sec", false)] });
  engine.onresult?.({ resultIndex: 1, results: [piece("first", true), piece("second", true)] });
  engine.onerror?.({ error: "aborted" });
  engine.onerror?.({ error: "not-allowed" });
  engine.stop();
  expect([heard, errors, ended]).toEqual([["first", "second"], ["not-allowed"], 1]);
});
