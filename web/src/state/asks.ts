// The open questions of all sessions, how the others were settled, and the answers on their way.

import { ApiError, errorText, get } from "../api/http";
import type { Stream } from "../api/stream";
import type { Answer, Ask, Stored } from "../api/types";
import type { AppState, Sending } from "./appState";
import { textOf } from "./coded";
import type { Settled } from "./entries";
import { type Slice, withEntry, withoutEntry } from "./observable";

const keyOf = (ask: string): string => `answer:${ask}`;

export class Asks {
  /** Answers that can still be taken back. */
  private readonly held = new Map<
    string,
    { answer: Answer; timer: ReturnType<typeof setTimeout> }
  >();

  constructor(
    private readonly state: Slice<Pick<AppState, "asks" | "settled" | "sending" | "connection">>,
    private readonly stream: Stream,
  ) {}

  /** Read the open questions from the hub. */
  async list(): Promise<void> {
    const before = this.state.get().asks;
    const { asks } = await get<{ asks: Ask[] }>("/api/asks");
    // What the stream delivered in the meantime is newer than this list.
    const now = this.state.get();
    const open = asks.filter((ask) => !now.settled.has(ask.opened.ask));
    const meanwhile = [...now.asks.values()].filter((ask) => !before.has(ask.opened.ask));
    this.state.set({ asks: new Map([...open, ...meanwhile].map((ask) => [ask.opened.ask, ask])) });
  }

  /** Send an answer. The card closes with the hub's event, not with the click. */
  async answer(ask: string, answer: Answer): Promise<void> {
    this.drop(ask);
    const online = this.state.get().connection === "online";
    this.setSending(ask, { state: online ? "sending" : "offline" });
    try {
      await this.stream.command({ command: "ask.answer", ask, answer }, keyOf(ask));
    } catch (error) {
      if (error instanceof ApiError && error.code === "withdrawn") return;
      this.setSending(ask, { state: "failed", error: errorText(error) });
      if (error instanceof ApiError && error.status !== 0) void this.list();
    }
  }

  /** Send an answer after so many seconds, unless it is taken back. */
  hold(ask: string, answer: Answer, seconds: number): void {
    if (seconds <= 0 || this.held.has(ask)) return void this.answer(ask, answer);
    const timer = setTimeout(() => this.sendHeld(ask), seconds * 1000);
    this.held.set(ask, { answer, timer });
    this.setSending(ask, { state: "held", until: Date.now() + seconds * 1000 });
  }

  /** Take an answer back that the hub cannot have yet. Gives whether it was possible. */
  undo(ask: string): boolean {
    const state = this.state.get().sending.get(ask)?.state;
    if (state !== "held" && state !== "offline") return false;
    this.drop(ask);
    this.stream.withdraw(keyOf(ask));
    this.state.set({ sending: withoutEntry(this.state.get().sending, ask) });
    return true;
  }

  /** Send an answer that is held back now. */
  sendHeld(ask: string): void {
    const held = this.held.get(ask);
    if (held) void this.answer(ask, held.answer);
  }

  /** The page is being left, and its timers may not run again: send everything that is held back. */
  readonly sendAllHeld = (): void => {
    for (const ask of [...this.held.keys()]) this.sendHeld(ask);
  };

  private drop(ask: string): void {
    clearTimeout(this.held.get(ask)?.timer);
    this.held.delete(ask);
  }

  receive(events: readonly Stored[]): void {
    let { asks, settled, sending } = this.state.get();
    const settle = (ask: string, how: Settled): void => {
      this.drop(ask);
      asks = withoutEntry(asks, ask);
      sending = withoutEntry(sending, ask);
      settled = withEntry(settled, ask, how);
    };
    for (const { session, seq, at, event } of events) {
      if (event.kind === "ask.opened") {
        asks = withEntry(asks, event.ask, { session, seq, at, opened: event });
      } else if (event.kind === "ask.answered") {
        settle(event.ask, { how: "answered", by: event.by, allowed: event.allowed });
      } else if (event.kind === "ask.withdrawn") {
        settle(event.ask, { how: "withdrawn", why: textOf(event.coded, event.reason) });
      } else if (event.kind === "run.ended") {
        for (const ask of asks.values()) {
          if (ask.opened.run === event.run) settle(ask.opened.ask, { how: "run_ended" });
        }
      }
    }
    this.state.set({ asks, settled, sending });
  }

  /** The connection is back: what waited for it is on its way, and cannot be taken back. */
  connected(): void {
    const { sending } = this.state.get();
    const waiting = [...sending].filter(([, one]) => one.state === "offline");
    if (!waiting.length) return;
    const sent = waiting.map(([ask]): [string, Sending] => [ask, { state: "sending" }]);
    this.state.set({ sending: new Map([...sending, ...sent]) });
  }

  clear(): void {
    for (const ask of [...this.held.keys()]) this.drop(ask);
    this.state.set({ asks: new Map() });
  }

  private setSending(ask: string, sending: Sending): void {
    this.state.set({ sending: withEntry(this.state.get().sending, ask, sending) });
  }
}
