import { afterEach, describe, expect, it, vi } from "vitest";
import { Store } from "../src/state/store";
import { HubSocket } from "./support";

const session = (head: number) => ({ session: "s", head, spec: { directory: "/" }, state: "idle" });
const noted = (seq: number) => ({
  session: "s",
  seq,
  position: seq,
  at: seq,
  event: { kind: "noted", level: "info", text: `number ${seq}` },
});

describe("what the page knows", () => {
  afterEach(() => vi.unstubAllGlobals());

  it("has what happened after a session was read and before it was followed", async () => {
    const asked: string[] = [];
    const answer = (path: string): object => {
      if (path.startsWith("/api/whoami")) return { name: "ada", rights: [] };
      if (path.startsWith("/api/asks")) return { asks: [] };
      if (path.startsWith("/api/sessions?")) return { sessions: [session(4)], next: null };
      if (path.includes("/latest")) return { session: session(2), events: [1].map(noted) };
      const query = new URLSearchParams(path.split("?")[1]);
      const [after, limit] = [Number(query.get("after")), Number(query.get("limit"))];
      return {
        events: [1, 2, 3, 4]
          .filter((seq) => seq > after)
          .slice(0, limit)
          .map(noted),
      };
    };
    vi.stubGlobal("WebSocket", HubSocket);
    vi.stubGlobal("fetch", async (path: string) => {
      asked.push(path);
      return { ok: true, status: 200, json: async () => answer(path) };
    });
    const store = new Store("ws://hub/api/stream");
    store.open.open("s");
    await store.start();
    await vi.waitFor(() => expect(store.get().open.get("s")?.story.last).toBe(4));
    const told = store.get().open.get("s")?.story.entries ?? [];
    expect(told.map((entry) => "text" in entry && entry.text)).toEqual(
      [1, 2, 3, 4].map((seq) => `number ${seq}`),
    );
    expect(asked.filter((path) => path.includes("/events"))).toHaveLength(2);
    store.stop();
  });
});
