import { DecompressionStream } from "node:stream/web";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Connection, Stream } from "../src/api/stream";
import type { Command, Delta, Session, Stored } from "../src/api/types";

/** The far end of a connection, as the hub would be. */
class Wire {
  static readonly all: Wire[] = [];
  readyState = 1;
  sent: Record<string, unknown>[] = [];
  onmessage: ((message: { data: string | ArrayBuffer }) => void) | null = null;
  onclose: ((event: { code: number }) => void) | null = null;
  constructor() {
    Wire.all.push(this);
  }
  send(text: string): void {
    this.sent.push(JSON.parse(text));
  }
  close(): void {
    this.readyState = 3;
  }
  says(frame: unknown): void {
    this.onmessage?.({ data: JSON.stringify(frame) });
  }
  packs(frame: unknown): void {
    const bytes = new Uint8Array(gzipSync(JSON.stringify(frame)));
    this.onmessage?.({ data: bytes.buffer });
  }
  breaks(code = 1006): void {
    this.readyState = 3;
    this.onclose?.({ code });
  }
}

const hello = (epoch = "e1", frame_bytes = 1024 * 1024) => ({
  t: "hello",
  protocol: 1,
  epoch,
  name: "ada",
  role: "owner",
  beat_seconds: 15,
  limits: { frame_bytes, sessions: 1000, commands: 16, silence_seconds: 60 },
});
const events = (...list: [string, number][]) => ({
  t: "events",
  epoch: "e1",
  events: list.map(([session, seq]) => ({
    session,
    seq,
    position: seq,
    at: seq,
    event: { kind: "noted", level: "info", text: "" },
  })),
});

