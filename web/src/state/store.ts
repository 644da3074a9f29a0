// What the page knows, and how it learns it: the one place where the stream, the hub's answers and
// the reducers meet. Components read it with `useDeck`, and change nothing but through its methods.
import { useSyncExternalStore } from "react";
import { Failure, get, ofSession, wordsOf } from "../api/http";
import { type Connection, Stream } from "../api/stream";
import type { Answer, Ask, Me, Outcome, Session, Stored } from "../api/types";
import { type Drafts, keepPrompt, keptPrompts, letGo } from "./drafts";
import { LEFT } from "./entries";
import { EMPTY, type Fleet, happened, listed } from "./fleet";
import { lookup } from "./lookup";
import { BLANK, retold, type Story, tell } from "./story";
import { Voices } from "./voices";

/** How many events are read when a session is opened: some screens full; and then as one scrolls. */
const FIRST_PAGE = 200;
const PAGE = 800;

/** A session that is open in this page. */
export interface Opened {
  story: Story;
  /** Whether there are older events than those that are loaded. */
  older: boolean;
  loading: boolean;
  error: string | undefined;
}

export interface Sending {
  state: "sending" | "failed";
  error?: string;
}

export interface Deck {
  connection: Connection;
  /** Whether the sessions have been listed at least once. */
  known: boolean;
  me: Me | undefined;
  /** Nobody is logged in here. */
  stranger: boolean;
  fleet: Fleet;
  asks: ReadonlyMap<string, Ask>;
  settled: ReadonlyMap<string, string>;
  sending: ReadonlyMap<string, Sending>;
  opened: ReadonlyMap<string, Opened>;
  seen: Readonly<Record<string, number>>;
  unsent: Drafts;
}

const NOTHING: Deck = {
  connection: "connecting",
  known: false,
  me: undefined,
  stranger: false,
  fleet: EMPTY,
  asks: new Map(),
  settled: new Map(),
  sending: new Map(),
  opened: new Map(),
  seen: read("seen", {}),
  unsent: keptPrompts(),
};

function read<T>(name: string, fallback: T): T {
  try {
    return JSON.parse(localStorage.getItem(`quarterdeck.${name}`) ?? "") as T;
  } catch {
    return fallback;
  }
}

export class Store {
  private deck: Deck = NOTHING;
  private readonly listeners = new Set<() => void>();
  private readonly events = new Map<string, Stored[]>();
  private readonly early = new Map<string, Stored[]>();
  /** What is being said, also where nobody looks: a session that is opened shows it from its start. */
  readonly voices = new Voices();
  private readonly underway = new Set<string>();
  private readonly stream: Stream;

  constructor(url: string) {
    this.stream = new Stream(url, {
      connection: (connection) => this.set({ connection }),
      ready: () => void this.list(),
      reset: () => this.forget(),
      gap: (session) => this.reload(session),
      events: (events) => this.happened(events),
      live: (deltas, whole) => this.voices.hear(deltas, whole),
    });
  }

  readonly get = (): Deck => this.deck;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  async start(): Promise<void> {
    try {
      this.set({ me: await get<Me>("/api/whoami") });
    } catch (error) {
      if (error instanceof Failure && error.status === 401) {
        this.set({ stranger: true });
        return;
      }
    }
    this.stream.start();
  }

  stop(): void {
    this.stream.stop();
  }

  // --- what people do --------------------------------------------------------------------------

  command(name: string, members: Record<string, unknown> = {}): Promise<Outcome> {
    return this.stream.command({ command: name, ...members });
  }

  /** Send a prompt. It is kept here until the hub has it, whatever happens in between. */
  async prompt(session: string, id: string, content: unknown): Promise<void> {
    if (this.underway.has(id)) return; // the stream sends it again by itself
    this.underway.add(id);
    this.set({ unsent: keepPrompt(this.deck.unsent, { session, id, content }) });
    try {
      await this.stream.command({ command: "prompt.send", session, prompt: id, content }, id);
      this.set({ unsent: letGo(this.deck.unsent, id) });
    } catch (error) {
      if (error instanceof Failure && error.code === "withdrawn") return;
      const told = wordsOf(error);
      this.set({ unsent: keepPrompt(this.deck.unsent, { session, id, content, error: told }) });
    } finally {
      this.underway.delete(id);
    }
  }

  dropPrompt(id: string): void {
    this.stream.withdraw(id);
    this.set({ unsent: letGo(this.deck.unsent, id) });
  }

  async answer(ask: string, answer: Answer): Promise<void> {
    this.set({ sending: with_(this.deck.sending, ask, { state: "sending" }) });
    try {
      await this.command("ask.answer", { ask, answer });
    } catch (error) {
      const told = wordsOf(error);
      this.set({ sending: with_(this.deck.sending, ask, { state: "failed", error: told }) });
      if (error instanceof Failure && error.status !== 0) void this.listAsks();
    }
  }

  /** A control request to a session's CLI, and its answer. */
  async control<T>(session: string, request: Record<string, unknown>): Promise<T> {
    const outcome = await this.command("session.control", { session, request });
    return (outcome.answer ?? {}) as T;
  }

