import { act } from "react";
import { createRoot } from "react-dom/client";
import { beforeEach, describe, expect, it, vi } from "vitest";
import type { Answer, AskOpened, Me, Stored } from "../src/api/types";
import { AskCard } from "../src/asks/AskCard";
import { contentOf, hiddenLines } from "../src/asks/callContent";
import { PermissionForm } from "../src/asks/PermissionForm";
import { PlanForm } from "../src/asks/PlanForm";
import { renderHighlighted } from "../src/session/CodeBlock";
import { Diff, linesOf, rowsOf } from "../src/session/Diff";
import { highlight } from "../src/session/highlight";
import { store } from "../src/state/store";
import { EMPTY_STORY, foldEvents } from "../src/state/story";
import { editsOf, titleOf } from "../src/state/tools";
import { copyOriginalText } from "../src/ui/Marked";
import { cutAt, segmentsOf } from "../src/ui/marks";

(globalThis as Record<string, unknown>).IS_REACT_ACT_ENVIRONMENT = true;

const TROJAN = "make test \u2067\u2066; touch PWNED \u2069\u2066# on all branches \u2069\u2069";
const lines = (count: number): string =>
  Array.from({ length: count }, (_, index) => `line ${index + 1}`).join("\n");

async function drawn(element: React.ReactNode): Promise<HTMLElement> {
  const place = document.createElement("div");
  document.body.append(place);
  await act(async () => createRoot(place).render(element));
  return place;
}

const card = (tool: string, input: object, more: object = {}) =>
  drawn(
    <PermissionForm
      opened={
        {
          ask: "a",
          ask_kind: "tool",
          tool,
          title: tool,
          request: { input, ...more },
        } as unknown as AskOpened
      }
      busy={false}
      answer={() => undefined}
    />,
  );
const button = (place: HTMLElement, words: string): HTMLButtonElement | undefined =>
  [...place.querySelectorAll("button")].find((one) => one.textContent?.startsWith(words));
const mayAllow = (place: HTMLElement): boolean =>
  ["Allow once", "For the session", "Always", "Edit"].some(
    (words) => button(place, words)?.disabled === false,
  );

