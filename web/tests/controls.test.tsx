// Controls that send something to the hub, pressed as a person presses them: what is sent, and what is shown then.
import { act, type ReactNode } from "react";
import { createRoot } from "react-dom/client";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Me } from "../src/api/types";
import { PushDialog } from "../src/changes/PushDialog";
import { McpLogin } from "../src/panels/McpLogin";
import { Audit } from "../src/panels/policy/Audit";
import { Tasks } from "../src/panels/Tasks";
import { EntryRow } from "../src/session/EntryRow";
import { OpenSession } from "../src/session/relativePath";
import type { OpenSession as Opened } from "../src/state/appState";
import { store } from "../src/state/store";
import { EMPTY_STORY, type Entry } from "../src/state/story";
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

const button = (words: string): HTMLButtonElement => {
  const found = [...document.querySelectorAll<HTMLButtonElement>("button, [role=menuitem]")].find(
    (one) => (one.getAttribute("aria-label") ?? one.textContent) === words,
  );
  if (!found) throw new Error(`no button ${words}`);
  return found;
};
const press = (words: string) => act(async () => button(words).click());

async function write(label: string, value: string): Promise<void> {
  const field = [...document.querySelectorAll("label")]
    .find((one) => one.textContent?.startsWith(label))
    ?.querySelector<HTMLInputElement>("input, textarea, select");
  if (!field) throw new Error(`no field ${label}`);
  await act(async () => {
    Object.getOwnPropertyDescriptor(Object.getPrototypeOf(field), "value")?.set?.call(field, value);
    field.dispatchEvent(new Event("input", { bubbles: true }));
  });
}

/** A hub that answers by path, and what was asked of it: method, path and body. */
function hub(answers: Record<string, unknown>): unknown[][] {
  const asked: unknown[][] = [];
  vi.stubGlobal("fetch", async (path: string, init: RequestInit) => {
    const body = init.body ? [JSON.parse(String(init.body))] : [];
    asked.push([init.method, path, ...body]);
    const answer = answers[path.split("?")[0] ?? ""];
    return answer === undefined
      ? Response.json({ title: "no", detail: path, code: "no", status: 404 }, { status: 404 })
      : Response.json(typeof answer === "function" ? answer(path) : answer);
  });
  return asked;
}