  /** Files of a session's folder that fit, as its CLI knows them. */
  async files(session: string, query: string): Promise<string[]> {
    try {
      const request = { subtype: "file_suggestions", query };
      const found = await this.control<{ suggestions?: { path: string }[] }>(session, request);
      return (found.suggestions ?? []).map((one) => one.path).slice(0, 12);
    } catch {
      return []; // an older CLI, or one that does not run: there is no menu then
    }
  }

  /** The events of an open session that are loaded. */
  eventsOf(session: string): readonly Stored[] {
    return this.events.get(session) ?? [];
  }

  see(session: string): void {
    const head = this.deck.fleet.get(session)?.head;
    if (head === undefined || lookup(this.deck.seen, session) === head) return;
    const seen = { ...this.deck.seen, [session]: head };
    this.set({ seen });
    localStorage.setItem("quarterdeck.seen", JSON.stringify(seen));
  }

  // --- one session -------------------------------------------------------------------------------

  open(session: string): void {
    if (this.deck.opened.has(session)) return;
    this.setOpened(session, { ...FRESH });
    this.early.set(session, []);
    void this.load(session);
  }

  close(session: string): void {
    this.stream.untrack(session);
    this.events.delete(session);
    this.early.delete(session);
    this.set({ opened: without(this.deck.opened, session) });
  }

  private reload(session: string): void {
    const wanted = this.deck.opened.has(session);
    this.close(session);
    if (wanted) this.open(session);
  }

  private async load(session: string): Promise<void> {
    try {
      const early = await askedEarly(session);
      const found = early?.session ?? (await get<Session>(ofSession(session)));
      this.set({ fleet: listed(this.deck.fleet, [found]) });
      const { head } = found;
      const events =
        early?.events ?? (await this.page(session, Math.max(0, head - FIRST_PAGE), head));
      this.events.set(session, events);
      const story = tell(BLANK, events);
      this.setOpened(session, { ...FRESH, story, older: story.first > 1, loading: false });
      this.stream.track(session, story.last);
      this.join(session, this.early.get(session) ?? []);
      this.early.delete(session);
      this.catchUp(session);
    } catch (error) {
      this.fail(session, error);
    }
  }

  /** Events after a number, up to another at least; more pages are read if one is short. */
  private async page(session: string, after: number, upto: number): Promise<Stored[]> {
    const found: Stored[] = [];
    let last = after;
    while (last < upto) {
      const limit = Math.min(1000, upto - last);
      const page = await get<{ events: Stored[] }>(ofSession(session, "/events"), {
        after: last,
        limit,
      });
      const end = page.events.at(-1);
      if (!end) break;
      found.push(...page.events);
      last = end.seq;
    }
    return found;
  }

  /** Load what came before. */
  async older(session: string): Promise<void> {
    const opened = this.deck.opened.get(session);
    if (!opened || opened.loading || !opened.older) return;
    this.setOpened(session, { ...opened, loading: true });
    try {
      const before = opened.story.first - 1;
      const page = await this.page(session, Math.max(0, before - PAGE), before);
      const first = opened.story.first;
      const events = [
        ...page.filter((one) => one.seq < first),
        ...(this.events.get(session) ?? []),
      ];
      this.events.set(session, events);
      const now = this.deck.opened.get(session) ?? opened;
      const story = retold(now.story, events);
      this.setOpened(session, { ...now, story, older: story.first > 1, loading: false });
    } catch (error) {
      this.fail(session, error);
    }
  }

  /** Events that came by the stream: added if they follow, fetched if some are missing. */
  private join(session: string, events: Stored[]): void {
    const opened = this.deck.opened.get(session);
    if (!opened) return;
    const early = this.early.get(session);
    if (early && opened.loading && opened.story.last === 0) {
      early.push(...events);
      return;
    }
    const fresh = events.filter((stored) => stored.seq > opened.story.last);
    const first = fresh[0];
    if (!first) return;
    if (first.seq > opened.story.last + 1 && opened.story.last > 0) {
      void this.fill(session, first.seq - 1, fresh);
      return;
    }
    this.events.get(session)?.push(...fresh);
    const story = tell(opened.story, fresh);
    this.stream.track(session, story.last);
    this.setOpened(session, { ...opened, story });
  }

  /** What happened between reading a session and following it is told by nobody: its head shows. */
  private catchUp(session: string): void {
    const opened = this.deck.opened.get(session);
    const head = this.deck.fleet.get(session)?.head ?? 0;
    if (!opened || opened.loading || opened.error || head <= opened.story.last) return;
    void this.fill(session, head, []);
  }

  private async fill(session: string, upto: number, then: Stored[]): Promise<void> {
    const opened = this.deck.opened.get(session);
    if (!opened) return;
    try {
      this.join(session, [...(await this.page(session, opened.story.last, upto)), ...then]);
    } catch (error) {
      this.fail(session, error);
    }
  }

  private fail(session: string, error: unknown): void {
    const opened = this.deck.opened.get(session);
    if (!opened) return;
    const told = wordsOf(error);
    this.setOpened(session, { ...opened, loading: false, error: told });
  }