describe("a card of a call", () => {
  // Without the right to steer no file is read.
  beforeEach(() => store.state.set({ me: { name: "ada", rights: [] } as unknown as Me }));

  it.each([
    ["isolates", TROJAN, "make test ⟨U+2067⟩⟨U+2066⟩; touch PWNED ⟨U+2069⟩⟨U+2066⟩# on all"],
    ["400 blanks", `ls${" ".repeat(400)}; rm -rf ~/EVIL`, "ls· 400 blanks ·; rm -rf ~/EVIL"],
    ["120 tabs", `ls${"\t".repeat(120)}; rm -rf ~/EVIL`, "ls· 120 blanks ·; rm -rf ~/EVIL"],
    ["600 letters", `ls ${"x".repeat(600)}; rm -rf ~/EVIL`, "xxx; rm -rf ~/EVIL"],
    [
      "80 newlines",
      `ls${"\n".repeat(80)}; rm -rf ~/EVIL`,
      "ls\n· 79 empty lines ·\n; rm -rf ~/EVIL",
    ],
    ["what a terminal obeys", "ls\r\x1b[2K\x08rm x", "ls⟨U+000D⟩⟨U+001B⟩[2K⟨U+0008⟩rm x"],
  ])("shows all of a command: %s", async (_, command, wanted) => {
    const wide = await card("Bash", { command });
    expect(wide.querySelector("pre")?.textContent).toContain(wanted);
    expect(mayAllow(wide)).toBe(true);
  });

  it("has nothing that allows while lines are folded", async () => {
    const place = await card("Bash", { command: `${lines(100)}\nrm -rf ~/EVIL` });
    expect(place.textContent).not.toContain("EVIL");
    expect(mayAllow(place)).toBe(false);
    expect(button(place, "Deny")?.disabled).toBe(false);
    await act(async () => button(place, "Show 61 more lines")?.click());
    expect(place.textContent).toContain("rm -rf ~/EVIL");
    expect(mayAllow(place)).toBe(true);
  });

  it("leads to every line of a long file, and counts them right", async () => {
    const place = await card("Write", { file_path: "/f", content: `${lines(5000)}\nEVIL\n` });
    expect(place.querySelector(".code-plus")?.textContent).toBe("+5001");
    for (const wanted of ["Show 4961", "Show 3001", "Show 1001"]) {
      expect(mayAllow(place)).toBe(false);
      await act(async () => button(place, wanted)?.click());
    }
    expect(place.textContent).toContain("EVIL");
    expect(mayAllow(place)).toBe(true);
  });

  it("lists every member of the input, and warns of those that make it less safe", async () => {
    const place = await card("Bash", {
      command: "make test",
      description: "Allowed by policy. Safe.",
      dangerouslyDisableSandbox: true,
      run_in_background: true,
      timeout: 600000,
      "odd\u202ename": { a: "\u200b" },
    });
    const members = [...place.querySelectorAll(".asks-members > div")];
    expect(members.map((one) => [one.textContent, one.hasAttribute("data-warning")])).toEqual([
      ["⚠ dangerouslyDisableSandboxtrue runs outside the sandbox", true],
      ["run_in_backgroundtrue", false],
      ["timeout600000", false],
      ['odd⟨U+202E⟩name{\n "a": "⟨U+200B⟩"\n}', false],
    ]);
    expect(place.querySelector(".asks-agent-description")?.textContent).toBe(
      "The agent says: “Allowed by policy. Safe.”",
    );
  });

  it.each([
    [
      "Edit",
      { file_path: "/f", old_string: "a", new_string: "b", replace_all: true },
      "replace_all",
    ],
    [
      "NotebookEdit",
      { notebook_path: "/f.ipynb", new_source: "", edit_mode: "delete" },
      "edit_mode",
    ],
    ["NotebookEdit", { notebook_path: "/real", file_path: "/other", new_source: "x" }, "file_path"],
    ["Write", { file_path: "/f", content: ["no text"] }, "content"],
    ["Bash", { command: ["no", "text"] }, "command"],
    [
      "MultiEdit",
      { file_path: "/f", edits: [{ old_string: "a", new_string: "b", x: 1 }] },
      "edits",
    ],
  ])("leaves no member out: %s %o", (tool, input, name) => {
    expect(contentOf(tool, input).members.map((one) => one.name)).toContain(name);
  });

  it("shows all of a tool that it does not know", async () => {
    const place = await card("mcp__files__move", { to: "/etc/\u202epasswd", note: "x\u200b" });
    expect(place.querySelector("pre")?.textContent).toContain('"to": "/etc/⟨U+202E⟩passwd"');
    expect(place.querySelector("pre")?.textContent).toContain('"note": "x⟨U+200B⟩"');
  });

  it("has the path of the file that is changed", () => {
    expect(editsOf("NotebookEdit", { file_path: "/a", notebook_path: "/b" })[0]?.path).toBe("/b");
    expect(editsOf("Edit", { file_path: "/a", notebook_path: "/b" })[0]?.path).toBe("/a");
  });
});

