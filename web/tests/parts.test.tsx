import { act } from "react";
import { createRoot, type Root } from "react-dom/client";
import { afterEach, describe, expect, it } from "vitest";
import type { AskOpened } from "../src/api/types";
import { answererText } from "../src/asks/AskReasons";
import { fieldsOf } from "../src/asks/ElicitationForm";
import { feedbackOf, partsOf } from "../src/asks/PlanForm";
import { answersOf } from "../src/asks/QuestionsForm";
import { askTitle, cliChangesOf, planTitle, reasonsOf, widerRulesOf } from "../src/asks/request";
import { Markdown } from "../src/markdown/Markdown";
import { Warnings } from "../src/panels/policy/Warnings";
import { pieces } from "../src/panels/Search";
import { patchRows, rowsOf } from "../src/session/Diff";
import { matchingItems, wordAt } from "../src/session/suggestions";
import type { JsonObject } from "../src/state/contentBlocks";
import { appliedEdits, searchResults, titleOf } from "../src/state/tools";

(globalThis as Record<string, unknown>).IS_REACT_ACT_ENVIRONMENT = true;

const roots: Root[] = [];
// What is not shown any more loads no colours after the test.
afterEach(() =>
  act(async () => {
    for (const root of roots.splice(0)) root.unmount();
  }),
);

async function drawn(text: string): Promise<HTMLElement> {
  const place = document.createElement("div");
  const root = createRoot(place);
  roots.push(root);
  await act(async () => root.render(<Markdown text={text} />));
  return place;
}

describe("a policy", () => {
  it("shows the rules that never do what they say, each with its line", async () => {
    const place = document.createElement("div");
    const warnings = [
      { line: 3, text: "tool: Claude Code has no tool 'Bsh'" },
      { line: 9, text: "path: it cannot be negated" },
    ];
    await act(async () => createRoot(place).render(<Warnings warnings={warnings} />));
    expect([...place.querySelectorAll("p")].map((one) => one.textContent)).toEqual([
      "line 3: warning: tool: Claude Code has no tool 'Bsh'",
      "line 9: warning: path: it cannot be negated",
    ]);
  });
});

describe("markdown of an agent", () => {
  it("is shown with its form", async () => {
    const place = await drawn(
      "# Head\n\n*soft* `code`\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |",
    );
    expect(place.querySelector("h1")?.textContent).toBe("Head");
    expect(place.querySelectorAll("li")).toHaveLength(2);
    expect(place.querySelectorAll("td")).toHaveLength(2);
  });

  it.each([
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<iframe src='https://evil.example'></iframe>",
    "<svg onload=alert(1)></svg>",
    "<a href='javascript:alert(1)'>x</a>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x](vbscript:msgbox)",
    "![x](javascript:alert(1))",
    "![track](https://evil.example/pixel.png)",
    "<style>body{display:none}</style>",
    "<form action='https://evil.example'><input name=p></form>",
    "<math><mtext><img src=x onerror=alert(1)></mtext></math>",
    "```html\n<script>alert(1)</script>\n```",
  ])("does nothing that it should not: %s", async (text) => {
    const place = await drawn(text);
    expect(
      place.querySelector("script, iframe, svg, img, form, style, object, embed, math"),
    ).toBeNull();
    for (const element of place.querySelectorAll("*")) {
      for (const { name } of element.attributes) expect(name).not.toMatch(/^on/);
    }
    for (const link of place.querySelectorAll("a")) {
      expect(link.getAttribute("href")).toMatch(/^(https?:|mailto:)/);
      expect(link.getAttribute("rel")).toContain("noopener");
    }
  });
});

describe("a plan", () => {
  it("is taken apart at its blank lines, and not within code", () => {
    expect(partsOf("# One\n\ntwo\n\n```\na\n\nb\n```")).toEqual([
      "# One",
      "two",
      "```\na\n\nb\n```",
    ]);
  });

  it("goes back with the comments at their places", () => {
    expect(feedbackOf([{ about: "## Step one\nmore", says: "why?" }], "be quick")).toBe(
      "> ## Step one\nwhy?\n\nbe quick",
    );
  });
});

