// The open questions of all sessions, how the others were settled, and the answers on their way.
import { ApiError, errorText, get } from "../api/http";
import type { Stream } from "../api/stream";
import type { Answer, Ask, Stored } from "../api/types";
import type { AppState, Sending } from "./appState";
import { RUN_ENDED } from "./entries";
import { type Slice, withEntry, withoutEntry } from "./observable";

export class Asks {
  constructor(
    private readonly state: Slice<Pick<AppState, "asks" | "settled" | "sending">>,
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
    this.setSending(ask, { state: "sending" });
    try {
      await this.stream.command({ command: "ask.answer", ask, answer });
    } catch (error) {
      this.setSending(ask, { state: "failed", error: errorText(error) });
      if (error instanceof ApiError && error.status !== 0) void this.list();
    }
  }

  receive(events: readonly Stored[]): void {
    let { asks, settled, sending } = this.state.get();
    const settle = (ask: string, how: string): void => {
      asks = withoutEntry(asks, ask);
      sending = withoutEntry(sending, ask);
      settled = withEntry(settled, ask, how);
    };
    for (const { session, seq, at, event } of events) {
      if (event.kind === "ask.opened") {
        asks = withEntry(asks, event.ask, { session, seq, at, opened: event });
      } else if (event.kind === "ask.answered") {
        settle(event.ask, `${event.allowed ? "allowed" : "denied"} by ${event.by}`);
      } else if (event.kind === "ask.withdrawn") {
        settle(event.ask, event.reason);
      } else if (event.kind === "run.ended") {
        for (const ask of asks.values()) {
          if (ask.opened.run === event.run) settle(ask.opened.ask, RUN_ENDED);
        }
      }
    }
    this.state.set({ asks, settled, sending });
  }

  clear(): void {
    this.state.set({ asks: new Map() });
  }

  private setSending(ask: string, sending: Sending): void {
    this.state.set({ sending: withEntry(this.state.get().sending, ask, sending) });
  }
}
