import { act } from "react";
import { createRoot } from "react-dom/client";
import { describe, expect, it, vi } from "vitest";
import { StopDialog, whatStopEnds } from "../src/session/StopDialog";
import { session } from "./support";

(globalThis as Record<string, unknown>).IS_REACT_ACT_ENVIRONMENT = true;

const nothing = { todos: [], tasks: [], tools: [], mcp: [], context: {}, limits: [], cut: {} };
const task = (background: boolean) => ({ task: "t", background });
const working = session({
  state: "working",
  run: "r",
  queued: 2,
  asks: 1,
  holds: {
    ...nothing,
    tasks: [task(true), task(false)],
    tools: [
      { call: "1", tool: "Read", title: "a.py" },
      { call: "2", tool: "Bash", title: "make test" },
    ],
  },
} as object);

describe("stopping an agent", () => {
  it("says what is lost", () => {
    expect(whatStopEnds(working)).toEqual([
      { words: "The running turn would end." },
      { words: "2 calls would end; the last is", title: "make test" },
      { words: "1 background task would be ended." },
      { words: "1 open question would be left." },
      { words: "2 queued prompts wait until you resume." },
    ]);
    expect(whatStopEnds(session({ run: "r" }))).toEqual([]);
  });

  it("stops only after the second button, and the safe one has the focus", async () => {
    const stop = vi.fn();
    const close = vi.fn();
    const place = document.createElement("div");
    document.body.append(place);
    const dialog = <StopDialog session={working} onStop={stop} onClose={close} />;
    await act(async () => createRoot(place).render(dialog));
    const button = (words: string) =>
      [...document.querySelectorAll("button")].find((one) => one.textContent === words);
    await vi.waitFor(() => expect(document.activeElement).toBe(button("Keep it running")));
    button("Keep it running")?.click();
    expect(close).toHaveBeenCalledTimes(1);
    expect(stop).not.toHaveBeenCalled();
    button("Stop agent")?.click();
    expect(stop).toHaveBeenCalledTimes(1);
  });
});