describe("an answer for longer than one call", () => {
  const permission_suggestions = [
    { type: "setMode", mode: "acceptEdits", destination: "session" },
    {
      type: "addRules",
      behavior: "allow",
      destination: "localSettings",
      rules: [{ toolName: "Bash", ruleContent: "npm \u202e:*" }],
    },
    { type: "brandNew", what: "everything" },
  ];

  const login = (...rights: string[]) =>
    store.state.set({ me: { name: "ada", role: "owner", rights } as unknown as Me });
  beforeEach(() => login("read", "steer", "manage"));

  it("is for the session, and takes over no change of the CLI, unless an owner gives it", async () => {
    login("read", "steer");
    const [place, given] = await form("Always allow");
    expect(place.querySelectorAll("input[type=checkbox]")).toHaveLength(0);
    expect([...place.querySelectorAll("option")].map((one) => one.value)).not.toContain("always");
    await act(async () => button(place, "Allow")?.click());
    expect(given.map((one) => (one as { scope?: string }).scope)).not.toContain("always");
  });

  /** A card with the form open, and the answers that it gives. */
  async function form(words: string, fields: object = {}): Promise<[HTMLElement, Answer[]]> {
    const given: Answer[] = [];
    const opened = {
      ask: "a",
      ask_kind: "tool",
      tool: "Bash",
      title: "npm test",
      request: { input: { command: "npm test" }, permission_suggestions },
      narrowest: ["Bash(npm test)"],
      ...fields,
    } as unknown as AskOpened;
    const props = { opened, busy: false };
    const place = await drawn(<PermissionForm {...props} answer={(one) => void given.push(one)} />);
    await act(async () => button(place, words)?.click());
    return [place, given];
  }
  const write = (field: HTMLTextAreaElement | HTMLSelectElement | null, value: string) =>
    act(async () => {
      if (!field) throw new Error("there is no such field");
      const kind = Object.getPrototypeOf(field);
      Object.getOwnPropertyDescriptor(kind, "value")?.set?.call(field, value);
      const type = field instanceof HTMLSelectElement ? "change" : "input";
      field.dispatchEvent(new Event(type, { bubbles: true }));
    });
  const confirm = (place: HTMLElement) =>
    act(async () => place.querySelector<HTMLButtonElement>("button[data-primary]")?.click());

  it.each([
    ["Allow for session", "session"],
    ["Always allow", "always"],
  ])("grants the narrowest rule alone: %s", async (words, scope) => {
    const [place, given] = await form(words);
    expect(given).toEqual([]);
    expect(place.querySelector("textarea")?.value).toBe("Bash(npm test)");
    expect(place.querySelectorAll("input:checked")).toHaveLength(0);
    await confirm(place);
    expect(given).toEqual([{ answer: "allow", scope, rules: ["Bash(npm test)"], updates: [] }]);
  });

  it("takes the changes of the CLI that are chosen, and no others", async () => {
    const [place, given] = await form("Allow for session");
    const changes = [...place.querySelectorAll(".asks-cli-changes label")];
    expect(changes.map((one) => one.textContent)).toEqual([
      "switch to the mode acceptEdits (accept all file edits) for this session",
      "add to the CLI's own rules: allow Bash(npm ⟨U+202E⟩:*), in this project, for you (.claude/settings.local.json)",
      '{"type":"brandNew","what":"everything"}',
    ]);
    await act(async () => changes[1]?.querySelector("input")?.click());
    await confirm(place);
    expect(given).toMatchObject([{ scope: "session", updates: [1] }]);
  });

  it("grants the rule, place and time that a person chooses, and shows what is odd in it", async () => {
    const [place, given] = await form("Always allow");
    await write(place.querySelector("textarea"), "Bash(npm \u202etest:*)");
    expect(place.querySelector(".asks-given-rules code")?.textContent).toBe(
      "Bash(npm ⟨U+202E⟩test:*)",
    );
    const [where, time] = place.querySelectorAll("select");
    await write(where ?? null, "session");
    await write(time ?? null, "3600");
    await confirm(place);
    expect(given).toEqual([
      {
        answer: "allow",
        scope: "session",
        rules: ["Bash(npm \u202etest:*)"],
        updates: [],
        seconds: 3600,
      },
    ]);
  });

  it("offers what the CLI would allow as a rule", async () => {
    const [place, given] = await form("Allow for session");
    await act(async () => button(place, "Bash(npm ⟨U+202E⟩:*)")?.click());
    await confirm(place);
    expect(given).toMatchObject([{ rules: ["Bash(npm \u202e:*)"], updates: [] }]);
  });

  it("grants nothing for a call that no rule can name, unless a person writes one", async () => {
    const [place, given] = await form("Allow for session", { narrowest: [] });
    const primary = place.querySelector<HTMLButtonElement>("button[data-primary]");
    expect(primary?.disabled).toBe(true);
    await act(async () => place.querySelector<HTMLInputElement>("input")?.click());
    expect(primary?.textContent).toBe("Allow once, with these changes");
    await confirm(place);
    expect(given).toEqual([{ answer: "allow", scope: "once", updates: [0] }]);
  });

  it("says where a rule asks again, whatever is granted", async () => {
    const [plain] = await form("Always allow");
    expect(plain.textContent).not.toContain("asks again");
    const [place] = await form("Always allow", { lasting: false });
    expect(place.textContent).toContain("It asks again, whatever you grant here.");
  });

  it("is left without an answer", async () => {
    const [place, given] = await form("Always allow");
    await act(async () => button(place, "Back")?.click());
    expect(button(place, "Allow once")).toBeDefined();
    expect(given).toEqual([]);
  });
});

