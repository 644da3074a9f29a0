import { act } from "react";
import { createRoot, type Root } from "react-dom/client";
import { afterEach, describe, expect, it, vi } from "vitest";
import { OpenSession } from "../src/session/relativePath";
import { SandboxRefusals } from "../src/session/SandboxRefusals";
import { sandboxDetails, sandboxLabel } from "../src/session/sandbox";
import { store } from "../src/state/store";
import { EMPTY_STORY, foldEvents } from "../src/state/story";
import { session, stored } from "./support";

(globalThis as Record<string, unknown>).IS_REACT_ACT_ENVIRONMENT = true;

const refusal = { access: "write", target: "/opt/out/x", rule: "Edit(//opt/out/**)" };

describe("the shield", () => {
  it.each([
    [undefined, "No sandbox", "It is not recorded whether there was one."],
    [
      { reason: "not_available", detail: "no bwrap" },
      "No sandbox",
      "The machine cannot make one. no bwrap",
    ],
    [
      { mode: "protect", kind: "bubblewrap" },
      "Sandbox: protect",
      "Made by bubblewrap. Network: all hosts.",
    ],
    [
      { mode: "strict", kind: "landlock", network: ["a.example"] },
      "Sandbox: strict",
      "Made by landlock. Network: the model's host and a.example.",
    ],
  ] as const)("says what is in force: %j", (state, label, details) => {
    expect(sandboxLabel(state as never)).toBe(label);
    expect(sandboxDetails(state as never)).toBe(details);
  });
});

describe("a call that the sandbox refused", () => {
  it("has the refusals beside it, in order", () => {
    const call = { type: "tool_use", id: "t1", name: "Bash", input: { command: "make" } };
    const line = {
      type: "assistant",
      uuid: "a",
      message: { id: "m", role: "assistant", content: [call] },
    };
    const hint = { kind: "sandbox.refused", call: "t1", tool: "Bash" };
    const story = foldEvents(EMPTY_STORY, [
      stored(1, { kind: "said", run: "r", number: 1, line }),
      stored(2, { ...hint, ...refusal }),
      stored(3, { ...hint, access: "connect", target: "evil.example", rule: "" }),
      stored(4, { ...hint, call: "unknown", access: "read", target: "/x" }),
    ]);
    const tools = story.entries.filter((entry) => entry.kind === "tool");
    expect(tools).toHaveLength(1);
    expect(tools[0]).toMatchObject({
      refusals: [refusal, { access: "connect", target: "evil.example", rule: "" }],
    });
  });

  let root: Root | undefined;
  const lines = async (rights: string[], spec: object): Promise<HTMLElement> => {
    store.state.set({
      me: { name: "ada", role: "owner", rights, expires: null } as never,
      sessions: new Map([["s", session({ spec: spec as never })]]),
    });
    const place = document.createElement("div");
    root = createRoot(place);
    await act(async () =>
      root?.render(
        <OpenSession value="s">
          <SandboxRefusals refusals={[refusal]} />
        </OpenSession>,
      ),
    );
    return place;
  };
  afterEach(async () => {
    vi.unstubAllGlobals();
    await act(async () => root?.unmount());
    root = undefined;
  });

  it("can be allowed for the next time by those who may change policies", async () => {
    const sent: unknown[] = [];
    const fetched = vi.fn(async (path: string, init: RequestInit) => {
      sent.push([path, JSON.parse(String(init.body))]);
      return new Response("{}", { status: 200 });
    });
    vi.stubGlobal("fetch", fetched);
    const place = await lines(["manage"], { directory: "/work", project: "web" });
    expect(place.textContent).toContain("The sandbox refused to write /opt/out/x");
    const button = place.querySelector("button");
    expect(button?.title).toBe("Edit(//opt/out/**)");
    await act(async () => button?.click());
    expect(sent).toEqual([
      ["/api/policy/grants", { rules: ["Edit(//opt/out/**)"], project: "web" }],
    ]);
    expect(place.querySelector("button")).toBeNull();
    expect(place.textContent).toContain("stop and resume the session");
  });

  it("is shown without a button to everybody else", async () => {
    const place = await lines(["read"], { directory: "/work" });
    expect(place.textContent).toContain("The sandbox refused to write");
    expect(place.querySelector("button")).toBeNull();
  });
});