describe("the stream", () => {
  const seen: [string, number][] = [];
  const states: Connection[] = [];
  const gaps: string[] = [];
  const views: string[] = [];
  let resets = 0;
  let stream: Stream;
  const wire = (): Wire => Wire.all.at(-1) as Wire;

  beforeEach(() => {
    vi.stubGlobal("DecompressionStream", DecompressionStream);
    vi.useFakeTimers();
    Wire.all.length = seen.length = states.length = gaps.length = views.length = 0;
    resets = 0;
    stream = new Stream(
      "ws://hub/api/stream",
      {
        connection: (state) => states.push(state),
        ready: () => undefined,
        reset: () => resets++,
        gap: (session) => gaps.push(session),
        events: (list: Stored[]) =>
          seen.push(...list.map((one): [string, number] => [one.session, one.seq])),
        views: (list: Session[]) => views.push(...list.map((one) => one.session)),
        live: (_: Delta[]) => undefined,
        personal: (_: number) => undefined,
      },
      () => new Wire() as unknown as WebSocket,
    );
    stream.start();
  });
  afterEach(() => {
    stream.stop();
    vi.useRealTimers();
  });

  it("hands on the sessions that the hub has folded", () => {
    wire().says(hello());
    wire().says({ t: "views", sessions: [{ session: "s1", head: 3 }] });
    expect(views).toEqual(["s1"]);
  });

  it("follows everything, and what is tracked from its number", () => {
    stream.track("s1", 12);
    wire().says(hello());
    expect(wire().sent[0]).toMatchObject({
      t: "follow",
      all: true,
      epoch: "e1",
      sessions: { s1: 12 },
    });
  });

  it("comes back by itself, goes on where it was, and hands on nothing twice", () => {
    wire().says(hello());
    stream.track("s1", 1);
    wire().says(events(["s1", 2], ["s1", 3]));
    wire().breaks();
    expect(states.at(-1)).toBe("offline");
    vi.advanceTimersByTime(1000);
    expect(Wire.all).toHaveLength(2);
    wire().says(hello());
    expect(wire().sent[0]).toMatchObject({ sessions: { s1: 3 } });
    wire().says(events(["s1", 3], ["s1", 4]));
    expect(seen).toEqual([
      ["s1", 2],
      ["s1", 3],
      ["s1", 4],
    ]);
  });

  it("refuses a command that is too large for the hub, before or after the greeting", async () => {
    const prompt = (content: string) =>
      stream.command({ command: "prompt.send", session: "s", prompt: "p", content });
    const early = prompt("é".repeat(600 * 1024));
    wire().says(hello());
    await expect(early).rejects.toMatchObject({ code: "too_large", message: /up to 1 MB/ });
    await expect(prompt("x".repeat(1024 * 1024))).rejects.toMatchObject({ status: 413 });
    expect(wire().sent).toHaveLength(1); // the follow
    void prompt("é".repeat(500 * 1024));
    expect(wire().sent).toHaveLength(2);
  });

  it("sends a command again that nobody acknowledged", async () => {
    wire().says(hello());
    const done = stream.command({
      command: "prompt.send",
      session: "s",
      prompt: "p",
      content: "x",
    });
    const first = wire().sent.at(-1);
    wire().breaks();
    vi.advanceTimersByTime(20_000);
    wire().says(hello());
    expect(wire().sent.at(-1)).toEqual(first);
    wire().says({ t: "done", id: first?.id, outcome: { session: "s", prompt: "p" } });
    await expect(done).resolves.toMatchObject({ prompt: "p" });
  });

  it("says nothing before it is greeted, and then everything once", () => {
    wire().says(hello());
    wire().breaks();
    vi.advanceTimersByTime(1000);
    void stream.command({ command: "session.stop", session: "s" });
    expect(wire().sent).toEqual([]);
    wire().says(hello());
    expect(wire().sent.filter((one) => one.t === "command")).toHaveLength(1);
  });

  it("does not send what was taken back", async () => {
    wire().says(hello());
    wire().breaks();
    const command: Command = { command: "prompt.send", session: "s", prompt: "p", content: "x" };
    const sending = stream.command(command, "p");
    stream.withdraw("p");
    await expect(sending).rejects.toMatchObject({ code: "withdrawn" });
    vi.advanceTimersByTime(20_000);
    wire().says(hello());
    expect(wire().sent.filter((one) => one.t === "command")).toEqual([]);
  });

  it("does not wait for ever to be greeted, and stays offline until then", () => {
    wire().says(hello());
    wire().breaks();
    vi.advanceTimersByTime(60_000);
    expect(Wire.all.length).toBeGreaterThan(3);
    expect(states).toEqual(["connecting", "online", ...states.slice(2).map(() => "offline")]);
    while (wire().readyState !== 1) vi.advanceTimersByTime(500);
    wire().says(hello());
    expect(states.at(-1)).toBe("online");
  });

  it("tells why a command failed", async () => {
    wire().says(hello());
    const failing = stream.command({ command: "session.stop", session: "s" });
    const id = wire().sent.at(-1)?.id;
    wire().says({
      t: "failed",
      id,
      problem: { type: "x", title: "No", status: 404, code: "not_found", detail: "there is none" },
    });
    await expect(failing).rejects.toMatchObject({
      code: "not_found",
      message: "No: there is none",
    });
  });

  it("drops everything when the journal is another one", () => {
    stream.track("s1", 5);
    wire().says(hello("e1"));
    wire().breaks();
    vi.advanceTimersByTime(20_000);
    wire().says(hello("e2"));
    expect(resets).toBe(1);
    expect(wire().sent[0]).toMatchObject({ sessions: {} });
  });

  it("tells of a session whose numbers mean nothing any more", () => {
    wire().says(hello());
    wire().says({
      t: "following",
      id: "1",
      all: true,
      sessions: { s1: { status: "gap", reason: "ahead" } },
    });
    expect(gaps).toEqual(["s1"]);
  });

  it("takes compressed frames in their order, and asks for them", async () => {
    wire().says(hello());
    expect(wire().sent[0]).toMatchObject({ packed: true, pictures: false });
    wire().packs(events(["s1", 1], ["s1", 2]));
    wire().says(events(["s1", 3]));
    wire().packs(events(["s1", 4]));
    expect(seen).toEqual([]);
    vi.useRealTimers();
    await vi.waitFor(() => expect(seen).toHaveLength(4));
    expect(seen.map(([, seq]) => seq)).toEqual([1, 2, 3, 4]);
    wire().says(events(["s1", 5]));
    expect(seen).toHaveLength(5);
  });

  it("connects again after a frame that cannot be unpacked, and has the rest from its cursor", async () => {
    stream.track("s1", 3);
    wire().says(hello());
    vi.useRealTimers();
    wire().onmessage?.({ data: new Uint8Array([1, 2, 3]).buffer });
    wire().says(events(["s1", 5]));
    await vi.waitFor(() => expect(Wire.all).toHaveLength(2));
    wire().says(hello());
    expect(seen).toEqual([]);
    expect(wire().sent[0]).toMatchObject({ sessions: { s1: 3 } });
  });

  it("takes a silent connection for dead", () => {
    wire().says(hello());
    vi.advanceTimersByTime(80_000);
    expect(Wire.all.length).toBeGreaterThan(1);
  });

  it("does not come back when access was taken away", () => {
    wire().says(hello());
    wire().breaks(4401);
    vi.advanceTimersByTime(60_000);
    expect(Wire.all).toHaveLength(1);
    expect(states.at(-1)).toBe("refused");
  });
});
