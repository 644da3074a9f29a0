// Switches that wait for the CLI, and buttons that copy: also where a page has no clipboard.
import { act, type ReactNode } from "react";
import { createRoot } from "react-dom/client";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Me } from "../src/api/types";
import { CopyButton } from "../src/panels/settings/CopyButton";
import { CodeBlock } from "../src/session/CodeBlock";
import { useFacts } from "../src/session/head/Facts";
import { store } from "../src/state/store";
import { copyText } from "../src/ui/useCopy";
import { session } from "./support";

(globalThis as Record<string, unknown>).IS_REACT_ACT_ENVIRONMENT = true;

const places: { unmount: () => void }[] = [];

async function show(node: ReactNode): Promise<HTMLElement> {
  const place = document.createElement("div");
  document.body.append(place);
  const root = createRoot(place);
  places.push(root);
  await act(async () => root.render(node));
  return place;
}

afterEach(async () => {
  await act(async () => {
    for (const one of places.splice(0)) one.unmount();
  });
  document.body.replaceChildren();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

/** A page with this clipboard, and with an old way that gives this. */
function clipboard(api: { writeText: (text: string) => Promise<void> } | undefined, old: boolean) {
  Object.defineProperty(navigator, "clipboard", { value: api, configurable: true });
  const copied: string[] = [];
  document.execCommand = vi.fn(() => {
    const field = document.querySelector("textarea");
    if (field) copied.push(field.value);
    return old;
  });
  return copied;
}

describe("a button that copies", () => {
  it("uses the clipboard where there is one", async () => {
    const writeText = vi.fn(async () => undefined);
    clipboard({ writeText }, false);
    const place = await show(<CodeBlock code="make test" language="bash" />);
    const button = place.querySelector("button");
    await act(async () => button?.click());
    expect(writeText).toHaveBeenCalledWith("make test");
    expect(button?.textContent).toBe("Copied");
  });

  it("copies over plain http too, where there is none, and keeps the focus", async () => {
    const copied = clipboard(undefined, true);
    const place = await show(<CopyButton of="https://deck.example/login#1" label="Copy link" />);
    const button = place.querySelector("button");
    button?.focus();
    await act(async () => button?.click());
    expect(copied).toEqual(["https://deck.example/login#1"]);
    expect(button?.textContent).toBe("Copied");
    expect(document.activeElement).toBe(button);
    expect(document.querySelector("textarea")).toBeNull();
  });

  it("does not say that it copied what nobody could", async () => {
    clipboard({ writeText: () => Promise.reject(new Error("not allowed")) }, false);
    const place = await show(<CodeBlock code="make test" language="bash" />);
    const button = place.querySelector("button");
    await act(async () => button?.click());
    expect(button?.textContent).toBe("Copy");
    document.execCommand = () => {
      throw new Error("not there");
    };
    await expect(copyText("x")).resolves.toBe(false);
    expect(document.querySelector("textarea")).toBeNull();
  });
});

function Heads({ of }: { of: ReturnType<typeof session> }) {
  return useFacts(of, () => undefined).map((fact) => (
    <div key={fact.name} data-fact={fact.name}>
      {fact.node}
    </div>
  ));
}

describe("the head of a session", () => {
  it("has the progress of the to-do list, and what is done right now", async () => {
    const todo = (status: string, doing = "") => ({ todo: "1", text: "x", status, doing });
    const todos = [
      todo("completed"),
      todo("completed"),
      todo("in_progress", "Replacing floats"),
      todo("pending"),
    ];
    const place = await show(
      <Heads of={session({ holds: { ...session().holds, todos } } as object)} />,
    );
    const fact = place.querySelector("[data-fact=todos]");
    expect(fact?.textContent).toBe("2/4 · Replacing floats");
  });
});

describe("a switch", () => {
  const running = session({ run: "r", state: "idle", mode: "default" } as object);
  beforeEach(() => {
    const me = { name: "ada", role: "owner", rights: ["manage", "steer"] };
    store.state.set({ me: me as unknown as Me });
  });

  async function choosePlan(): Promise<HTMLElement> {
    const place = await show(<Heads of={running} />);
    const chip = place.querySelector<HTMLElement>("[data-fact=mode] button");
    await act(async () => chip?.click());
    const plan = () =>
      [...document.querySelectorAll<HTMLElement>("[role=menuitemradio]")].find((one) =>
        one.textContent?.startsWith("plan"),
      );
    await vi.waitFor(() => expect(plan()).toBeDefined());
    await act(async () => plan()?.click());
    return place;
  }

  it("is shown as pending until the CLI has taken it, and never as done before", async () => {
    let taken: () => void = () => undefined;
    vi.spyOn(store, "control").mockImplementation(
      () =>
        new Promise((done) => {
          taken = () => done({});
        }),
    );
    const place = await choosePlan();
    const fact = place.querySelector("[data-fact=mode]");
    expect(fact?.querySelector("[data-pending]")).not.toBeNull();
    expect(fact?.textContent).toContain("switching to plan");
    await act(async () => taken());
    expect(fact?.querySelector("[data-pending]")).toBeNull();
    // What holds is what the hub says, and it has said nothing yet.
    expect(fact?.textContent).toBe("default");
  });

  it("that the CLI refuses goes back, and says why", async () => {
    vi.spyOn(store, "control").mockRejectedValue(new Error("The mode is not allowed."));
    const place = await choosePlan();
    const fact = place.querySelector("[data-fact=mode]");
    expect(fact?.querySelector("[role=alert]")?.textContent).toBe("The mode is not allowed.");
    expect(fact?.querySelector("button")?.textContent).toBe("default");
  });
});

describe("the machine in the head of a session", () => {
  const spec = { directory: "/w", machine: "one", session_mirror: true };
  const open = async (over: object) => {
    const place = await show(<Heads of={session({ machine: "one", spec, ...over } as object)} />);
    await act(async () => place.querySelector<HTMLElement>("[data-fact=machine] button")?.click());
    return document.body;
  };
  beforeEach(() => {
    store.state.set({ me: { name: "ada", rights: ["steer", "manage"] } as unknown as Me });
    vi.stubGlobal("fetch", async () => Response.json({ machines: [], branch: null }));
  });

  it("opens what moves the session, where it can be moved", async () => {
    const page = await open({ run: null, state: "ended" });
    const move = [...page.querySelectorAll("button")].find(
      (one) => one.textContent === "Resume on another machine …",
    );
    await act(async () => move?.click());
    const dialog = [...page.querySelectorAll("h2, [role=dialog]")].map((one) => one.textContent);
    expect(dialog.join()).toContain("Resume on another machine");
    expect(page.textContent).toContain("No other machine is connected.");
  });

  it.each([
    [{ run: "r", state: "idle" }, "cannot be changed while the agent runs"],
    [{ run: null, state: "ended", spec: { directory: "/w" } }, "has no transcript"],
  ])("says why it cannot be changed: %o", async (over, words) => {
    const page = await open(over);
    expect(page.textContent).toContain(words);
    expect(page.textContent).not.toContain("Resume on another machine …");
  });
});

it("the sandbox in the head says that it cannot be changed while the agent runs", async () => {
  store.state.set({ me: { name: "ada", rights: ["steer", "manage"] } as unknown as Me });
  const place = await show(<Heads of={session({ run: "r" } as object)} />);
  await act(async () => place.querySelector<HTMLElement>("[data-fact=sandbox] button")?.click());
  expect(document.body.textContent).toContain("cannot be changed while the agent runs");
});
