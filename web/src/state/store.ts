// The store of the page: it connects the stream to the parts that keep state, and sends commands.
//
// Components read the state with `useAppState`, and change it only through the parts' methods.

import { ApiError, get } from "../api/http";
import { Stream } from "../api/stream";
import type { Command, ControlRequest, Me, Outcome, Stored } from "../api/types";
import { type AppState, initialState } from "./appState";
import { Asks } from "./asks";
import { LiveText } from "./liveText";
import { Observable, useObservable } from "./observable";
import { OpenSessions } from "./openSessions";
import { personal } from "./personal";
import { PromptOutbox } from "./promptOutbox";
import { markRead, readElsewhere } from "./readMarks";
import { SessionList } from "./sessionList";

export class Store {
  readonly state = new Observable<AppState>(initialState());
  /** Text that is being generated, of every session: one that is opened shows it from its start. */
  readonly liveText = new LiveText();
  readonly asks: Asks;
  readonly open: OpenSessions;
  readonly prompts: PromptOutbox;
  private readonly list: SessionList;
  private readonly stream: Stream;

  constructor(url: string) {
    this.stream = new Stream(url, {
      connection: (connection) => {
        this.state.set({ connection });
        if (connection === "online") this.asks.connected();
      },
      ready: () => void this.synchronize(),
      reset: () => this.forgetJournal(),
      gap: (session) => this.open.reload(session),
      events: (events) => this.receive(events),
      views: (sessions) => this.list.receiveViews(sessions),
      live: (deltas, whole) => this.liveText.receive(deltas, whole),
      personal: (version) => personal.changed(version),
    });
    this.list = new SessionList(this.state);
    this.asks = new Asks(this.state, this.stream);
    this.open = new OpenSessions(this.state, this.stream);
    this.prompts = new PromptOutbox(this.state, this.stream);
  }

  readonly get = (): AppState => this.state.get();

  async start(): Promise<void> {
    // At the same time: each takes a round trip, and on a phone that is long.
    this.stream.start();
    window.addEventListener("pagehide", this.asks.sendAllHeld);
    document.addEventListener("visibilitychange", this.hidden);
    try {
      await this.identify();
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) {
        this.stop();
        this.state.set({ loggedOut: true });
        return;
      }
    }
    personal.start((session, seq) => readElsewhere(this.state, session, seq));
  }

  private readonly hidden = (): void => {
    if (document.visibilityState === "hidden") this.asks.sendAllHeld();
  };

  stop(): void {
    window.removeEventListener("pagehide", this.asks.sendAllHeld);
    document.removeEventListener("visibilitychange", this.hidden);
    this.stream.stop();
    personal.stop();
  }

  command(command: Command): Promise<Outcome> {
    return this.stream.command(command);
  }

  /** Send a control request to a session's CLI, and return its response. */
  async control<T>(session: string, request: ControlRequest): Promise<T> {
    const outcome = await this.command({ command: "session.control", session, request });
    return (outcome.answer ?? {}) as T;
  }

  markRead(session: string): void {
    markRead(this.state, session);
  }

  private async identify(): Promise<void> {
    this.state.set({ me: await get<Me>("/api/whoami") });
  }

  /** The stream follows all sessions from now on: what is read after this has no gap. */
  private async synchronize(): Promise<void> {
    try {
      if (!this.get().me) await this.identify();
      await Promise.all([this.list.list(), this.asks.list()]);
      this.open.catchUpAll();
      this.prompts.resend();
    } catch {
      // The connection was lost again; the next one synchronizes anew.
    }
  }

  private receive(events: Stored[]): void {
    this.list.receive(events);
    this.asks.receive(events);
    for (const [session, ours] of bySession(events)) {
      this.open.receive(session, ours);
      this.liveText.dropComplete(session, ours);
    }
  }

  /** The hub has another journal: nothing that is known holds. */
  private forgetJournal(): void {
    this.list.clear();
    this.asks.clear();
    this.liveText.clear();
    this.state.set({ read: {} });
    this.open.reloadAll();
  }
}

function bySession(events: readonly Stored[]): Map<string, Stored[]> {
  const found = new Map<string, Stored[]>();
  for (const stored of events) {
    const known = found.get(stored.session);
    if (known) known.push(stored);
    else found.set(stored.session, [stored]);
  }
  return found;
}

const scheme = location.protocol === "https:" ? "wss" : "ws";
export const store = new Store(`${scheme}://${location.host}/api/stream`);

/** A part of what the page knows; the component is rendered again when that part changes. */
export function useAppState<T>(select: (state: AppState) => T): T {
  return useObservable(store.state, select);
}

const NO_RIGHTS: readonly string[] = [];

/** The rights of the person who is logged in. */
export function useRights(): readonly string[] {
  return useAppState((state) => state.me?.rights ?? NO_RIGHTS);
}
