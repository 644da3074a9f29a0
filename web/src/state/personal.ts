// What follows a person to every device: pins, read marks, drafts and the theme, which the hub keeps.
// The stream tells when another device has changed something.
//
// Each change is in the browser's storage until the hub has it, so that a closed page or a lost network
// loses none. The hub decides which device wins, and joins drafts; what it answers is taken over here,
// but never over a text that a person is changing.
import { get, patch } from "../api/http";
import type { components } from "../api/schema";
import { DRAFT_PREFIX, loadDraft, saveDraft } from "./drafts";
import { Observable } from "./observable";

type Page = components["schemas"]["PreferencePage"];
type Preference = components["schemas"]["Preference"];
type Change = components["schemas"]["PreferenceChange"];
type Kind = Change["kind"];

const PINS = "quarterdeck.pins";
const SYNC = `${DRAFT_PREFIX}sync`; // with the drafts, so that it is forgotten with them
const PAUSE_MS = 1500;
const LOOK_MS = 60_000;
/** The hub's own limit of one request. */
const MOST = 500;

interface Saved {
  version: number;
  /** The versions of the drafts that this browser has seen. */
  drafts: Record<string, number>;
  pending: Record<string, Change>;
}

const EMPTY: Saved = { version: 0, drafts: {}, pending: {} };

export class Personal {
  readonly pins = new Observable<{ pinned: ReadonlySet<string> }>({ pinned: readPins() });
  private readonly drafts = new Map<string, Set<(text: string) => void>>();
  private readonly settings = new Set<(key: string, value: string) => void>();
  private saved: Saved = readSaved();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private look: ReturnType<typeof setInterval> | undefined;
  private busy = false;
  /** Something has changed while a request was on its way. */
  private again = false;
  private onRead: (session: string, seq: number) => void = () => undefined;

  /** Begin to follow the person. `onRead` takes the read marks of other devices. */
  start(onRead: (session: string, seq: number) => void): void {
    this.onRead = onRead;
    document.addEventListener("visibilitychange", this.seen);
    this.look ??= setInterval(this.seen, LOOK_MS);
    void this.synchronize();
  }

  stop(): void {
    document.removeEventListener("visibilitychange", this.seen);
    clearInterval(this.look);
    clearTimeout(this.timer);
    this.look = undefined;
  }

  private readonly seen = (): void => {
    if (document.visibilityState === "visible") void this.synchronize();
    else if (Object.keys(this.saved.pending).length) void this.synchronize();
  };

  /** The hub has this version: another device may have changed something. */
  changed(version: number): void {
    if (version > this.saved.version) void this.synchronize();
  }

  /** A person has chosen a setting. */
  setting(key: string, value: string): void {
    this.note("setting", key, value);
  }

  /** Have `listener` called with the settings of other devices. */
  onSetting(listener: (key: string, value: string) => void): void {
    this.settings.add(listener);
  }

  togglePin(session: string): void {
    const pinned = new Set(this.pins.get().pinned);
    const now = !pinned.delete(session);
    if (now) pinned.add(session);
    this.setPins(pinned);
    this.note("pin", session, now);
  }

  read(session: string, seq: number): void {
    this.note("read", session, seq);
  }

  /** A person has changed the text of a session's composer. */
  draft(session: string, text: string): void {
    if (text === loadDraft(session)) return;
    saveDraft(session, text);
    this.note("draft", session, text);
  }

  /** Have `listener` called with the draft of another device. Gives what ends that. */
  onDraft(session: string, listener: (text: string) => void): () => void {
    const ours = this.drafts.get(session) ?? new Set();
    this.drafts.set(session, ours.add(listener));
    return () => ours.delete(listener);
  }

  private note(kind: Kind, key: string, value: Change["value"]): void {
    const base = kind === "draft" ? (this.saved.drafts[key] ?? 0) : 0;
    const change: Change = { kind, key, value, at: Date.now(), base };
    this.save({ ...this.saved, pending: { ...this.saved.pending, [`${kind} ${key}`]: change } });
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.synchronize(), PAUSE_MS);
  }

  /** Tell the hub what changed here, and take over what changed elsewhere. */
  async synchronize(): Promise<void> {
    if (this.busy) {
      this.again = true;
      return;
    }
    this.busy = true;
    this.again = false;
    const sent = Object.entries(this.saved.pending).slice(0, MOST);
    try {
      const after = this.saved.version;
      const changes = sent.map(([, change]) => change);
      const page = changes.length
        ? await patch<Page>(`/api/preferences?after=${after}`, { changes })
        : await get<Page>("/api/preferences", { after });
      this.take(page, new Map(sent));
    } catch {
      // It is tried again with the next change, or when the page is looked at.
    } finally {
      this.busy = false;
    }
    if (this.again) await this.synchronize();
  }

  private take(page: Page, sent: ReadonlyMap<string, Change>): void {
    const pending = { ...this.saved.pending };
    for (const [name, change] of sent) if (pending[name] === change) delete pending[name];
    const drafts = { ...this.saved.drafts };
    for (const one of page.preferences) if (one.kind === "draft") drafts[one.key] = one.version;
    this.save({ version: Math.max(this.saved.version, page.version), drafts, pending });
    for (const one of page.preferences) this.apply(one, sent.get(`${one.kind} ${one.key}`));
  }

  private apply(one: Preference, sent: Change | undefined): void {
    if (one.kind === "pin") {
      if (this.saved.pending[`pin ${one.key}`]) return;
      const pinned = new Set(this.pins.get().pinned);
      if (one.value) pinned.add(one.key);
      else pinned.delete(one.key);
      this.setPins(pinned);
    } else if (one.kind === "read") {
      this.onRead(one.key, Number(one.value));
    } else if (one.kind === "draft") {
      this.applyDraft(one.key, String(one.value), sent);
    } else if (one.kind === "setting" && !this.saved.pending[`setting ${one.key}`]) {
      for (const listener of this.settings) listener(one.key, String(one.value));
    }
  }

  private applyDraft(session: string, theirs: string, sent: Change | undefined): void {
    const ours = loadDraft(session);
    const told = sent === undefined ? undefined : String(sent.value);
    if (theirs === ours || theirs === told) return;
    const typing = this.saved.pending[`draft ${session}`] !== undefined;
    if (typing && told === undefined) return; // the next request has it, and the hub joins them
    // What was typed since the request takes the place of what the request had.
    const next =
      typing && told && theirs.endsWith(told)
        ? theirs.slice(0, theirs.length - told.length) + ours
        : theirs;
    saveDraft(session, next);
    for (const listener of this.drafts.get(session) ?? []) listener(next);
    if (typing) this.note("draft", session, next);
  }

  private setPins(pinned: ReadonlySet<string>): void {
    this.pins.set({ pinned });
    store(PINS, [...pinned]);
  }

  private save(saved: Saved): void {
    this.saved = saved;
    store(SYNC, saved);
  }
}

function readPins(): ReadonlySet<string> {
  try {
    return new Set(JSON.parse(localStorage.getItem(PINS) ?? "[]") as string[]);
  } catch {
    return new Set();
  }
}

function readSaved(): Saved {
  try {
    return { ...EMPTY, ...(JSON.parse(localStorage.getItem(SYNC) ?? "{}") as Partial<Saved>) };
  } catch {
    return EMPTY;
  }
}

function store(key: string, value: unknown): void {
  try {
    localStorage.setItem(key, JSON.stringify(value));
  } catch {
    // The storage is full: it is still in memory.
  }
}

export const personal = new Personal();