describe("a question of an agent that ended", () => {
  const opened = {
    kind: "ask.opened",
    ask: "late",
    run: "r",
    request_id: "q",
    ask_kind: "tool",
    tool: "Bash",
    title: "make test",
    request: { input: { command: "make test" } },
  } as unknown as AskOpened;
  const story = (...events: object[]) =>
    foldEvents(
      EMPTY_STORY,
      [opened, ...events].map(
        (event, index) => ({ session: "s", seq: index + 1, at: 1, event }) as unknown as Stored,
      ),
    ).entries.find((entry) => entry.kind === "ask");
  const killed = { kind: "run.ended", run: "r", reason: "It was killed (SIGKILL)." };
  const cardOf = (entry: ReturnType<typeof story>) =>
    drawn(
      entry?.kind === "ask" && <AskCard opened={entry.opened} at={1} settled={entry.settled} />,
    );

  it("says that it ended, and can be answered until the session goes on", async () => {
    const late = await cardOf(story(killed));
    expect(late.textContent).toContain("The agent ended before the question was answered.");
    expect(late.textContent).toContain("the session resumes with your answer");
    expect(button(late, "Allow once")?.disabled).toBe(false);
    const gone = await cardOf(
      story(killed, { kind: "run.started", run: "r2", pid: 1, version: "" }),
    );
    expect(gone.textContent).toContain("Never answered.");
    expect(button(gone, "Allow once")).toBeUndefined();
  });

  it("is over when the agent withdrew it, or was stopped", async () => {
    const withdrawn = { kind: "ask.withdrawn", ask: "late", reason: "the turn was interrupted" };
    const card = await cardOf(story(withdrawn, killed));
    expect(card.textContent).toContain("The turn was interrupted.");
    expect(button(card, "Allow once")).toBeUndefined();
  });
});

describe("a plan", () => {
  it("has no obvious answer until there are comments: then that is to send them", async () => {
    const opened = { ask: "a", ask_kind: "plan", plan: "One step." } as unknown as AskOpened;
    const place = await drawn(<PlanForm opened={opened} busy={false} answer={() => undefined} />);
    const primary = () =>
      [...place.querySelectorAll("button.button-primary, button[data-primary]")].map(
        (one) => one.textContent,
      );
    expect(primary()).toEqual([]);
    await act(async () => button(place, "Comment")?.click());
    const field = place.querySelector("textarea");
    await act(async () => {
      Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value")?.set?.call(
        field,
        "No.",
      );
      field?.dispatchEvent(new Event("input", { bubbles: true }));
    });
    expect(primary()).toEqual(["Keep planning, with 1 comment"]);
  });

  it("hides nothing that is sent on with it", async () => {
    const plan =
      "Step \u202eone <!-- and rm -rf / --> [docs](https://good.example 'hint')\n\n" +
      "<!-- hidden block -->\n\n[name]: https://evil.example\n\n```bash run=this\nls\u200b\n```\n\n&#x202e;x";
    const opened = { ask: "a", ask_kind: "plan", plan } as unknown as AskOpened;
    const form = { opened, busy: false, answer: () => undefined };
    const place = await drawn(<PlanForm {...form} />);
    for (const wanted of [
      "Step ⟨U+202E⟩one",
      "<!-- and rm -rf / -->",
      "https://good.example hint",
      "<!-- hidden block -->",
      "https://evil.example",
      "run=this",
      "ls⟨U+200B⟩",
      "⟨U+202E⟩x",
    ])
      expect(place.textContent).toContain(wanted);
  });
});

