import { act } from "react";
import { createRoot } from "react-dom/client";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { Machine } from "../src/api/types";
import { canMove, MoveDialog, machinesFor } from "../src/session/MoveDialog";
import { store } from "../src/state/store";
import { session } from "./support";

(globalThis as Record<string, unknown>).IS_REACT_ACT_ENVIRONMENT = true;

const machines = [
  { name: "local", connected: true },
  { name: "one", connected: false },
  { name: "two", connected: true },
] as Machine[];
const spec = { directory: "/w", machine: "one", worktree: "fix", session_mirror: true };
const away = session({ run: "r", state: "disconnected", spec } as object);

describe("resuming a session on another machine", () => {
  afterEach(() => {
    vi.restoreAllMocks();
    vi.unstubAllGlobals();
  });

  it("is offered when the agent has ended or cannot be reached", () => {
    expect(canMove(away)).toBe(true);
    expect(canMove(session({ run: null, spec } as object))).toBe(true);
    expect(canMove(session({ run: "r", state: "working", spec } as object))).toBe(false);
    expect(canMove(session({ run: null, spec: { directory: "/w" } } as object))).toBe(false);
  });

  it("names the machines that are connected, and not its own", () => {
    expect(machinesFor(machines, away)).toEqual(["local", "two"]);
    expect(machinesFor(machines, session({ spec: { directory: "/w" } } as object))).toEqual([
      "two",
    ]);
  });

  it("moves the session to the chosen machine and folder", async () => {
    vi.stubGlobal("fetch", async () => Response.json({ machines }));
    const command = vi.spyOn(store, "command").mockResolvedValue({ session: "s" } as never);
    const close = vi.fn();
    const place = document.createElement("div");
    document.body.append(place);
    const dialog = <MoveDialog session={away} onClose={close} />;
    await act(async () => createRoot(place).render(dialog));
    await vi.waitFor(() => expect(document.querySelector("option")).not.toBeNull());
    expect(document.body.textContent).toContain("machine is away");
    expect(document.body.textContent).toContain("the branch fix");
    const button = [...document.querySelectorAll("button")].find(
      (one) => one.textContent === "Resume there",
    );
    await act(async () => button?.click());
    expect(command).toHaveBeenCalledWith({
      command: "session.move",
      session: away.session,
      machine: "local",
      directory: "/w",
    });
    expect(close).toHaveBeenCalledTimes(1);
  });

  it("says why it is refused, and stays open", async () => {
    vi.stubGlobal("fetch", async () => Response.json({ machines }));
    vi.spyOn(store, "command").mockRejectedValue(new Error("no branch fix there"));
    const close = vi.fn();
    const place = document.createElement("div");
    document.body.append(place);
    const root = createRoot(place);
    await act(async () => root.render(<MoveDialog session={away} onClose={close} />));
    await vi.waitFor(() => expect(document.querySelector("option")).not.toBeNull());
    const button = [...document.querySelectorAll("button")].findLast(
      (one) => one.textContent === "Resume there",
    );
    await act(async () => button?.click());
    expect(document.body.textContent).toContain("no branch fix there");
    expect(close).not.toHaveBeenCalled();
    await act(async () => root.unmount());
  });
});
