// The sessions that have a tab: a pure list, stored in this browser.
//
// Each session that was opened has a tab of its own. A CLI that connects again under another
// session id is another session: it gets a tab beside the one that has ended. A tab without a
// conversation waits for a CLI, and is reused by the one that connects in its folder. A CLI that begins
// another conversation in its session (`/clear`) leaves the earlier one in a tab beside it.
import type { Session } from "../api/types";
import { folderOf, type Sessions } from "./sessions";

export type Tabs = readonly string[];

const TABS = "quarterdeck.tabs";

export function loadTabs(): Tabs {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(TABS) ?? "[]");
    return Array.isArray(stored) ? stored.filter((one) => typeof one === "string") : [];
  } catch {
    return [];
  }
}

export function saveTabs(tabs: Tabs): void {
  localStorage.setItem(TABS, JSON.stringify(tabs));
}

/** The tabs with one for this session, at the end if it is new. */
export function openTab(tabs: Tabs, session: string): Tabs {
  return tabs.includes(session) ? tabs : [...tabs, session];
}

/** A tab is a session's id; for an earlier conversation, with the CLI's id of it after a blank. */
export function splitTab(tab: string): { session: string; conversation?: string } {
  const [session = "", conversation] = tab.split(" ");
  return conversation === undefined ? { session } : { session, conversation };
}

/** The path of a tab's page. */
export function pathOfTab(tab: string): string {
  return `/s/${tab.split(" ").map(encodeURIComponent).join("/")}`;
}

/** The tab of a page, if it has one. */
export function tabOfPath(path: string): string | undefined {
  if (!path.startsWith("/s/")) return undefined;
  return path.slice(3).split("/").map(decodeURIComponent).join(" ");
}

/** The tabs with one for the conversation that a session has left, before the session's own. */
export function keepConversation(tabs: Tabs, session: string, left: string): Tabs {
  const tab = `${session} ${left}`;
  const at = tabs.indexOf(session);
  if (at < 0 || tabs.includes(tab)) return tabs;
  return [...tabs.slice(0, at), tab, ...tabs.slice(at)];
}

/** The tabs without this one, and the session that is shown next. */
export function closeTab(tabs: Tabs, session: string): [Tabs, string | undefined] {
  const at = tabs.indexOf(session);
  const left = tabs.filter((one) => one !== session);
  return [left, left[Math.min(at, left.length - 1)]];
}

/** A tab that waits for its CLI: it has no conversation yet, and has not ended. */
function isFresh(session: Session): boolean {
  return session.cli_session === null && session.turns === 0 && session.state !== "ended";
}

/** The tabs with a new session, and the tab that it replaced. */
export function addNewSession(
  tabs: Tabs,
  sessions: Sessions,
  session: Session,
): [Tabs, string | undefined] {
  if (tabs.includes(session.session)) return [tabs, undefined];
  // A fork is shown beside the session that it comes from.
  const parent = session.parent ? tabs.indexOf(session.parent) + 1 : 0;
  if (parent > 0) {
    return [[...tabs.slice(0, parent), session.session, ...tabs.slice(parent)], undefined];
  }
  const beside = tabs.filter((one) => {
    const tab = sessions.get(one);
    return tab && tab.machine === session.machine && folderOf(tab) === folderOf(session);
  });
  const fresh = beside.find((one) => isFresh(sessions.get(one) as Session));
  if (fresh) return [tabs.map((one) => (one === fresh ? session.session : one)), fresh];
  const over = beside.findLast((one) =>
    ["ended", "disconnected"].includes(sessions.get(one)?.state ?? ""),
  );
  if (!over) return [tabs, undefined];
  const at = tabs.indexOf(over) + 1;
  return [[...tabs.slice(0, at), session.session, ...tabs.slice(at)], undefined];
}