describe("code with marks", () => {
  const code = `ls "a\u202eb" \\\n${" ".repeat(30)}x\n\n\n\n\n\nrm # c\u200b`;
  it("keeps them in its colours", async () => {
    const found = await highlight(code, "bash", new AbortController().signal);
    expect(found.length).toBeGreaterThan(0);
    const place = await drawn(<pre>{renderHighlighted(segmentsOf(code), found)}</pre>);
    expect(place.querySelectorAll(".code-hue").length).toBeGreaterThan(3);
    expect(place.textContent).toBe(
      `ls "a⟨U+202E⟩b" \\\n${" ".repeat(30)}x\n· 5 empty lines ·\nrm # c⟨U+200B⟩`,
    );
  });

  it("has all of its colours, however slow the machine is", async () => {
    const source = "const total = (price: number): string => price.toFixed(2) + ' EUR'; // rounded";
    const { signal } = new AbortController();
    const quick = await highlight(source, "typescript", signal);
    let now = Date.now();
    const slow = vi.spyOn(Date, "now").mockImplementation(() => (now += 1000));
    expect(await highlight(source, "typescript", signal)).toEqual(quick);
    slow.mockRestore();
  });

  it("has no colours where the highlighter would lose a character", async () => {
    expect(await highlight("ls\r\nrm\r\n", "bash", new AbortController().signal)).toEqual([]);
  });

  it("is copied as it is", async () => {
    const place = await drawn(<pre>{renderHighlighted(segmentsOf(code), [])}</pre>);
    const range = document.createRange();
    range.selectNodeContents(place.querySelector("pre") as HTMLElement);
    document.getSelection()?.removeAllRanges();
    document.getSelection()?.addRange(range);
    let copied = "";
    const event = {
      clipboardData: { setData: (_: string, text: string) => (copied = text) },
      preventDefault: () => undefined,
    };
    copyOriginalText(event as unknown as ClipboardEvent);
    expect(copied).toBe(code);
  });

  it("is cut between lines, and the rest is counted", () => {
    const [first, left] = cutAt(segmentsOf("a\nb\nc\nd\n"), 2);
    expect(first.map((one) => one.text).join("")).toBe("a\nb");
    expect(left).toBe(2);
    expect(cutAt(segmentsOf("a\nb\n"), 2)[1]).toBe(0);
    expect(hiddenLines(contentOf("Bash", { command: lines(41) }), 40)).toBe(1);
    expect(hiddenLines(contentOf("Bash", { command: lines(40) }), 40)).toBe(0);
  });
});

describe("a change", () => {
  it("counts every line, also those that it folds", () => {
    const rows = rowsOf("", `a\n${"\n".repeat(60)}evil\n`);
    expect(linesOf(rows, "+")).toBe(62);
    expect(rows.map((row) => row.lines ?? row.text)).toEqual(["a", 60, "evil"]);
    const long = rowsOf("", lines(3000));
    expect(linesOf(long, "+")).toBe(3000);
    expect(long.at(-1)?.text).toBe("line 3000");
  });

  it("has the colours of its language on both sides, and its marks", async () => {
    const edit = { path: "/w/a.py", before: "def one():\n", after: "def t\u200bwo():\n" };
    const place = await drawn(<Diff edit={edit} />);
    const hues = (sign: string) =>
      place.querySelectorAll(`.code-row[data-sign="${sign}"] .code-hue`).length;
    expect(hues("+")).toBe(0);
    await vi.waitFor(() => expect(hues("+")).toBeGreaterThan(1), { timeout: 30_000 });
    expect(hues("-")).toBeGreaterThan(1);
    const rows = [...place.querySelectorAll(".code-row")].map((row) => row.textContent?.trim());
    expect(rows).toEqual(["-def one():", "+def t⟨U+200B⟩wo():"]);
  });

  it("takes no odd blank for an empty line", () => {
    expect(rowsOf("", "\u3000\n".repeat(9))).toHaveLength(9);
  });

  it("keeps odd blanks in the title of a call", () => {
    expect(titleOf("Bash", { command: " rm\u00a0-rf \n\u2028x" })).toBe("rm\u00a0-rf \u2028x");
  });
});