  private setOpened(session: string, opened: Opened): void {
    this.set({ opened: with_(this.deck.opened, session, opened) });
  }

  // --- from the hub --------------------------------------------------------------------------

  private async list(): Promise<void> {
    try {
      if (!this.deck.me) this.set({ me: await get<Me>("/api/whoami") });
      for (const archived of [false, true]) {
        let after: string | undefined;
        do {
          const page = await get<{ sessions: Session[]; next: string | null }>("/api/sessions", {
            limit: 200,
            archived: archived || undefined,
            after,
          });
          this.set({ fleet: listed(this.deck.fleet, page.sessions), known: true });
          after = page.next ?? undefined;
        } while (after);
      }
      await this.listAsks();
      for (const [session, opened] of this.deck.opened) {
        if (opened.error) this.reload(session);
        else this.catchUp(session);
      }
      for (const one of Object.values(this.deck.unsent)) {
        if (!one.error) void this.prompt(one.session, one.id, one.content);
      }
    } catch {
      // The connection is gone again; the next one lists anew.
    }
  }

  private async listAsks(): Promise<void> {
    const before = this.deck.asks;
    const { asks } = await get<{ asks: Ask[] }>("/api/asks");
    // What the stream has told meanwhile is newer than this list.
    const open = asks.filter((ask) => !this.deck.settled.has(ask.opened.ask));
    const meanwhile = [...this.deck.asks.values()].filter((ask) => !before.has(ask.opened.ask));
    this.set({ asks: new Map([...open, ...meanwhile].map((ask) => [ask.opened.ask, ask])) });
  }

  private happened(events: Stored[]): void {
    const [fleet, unknown] = happened(this.deck.fleet, events);
    this.set({ fleet, ...this.asked(events) });
    for (const session of unknown) void this.learn(session);
    for (const session of new Set(events.map((stored) => stored.session))) {
      const ours = events.filter((stored) => stored.session === session);
      this.join(session, ours);
      this.voices.supersede(session, ours);
    }
  }

  private asked(events: readonly Stored[]): Partial<Deck> {
    let { asks, settled, sending } = this.deck;
    const settle = (ask: string, how: string): void => {
      asks = without(asks, ask);
      sending = without(sending, ask);
      settled = with_(settled, ask, how);
    };
    for (const { session, seq, at, event } of events) {
      if (event.kind === "ask.opened") {
        asks = with_(asks, event.ask, { session, seq, at, opened: event });
      } else if (event.kind === "ask.answered") {
        settle(event.ask, `${event.allowed ? "allowed" : "denied"} by ${event.by}`);
      } else if (event.kind === "ask.withdrawn") {
        settle(event.ask, event.reason);
      } else if (event.kind === "run.ended") {
        for (const ask of asks.values()) {
          if (ask.opened.run === event.run) settle(ask.opened.ask, LEFT);
        }
      }
    }
    return { asks, settled, sending };
  }

  private async learn(session: string): Promise<void> {
    try {
      const found = await get<Session>(ofSession(session));
      this.set({ fleet: listed(this.deck.fleet, [found]) });
    } catch {
      // It is gone already, or the next listing will have it.
    }
  }

  private forget(): void {
    const open = [...this.deck.opened.keys()];
    for (const session of open) this.close(session);
    this.set({ fleet: EMPTY, asks: new Map(), seen: {} });
    this.voices.clear();
    for (const session of open) this.open(session);
  }

  private set(change: Partial<Deck>): void {
    this.deck = { ...this.deck, ...change };
    for (const listener of this.listeners) listener();
  }
}

interface Early {
  session: Session;
  events: Stored[];
}

/** What `early.js` has asked for while the page was loaded: good for one time. */
async function askedEarly(session: string): Promise<Early | undefined> {
  const place = window as { early?: Promise<Early | undefined> };
  const asked = place.early;
  delete place.early;
  const found = await asked;
  // A page may be shorter than what was asked for: then it is read as all others are.
  const whole = found?.events.at(-1)?.seq === found?.session.head;
  return found?.session.session === session && whole ? found : undefined;
}

const FRESH: Opened = { story: BLANK, older: false, loading: true, error: undefined };

function with_<K, V>(map: ReadonlyMap<K, V>, key: K, value: V): ReadonlyMap<K, V> {
  return new Map(map).set(key, value);
}

function without<K, V>(map: ReadonlyMap<K, V>, key: K): ReadonlyMap<K, V> {
  if (!map.has(key)) return map;
  const next = new Map(map);
  next.delete(key);
  return next;
}

const scheme = location.protocol === "https:" ? "wss" : "ws";
export const store = new Store(`${scheme}://${location.host}/api/stream`);

/** What whoever looks at this page may do. */
export function useRights(): readonly string[] {
  return useDeck((deck) => deck.me?.rights ?? NO_RIGHTS);
}

const NO_RIGHTS: readonly string[] = [];

/** A part of what the page knows; the component is drawn again when that part changes. */
export function useDeck<T>(select: (deck: Deck) => T): T {
  return useSyncExternalStore(store.subscribe, () => select(store.get()));
}
