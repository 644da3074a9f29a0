import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ApiError } from "../src/api/http";
import type { Stream } from "../src/api/stream";
import type { Answer } from "../src/api/types";
import { isHeld } from "../src/asks/hold";
import { type AppState, initialState } from "../src/state/appState";
import { Asks } from "../src/state/asks";
import { Observable } from "../src/state/observable";
import { setUndoSeconds, undoSeconds } from "../src/ui/preferences";
import { stored } from "./support";

const ALLOW: Answer = { answer: "allow", scope: "once" };

/** A stream that records commands, and never acknowledges them. */
class Recorder {
  readonly sent: object[] = [];
  private readonly rejects = new Map<string, (error: Error) => void>();
  command(command: object, key: string): Promise<never> {
    this.sent.push(command);
    return new Promise((_, reject) => this.rejects.set(key, reject));
  }
  withdraw(key: string): void {
    this.rejects.get(key)?.(new ApiError("withdrawn", "", 0));
    this.sent.pop();
  }
}

let state: Observable<AppState>;
let stream: Recorder;
let asks: Asks;

beforeEach(() => {
  vi.useFakeTimers();
  state = new Observable<AppState>({ ...initialState(), connection: "online" });
  stream = new Recorder();
  asks = new Asks(state, stream as unknown as Stream);
});
afterEach(() => {
  vi.useRealTimers();
  localStorage.clear();
});

const sending = (): string | undefined => state.get().sending.get("a")?.state;

describe("an answer that is held back", () => {
  it("is sent when the time is over, once", () => {
    asks.hold("a", ALLOW, 5);
    expect([sending(), stream.sent.length]).toEqual(["held", 0]);
    vi.advanceTimersByTime(4999);
    expect(stream.sent).toEqual([]);
    vi.advanceTimersByTime(60_000);
    expect(stream.sent).toEqual([{ command: "ask.answer", ask: "a", answer: ALLOW }]);
    expect(sending()).toBe("sending");
  });

  it("is never sent after Undo, and the question is open again", () => {
    asks.hold("a", ALLOW, 5);
    expect(asks.undo("a")).toBe(true);
    vi.advanceTimersByTime(60_000);
    expect([sending(), stream.sent.length]).toEqual([undefined, 0]);
  });

  it("is sent at once when the page is left", () => {
    asks.hold("a", ALLOW, 5);
    asks.sendAllHeld();
    vi.advanceTimersByTime(60_000);
    expect(stream.sent).toHaveLength(1);
  });

  it("is dropped when somebody else was faster", () => {
    asks.hold("a", ALLOW, 5);
    asks.receive([stored(1, { kind: "ask.answered", ask: "a", allowed: false, by: "bob" })]);
    vi.advanceTimersByTime(60_000);
    expect(stream.sent).toEqual([]);
    expect(state.get().settled.get("a")).toEqual({ how: "answered", by: "bob", allowed: false });
  });
});

describe("an answer without a connection", () => {
  it("can be taken back until the connection is there, and not afterwards", async () => {
    state.set({ connection: "offline" });
    asks.hold("a", ALLOW, 0);
    expect(sending()).toBe("offline");
    expect(asks.undo("a")).toBe(true);
    await vi.advanceTimersByTimeAsync(1);
    expect([sending(), stream.sent.length]).toEqual([undefined, 0]);

    asks.hold("a", ALLOW, 0);
    asks.connected();
    expect(sending()).toBe("sending");
    expect(asks.undo("a")).toBe(false);
    expect(stream.sent).toHaveLength(1);
  });
});

describe("which answers are held back", () => {
  it.each([
    ["a click that allows once", ALLOW, false, false],
    ["a click that denies", { answer: "deny", message: "no" }, false, false],
    ["a key that allows once", ALLOW, true, true],
    ["a grant for the session", { answer: "allow", scope: "session" }, false, true],
    ["a change of the CLI's rules", { answer: "allow", scope: "once", updates: [0] }, false, true],
    ["a plan that is approved", { answer: "plan", choice: "manual" }, false, true],
    ["a plan that is sent back", { answer: "plan", choice: "revise" }, false, false],
    ["choices", { answer: "questions", answers: {} }, false, false],
  ] as [string, Answer, boolean, boolean][])("%s", (_, answer, byKey, held) => {
    expect(isHeld(answer, byKey)).toBe(held);
  });
});

describe("the time to undo", () => {
  it("is one of those that are offered, whatever the storage says", () => {
    expect(undoSeconds()).toBe(5);
    setUndoSeconds(0);
    expect(undoSeconds()).toBe(0);
    localStorage.setItem("quarterdeck.undo", "1e9");
    expect(undoSeconds()).toBe(5);
  });
});