describe("answers to questions", () => {
  const questions = [
    { question: "Which?", header: "", options: [], multiSelect: false },
    { question: "Who?", header: "", options: [], multiSelect: true },
  ];
  it("are a label, several, or words of one's own", () => {
    const answers = answersOf(questions, {
      "Which?": { labels: ["Red"], other: "as the sea" },
      "Who?": { labels: ["Ada"], other: "Bob" },
    });
    expect(answers).toEqual({ "Which?": "as the sea", "Who?": ["Ada", "Bob"] });
  });
});

describe("small parts", () => {
  const asked = (tool: string, ...permission_suggestions: unknown[]): AskOpened =>
    ({ tool, request: { permission_suggestions } }) as unknown as AskOpened;
  const rule = {
    type: "addRules",
    behavior: "allow",
    destination: "localSettings",
    rules: [{ toolName: "Bash", ruleContent: "ls:*" }],
  };
  const mode = { type: "setMode", mode: "acceptEdits", destination: "session" };

  it("list each change that the CLI suggests, and say exactly what it does", () => {
    const folder = {
      type: "addDirectories",
      directories: ["/etc", "/usr"],
      destination: "session",
    };
    const removed = { type: "removeRules", behavior: "deny", rules: [{ toolName: "Read" }] };
    const everywhere = { ...removed, destination: "userSettings" };
    const words = cliChangesOf(
      asked("Bash", rule, mode, folder, everywhere, { type: "new", x: 1 }),
    );
    expect(words).toEqual([
      {
        index: 0,
        words:
          "add to the CLI's own rules: allow Bash(ls:*), in this project, for you (.claude/settings.local.json)",
      },
      {
        index: 1,
        words: "switch to the mode acceptEdits (accept all file edits) for this session",
      },
      { index: 2, words: "let it work in /etc, /usr for this session" },
      {
        index: 3,
        words:
          "remove from the CLI's own rules: deny Read, everywhere, for you (~/.claude/settings.json)",
      },
      { index: 4, words: '{"type":"new","x":1}' },
    ]);
    expect(cliChangesOf(asked("Bash"))).toEqual([]);
  });

  it("offer the rules of the CLI that allow more", () => {
    const opened = { ...asked("Bash", rule, mode), narrowest: ["Bash(ls)"] };
    expect(widerRulesOf(opened)).toEqual(["Bash(ls:*)"]);
    expect(widerRulesOf({ ...opened, narrowest: ["Bash(ls:*)"] })).toEqual([]);
  });

  it("say why a person is asked, and a plan's name", () => {
    const request = { decision_reason: "a script", blocked_path: "/home/ada/shop/src" };
    const opened = { reasons: ["a rule", "a script"], request } as unknown as AskOpened;
    expect(reasonsOf(opened, "/home/ada/shop")).toEqual(["a rule", "a script", "path: src"]);
    expect(reasonsOf({ request: {} } as unknown as AskOpened)).toEqual([]);
    expect(planTitle("\n## How I do it\n\nwell")).toBe("How I do it");
    expect(planTitle("")).toBe("Plan");
    const plan = { ask_kind: "plan", tool: "ExitPlanMode", title: "ExitPlanMode", plan: "# Mine" };
    expect(askTitle(plan as unknown as AskOpened)).toBe("Mine");
    const input = { questions: [{ question: "Which colour?" }] };
    const asks = { ask_kind: "questions", tool: "AskUserQuestion", request: { input } };
    expect(askTitle(asks as unknown as AskOpened)).toBe("Which colour?");
  });

  it("say who may answer", () => {
    expect(answererText([["ada", "role:owner"], ["bob"]])).toBe(
      "Must be answered by ada or any owner, and by bob.",
    );
    expect(answererText([])).toBe("");
  });

  it("list what a web search found, and nothing else", () => {
    const found = [{ title: "One", url: "https://one.example/a" }];
    expect(searchResults({ results: [{ content: found }, "so"] }, "")).toEqual(found);
    expect(searchResults(undefined, `Results\n\nLinks: ${JSON.stringify(found)}\n`)).toEqual(found);
    const hostile = [{ title: "x", url: "javascript:alert(1)" }, { url: "https://[" }, 7];
    expect(searchResults({ results: [{ content: hostile }] }, "")).toEqual([]);
    expect(searchResults(undefined, "Links: [broken]")).toEqual([]);
  });

  it("show an edit that was made at its place in the file", () => {
    const structured = {
      structuredPatch: [{ oldStart: 5, newStart: 7, lines: [" a", "-b", "+c", "\\ No newline"] }],
    };
    const [edit] = appliedEdits("Edit", { file_path: "/f", old_string: "b" }, structured);
    expect(patchRows(edit?.hunks ?? []).map((row) => `${row.sign}${row.text}`)).toEqual([
      "…line 7",
      " a",
      "-b",
      "+c",
      "  No newline",
    ]);
    expect(patchRows(edit?.hunks ?? []).map((row) => row.number)).toEqual([undefined, 7, 6, 8, 0]);
  });

  it("find the word that is being written", () => {
    expect(wordAt("/com", 4)).toEqual({ sign: "/", text: "com", start: 0 });
    expect(wordAt("look at @src/a", 14)).toEqual({ sign: "@", text: "src/a", start: 8 });
    expect(wordAt("mail a@b", 8)).toBeUndefined();
    expect(
      matchingItems(
        [
          { name: "recompact", description: "" },
          { name: "compact", description: "" },
        ],
        "comp",
      ).map((one) => one.name),
    ).toEqual(["compact", "recompact"]);
  });

  it("show a change with what is around it", () => {
    const before = Array.from({ length: 20 }, (_, index) => `line ${index}`).join("\n");
    const rows = rowsOf(before, before.replace("line 10", "LINE 10"));
    expect(rows.filter((row) => row.sign === "+").map((row) => row.text)).toEqual(["LINE 10"]);
    expect(rows.length).toBeLessThan(12);
  });

  it("name a call by what it does", () => {
    expect(titleOf("Bash", { command: "ls\n  -l" })).toBe("ls -l");
    expect(titleOf("mcp__github__search", {})).toBe("search · github");
  });

  it.each<[string, object, string]>([
    ["TaskCreate", { subject: "Replace floats", description: "…" }, "Replace floats"],
    ["TaskUpdate", { taskId: "2", status: "in_progress" }, "to-do 2: in progress"],
    ["TaskUpdate", { taskId: 2, subject: "Use\nintegers" }, "to-do 2: Use integers"],
    ["TaskUpdate", { taskId: {}, status: 5 }, "TaskUpdate"],
    ["TaskList", {}, "TaskList"],
  ])("name the entry of the to-do list: %s %o", (name, input, title) => {
    expect(titleOf(name, input as JsonObject)).toBe(title);
  });

  it("mark what was found, counted in code points", () => {
    expect(pieces({ text: "a 👍 word", ranges: [[4, 8]] })).toEqual([
      ["a 👍 ", false],
      ["word", true],
    ]);
  });

  it("take a form's fields from its schema", () => {
    expect(
      fieldsOf({ properties: { age: { type: "integer", title: "Age" } }, required: ["age"] }),
    ).toMatchObject([{ name: "age", title: "Age", type: "integer", required: true }]);
    expect(
      fieldsOf({ properties: { on: { type: "boolean" }, as: { default: "ada" } } }),
    ).toMatchObject([
      { name: "on", given: false },
      { name: "as", given: "ada" },
    ]);
    expect(fieldsOf(7)).toEqual([]);
  });
});
