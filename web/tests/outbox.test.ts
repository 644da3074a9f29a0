import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Stream } from "../src/api/stream";
import { type AppState, initialState } from "../src/state/appState";
import { Asks } from "../src/state/asks";
import { loadUnsent } from "../src/state/drafts";
import { Observable } from "../src/state/observable";
import { PromptOutbox } from "../src/state/promptOutbox";
import { HubSocket, stored } from "./support";

const problem = { type: "x", title: "Refused", status: 409, code: "conflict" };
const asked = (ask: string) =>
  stored(1, { kind: "ask.opened", ask, run: "r", ask_kind: "tool", tool: "Bash", title: "ls" });

describe("what is on its way to the hub", () => {
  let state: Observable<AppState>;
  let stream: Stream;
  const sent = () => HubSocket.last.commands;
  const reply = (frame: object): void =>
    HubSocket.last.push({ id: HubSocket.last.commands.at(-1)?.id, ...frame });

  beforeEach(async () => {
    localStorage.clear();
    vi.stubGlobal("WebSocket", HubSocket);
    vi.stubGlobal("fetch", async () => ({
      ok: true,
      status: 200,
      json: async () => ({ asks: [] }),
    }));
    state = new Observable(initialState());
    const ignore = (): void => undefined;
    stream = new Stream("ws://hub/api/stream", {
      connection: (connection) => state.set({ connection }),
      ready: ignore,
      reset: ignore,
      gap: ignore,
      events: ignore,
      views: ignore,
      live: ignore,
      personal: ignore,
    });
    stream.start();
    await vi.waitFor(() => expect(state.get().connection).toBe("online"));
  });
  afterEach(() => {
    stream.stop();
    vi.unstubAllGlobals();
  });

  it("is a prompt that the browser stores until the hub acknowledges it", async () => {
    const outbox = new PromptOutbox(state, stream);
    const sending = outbox.send("s", "p1", "hello");
    expect(loadUnsent()).toEqual({ p1: { session: "s", id: "p1", content: "hello" } });
    expect(sent()).toMatchObject([{ command: { command: "prompt.send", prompt: "p1" } }]);
    await outbox.send("s", "p1", "hello"); // it is in flight
    expect(sent()).toHaveLength(1);
    reply({ t: "done", outcome: { session: "s" } });
    await sending;
    expect(loadUnsent()).toEqual({});
    expect(state.get().unsent).toEqual({});
  });

  it("is a prompt that stays with its error when the hub refuses it, and is not sent again", async () => {
    const outbox = new PromptOutbox(state, stream);
    const sending = outbox.send("s", "p1", "hello");
    reply({ t: "failed", problem });
    await sending;
    expect(state.get().unsent).toMatchObject({ p1: { error: "Refused" } });
    outbox.resend();
    expect(sent()).toHaveLength(1);
    outbox.discard("p1");
    expect(loadUnsent()).toEqual({});
  });

  it("is a prompt of an earlier page, which is sent once the hub is there", async () => {
    localStorage.setItem(
      "quarterdeck.unsent",
      JSON.stringify({ p0: { session: "s", id: "p0", content: "kept" } }),
    );
    const outbox = new PromptOutbox(new Observable(initialState()), stream);
    outbox.resend();
    expect(sent()).toMatchObject([{ command: { prompt: "p0", content: "kept" } }]);
  });

  it("is an answer, until an event settles its question", async () => {
    const asks = new Asks(state, stream);
    asks.receive([asked("a")]);
    void asks.answer("a", { answer: "allow" });
    expect(state.get().sending.get("a")).toEqual({ state: "sending" });
    reply({ t: "done", outcome: { session: "s" } });
    await Promise.resolve();
    expect(state.get().asks.has("a")).toBe(true); // the card closes with the event
    asks.receive([stored(2, { kind: "ask.answered", ask: "a", by: "ada", allowed: true })]);
    expect(state.get()).toMatchObject({ asks: new Map(), sending: new Map() });
    expect(state.get().settled.get("a")).toEqual({ how: "answered", by: "ada", allowed: true });
  });

  it("is an answer that the hub refused, with the reason", async () => {
    const asks = new Asks(state, stream);
    asks.receive([asked("a")]);
    const answering = asks.answer("a", { answer: "deny" });
    reply({ t: "failed", problem });
    await answering;
    expect(state.get().sending.get("a")).toEqual({ state: "failed", error: "Refused" });
  });
});
