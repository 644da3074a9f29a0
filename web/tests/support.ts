// What several tests of the web app need: sessions, events, and a hub at the far end of the stream.
import type { Session, Stored } from "../src/api/types";

/** A session as the hub would give it. */
export const session = (over: Partial<Session> = {}): Session =>
  ({
    session: "s",
    name: "",
    state: "idle",
    detail: "",
    since: 1,
    last_turn: null,
    spec: { directory: "/home/ada/project" },
    by: "ada",
    parent: null,
    lineage: [],
    created: 1,
    updated: 1,
    archived: false,
    head: 0,
    news: 0,
    run: null,
    machine: null,
    pid: null,
    version: null,
    directory: null,
    cli_session: null,
    mode: null,
    model: null,
    turns: 0,
    peer_prompts: 0,
    cost_usd: 0,
    estimated_usd: 0,
    tokens: 0,
    budgets: [],
    alarms: [],
    queued: 0,
    asks: 0,
    holds: { todos: [], tasks: [], tools: [], mcp: [], context: {}, limits: [], cut: {} },
    offers: null,
    ...over,
  }) as Session;

export const stored = (seq: number, event: unknown, of = "s"): Stored =>
  ({ session: of, seq, position: seq, at: 1000 + seq, event }) as Stored;

/** A WebSocket whose hub greets, and follows what it is asked to follow. */
export class HubSocket {
  static readonly OPEN = 1;
  static last: HubSocket;
  readyState = 1;
  /** The command frames that were sent. */
  readonly commands: { id: string; command: unknown }[] = [];
  onmessage: ((message: { data: string }) => void) | null = null;
  onclose: unknown;
  constructor() {
    HubSocket.last = this;
    const limits = { frame_bytes: 1024 * 1024 };
    const hello = { t: "hello", epoch: "e", name: "ada", role: "owner", beat_seconds: 15, limits };
    queueMicrotask(() => this.push(hello));
  }
  send(text: string): void {
    const { t, id, command } = JSON.parse(text) as { t: string; id: string; command: unknown };
    if (t === "command") this.commands.push({ id, command });
    if (t === "follow") queueMicrotask(() => this.push({ t: "following", id, sessions: {} }));
  }
  close(): void {}
  push(frame: object): void {
    this.onmessage?.({ data: JSON.stringify(frame) });
  }
}
