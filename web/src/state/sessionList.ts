// The list of sessions: read from the hub when the stream is connected, then kept up to date by the
// views that the hub pushes. Nothing is folded here: a view is shown as the hub sent it.
import { get, sessionPath } from "../api/http";
import type { Session, Stored } from "../api/types";
import type { AppState } from "./appState";
import { type Slice, withoutEntry } from "./observable";
import { mergeSessions, NO_SESSIONS } from "./sessions";

const PAGE = 200;
/** Events that tell a person nothing by themselves; a restart of the hub brings some. */
const QUIET: ReadonlySet<string> = new Set([
  "run.link_lost",
  "run.link_found",
  "run.state",
  "offers.changed",
  "mcp.changed",
  "context.changed",
]);

export class SessionList {
  constructor(private readonly state: Slice<Pick<AppState, "sessions" | "activity" | "listed">>) {}

  /** Read all sessions, the archived ones last. */
  async list(): Promise<void> {
    for (const archived of [false, true]) {
      let after: string | undefined;
      do {
        const page = await get<{ sessions: Session[]; next: string | null }>("/api/sessions", {
          limit: PAGE,
          archived: archived || undefined,
          after,
        });
        this.receiveViews(page.sessions);
        this.state.set({ listed: true });
        after = page.next ?? undefined;
      } while (after);
    }
  }

  receiveViews(views: readonly Session[]): void {
    this.state.set({ sessions: mergeSessions(this.state.get().sessions, views) });
  }

  /** Take from events what no view reports: that something happened, and that a session is deleted. */
  receive(events: readonly Stored[]): void {
    let { sessions } = this.state.get();
    const activity = new Map(this.state.get().activity);
    const changed = new Set<string>();
    for (const { session, seq, at, event } of events) {
      if (!QUIET.has(event.kind)) activity.set(session, { seq, at });
      if (event.kind === "session.deleted") sessions = withoutEntry(sessions, session);
      if (event.kind === "offers.changed" && sessions.get(session)?.offers) changed.add(session);
    }
    this.state.set({ sessions, activity });
    for (const session of changed) void this.read(session);
  }

  /** Read one session with its offers, which views in the stream do not have. */
  private async read(session: string): Promise<void> {
    try {
      this.receiveViews([await get<Session>(sessionPath(session))]);
    } catch {
      // It was deleted in the meantime, or the connection is lost: the next listing has it.
    }
  }

  clear(): void {
    this.state.set({ sessions: NO_SESSIONS, activity: new Map() });
  }
}