beforeEach(() => {
  store.state.set({
    me: { name: "ada", rights: ["read", "steer", "manage"] } as unknown as Me,
    sessions: new Map([["s", session({ run: "r", version: "2.1.325" } as object)]]),
  });
});
afterEach(async () => {
  await act(async () => {
    for (const root of roots.splice(0)) root.unmount();
  });
  document.body.replaceChildren();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

describe("the login of an MCP server", () => {
  const login = (status: string, onDone = () => undefined) =>
    drawn(<McpLogin session="s" server="issues" status={status} onDone={onDone} />);

  it("leads to the server's page, and gives the CLI the address that the person was sent to", async () => {
    const authUrl = "https://issues.example/authorize?x=1";
    const control = vi.spyOn(store, "control").mockResolvedValue({ authUrl });
    const done = vi.fn();
    const place = await login("needs-auth", done);
    await press("Log in");
    expect(control.mock.calls).toEqual([
      ["s", { subtype: "mcp_authenticate", serverName: "issues" }],
    ]);
    const link = place.querySelector("a");
    expect([link?.href, link?.rel, link?.target]).toEqual([
      authUrl,
      "noopener noreferrer nofollow",
      "_blank",
    ]);
    expect(place.textContent).toContain("issues.example");
    const field = place.querySelector("input");
    if (field) field.value = "http://localhost:1/callback?code=2";
    const submit = new Event("submit", { bubbles: true, cancelable: true });
    await act(async () => void place.querySelector("form")?.dispatchEvent(submit));
    expect(control.mock.calls.at(-1)).toEqual([
      "s",
      {
        subtype: "mcp_oauth_callback_url",
        serverName: "issues",
        callbackUrl: "http://localhost:1/callback?code=2",
      },
    ]);
    expect(place.querySelector("form")).toBeNull();
    expect(done).toHaveBeenCalledTimes(2);
  });

  it.each([{ authUrl: "javascript:alert(1)" }, {}])(
    "opens no page but one of the web: %o",
    async (answer) => {
      vi.spyOn(store, "control").mockResolvedValue(answer);
      const place = await login("needs-auth");
      await press("Log in");
      expect(place.querySelector("a")).toBeNull();
    },
  );

  it("says why it failed, and can be left", async () => {
    const control = vi.spyOn(store, "control").mockRejectedValueOnce(new Error("no such server"));
    const failed = await login("needs-auth");
    await press("Log in");
    expect(failed.textContent).toContain("no such server");
    control.mockResolvedValue({});
    await login("connected");
    await press("Log out");
    expect(control.mock.calls.at(-1)).toEqual([
      "s",
      { subtype: "mcp_clear_auth", serverName: "issues" },
    ]);
  });
});

describe("a task in the background", () => {
  const task = { task: "t1", title: "make watch", background: true, since: 5 };
  const tasks = { ...session().holds, tasks: [task] };
  const panel = () =>
    drawn(
      <Tasks
        session={session({ holds: tasks } as object)}
        opened={{ story: EMPTY_STORY } as unknown as Opened}
      />,
    );

  it("is stopped by its button, which says why it could not", async () => {
    const control = vi.spyOn(store, "control").mockResolvedValue({});
    const place = await panel();
    expect(place.textContent).toContain("make watch");
    await press("Stop");
    expect(control.mock.calls).toEqual([["s", { subtype: "stop_task", task_id: "t1" }]]);
    control.mockRejectedValue(new Error("it has ended"));
    await press("Stop");
    expect(place.textContent).toContain("it has ended");
  });

  it("cannot be stopped by a person who may not manage the session", async () => {
    store.state.set({ me: { name: "bob", rights: ["read", "steer"] } as unknown as Me });
    await panel();
    expect(() => button("Stop")).toThrow();
  });
});

describe("the push dialog", () => {
  const remote = {
    branch: "fix",
    commit: "abc",
    remote: "origin",
    url: "https://github.com/o/r.git",
    problem: "",
    commits: ["Fix it"],
    tool: "gh",
    repository: "o/r",
    base: "main",
  };
  const pushed = { text: "Pushed.", coded: null, url: remote.url };
  const opened = { text: "Opened.", coded: null, url: "https://github.com/o/r/pull/7" };
  const dialog = (onDone = vi.fn()) =>
    drawn(<PushDialog session="s" onClose={() => undefined} onDone={onDone} />);

  it("pushes what was shown, and opens the pull request that was written", async () => {
    const asked = hub({
      "/api/sessions/s/remote": remote,
      "/api/sessions/s/push": pushed,
      "/api/sessions/s/pull-request": opened,
    });
    const done = vi.fn();
    await dialog(done);
    expect(document.body.textContent).toContain("Fix it");
    await press("Push");
    expect(asked).toContainEqual([
      "POST",
      "/api/sessions/s/push",
      { url: remote.url, commit: "abc" },
    ]);
    expect(button("Open pull request").disabled).toBe(true);
    await write("Title", "Fix the sums");
    await write("Into branch", "next");
    await write("Description", "Because.");
    await act(async () =>
      document.querySelector<HTMLInputElement>("input[type=checkbox]")?.click(),
    );
    await press("Open pull request");
    expect(asked.at(-1)).toEqual([
      "POST",
      "/api/sessions/s/pull-request",
      { url: remote.url, title: "Fix the sums", base: "next", body: "Because.", draft: true },
    ]);
    expect(done.mock.calls).toEqual([["Pushed."], ["Opened."]]);
    const link = [...document.querySelectorAll("a")].find((one) => one.href === opened.url);
    expect(link?.rel).toContain("noreferrer");
  });

  it.each([
    ["no_remote", "The repository has no remote to push to."],
    ["a sentence of an older runner", "a sentence of an older runner"],
  ])("says why nothing can be pushed: %s", async (problem, words) => {
    hub({ "/api/sessions/s/remote": { ...remote, problem } });
    await dialog();
    expect(document.body.textContent).toContain(words);
    expect(button("Push").disabled).toBe(true);
  });

  it("shows why the push failed", async () => {
    hub({ "/api/sessions/s/remote": remote });
    await dialog();
    await press("Push");
    expect(document.body.textContent).toContain("/api/sessions/s/push");
  });
});

describe("a message of the story", () => {
  const copied: string[] = [];
  beforeEach(() => {
    copied.length = 0;
    const writeText = async (text: string) => void copied.push(text);
    Object.defineProperty(navigator, "clipboard", { value: { writeText }, configurable: true });
  });
  const row = (entry: object) =>
    drawn(
      <OpenSession value="a b">
        <EntryRow entry={{ key: "k", at: 1, seq: 42, ...entry } as Entry} threads={new Map()} />
      </OpenSession>,
    );

  it("gives the link to an answer", async () => {
    await row({ kind: "text", text: "Done.", uuid: "u" });
    await press("Copy link to this message");
    expect(copied).toEqual([`${location.origin}/s/a%20b?m=42`]);
  });

  it("gives the link to a prompt", async () => {
    store.state.set({ sessions: new Map([["a b", session({ session: "a b" })]]) });
    await row({ kind: "prompt", id: "p", text: "Go on.", images: [], by: "ada", stage: "taken" });
    await press("What to do with this prompt");
    await vi.waitFor(() => button("Copy link to this prompt"));
    await press("Copy link to this prompt");
    expect(copied).toEqual([`${location.origin}/s/a%20b?m=42`]);
  });
});

describe("the audit log", () => {
  const checked = { entries: 1, forgotten: 0, head: { position: 9, seal: "x" }, flaws: [] };
  const entry = (position: number, title: string) => ({
    session: "s",
    seq: position,
    position,
    at: 1,
    event: { kind: "decided", tool: "Bash", title, verdict: "deny", by: "policy" },
  });
  const choose = (label: string, value: string) =>
    act(async () => {
      const field = document.querySelector<HTMLSelectElement>(`select[aria-label="${label}"]`);
      if (!field) throw new Error(`no field ${label}`);
      field.value = value;
      field.dispatchEvent(new Event("change", { bubbles: true }));
    });

  it("has the hub look for the kind that is chosen, one page at a time", async () => {
    const pages: Record<string, object> = {
      "before=0&limit=50": { events: [entry(9, "nine")], next: null },
      "before=0&limit=50&kind=denied": { events: [], next: 4000 },
      "before=4000&limit=50&kind=denied": { events: [entry(3, "three")], next: null },
    };
    const asked = hub({
      "/api/audit/verify": checked,
      "/api/audit": (path: string) => pages[path.split("?")[1] ?? ""],
    });
    const place = await drawn(<Audit />);
    expect(place.textContent).toContain("nine");
    await choose("Entries", "denied");
    expect(place.textContent).not.toContain("nine");
    expect(place.textContent).toContain("None among the newest entries");
    await press("Search earlier entries");
    expect(place.textContent).toContain("three");
    const paths = asked.map(([, path]) => path).filter((path) => path !== "/api/audit/verify");
    expect(paths).toEqual(Object.keys(pages).map((query) => `/api/audit?${query}`));
    expect(() => button("Load earlier")).toThrow();
  });
});
