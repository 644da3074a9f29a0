// The sessions that are open in this page: their events, loaded page by page and kept up to date.
//
// Knows nothing of what events mean to the list of sessions. The stream delivers events in order; a
// gap between what is loaded and what it delivers is filled from the hub's history.
import { errorText, get, sessionPath } from "../api/http";
import type { components } from "../api/schema";
import type { Stream } from "../api/stream";
import type { Session, Stored } from "../api/types";
import type { AppState, OpenSession } from "./appState";
import { type Slice, withEntry, withoutEntry } from "./observable";
import { mergeSessions } from "./sessions";
import { EMPTY_STORY, foldEvents, refoldStory } from "./story";

type Schemas = components["schemas"];

/** How many events are read when a session is opened: a few screens; and then as a person scrolls. */
const FIRST_PAGE = 200;
const PAGE = 800;
/** The hub's own limit of one request. */
const LARGEST_PAGE = 1000;

const LOADING: OpenSession = {
  story: EMPTY_STORY,
  older: false,
  loading: true,
  error: undefined,
};

export class OpenSessions {
  private readonly events = new Map<string, Stored[]>();
  /** Events that the stream delivered while the first page was being read. */
  private readonly early = new Map<string, Stored[]>();

  constructor(
    private readonly state: Slice<Pick<AppState, "open" | "sessions">>,
    private readonly stream: Stream,
  ) {}

  open(session: string): void {
    if (this.find(session)) return;
    this.put(session, { ...LOADING });
    this.early.set(session, []);
    void this.load(session);
  }

  close(session: string): void {
    this.stream.untrack(session);
    this.events.delete(session);
    this.early.delete(session);
    this.state.set({ open: withoutEntry(this.state.get().open, session) });
  }

  /** Drop what is loaded of a session, and load it again if it is open. */
  reload(session: string): void {
    const wasOpen = this.find(session) !== undefined;
    this.close(session);
    if (wasOpen) this.open(session);
  }

  reloadAll(): void {
    for (const session of [...this.state.get().open.keys()]) this.reload(session);
  }

  /** The events of an open session that are loaded. */
  eventsOf(session: string): readonly Stored[] {
    return this.events.get(session) ?? [];
  }

  /** Load the page before the oldest event that is loaded. */
  async loadOlder(session: string): Promise<void> {
    const opened = this.find(session);
    if (!opened || opened.loading || !opened.older) return;
    this.put(session, { ...opened, loading: true });
    try {
      const { first } = opened.story;
      const before = first - 1;
      const page = await readEvents(session, Math.max(0, before - PAGE), before);
      const events = [...page.filter((one) => one.seq < first), ...this.eventsOf(session)];
      this.events.set(session, events);
      const now = this.find(session) ?? opened;
      const story = refoldStory(now.story, events);
      this.put(session, { ...now, story, older: story.first > 1, loading: false });
    } catch (error) {
      this.fail(session, error);
    }
  }

  /** Take events from the stream: added if they follow what is loaded, else the gap is read first. */
  receive(session: string, events: readonly Stored[]): void {
    const opened = this.find(session);
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
      void this.fillGap(session, first.seq - 1, fresh);
      return;
    }
    this.events.get(session)?.push(...fresh);
    const story = foldEvents(opened.story, fresh);
    this.stream.track(session, story.last);
    this.put(session, { ...opened, story });
    // Views in the stream have no offers, and events that were read here reach nobody else.
    if (fresh.some(({ event }) => event.kind === "offers.changed")) void this.readOffers(session);
  }

  private async readOffers(session: string): Promise<void> {
    try {
      this.take(await get<Session>(sessionPath(session)));
    } catch {
      // The next change, or the next page, has them.
    }
  }

  /** After the sessions were listed: load what failed again, and read what the stream did not deliver. */
  catchUpAll(): void {
    for (const [session, opened] of this.state.get().open) {
      if (opened.error) this.reload(session);
      else this.catchUp(session);
    }
  }

  /** Events between reading a session and following it are in no frame: the head shows that they exist. */
  private catchUp(session: string): void {
    const opened = this.find(session);
    const head = this.state.get().sessions.get(session)?.head ?? 0;
    if (!opened || opened.loading || opened.error || head <= opened.story.last) return;
    void this.fillGap(session, head, []);
  }

  private async load(session: string): Promise<void> {
    try {
      const latest = (await takePrefetched(session)) ?? (await readLatest(session));
      const { head } = latest.session;
      const { events } = latest;
      // The answer may end before the last event, if its events are large.
      const last = events.at(-1)?.seq ?? 0;
      if (last < head) events.push(...(await readEvents(session, last, head)));
      this.events.set(session, events);
      const story = foldEvents(EMPTY_STORY, events);
      this.take(latest.session);
      this.put(session, { ...LOADING, story, older: story.first > 1, loading: false });
      this.stream.track(session, story.last);
      this.receive(session, this.early.get(session) ?? []);
      this.early.delete(session);
      this.catchUp(session);
      // It continued while it was read: what it offers may have changed before we listened.
      const known = this.state.get().sessions.get(session);
      if (known && known.head > head) await this.readOffers(session);
    } catch (error) {
      this.fail(session, error);
    }
  }

  private take(found: Session): void {
    this.state.set({ sessions: mergeSessions(this.state.get().sessions, [found]) });
  }

  private async fillGap(session: string, upto: number, then: readonly Stored[]): Promise<void> {
    const opened = this.find(session);
    if (!opened) return;
    try {
      this.receive(session, [...(await readEvents(session, opened.story.last, upto)), ...then]);
    } catch (error) {
      this.fail(session, error);
    }
  }

  private fail(session: string, error: unknown): void {
    const opened = this.find(session);
    if (opened) this.put(session, { ...opened, loading: false, error: errorText(error) });
  }

  private find(session: string): OpenSession | undefined {
    return this.state.get().open.get(session);
  }

  private put(session: string, opened: OpenSession): void {
    this.state.set({ open: withEntry(this.state.get().open, session, opened) });
  }
}

/** Events after a number, up to another at least; a page may be shorter than its limit. */
async function readEvents(session: string, after: number, upto: number): Promise<Stored[]> {
  const found: Stored[] = [];
  let last = after;
  while (last < upto) {
    const limit = Math.min(LARGEST_PAGE, upto - last);
    const page = await get<{ events: Stored[] }>(sessionPath(session, "/events"), {
      after: last,
      limit,
      pictures: false,
    });
    const end = page.events.at(-1);
    if (!end) break;
    found.push(...page.events);
    last = end.seq;
  }
  return found;
}

type Latest = Pick<Schemas["LatestEvents"], "session"> & { events: Stored[] };

const readLatest = (session: string): Promise<Latest> =>
  get(sessionPath(session, "/latest"), { limit: FIRST_PAGE });

/** What `prefetch.js` has read while the app was loaded. It is used once. */
async function takePrefetched(session: string): Promise<Latest | undefined> {
  const page = window as { prefetched?: Promise<Latest | undefined> };
  const reading = page.prefetched;
  delete page.prefetched;
  const found = await reading;
  return found?.session.session === session ? found : undefined;
}
