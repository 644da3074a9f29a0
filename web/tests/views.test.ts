import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Session, Stored } from "../src/api/types";
import { isUnread } from "../src/state/readMarks";
import { Store } from "../src/state/store";
import { HubSocket, session, stored } from "./support";

describe("the state of a session", () => {
  let listing: Session[];
  let read: Session;
  let store: Store;

  const push = (...events: Stored[]): void => HubSocket.last.push({ t: "events", events });
  const pushViews = (...sessions: Session[]): void => HubSocket.last.push({ t: "views", sessions });
  const view = (): Session | undefined => store.get().sessions.get("s");
  const start = async (...sessions: Session[]): Promise<void> => {
    listing = sessions;
    await store.start();
    await vi.waitFor(() => expect(store.get().listed).toBe(true));
  };

  beforeEach(() => {
    listing = [];
    read = session();
    vi.stubGlobal("WebSocket", HubSocket);
    vi.stubGlobal("fetch", async (path: string) => {
      const answers: [string, object][] = [
        ["/api/whoami", { name: "ada", rights: [] }],
        ["/api/asks", { asks: [] }],
        ["/api/sessions?", { sessions: listing, next: null }],
        ["/api/sessions/s", read],
      ];
      const body = answers.find(([start]) => path.startsWith(start))?.[1] ?? {};
      return { ok: true, status: 200, json: async () => body };
    });
    store = new Store("ws://hub/api/stream");
  });
  afterEach(() => {
    store.stop();
    vi.unstubAllGlobals();
  });

  it("stays idle when the connection to its runner is restored", async () => {
    await start(session({ head: 4, state: "idle", run: "r" }));
    push(
      stored(5, { kind: "run.link_lost", run: "r", reason: "gone" }),
      stored(6, { kind: "run.link_found", run: "r" }),
    );
    pushViews(session({ head: 6, state: "idle", run: "r" }));
    expect(view()).toMatchObject({ state: "idle", head: 6 });
  });

  it("counts a prompt that is sent again out of the queue once", async () => {
    await start(session({ head: 4, queued: 2, run: "r" }));
    push(
      stored(5, { kind: "prompt.sent", prompt: "p", run: "r" }),
      stored(6, { kind: "prompt.sent", prompt: "p", run: "r2" }),
    );
    pushViews(session({ head: 6, queued: 1, run: "r2" }));
    expect(view()?.queued).toBe(1);
  });

  it("has the alarms, budgets and tokens of the hub's view", async () => {
    await start(session({ head: 1 }));
    const alarms = [
      { alarm: "silent", text: "Nothing for 5 min.", action: "", at: 9, coded: null, act: "" },
    ];
    const budgets = [{ scope: "session", unit: "usd", spent: 2, limit: 2 }] as never;
    push(stored(2, { kind: "alarm", alarm: "silent", text: "Nothing for 5 min." }));
    pushViews(session({ head: 2, alarms, budgets, tokens: 1200 }));
    expect(view()).toMatchObject({ alarms, budgets, tokens: 1200 });
  });

  it("is what the hub says, and nothing that events would make of it", async () => {
    await start(session({ head: 1, state: "idle" }));
    push(
      stored(2, { kind: "run.state", state: "working" }),
      stored(3, { kind: "session.renamed", name: "other", by: "ada" }),
      stored(4, {
        kind: "turn.ended",
        prompts: [],
        failed: false,
        outcome: "success",
        cost_usd: 1,
      }),
    );
    expect(view()).toMatchObject({ state: "idle", name: "", turns: 0, cost_usd: 0 });
  });

  it("is the newest view, whichever comes last", async () => {
    await start(session({ head: 9, name: "new" }));
    pushViews(session({ head: 8, name: "old" }));
    expect(view()?.name).toBe("new");
    pushViews(session({ head: 10, name: "newer" }));
    expect(view()?.name).toBe("newer");
  });

  it("is known as soon as the hub pushes a session that was not listed", async () => {
    await start();
    push(stored(1, { kind: "session.created", spec: {}, by: "ada" }));
    pushViews(session({ head: 1, name: "made elsewhere" }));
    expect(view()?.name).toBe("made elsewhere");
  });

  it("is gone with the event that deletes it", async () => {
    await start(session({ head: 1 }));
    push(stored(2, { kind: "session.deleted", by: "ada" }));
    expect(view()).toBeUndefined();
  });

  it("has activity that no view reports: lines of the CLI are unread all the same", async () => {
    await start(session({ head: 3 }));
    store.markRead("s");
    push(stored(4, { kind: "said", run: "r", number: 1, line: {} }));
    expect(store.get().activity.get("s")).toEqual({ seq: 4, at: 1004 });
    expect(view()?.head).toBe(3);
    store.markRead("s");
    expect(store.get().read).toEqual({ s: 4 });
  });

  it("is not unread after events that tell a person nothing", async () => {
    await start(session({ head: 3, news: 3 }));
    store.markRead("s");
    push(stored(4, { kind: "run.link_lost", run: "r", reason: "the hub stopped" }));
    pushViews(session({ head: 5, news: 3 }));
    expect(isUnread(store.get(), "s")).toBe(false);
    push(stored(6, { kind: "said", run: "r", number: 1, line: {} }));
    expect(isUnread(store.get(), "s")).toBe(true);
  });

  it("keeps the offers, which only a session that is read has", async () => {
    const commands = [{ name: "compact" }];
    await start(session({ head: 1, offers: { commands } }));
    pushViews(session({ head: 2, state: "working" }));
    expect(view()).toMatchObject({ state: "working", offers: { commands } });
    read = session({ head: 3, offers: { commands: [{ name: "review" }] } });
    push(stored(3, { kind: "offers.changed", commands: [] }));
    await vi.waitFor(() => expect(view()?.offers?.commands).toEqual([{ name: "review" }]));
  });
});
